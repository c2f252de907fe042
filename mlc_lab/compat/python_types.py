"""Tuples of Python's types, by which code that was once for Python 2 too asks what it was given."""

from __future__ import annotations

import numpy as np

string_types = (str,)
integer_types = (int, np.int32)
numeric_types = (*integer_types, float, np.float16, np.float32)


def py_str(text: bytes) -> str:
    """Bytes as a string."""
    return text.decode("utf-8")


__all__ = ["integer_types", "numeric_types", "py_str", "string_types"]

"""What tests of tensor programs use: `tvm.testing` of the course."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def assert_allclose(actual: object, desired: object, rtol: float = 1e-7, atol: float = 1e-7
                    ) -> None:
    """Raise AssertionError unless two arrays agree: |actual - desired| <= atol + rtol * |desired|.

    Tensors of this package, of torch and of anything with DLPack are taken as they are.
    """
    actual, desired = _array(actual), _array(desired)
    np.testing.assert_allclose(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


def _array(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach()
    if hasattr(value, "numpy"):
        value = value.numpy()
    return np.asanyarray(value)


def main() -> None:
    """Run the tests of the calling file with pytest."""
    import pytest

    frame = sys._getframe(1)
    if frame.f_globals.get("__name__") == "__main__":
        sys.exit(pytest.main([frame.f_globals["__file__"], *sys.argv[1:]]))


__all__ = ["assert_allclose", "main"]

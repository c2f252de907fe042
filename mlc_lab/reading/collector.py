"""Python's search for cyclic garbage, paused while a large tree is made.

The search starts whenever many objects were made, and walks over those that live: over all that a
long text has been read into so far, again and again, and finds nothing. That took a third of the
time.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def makes_many(fn: F) -> F:
    """Decorator: no search for garbage while the function runs. What is counted as garbage by
    references goes at once as always."""

    @functools.wraps(fn)
    def paused(*args: Any, **kwargs: Any) -> Any:
        if not gc.isenabled():  # somebody around does the same
            return fn(*args, **kwargs)
        gc.disable()
        try:
            return fn(*args, **kwargs)
        finally:
            gc.enable()

    return paused  # type: ignore[return-value]


__all__ = ["makes_many"]

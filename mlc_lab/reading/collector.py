"""Python's search for cyclic garbage: paused where a large tree is made, rarer in a compilation.

The search starts whenever many objects were made, and walks over those that live: over all that a
long text has been read into so far, again and again, and finds nothing. That took a third of the
time. A compilation makes many small trees, and analyzers of them that are garbage at once: it is
searched for, but less often, which saves up to a twentieth of the time.
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


#: objects made between two searches during a compilation; Python's own number is 700
RARELY = 20_000


def collects_rarely(fn: F) -> F:
    """Decorator: fewer searches for garbage while the function runs."""

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        usual = gc.get_threshold()
        if not 0 < usual[0] < RARELY:  # somebody around does the same, or has switched it off
            return fn(*args, **kwargs)
        gc.set_threshold(RARELY, *usual[1:])
        try:
            return fn(*args, **kwargs)
        finally:
            gc.set_threshold(*usual)

    return run  # type: ignore[return-value]


__all__ = ["RARELY", "collects_rarely", "makes_many"]

"""Calls on the simulated device are looked at for races, where that takes little.

A real GPU does not tell that two threads access one element with nothing to order them: results
depend on which comes first. The simulated device runs threads in an order of its own, and would
not show it either. So before the first calls of a function its threads are run in step, with the
numbers of the call (`observe/gpu/races.py`), and what clashes is said in a RaceWarning.

MLC_LAB_RACES in the environment says when: "small" (the default) for small shapes, "all" for all
that can be followed, "none" never.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

#: shapes and numbers of a function that are looked at; with others it is run as it is
_MOST_CALLS = 4
_WHEN = ("small", "all", "none")


class RaceWarning(RuntimeWarning):
    """Threads of a kernel access one element with nothing to order them."""


def looked_at(name: str, run: Callable[..., Any], races_of: Callable[[Sequence[Any], bool], Any]
              ) -> Callable[..., Any]:
    """A function that looks for races before calls of other shapes or numbers than before.
    `races_of` gives those of arguments; its second one says that only small shapes count."""
    seen: set[Any] = set()

    def call(*args: Any) -> Any:
        when = os.environ.get("MLC_LAB_RACES") or _WHEN[0]
        if when not in _WHEN:
            raise ValueError(f"MLC_LAB_RACES is {when!r}: it is {', '.join(_WHEN[:-1])} or none")
        key = None
        if when != "none" and len(seen) < _MOST_CALLS:
            key = tuple(tuple(a.shape) if hasattr(a, "shape") else a for a in args)
        if key is not None and key not in seen:
            seen.add(key)
            found = races_of(args, when == "small")
            if found:
                warnings.warn(RaceWarning(
                    f"{name}: threads access one element with nothing to order them, so a GPU may "
                    f"give another result each time:\n{found}\nA barrier orders the threads of a "
                    "block; those of different blocks need kernels of their own. With "
                    "MLC_LAB_RACES=none in the environment nothing is looked at"), stacklevel=3)
        return run(*args)

    return call


__all__ = ["RaceWarning", "looked_at"]

"""Shuffles: a thread of a GPU reads a value of another lane of its warp, through no memory.

`tvm_warp_shuffle(mask, value, lane, width, warp)` is `value` as lane `lane` has it, where the lanes
of a warp are parted into groups of `width`; `_down` and `_up` read the lane that is so far above or
below. A lane outside of the group, or one that no thread has, gives a thread its own value. All
lanes of the mask come to a shuffle together, so it is a place where the threads of a warp wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .expr import Call, PrimExpr
from .stmt import Stmt

NAMES = ("tvm_warp_shuffle", "tvm_warp_shuffle_up", "tvm_warp_shuffle_down")
_OPS = frozenset("tir." + name for name in NAMES)


def is_shuffle(e: Any) -> bool:
    """Whether an expression reads a value of another lane."""
    return type(e) is Call and getattr(e.op, "name", "") in _OPS


def shuffles_of(s: Stmt) -> list[Call]:
    """The shuffles in the expressions of a statement, not of those inside of it: what one needs of
    others comes first."""
    found: list[Call] = []

    def look(e: Any) -> None:
        for part in e.children():
            if isinstance(part, PrimExpr):
                look(part)
        if is_shuffle(e):
            found.append(e)

    for part in s.children():
        if isinstance(part, PrimExpr):
            look(part)
    return found


def source_of(shuffle: Call, place: Any, count: Any, by: Any, width: Any,
              choose: Callable[[Any, Any, Any], Any]) -> Any:
    """The number, in its block of `count` threads, of the thread that the one numbered `place`
    reads from. Numbers, arrays and expressions alike: `choose(condition, a, b)` is `a` where the
    condition holds, else `b`."""
    name, lane = shuffle.op.name, place % width  # type: ignore[union-attr]
    if name.endswith("_down"):
        other, inside = place + by, lane + by < width
    elif name.endswith("_up"):
        other, inside = place - by, by <= lane
    else:
        other, inside = place - lane + by % width, True
    found = other if inside is True else choose(inside, other, place)
    return choose(found < count, found, place)


__all__ = ["NAMES", "is_shuffle", "shuffles_of", "source_of"]

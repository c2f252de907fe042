"""The constraints in force, found by what they say.

Under a thousand nested conditions each comparison is looked up among a thousand, so they are kept
by an outline, which two expressions have in common where they are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..tir.expr import BinaryOp, BufferLoad, FloatImm, IntImm, Not, PrimExpr, SizeVar, Var
from .expr_util import same

#: levels of operations in an outline
_DEPTH = 4


class Literals:
    """Conditions that are taken for true, each part of a conjunction by itself."""

    __slots__ = ("_by_outline", "_parts")

    def __init__(self, parts: Iterable[PrimExpr] = ()) -> None:
        self._by_outline: dict[Any, list[PrimExpr]] = {}
        self._parts: list[PrimExpr] = []
        self.enter([*parts])

    def enter(self, parts: Sequence[PrimExpr]) -> int:
        """Take these for true as well; how many there were before."""
        before = len(self._parts)
        for part in parts:
            self._parts.append(part)
            self._by_outline.setdefault(_outline(part), []).append(part)
        return before

    def leave(self, count: int) -> None:
        """Forget all but the first `count`."""
        while len(self._parts) > count:
            self._by_outline[_outline(self._parts.pop())].pop()

    def has(self, e: PrimExpr) -> bool:
        """Whether one of them says just `e`."""
        return any(same(e, known) for known in self._by_outline.get(_outline(e), ()))

    def __iter__(self) -> Iterator[PrimExpr]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def _outline(e: Any, depth: int = _DEPTH) -> Any:
    """A constant by its value, a variable itself, an element by its place, an operation by its
    operands, and further in by its kind alone."""
    kind = type(e)
    if kind is IntImm:
        return e.value
    if kind is FloatImm:
        return e.value if e.value == e.value else kind
    if kind is Var or kind is SizeVar:
        return e
    if depth == 0:
        return kind
    if kind is BufferLoad:
        return (e.buffer, *(_outline(i, depth - 1) for i in e.indices))
    if isinstance(e, BinaryOp):
        return kind, _outline(e.a, depth - 1), _outline(e.b, depth - 1)
    if kind is Not:
        return kind, _outline(e.a, depth - 1)
    return kind


__all__ = ["Literals"]

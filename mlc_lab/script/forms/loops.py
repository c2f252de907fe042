"""Forms about loops: T.grid, T.serial and its like, T.thread_binding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ...reading import LimitError, limits
from ...tir import expr as E
from ...tir import op as O
from ...tir import stmt as S
from .. import tir as T
from ..regions import extent_between
from .table import form

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ...tir.expr import ExprLike
    from ..parser import Parser


class Loops:
    """What a `for` iterates over: one (min, extent) a loop, and how they run."""

    def __init__(self, ranges: list[tuple[Any, Any]], kind: int = 0, thread: str | None = None,
                 annotations: Mapping[str, Any] | None = None) -> None:
        self.ranges, self.kind, self.thread = ranges, kind, thread
        self.annotations = {k: S.annotation_value(v) for k, v in (annotations or {}).items()}

    def thread_binding(self, dtype: str) -> Any:
        """The thread axis of a bound loop."""
        if self.thread is None:
            return None
        return E.IterVar(None, E.Var(self.thread, dtype), E.IterVar.ThreadIndex, self.thread)


@form("grid")
def grid(parser: Parser, *extents: ExprLike) -> Loops:
    """Nested serial loops from 0."""
    if not extents:
        raise TypeError("T.grid needs at least one extent")
    if len(extents) > limits.LOOPS:
        raise LimitError(f"T.grid of {len(extents)} loops: up to {limits.LOOPS} may be nested")
    ranges = []
    for extent in extents:
        extent = E.const_index(T.as_expr(extent))
        ranges.append((E.IntImm(extent.dtype, 0), extent))
    return Loops(ranges)


def _range(start: ExprLike, stop: ExprLike | None) -> tuple[Any, Any]:
    start = T.as_expr(start)
    if stop is None:
        extent = E.const_index(start)
        return E.IntImm(extent.dtype, 0), extent
    low, high = E.const_index(start), E.const_index(T.as_expr(stop))
    if low.dtype != high.dtype:
        low, high = O.match_types(low, high)
    return low, extent_between(low, high)


def _loop(word: str, kind: int) -> Callable:
    @form(word)
    def loop(parser: Parser, start: ExprLike, stop: ExprLike | None = None, *,
             annotations: dict | None = None) -> Loops:
        return Loops([_range(start, stop)], kind, None, annotations)

    return loop


for _word, _kind in (("serial", 0), ("parallel", 1), ("vectorized", 2), ("unroll", 3)):
    _loop(_word, _kind)


@form("thread_binding")
def thread_binding(parser: Parser, start: Any, stop: Any = None,
                   thread: str | None = None, *, annotations: dict | None = None) -> Loops:
    """A loop whose iterations are GPU threads."""
    if thread is None:
        if not isinstance(stop, str):
            raise TypeError('T.thread_binding needs thread=, for example "threadIdx.x"')
        stop, thread = None, stop
    return Loops([_range(start, stop)], 4, thread, annotations)


__all__ = ["Loops"]

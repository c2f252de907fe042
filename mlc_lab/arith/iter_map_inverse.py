"""The inverse of a bijective iteration map, by running it backwards.

A value that comes in at a sum is divided among its splits by // and %; values that come in at the
splits of one mark are added up again. At the end each input iterator has its value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..tir.expr import Add, PrimExpr, Sub, Var, const_index
from . import expr_util as U
from .iter_map_expr import (
    IterMark, IterSumExpr, Numbers, collect_splits, expression, new_analyzer,
)

if TYPE_CHECKING:
    from .analyzer import Analyzer


def inverse_affine_iter_map(iter_map: Sequence[IterSumExpr], outputs: Sequence[Any],
                            analyzer: Analyzer | None = None) -> dict[Var, PrimExpr]:
    """The input iterators as expressions of `outputs`, the values of the indices.

    `iter_map` is the `indices` of a successful `detect_iter_map`, bijective for the inverse to be
    one. For `[i // 16, i % 16]` and outputs (a, b) the answer is {i: a * 16 + b}. Iterators of
    extent 1 do not occur in the answer. Raises ValueError if the lengths differ.
    """
    if len(iter_map) != len(outputs):
        raise ValueError(f"the map has {len(iter_map)} indices, but {len(outputs)} outputs are "
                         "given")
    n = Numbers(new_analyzer(analyzer))
    pending: dict[IterMark, PrimExpr] = {}
    order = _outer_first(iter_map)
    for total, value in zip(iter_map, outputs):
        _into_sum(total, const_index(value), pending, n)
    inverse: dict[Var, PrimExpr] = {}
    for mark in order:
        value = pending.get(mark)
        if value is None:
            continue
        source = mark.source
        if isinstance(source, IterSumExpr):
            _into_sum(source, value, pending, n)
        elif isinstance(source, Var):
            inverse[source] = value
        elif type(source) is Sub and isinstance(source.a, Var):  # an iterator that starts at b
            inverse[source.a] = U.add(value, source.b)
        elif type(source) is Add and isinstance(source.a, Var):  # one that padding shifts by b
            inverse[source.a] = U.sub(value, source.b)
    return {var: n.analyzer.simplify(value) for var, value in inverse.items()}


def _outer_first(iter_map: Sequence[IterSumExpr]) -> list[IterMark]:
    """Marks such that each comes before those its source is made of."""
    seen: set[IterMark] = set()
    out: list[IterMark] = []

    def visit(mark: IterMark) -> None:
        if mark in seen:
            return
        seen.add(mark)
        if isinstance(mark.source, IterSumExpr):
            for split in mark.source.args:
                visit(split.source)
        out.append(mark)

    for mark in collect_splits(iter_map):
        visit(mark)
    out.reverse()
    return out


def _into_sum(total: IterSumExpr, value: PrimExpr, pending: dict[IterMark, PrimExpr],
              n: Numbers) -> None:
    """Divide `value` of a sum among its splits and add it to what their marks received."""
    dtype = value.dtype
    if not (type(total.base) is int and total.base == 0):
        value = U.sub(value, expression(total.base, dtype))
    for place, split in enumerate(total.args):
        part = value
        if not n.equal(split.scale, 1):
            part = U.floordiv(part, expression(split.scale, dtype))
        if place > 0:
            part = U.floormod(part, expression(split.extent, dtype))
        if not n.equal(split.lower_factor, 1):
            part = U.mul(part, expression(split.lower_factor, dtype))
        known = pending.get(split.source)
        pending[split.source] = part if known is None else U.add(known, part)

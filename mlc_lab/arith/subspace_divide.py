"""Dividing an iteration space in an outer and an inner part, as blockize needs it.

Each binding is written as outer * extent(inner) + inner, where `outer` uses only the iterators
outside the subspace and `inner` only those in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Sequence

from ..tir.expr import LT, PrimExpr, Range, Sub, Var
from . import expr_util as U
from .expr_util import TRUE
from .iter_map import detect_iter_map, ranges_are_independent
from .iter_map_expr import (
    IterMark, IterSplitExpr, IterSumExpr, Number, Numbers, Unresolved, collect_splits, expression,
    new_analyzer, sum_to_expr,
)

if TYPE_CHECKING:
    from .analyzer import Analyzer


class _Division(NamedTuple):
    """outer * inner_extent + inner; `side` is "outer", "inner" or "both"."""

    outer: Any
    outer_extent: Number
    inner: Any
    inner_extent: Number
    side: str


def subspace_divide(bindings: Sequence[Any], input_iters: Mapping[Var, Range],
                    sub_iters: Iterable[Var], predicate: PrimExpr = TRUE,
                    check_level: Any = "surjective", analyzer: Analyzer | None = None,
                    simplify_trivial_iterators: bool = True) -> list[tuple[Any, Any]]:
    """Divide `bindings` by the subspace of `sub_iters`.

    Returns one pair of IterMarks (outer, inner) a binding, such that binding = outer *
    inner.extent + inner, and one last pair of conditions (outer predicate, inner predicate); []
    where the space cannot be divided so. For z*12 + y*3 + x + c and the subspace of x (extent 3)
    the pair is (z*4 + y, x + c).
    """
    analyzer = new_analyzer(analyzer)
    if not ranges_are_independent(input_iters):
        return []
    found = detect_iter_map(bindings, input_iters, predicate, check_level, analyzer,
                            simplify_trivial_iterators)
    if not found.indices:
        return []
    divider = _Divider(Numbers(analyzer), found.indices, set(sub_iters))
    out: list[tuple[Any, Any]] = []
    try:
        for total in found.indices:
            division = divider.divide_sum(total, None)
            out.append((_mark(division.outer, division.outer_extent, total.dtype),
                        _mark(division.inner, division.inner_extent, total.dtype)))
    except Unresolved:
        return []
    out.append((divider.outer_predicate, divider.inner_predicate))
    return out


def _as_split(value: Any, extent: Number) -> IterSplitExpr:
    return value if isinstance(value, IterSplitExpr) else IterSplitExpr(IterMark(value, extent))


def _mark(value: Any, extent: Number, dtype: str) -> IterMark:
    if isinstance(value, IterSplitExpr):
        value = IterSumExpr([value], 0, dtype)
    return IterMark(value, extent)


class _Divider:
    def __init__(self, n: Numbers, indices: Sequence[IterSumExpr], inner: set[Var]) -> None:
        self.n = n
        self.inner_vars = inner
        self.splits = collect_splits(indices)
        self.known: dict[IterSplitExpr, _Division] = {}
        self.outer_predicate: PrimExpr = TRUE
        self.inner_predicate: PrimExpr = TRUE

    def divide_sum(self, total: IterSumExpr, mark_extent: Number | None) -> _Division:
        """Divide a sum; `mark_extent` is the extent of the mark that it is the source of."""
        n, dtype = self.n, total.dtype
        empty = IterSumExpr([], 0, dtype)
        if not total.args:
            return _Division(empty, 1, IterSumExpr([], total.base, dtype), 1, "inner")
        if len(total.args) == 1:
            if not n.equal(total.args[0].scale, 1):
                raise Unresolved("a multiple of an iterator cannot be divided")
            division = self.divide_split(total.args[0])
            if type(total.base) is int and total.base == 0:
                if mark_extent is not None and not n.equal(total.args[0].extent, mark_extent):
                    return self.limited(division, mark_extent, dtype)
                return division
            if division.side == "outer":
                outer = self._sum(division.outer, dtype)
                division = division._replace(outer=IterSumExpr(
                    outer.args, n.add(outer.base, total.base), dtype))
            else:
                inner = self._sum(division.inner, dtype)
                division = division._replace(inner=IterSumExpr(
                    inner.args, n.add(inner.base, total.base), dtype))
            if mark_extent is not None and not n.equal(total.args[0].extent, mark_extent):
                return self.limited(division, mark_extent, dtype)
            return division
        outer_args: list[IterSplitExpr] = []
        inner_args: list[IterSplitExpr] = []
        extent: Number = 1
        for arg in reversed(total.args):  # from the lowest up: inner ones first
            if not n.equal(arg.scale, extent):
                raise Unresolved("a sliding window cannot be divided")
            division = self.divide_split(arg)
            if division.side == "inner":
                if outer_args and not n.equal(division.inner_extent, 1):
                    raise Unresolved("inner iterators lie above outer ones")
                new = _as_split(division.inner, division.inner_extent)
                inner_args.append(new)
            elif division.side == "outer":
                new = _as_split(division.outer, division.outer_extent)
                outer_args.append(new)
            else:
                raise Unresolved("an iterator belongs to both spaces")
            extent = n.mul(extent, new.extent)
        outer, outer_extent = self._stack(outer_args, 0, dtype)
        inner, inner_extent = self._stack(inner_args, total.base if inner_args else 0, dtype)
        if not inner_args:
            outer.base = total.base
        side = "both" if outer_args and inner_args else "outer" if outer_args else "inner"
        division = _Division(outer if outer_args else empty, outer_extent,
                             inner if inner_args else empty, inner_extent, side)
        if mark_extent is not None and not n.equal(extent, mark_extent):
            return self.limited(division, mark_extent, dtype)
        return division

    def limited(self, division: _Division, extent: Number, dtype: str) -> _Division:
        """A sum that a predicate shortens must lie in one space whole; the predicate goes there."""
        limit = expression(extent, dtype)
        if division.side == "outer":
            value = sum_to_expr(self._sum(division.outer, dtype), self.n, dtype)
            self.outer_predicate = U.logical_and(self.outer_predicate, LT(value, limit))
            return division._replace(outer_extent=extent)
        if division.side == "inner":
            value = sum_to_expr(self._sum(division.inner, dtype), self.n, dtype)
            self.inner_predicate = U.logical_and(self.inner_predicate, LT(value, limit))
            return division._replace(inner_extent=extent)
        raise Unresolved("a predicate ties both spaces together")

    def _sum(self, value: Any, dtype: str) -> IterSumExpr:
        return value if isinstance(value, IterSumExpr) else IterSumExpr([value], 0, dtype)

    def _stack(self, args: list[IterSplitExpr], base: Number,
               dtype: str) -> tuple[IterSumExpr, Number]:
        """Splits, lowest first, as one mixed-radix sum, and its extent."""
        extent: Number = 1
        out = []
        for arg in args:
            out.append(IterSplitExpr(arg.source, arg.lower_factor, arg.extent, extent))
            extent = self.n.mul(extent, arg.extent)
        out.reverse()
        return IterSumExpr(out, base, dtype), extent

    def divide_split(self, split: IterSplitExpr) -> _Division:
        """Divide one split; splits of one mark are divided together."""
        found = self.known.get(split)
        if found is None:
            self._divide_mark(split.source)
            found = self.known[split]
        return found

    def _divide_mark(self, mark: IterMark) -> None:
        n = self.n
        splits = self.splits[mark]
        source = mark.source
        if not isinstance(source, IterSumExpr):
            var = source.a if type(source) is Sub else source
            inner = var in self.inner_vars
            for split in splits:
                unit = IterSplitExpr(split.source, split.lower_factor, split.extent, 1)
                empty = IterSumExpr([], 0, source.dtype)
                self.known[split] = _Division(empty, 1, unit, split.extent, "inner") if inner \
                    else _Division(unit, split.extent, empty, 1, "outer")
            return
        whole = self.divide_sum(source, mark.extent)
        if not (type(source.base) is int and source.base == 0):
            # conditions hold it back to values from 0 on: the base is no first value of its own
            if whole.side == "outer":
                whole = whole._replace(outer=_as_split(whole.outer, whole.outer_extent))
            else:
                whole = whole._replace(inner=_as_split(whole.inner, whole.inner_extent))
        if len(splits) == 1:
            split = splits[0]
            if n.equal(split.lower_factor, 1) and n.equal(split.extent, mark.extent):
                self.known[split] = whole
                return
        outer_mark = _mark(whole.outer, whole.outer_extent, source.dtype)
        inner_mark = _mark(whole.inner, whole.inner_extent, source.dtype)
        empty = IterSumExpr([], 0, source.dtype)
        for split in splits:
            if whole.side == "inner" or n.divides(n.mul(split.lower_factor, split.extent),
                                                  whole.inner_extent):
                new = IterSplitExpr(inner_mark, split.lower_factor, split.extent, 1)
                self.known[split] = _Division(empty, 1, new, split.extent, "inner")
            elif whole.side == "outer" or n.divides(whole.inner_extent, split.lower_factor):
                lower = n.div(split.lower_factor, whole.inner_extent)
                new = IterSplitExpr(outer_mark, lower, split.extent, 1)
                self.known[split] = _Division(new, split.extent, empty, 1, "outer")
            else:
                raise Unresolved("a split lies across the border of the two spaces")

"""Index maps (`lambda i, j: [i // 4, j, i % 4]`): their inverses, and what shapes they make.

The functions here are also methods of `IndexMap` once `arith` is imported.
"""

from __future__ import annotations

from math import lcm
from typing import Any, Sequence

from ..tir.expr import EQ, LE, LT, And, IntImm, PrimExpr, Range, Var, const_index
from ..tir.function import IndexMap
from ..tir.functor import substitute
from . import expr_util as U
from .expr_util import FALSE, TRUE, imm
from .int_set import eval_set
from .iter_map import (
    IterMapRewriter, IterMark, IterSplitExpr, IterSumExpr, Number, Unresolved, _new_analyzer,
    detect_iter_map, number,
)
from .iter_map_inverse import inverse_affine_iter_map


def as_ranges(shape: Sequence[Any], index_map: IndexMap) -> list[Range]:
    """Ranges of the initial indices; an int or expression means [0, it).

    Raises ValueError if their number is not that of the initial indices.
    """
    if len(shape) != len(index_map.initial_indices):
        raise ValueError(f"the index map takes {len(index_map.initial_indices)} indices, but "
                         f"{len(shape)} dimensions are given")
    out = []
    for dim in shape:
        if not isinstance(dim, Range):
            dim = const_index(dim)
            dim = Range.from_min_extent(IntImm(dim.dtype, 0), dim)
        out.append(dim)
    return out


def map_ranges(index_map: IndexMap, ranges: Sequence[Any], analyzer: Any = None) -> list[Range]:
    """The ranges of the final indices as the initial ones run over `ranges`."""
    analyzer = _new_analyzer(analyzer)
    doms = dict(zip(index_map.initial_indices, as_ranges(ranges, index_map)))
    out = []
    for index in index_map.final_indices:
        found = eval_set(index, doms, analyzer)
        if not (found.has_lower_bound() and found.has_upper_bound()):
            raise ValueError(f"the values of index {index!r} have no bounds")
        low = analyzer.simplify(found.min_value)
        extent = analyzer.simplify(found.max_value - found.min_value + 1)
        out.append(Range.from_min_extent(low, extent))
    return out


def map_shape(index_map: IndexMap, shape: Sequence[Any], analyzer: Any = None) -> list[PrimExpr]:
    """The shape of a buffer of `shape` after the map: one extent a final index."""
    analyzer = _new_analyzer(analyzer)
    return [analyzer.simplify(r.min + r.extent) for r in map_ranges(index_map, shape, analyzer)]


def is_bijective(index_map: IndexMap, ranges: Sequence[Any], analyzer: Any = None) -> bool:
    """Whether the map is one to one onto the box of its final ranges."""
    doms = dict(zip(index_map.initial_indices, as_ranges(ranges, index_map)))
    return bool(detect_iter_map(index_map.final_indices, doms, TRUE, "bijective", analyzer).indices
                ) or not index_map.final_indices


def inverse(index_map: IndexMap, shape: Sequence[Any], analyzer: Any = None) -> IndexMap:
    """The map from final to initial indices.

    Raises ValueError if the map is not bijective on `shape` (see `non_surjective_inverse`).
    """
    if index_map.inverse_index_map is not None:
        return index_map.inverse_index_map
    found, padding = non_surjective_inverse(index_map, shape, analyzer)
    if not (type(padding) is IntImm and not padding.value):
        raise ValueError(f"{index_map!r} is not bijective on {_text(shape)}: where "
                         f"{padding!r}, no index comes from the original; use "
                         "non_surjective_inverse, or pad")
    return found


def non_surjective_inverse(index_map: IndexMap, shape: Sequence[Any],
                           analyzer: Any = None) -> tuple[IndexMap, PrimExpr]:
    """The inverse on the smallest box that holds all final indices, and where it is padding.

    The condition is in the variables of the inverse: where it holds, the index comes from outside
    the original shape. Raises ValueError if the map cannot be inverted.
    """
    analyzer = _new_analyzer(analyzer)
    ranges = as_ranges(shape, index_map)
    if index_map.inverse_index_map is not None:
        return index_map.inverse_index_map, FALSE
    doms = dict(zip(index_map.initial_indices, ranges))
    try:
        totals, padding = _padded_map(index_map.final_indices, doms, analyzer)
    except Unresolved as error:
        raise ValueError(f"{index_map!r} cannot be inverted on {_text(shape)}: {error}") from None
    outputs = [Var(e.name if isinstance(e, Var) else f"axis{i}", e.dtype)
               for i, e in enumerate(index_map.final_indices)]
    known = inverse_affine_iter_map(totals, outputs, analyzer)
    inner = analyzer.clone()
    for var, total in zip(outputs, totals):
        inner.bind(var, _range_of(total))
    final = []
    for var, rng in doms.items():
        value = known.get(var)
        final.append(inner.simplify(value) if value is not None else rng.min)
    table = dict(zip(index_map.initial_indices, final))
    where = inner.simplify(substitute(padding, table)) if padding is not FALSE else FALSE
    return IndexMap(outputs, final), where


def _text(shape: Sequence[Any]) -> str:
    return "[" + ", ".join(repr(s) for s in shape) + "]"


def _range_of(total: IterSumExpr) -> Range:
    if not total.args:
        return Range.from_min_extent(const_index(total.base), const_index(1))
    split = total.args[0]
    extent = (const_index(split.extent) - 1) * const_index(split.scale) + 1
    return Range.from_min_extent(const_index(total.base), extent)


class _PaddingRewriter(IterMapRewriter):
    """Notes down by what each iterator is divided, and makes its extent a multiple of that."""

    pads = True

    def __init__(self, analyzer: Any, iters: dict[Var, Range],
                 wanted: dict[Var, tuple[int, int]]) -> None:
        super().__init__(analyzer, iters)
        self.var_of: dict[IterMark, Var] = {}
        self.wanted = dict(wanted)
        self.input_marks = []
        for var in iters:
            total = self.var_map[var]
            if not total.args:
                continue
            mark = total.args[0].source
            if var in wanted:
                step, left = wanted[var]
                extent = -(-(mark.extent + left) // step) * step
                source = U.add(var, imm(left - total.base, var.dtype))
                mark = IterMark(source, extent)
                total = IterSumExpr([IterSplitExpr(mark)], total.base - left, var.dtype)
                self.var_map[var] = total
            self.var_of[mark] = var
            self.input_marks.append(mark)

    def padded(self, split: IterSplitExpr, base: Number,
               divisor: Number) -> tuple[IterSplitExpr, Number]:
        """Before a division of split + base: remember what it needs of the iterator below."""
        var = self.var_of.get(split.source)
        numbers = (base, divisor, split.extent, split.lower_factor)
        if var is None or not all(type(v) is int for v in numbers):
            return split, base
        if split.extent % divisor == 0 and base % divisor == 0:
            return split, base
        if split.lower_factor * split.extent < split.source.extent:
            return split, base  # not the topmost part: padding would not help
        step, left = self.wanted.get(var, (1, 0))
        self.wanted[var] = (lcm(step, split.lower_factor * divisor),
                            left + base % divisor * split.lower_factor)
        raise _Again


class _Again(Exception):
    """A need was noted down: start over with it."""


def _padded_map(indices: Sequence[PrimExpr], doms: dict[Var, Range],
                analyzer: Any) -> tuple[list[IterSumExpr], PrimExpr]:
    """A bijective map onto a padded box, and the condition (on iterators) of the padding."""
    found = detect_iter_map(indices, doms, TRUE, "bijective", analyzer)
    if found.indices or not indices:
        return found.indices, FALSE
    wanted: dict[Var, tuple[int, int]] = {}
    for _ in range(4 * len(doms) + 8):
        rewriter = _PaddingRewriter(analyzer, doms, wanted)
        try:
            totals = [rewriter.normal(rewriter.read(i), i.dtype) for i in indices]
            rewriter.check(totals, "bijective")
            break
        except _Again:
            wanted = rewriter.wanted
    else:
        raise Unresolved("no padding makes the divisions even")
    where: PrimExpr = FALSE
    for var, (step, left) in wanted.items():
        where = U.logical_or(where, _outside(var, doms[var], step, left))
    return totals, where


def _outside(var: Var, rng: Range, step: int, left: int) -> PrimExpr:
    """Where `var`, shifted and padded to a multiple of `step`, lies outside its range."""
    start, extent = number(rng.min), number(rng.extent)
    place = U.add(var, imm(left - start, var.dtype))
    tile, inside = U.floordiv(place, imm(step, var.dtype)), U.floormod(place, imm(step, var.dtype))
    out: PrimExpr = FALSE
    if left % step:
        out = And(EQ(tile, imm(left // step, var.dtype)), LT(inside, imm(left % step, var.dtype)))
    if (left + extent) % step:
        end = left + extent
        out = U.logical_or(out, And(EQ(tile, imm(end // step, var.dtype)),
                                    LE(imm(end % step, var.dtype), inside)))
    return out


IndexMap.inverse = inverse
IndexMap.non_surjective_inverse = non_surjective_inverse
IndexMap.map_shape = map_shape
IndexMap.map_ranges = map_ranges
IndexMap.is_bijective = is_bijective

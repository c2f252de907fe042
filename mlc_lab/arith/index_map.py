"""Index maps (`lambda i, j: [i // 4, j, i % 4]`): their inverses, and what shapes they make.

The functions here are also methods of `IndexMap` once `arith` is imported.
"""

from __future__ import annotations

import contextlib
from math import lcm
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

from ..reading import DataError
from ..tir.expr import EQ, GE, LE, LT, NE, And, IntImm, Max, PrimExpr, Range, Var, const_index
from ..tir.function import IndexMap
from ..tir.functor import substitute
from ..tir.op import as_int, is_const_int
from . import expr_util as U
from .expr_util import FALSE, TRUE, imm
from .interval_arithmetic import eval_set
from .iter_map import detect_iter_map
from .iter_map_expr import (
    IterMark, IterSplitExpr, IterSumExpr, Number, Unresolved, new_analyzer, sum_to_expr,
)
from .iter_map_inverse import inverse_affine_iter_map
from .iter_map_rewriter import IterMapRewriter

if TYPE_CHECKING:
    from .analyzer import Analyzer


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


class NoBounds(ValueError):
    """A map has an index that may be anything, such as a quotient by what may be 0."""


def map_ranges(index_map: IndexMap, ranges: Sequence[Any], analyzer: Analyzer | None = None
               ) -> list[Range]:
    """The ranges of the final indices as the initial ones run over `ranges`, none of them empty.

    Raises NoBounds, and DoesNotFit where a bound is larger than its type can hold.
    """
    analyzer = new_analyzer(analyzer)
    doms = dict(zip(index_map.initial_indices, as_ranges(ranges, index_map)))
    with contextlib.ExitStack() as known:
        for size in {r.extent: None for r in doms.values() if isinstance(r.extent, Var)}:
            known.enter_context(analyzer.constraint_scope(GE(size, imm(1, size.dtype))))
        return _mapped_ranges(index_map, doms, analyzer)


def _mapped_ranges(index_map: IndexMap, doms: dict[Var, Range], analyzer: Analyzer
                   ) -> list[Range]:
    out = []
    for index in index_map.final_indices:
        found = eval_set(index, doms, analyzer, must_fit=True)
        if not (found.has_lower_bound() and found.has_upper_bound()):
            raise NoBounds(f"the values of index {index!r} have no bounds")
        low = analyzer.simplify(found.min_value)
        extent = analyzer.simplify(found.max_value - found.min_value + 1)
        out.append(Range.from_min_extent(low, extent))
    return out


def map_shape(index_map: IndexMap, shape: Sequence[Any], analyzer: Analyzer | None = None
              ) -> list[PrimExpr]:
    """The shape of a buffer of `shape` after the map: one extent a final index, of int64 where an
    extent of `shape` is."""
    analyzer = new_analyzer(analyzer)
    out = shape_of(map_ranges(index_map, shape, analyzer), shape, analyzer)
    if all(getattr(extent, "dtype", "int32") != "int64" for extent in shape):
        return out
    return [imm(e.value, "int64") if type(e) is IntImm else e for e in out]


def shape_of(ranges: Sequence[Range], shape: Sequence[Any], analyzer: Analyzer | None = None
             ) -> list[PrimExpr]:
    """The shape of a buffer that has room for ranges of indices: those that `map_ranges` gives of
    the dimensions or ranges `shape`. Of these, one whose size only the run knows may be empty:
    then no extent is below 0."""
    analyzer = new_analyzer(analyzer)
    out = [r.extent if is_const_int(r.min, 0) else analyzer.simplify(r.min + r.extent)
           for r in ranges]
    if all(type(extent) is IntImm for extent in out):
        return out
    sizes = [size.extent if isinstance(size, Range) else const_index(size) for size in shape]
    with contextlib.ExitStack() as known:
        for size in sizes:
            if type(size) is not IntImm:
                known.enter_context(analyzer.constraint_scope(GE(size, imm(0, size.dtype))))
        return [extent if analyzer.can_prove_greater_equal(extent, 0) else
                Max(extent, imm(0, extent.dtype)) for extent in out]


def is_bijective(index_map: IndexMap, ranges: Sequence[Any], analyzer: Analyzer | None = None
                 ) -> bool:
    """Whether the map is one to one onto the box of its final ranges."""
    doms = dict(zip(index_map.initial_indices, as_ranges(ranges, index_map)))
    if not index_map.final_indices:
        return all(U.is_one(r.extent) for r in doms.values())
    return bool(detect_iter_map(index_map.final_indices, doms, TRUE, "bijective", analyzer).indices)


def is_equivalent_to(index_map: IndexMap, other: IndexMap, analyzer: Analyzer | None = None
                     ) -> bool:
    """Whether two maps can be proved to give the same final indices for all initial ones."""
    if len(index_map.initial_indices) != len(other.initial_indices) or (
            len(index_map.final_indices) != len(other.final_indices)):
        return False
    analyzer = new_analyzer(analyzer)
    theirs = other.map_indices(index_map.initial_indices)
    return all(analyzer.can_prove_equal(a, b) for a, b in zip(index_map.final_indices, theirs))


def map_ndarray(index_map: IndexMap, array: Any) -> Any:
    """`array`, a numpy array, laid out anew: 0 where no element comes to stand."""
    import numpy as np

    shape = [as_int(dim) for dim in map_shape(index_map, array.shape)]
    if None in shape:
        raise ValueError(f"{index_map!r} has a size that is not known on {_text(array.shape)}")
    out = np.zeros(tuple(dim or 0 for dim in shape), array.dtype)
    for at in np.ndindex(*array.shape):
        out[tuple(int(i) for i in index_map.map_indices(at))] = array[at]
    return out


def inverse(index_map: IndexMap, shape: Sequence[Any], analyzer: Analyzer | None = None
            ) -> IndexMap:
    """The map from final to initial indices.

    Raises ValueError if the map is not bijective on `shape` (see `non_surjective_inverse`).
    """
    if index_map.inverse_index_map is not None:
        return index_map.inverse_index_map
    found, padding = non_surjective_inverse(index_map, shape, analyzer)
    if not (type(padding) is IntImm and not padding.value):
        raise DataError(f"{index_map!r} is not bijective on {_text(shape)}: where "
                         f"{padding!r}, no index comes from the original; use "
                         "non_surjective_inverse, or pad")
    return found


def non_surjective_inverse(index_map: IndexMap, shape: Sequence[Any],
                           analyzer: Analyzer | None = None) -> tuple[IndexMap, PrimExpr]:
    """The inverse on the smallest box that holds all final indices, and where it is padding.

    The condition is in the variables of the inverse: where it holds, the index comes from outside
    the original shape. Raises ValueError if the map cannot be inverted.
    """
    analyzer = new_analyzer(analyzer)
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
        rng = _range_of(total)
        if not U.is_one(rng.extent):  # an index that is always 0 keeps its name
            inner.bind(var, rng)
    final = []
    for var, rng in doms.items():
        value = known.get(var)
        if value is None and not (U.is_one(rng.extent) or index_map.final_indices):
            raise ValueError(f"{index_map!r} cannot be inverted on {_text(shape)}: {var.name} is "
                             "lost")
        final.append(inner.simplify(value) if value is not None else rng.min)
    table = dict(zip(index_map.initial_indices, final))
    where = inner.simplify(substitute(padding, table)) if padding is not FALSE else FALSE
    for var, total in zip(outputs, totals):
        scale = const_index(total.args[0].scale) if total.args else None
        if type(scale) is IntImm and abs(scale.value) != 1 and not (
                U.is_one(_range_of(total).extent)):
            place = U.sub(var, const_index(total.base))  # places between multiples are padding
            gap = NE(U.floormod(place, scale), imm(0, var.dtype))
            where = U.logical_or(where, inner.simplify(gap))
    return IndexMap(outputs, final), where


def padded_inverse(index_map: IndexMap, shape: Sequence[Any], analyzer: Analyzer | None = None,
                   ranges: Sequence[Range] | None = None) -> tuple[IndexMap, PrimExpr]:
    """The inverse on the box of `map_shape`, which starts at 0 where the map may not, and where it
    is padding. `ranges`: those of `map_ranges`, if they are known. Raises ValueError if the map
    cannot be inverted."""
    found, padding = non_surjective_inverse(index_map, shape, analyzer)
    if ranges is None:
        ranges = map_ranges(index_map, shape, analyzer)
    for var, rng in zip(found.initial_indices, ranges):
        if not (type(rng.min) is IntImm and rng.min.value == 0):
            padding = U.logical_or(padding, LT(var, rng.min))
    return found, padding


def _text(shape: Sequence[Any]) -> str:
    return "[" + ", ".join(repr(s) for s in shape) + "]"


def _range_of(total: IterSumExpr) -> Range:
    if not total.args:
        return Range.from_min_extent(const_index(total.base), const_index(1))
    split = total.args[0]
    extent = (const_index(split.extent) - 1) * const_index(split.scale) + 1
    return Range.from_min_extent(const_index(total.base), extent)


class _Need(NamedTuple):
    """What divisions ask of an iterator or fused sum: `place`, padded on the left by `left`, must
    have an extent that is a multiple of `step`."""

    place: PrimExpr
    extent: int
    step: int
    left: int


class _PaddingRewriter(IterMapRewriter):
    """Pads the iterators and sums that are divided unevenly; starts over for each one found."""

    pads = True

    def __init__(self, analyzer: Analyzer, iters: Mapping[Var, Range], needs: list[_Need]) -> None:
        super().__init__(analyzer, iters, trivial=False)
        self.needs = needs
        self.replaced: dict[IterMark, tuple[IterMark, int]] = {}

    def padded(self, split: IterSplitExpr, base: Number,
               divisor: Number) -> tuple[IterSplitExpr, Number]:
        """split + base before a division, in terms of the padded mark.

        Raises _Again where padding is needed that is not among `needs` yet.
        """
        mark = split.source
        extent, factor, whole = split.extent, split.lower_factor, mark.extent
        if not (isinstance(base, int) and isinstance(divisor, int) and isinstance(extent, int)
                and isinstance(factor, int) and isinstance(whole, int)):
            return split, base
        pads = [old for old, (new, _) in self.replaced.items() if new is mark]
        place = self.place_of(pads[0] if pads else mark)
        known = next((n for n in self.needs if U.same(n.place, place)), None)
        step, left = factor * divisor, base % divisor * factor
        if known is None:
            if extent % divisor == 0 and base % divisor == 0:
                return split, base
            if not self.is_top(split):
                return split, base  # not the topmost part: padding would not help
            self.needs.append(_Need(place, whole, step, left))
            raise _Again
        if known.step % step:
            self.needs[self.needs.index(known)] = known._replace(step=lcm(known.step, step))
            raise _Again
        if pads:
            return split, base
        if mark not in self.replaced:
            source = IterSumExpr([IterSplitExpr(mark)], known.left, place.dtype)
            extent = -(-(whole + known.left) // known.step) * known.step
            self.replaced[mark] = (IterMark(source, extent), known.left)
        new, left = self.replaced[mark]
        if split.lower_factor != 1 or split.extent != mark.extent:
            return split, base
        return IterSplitExpr(new, 1, new.extent, split.scale), base - left

    def place_of(self, mark: IterMark) -> PrimExpr:
        """A mark's value as an expression in the iterators."""
        return sum_to_expr(mark.source, self.n) if isinstance(mark.source, IterSumExpr) else (
            mark.source)


class _Again(Exception):
    """A need was added: start over with it."""


def _padded_map(indices: Sequence[PrimExpr], doms: Mapping[Var, Range],
                analyzer: Analyzer) -> tuple[list[IterSumExpr], PrimExpr]:
    """A bijective map onto a padded box, and the condition (on iterators) of the padding."""
    found = detect_iter_map(indices, doms, TRUE, "bijective", analyzer, False)
    if found.indices or not indices:
        return found.indices, FALSE
    needs: list[_Need] = []
    for _ in range(4 * len(doms) + 8):
        rewriter = _PaddingRewriter(analyzer, doms, needs)
        try:
            totals = [rewriter.normal(rewriter.read(i), i.dtype) for i in indices]
            rewriter.check(totals, "bijective")
            break
        except _Again:
            continue
    else:
        raise Unresolved("no padding makes the divisions even")
    where: PrimExpr = FALSE
    for need in needs:
        where = U.logical_or(where, _outside(need))
    return totals, where


def _outside(need: _Need) -> PrimExpr:
    """Where a padded place lies outside of what it came from."""
    _, extent, step, left = need
    dtype = need.place.dtype
    place = U.add(need.place, imm(left, dtype))
    tile, inside = U.floordiv(place, imm(step, dtype)), U.floormod(place, imm(step, dtype))
    out: PrimExpr = FALSE
    if left % step:
        out = And(EQ(tile, imm(left // step, dtype)), LT(inside, imm(left % step, dtype)))
    if (left + extent) % step:
        end = left + extent
        out = U.logical_or(out, And(EQ(tile, imm(end // step, dtype)),
                                    LE(imm(end % step, dtype), inside)))
    return out


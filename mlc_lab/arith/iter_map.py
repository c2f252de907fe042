"""Iteration maps: indices as sums and splits of iterators, and what that proves about them.

    IterMark    a source (a loop variable, or a sum) taken as one iterator in [0, extent)
    IterSplit   (mark // lower_factor) % extent * scale
    IterSum     split + ... + split + base

`detect_iter_map` writes indices in this form. Fusing (`i * 4 + j` with j in [0, 4)) makes a new
mark out of a sum, splitting (`x // 4`, `x % 4`) takes parts of a mark; from the marks and splits it
is then read off whether the indices take every combination of values (surjective), and each once
(bijective). Predicates such as `i * 3 + j < 128` shorten the mark of their sum. The ideas are those
of TVM's quasi-affine iteration maps.

Factors, extents, scales and bases are Python ints where they are constant, expressions otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

from ..tir.expr import Add, IntImm, Mul, PrimExpr, Range, Sub, Var, const_index
from . import expr_util as U
from .expr_util import TRUE, DoesNotFit, same
from .iter_map_expr import (
    IterMark, IterSplitExpr, IterSumExpr, Numbers, Unresolved, new_analyzer,
    normalize_iter_map_to_expr, sum_to_expr,
)
from .iter_map_predicate import read_predicate, uses_iter
from .iter_map_rewriter import IterMapRewriter

if TYPE_CHECKING:
    from .analyzer import Analyzer


class IterMapResult(NamedTuple):
    """What `detect_iter_map` found: `indices` is empty and `errors` says why if it is no map.

    `padding_predicate` holds where an index lies in the padding of a padded map (False without).
    """

    indices: list[IterSumExpr]
    errors: list[str]
    padding_predicate: PrimExpr


LEVELS = {"bijective": "bijective", "surjective": "surjective", "nocheck": "nocheck",
          0: "nocheck", 1: "surjective", 2: "bijective", None: "nocheck"}


def ranges_are_independent(iters: Mapping[Var, Range]) -> bool:
    """Ranges of iterators must not depend on iterators."""
    return not any(
        (type(r.min) is not IntImm and uses_iter(r.min, iters))
        or (type(r.extent) is not IntImm and uses_iter(r.extent, iters)) for r in iters.values())


def detect_iter_map(indices: Sequence[Any], input_iters: Mapping[Var, Range],
                    predicate: Any = TRUE, check_level: Any = "surjective",
                    analyzer: Analyzer | None = None, simplify_trivial_iterators: bool = True
                    ) -> IterMapResult:
    """Write `indices` as an iteration map of `input_iters` restricted to `predicate`.

    `check_level` is "surjective" (every combination of values of the indices occurs), "bijective"
    (and exactly once) or "nocheck". Each index of the result has at most one split. On failure
    `indices` of the result is empty and `errors` tells the reason.
    """
    level = _level(check_level)
    analyzer = new_analyzer(analyzer)
    try:
        rewriter, _ = prepared_rewriter(input_iters, predicate, analyzer,
                                        simplify_trivial_iterators, level == "surjective")
        rewriter.uneven = level != "bijective"
        out = []
        for index in indices:
            index = const_index(index)
            out.append(rewriter.normal(rewriter.read(index), index.dtype))
        if level != "nocheck":
            rewriter.check(out, level)
    except Unresolved as error:
        return IterMapResult([], [str(error)], U.FALSE)
    except (DoesNotFit, ZeroDivisionError) as error:
        return IterMapResult([], [f"not computable: {error}"], U.FALSE)
    return IterMapResult(out, [], U.FALSE)


def prepared_rewriter(input_iters: Mapping[Var, Range], predicate: PrimExpr | bool,
                      analyzer: Analyzer, trivial: bool, windows: bool
                      ) -> tuple[IterMapRewriter, dict[Var, Range]]:
    """A rewriter that has read the predicate, and the ranges as the predicate narrows them."""
    iters = dict(input_iters)
    for var, rng in iters.items():
        if type(rng.extent) is IntImm and rng.extent.value <= 0:
            raise Unresolved(f"iterator {var.name} has no values")
    if not ranges_are_independent(iters):
        raise Unresolved("the range of an iterator depends on another iterator")
    predicate = const_index(predicate)
    constraints = [] if type(predicate) is IntImm else read_predicate(predicate, iters, analyzer)
    for var, rng in iters.items():
        if type(rng.extent) is IntImm and rng.extent.value <= 0:
            raise Unresolved(f"the predicate leaves no values for iterator {var.name}")
    rewriter = IterMapRewriter(analyzer, iters, trivial, windows)
    for item in constraints:
        rewriter.limit(item.expr, item.low, item.high)
    if len(rewriter.constrained) > 1:
        rewriter.check_constraints()
    return rewriter, iters


def _level(value: Any) -> str:
    try:
        return LEVELS[value.lower() if isinstance(value, str) else value]
    except KeyError:
        raise ValueError(f"unknown check level {value!r}: expected 'surjective', 'bijective' or "
                         "'nocheck'") from None


def normalize_to_iter_sum(index: PrimExpr, input_iters: Mapping[Var, Range],
                          analyzer: Analyzer | None = None) -> IterSumExpr:
    """An index as a sum of splits, by falling scale; what is not affine goes into the base, and all
    of it where a constant of the sum does not fit its type."""
    analyzer = new_analyzer(analyzer)
    rewriter = IterMapRewriter(analyzer, input_iters)
    index = const_index(index)
    try:
        total = _best_effort(rewriter, index)
        total.args = rewriter.flatten(rewriter.combine(total.args))
    except (DoesNotFit, ZeroDivisionError):
        return IterSumExpr([], index, index.dtype)
    return total


def _best_effort(s: IterMapRewriter, e: PrimExpr) -> IterSumExpr:
    try:
        return s.to_sum(s.read(e), e.dtype)
    except Unresolved:
        pass
    if isinstance(e, (Add, Sub)):
        a, b = _best_effort(s, e.a), _best_effort(s, e.b)
        sign = 1 if type(e) is Add else -1
        for split in b.args:
            s.add_split(a, split, sign)
        a.base = s.n.add(a.base, b.base) if sign == 1 else s.n.sub(a.base, b.base)
        return a
    return IterSumExpr([], e, e.dtype)


def iter_map_simplify(indices: Sequence[Any], input_iters: Mapping[Var, Range],
                      predicate: Any = TRUE, check_level: Any = "surjective",
                      analyzer: Analyzer | None = None,
                      simplify_trivial_iterators: bool = True) -> list[PrimExpr]:
    """Indices in the normal form of iteration maps, e.g. `i_0 * 4 + i_1`.

    Where they are no iteration map they come back as they are. An index that does not change is
    returned as the same object.
    """
    indices = [const_index(i) for i in indices]
    if all(type(i) in U.VAR_TYPES or type(i) is IntImm for i in indices):
        if not simplify_trivial_iterators or all(
                type(i) is IntImm or i not in input_iters or not U.is_one(input_iters[i].extent)
                for i in indices):
            return indices
    if U.is_one(const_index(predicate)) and all(
            _is_normal(i, input_iters, simplify_trivial_iterators) for i in indices):
        return indices
    analyzer = new_analyzer(analyzer)
    found = detect_iter_map(indices, input_iters, predicate, check_level, analyzer,
                            simplify_trivial_iterators)
    if not found.indices and _level(check_level) != "bijective" and (
            type(const_index(predicate)) is not IntImm):
        found = detect_iter_map(indices, input_iters, TRUE, check_level, analyzer,
                                simplify_trivial_iterators)
    if not found.indices:
        return indices
    n = Numbers(analyzer)
    try:
        out = [sum_to_expr(e, n, i.dtype) for e, i in zip(found.indices, indices)]
    except DoesNotFit:
        return indices
    return [old if same(old, new) else new for old, new in zip(indices, out)]


def _is_normal(index: PrimExpr, iters: Mapping[Var, Range], trivial: bool) -> bool:
    """Whether it is seen at a glance that an index is in normal form, as far as it has one: an
    iterator, or a sum of digits by falling scale, `i_0 * 32 + i_1 * 8 + i_2`."""
    if type(index) is IntImm:
        return True
    scale = 1
    while True:
        term = index.b if type(index) is Add else index
        factor = 1
        if type(term) is Mul and type(term.b) is IntImm:
            term, factor = term.a, term.b.value
        rng = iters.get(term) if isinstance(term, Var) else None
        if rng is None:
            return False
        low, extent = rng.min, rng.extent
        if factor != scale or type(low) is not IntImm or low.value:
            return False
        if index is term:  # alone
            return not (trivial and U.is_one(extent))
        if type(extent) is not IntImm or extent.value <= 1:
            return False
        if type(index) is not Add:
            return True
        index, scale = index.a, scale * extent.value


__all__ = ["IterMapResult", "IterMark", "IterSplitExpr", "IterSumExpr", "detect_iter_map",
           "iter_map_simplify", "normalize_iter_map_to_expr", "normalize_to_iter_sum",
           "prepared_rewriter", "ranges_are_independent"]

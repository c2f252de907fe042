"""What a region of a buffer becomes when loops run: its exact or its enclosing bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ..tir.expr import IntImm, Range, Var, const_index
from . import expr_util as U
from .expr_util import TRUE, DoesNotFit
from .int_set import IntSet
from .interval_arithmetic import eval_set
from .iter_map import prepared_rewriter
from .iter_map_expr import Numbers, Unresolved, expression, new_analyzer
from .iter_map_predicate import uses_iter
from .iter_map_rewriter import IterMapRewriter

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr
    from .analyzer import Analyzer




def estimate_region_strict_bound(region: Sequence[Range], var_dom: Mapping[Var, Range],
                                 predicate: PrimExpr = TRUE,
                                 analyzer: Analyzer | None = None) -> list[IntSet] | None:
    """Exactly the indices that `region` touches as the variables run over `var_dom`.

    One IntSet a dimension, or None if the region touched is not a box that is filled without gaps
    (or cannot be shown to be one).
    """
    analyzer = new_analyzer(analyzer)
    n = Numbers(analyzer)
    try:
        quick = _plain(region, var_dom, predicate)
        if quick is not None:
            return quick
        rewriter, _ = prepared_rewriter(var_dom, predicate, analyzer, True, True)
        totals = [rewriter.normal(rewriter.read(r.min), r.min.dtype) for r in region]
        rewriter.check(totals, "surjective")
        return [_touched(t, r, rewriter, n) for t, r in zip(totals, region)]
    except (Unresolved, DoesNotFit, ZeroDivisionError):
        return None


def _plain(region: Sequence[Range], var_dom: Mapping[Var, Range],
           predicate: PrimExpr) -> list[IntSet] | None:
    """The common case: each dimension starts at a variable of its own or at something fixed."""
    if not (predicate is True or type(predicate) is IntImm and predicate.value):
        return None
    used: set[Var] = set()
    out = []
    for rng in region:
        start = rng.min
        if type(rng.extent) is not IntImm:
            if uses_iter(rng.extent, var_dom):
                return None
        if isinstance(start, Var) and start in var_dom:
            dom = var_dom[start]
            if start in used or type(rng.extent) is not IntImm or rng.extent.value < 1:
                return None
            if type(dom.min) is not IntImm or type(dom.extent) is not IntImm:
                return None
            if dom.extent.value < 1:
                return None
            used.add(start)
            low = dom.min
            high = low.value + dom.extent.value + rng.extent.value - 2
            out.append(IntSet(low, expression(high, start.dtype)))
        elif type(start) is IntImm or not uses_iter(start, var_dom):
            out.append(IntSet.from_min_extent(start, rng.extent))
        else:
            return None
    return out


def _touched(total: Any, rng: Range, rewriter: IterMapRewriter, n: Numbers) -> IntSet:
    """The interval of one dimension. Raises Unresolved if there are gaps in it."""
    dtype = rng.min.dtype
    base = expression(total.base, dtype)
    extent: Any = rng.extent.value if type(rng.extent) is IntImm else rng.extent
    if type(extent) is not int and uses_iter(extent, rewriter.var_map):
        raise Unresolved("the extent of the region changes from iteration to iteration")
    if not total.args:
        return IntSet.from_min_extent(base, rng.extent)
    split = total.args[0]
    backwards = type(split.scale) is int and split.scale < 0
    if not n.at_least(extent, -split.scale if backwards else split.scale):
        raise Unresolved("the region has gaps")
    if backwards:  # the last iteration touches the first element
        if type(split.extent) is not int:
            raise Unresolved("how far the region reaches downwards is not known")
        first = n.add(total.base, (split.extent - 1) * split.scale)
        last = n.add(total.base, extent - 1) if type(extent) is int else U.sub(
            U.add(base, rng.extent), expression(1, dtype))
        return IntSet(expression(first, dtype), expression(last, dtype))
    if type(split.extent) is int and type(split.scale) is int and type(extent) is int:
        last = (split.extent - 1) * split.scale + extent - 1
        return IntSet(base, expression(n.add(total.base, last), dtype))
    # as TVM writes it: simplifying here would lose the length, which callers want
    length = U.add(expression(extent, dtype), U.mul(
        U.sub(expression(split.extent, dtype), expression(1, dtype)),
        expression(split.scale, dtype)))
    return IntSet(base, U.sub(U.add(length, base), expression(1, dtype)))


def estimate_region_lower_bound(region: Sequence[Range], var_dom: Mapping[Var, Range],
                                predicate: PrimExpr = TRUE,
                                analyzer: Analyzer | None = None) -> list[IntSet] | None:
    """A box that is certainly touched whole; None if none is known. See the strict bound."""
    return estimate_region_strict_bound(region, var_dom, predicate, analyzer)


def estimate_region_upper_bound(region: Sequence[Range], var_dom: Mapping[Var, Range],
                                predicate: PrimExpr = TRUE, analyzer: Analyzer | None = None
                                ) -> list[IntSet]:
    """A box outside of which nothing is touched: exact where that is possible."""
    analyzer = new_analyzer(analyzer)
    found = estimate_region_strict_bound(region, var_dom, predicate, analyzer)
    if found is not None:
        return found
    out = []
    for rng in region:
        single = estimate_region_strict_bound([rng], var_dom, predicate, analyzer)
        out.append(single[0] if single is not None else _relaxed(rng, var_dom, predicate,
                                                                 analyzer))
    return out


def _relaxed(rng: Range, var_dom: Mapping[Var, Range], predicate: PrimExpr,
             analyzer: Any) -> IntSet:
    """Interval arithmetic over the domains, narrowed by what the predicate says of single loops."""
    predicate = const_index(predicate)
    domains: dict[Var, Any] = dict(var_dom)
    if type(predicate) is not IntImm:
        try:
            prepared, narrowed = prepared_rewriter(var_dom, predicate, analyzer, True, True)
            domains = narrowed
        except (Unresolved, DoesNotFit, ZeroDivisionError):
            pass
    start = analyzer.simplify(rng.min)
    return eval_set(Range.from_min_extent(start, rng.extent), domains, analyzer)

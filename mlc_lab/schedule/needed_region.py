"""What partners of a block touch in one iteration of a loop, and the block's share of it."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from ..arith import (
    Analyzer,
    IntSet,
    detect_iter_map,
    detect_linear_equation,
    estimate_region_upper_bound,
    eval_set,
    fragile_in,
    inverse_affine_iter_map,
    is_evaluable,
    union,
)
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, FloorDiv, IntImm, PrimExpr, Range, Var
from ..tir.functor import free_vars, substitute, uses_var
from ..tir.stmt import Block, BufferRegion, For
from .state import ScheduleState, StmtSRef


class Domain(NamedTuple):
    """What a block iterator has to run over, and the bound it must not leave (or None)."""

    dom: IntSet
    bound: Range | None


def needed_regions(state: ScheduleState, block: Block, loop: StmtSRef, partners: list[StmtSRef],
                    producer: bool, analyzer: Analyzer) -> dict[Buffer, list[IntSet]]:
    """For each shared buffer, what the partners touch of it in one iteration of `loop`."""
    buffers = {r.buffer for r in (block.writes if producer else block.reads)}
    out: dict[Buffer, list[IntSet]] = {}
    for partner in partners:
        realize = state.realize_of(partner)
        binding = {iv.var: v for iv, v in zip(partner.stmt.iter_vars, realize.iter_values)}
        for region in partner.stmt.reads if producer else partner.stmt.writes:
            if region.buffer not in buffers:
                continue
            domains = _relaxed_domains(partner, loop, region.buffer.scope)
            predicate = _closed_over(realize.predicate, domains)
            bound = [Range.from_min_extent(substitute(r.min, binding),
                                           substitute(r.extent, binding)) for r in region.region]
            sets = estimate_region_upper_bound(bound, domains, predicate, analyzer)
            sets = [_clip(s, dim, analyzer) for s, dim in zip(sets, region.buffer.shape)]
            fragile = [fragile_in(s.min_value) + fragile_in(s.max_value) for s in sets]
            if any(fragile):
                changed = _changed_under(state, block, loop)
                sets = [s if are_evaluable_at(s, state, loop, analyzer) and changed.isdisjoint(
                            n.buffer.data for n in parts if type(n) is BufferLoad)
                        else _clip(IntSet.everything(), dim, analyzer)
                        for s, dim, parts in zip(sets, region.buffer.shape, fragile)]
            if region.buffer in out:
                sets = [union([a, b]) for a, b in zip(out[region.buffer], sets)]
            out[region.buffer] = sets
    return out


def _changed_under(state: ScheduleState, block: Block, loop: StmtSRef) -> set[Var]:
    """Memory that is written under the loop once the block is there."""
    graph = state.scope(state.scope_root(loop))
    return set(graph.site(block).writes).union(
        *(site.writes for site in graph.sites if loop.stmt in site.loops))


def are_evaluable_at(found: IntSet, state: ScheduleState, at: StmtSRef, analyzer: Analyzer) -> bool:
    """Whether the ends of an interval can be evaluated in each iteration of `at`, a loop or block,
    and of what is around it; the analyzer knows the domains of these loops."""
    if not (fragile_in(found.min_value) or fragile_in(found.max_value)):
        return True
    running = [e for s in (at, *state.ancestors(at)) for e in (
        [s.stmt.extent] if type(s.stmt) is For else [iv.dom.extent for iv in s.stmt.iter_vars])]
    return all(is_evaluable(end, running, analyzer)
               for end in (found.min_value, found.max_value))


def _closed_over(predicate: PrimExpr, domains: dict[Var, Range]) -> PrimExpr:
    """The predicate if it speaks of the relaxed loops alone, else none.

    One that also depends on outer loops would make the extents of the new loops depend on them; a
    constant extent with a predicate of its own is worth more.
    """
    return predicate if all(v in domains for v in free_vars(predicate)) else op.const(True)


def _clip(found: IntSet, dim: PrimExpr, analyzer: Analyzer) -> IntSet:
    """An unbounded side of a region is the buffer's own bound."""
    if found.has_lower_bound() and found.has_upper_bound():
        return found
    low = found.min_value if found.has_lower_bound() else IntImm(dim.dtype, 0)
    high = found.max_value if found.has_upper_bound() else op.sub(dim, 1)
    return IntSet.interval(low, high)


_SCOPE_RANK = {"global": 0, "shared": 1, "warp": 2, "local": 3}


def _relaxed_domains(partner: StmtSRef, loop: StmtSRef, scope: str) -> dict[Var, Range]:
    """Loops below `loop`, and thread loops above it whose threads share memory of `scope`."""
    chain: list[For] = []
    parent = partner.parent
    while parent is not None and parent is not loop:
        chain.append(parent.stmt)
        parent = parent.parent
    rank = _SCOPE_RANK.get(scope.split(".")[0], 3)
    if rank == 1:
        while parent is not None:
            stmt = parent.stmt
            if type(stmt) is For and stmt.thread_binding is not None and (
                    stmt.thread_binding.thread_tag.startswith(("threadIdx", "vthread"))):
                chain.append(stmt)
            parent = parent.parent
    return {lp.loop_var: Range.from_min_extent(lp.min, lp.extent) for lp in reversed(chain)}


def iter_domains(block: Block, own: Sequence[BufferRegion], needed: dict[Buffer, list[IntSet]],
                  analyzer: Analyzer) -> dict[Var, Domain]:
    """The domain of each iterator such that the block's own regions cover what is needed."""
    solved: dict[Var, IntSet] = {}
    iter_doms = {iv.var: iv.dom for iv in block.iter_vars}
    for region in own:
        want = needed.get(region.buffer)
        if want is None:
            continue
        if not _solve_affine(region.region, want, iter_doms, solved, analyzer):
            for provided, required in zip(region.region, want):
                _solve_dimension(provided, required, iter_doms, solved, analyzer)
    out: dict[Var, Domain] = {}
    for iv in block.iter_vars:
        high = op.sub(op.add(iv.dom.min, iv.dom.extent), 1)
        found = solved.get(iv.var)
        if found is None:
            out[iv.var] = Domain(IntSet.interval(iv.dom.min, high), None)
            continue
        low_ok = analyzer.can_prove(op.greater_equal(found.min_value, iv.dom.min))
        high_ok = analyzer.can_prove(op.less_equal(found.max_value, high))
        if low_ok and high_ok:
            out[iv.var] = Domain(found, None)
        elif analyzer.can_prove(op.less_equal(found.min_value, iv.dom.min)) and (
                analyzer.can_prove(op.greater_equal(found.max_value, high))):
            out[iv.var] = Domain(IntSet.interval(iv.dom.min, high), None)
        else:
            out[iv.var] = Domain(found, iv.dom)
    return out


def _merge(solved: dict[Var, IntSet], var: Var, low: PrimExpr, high: PrimExpr,
           analyzer: Analyzer) -> None:
    new = IntSet.interval(analyzer.simplify(low), analyzer.simplify(high))
    if var in solved:
        new = union([solved[var], new])
    solved[var] = new


def _solve_affine(provided: Sequence[Range], required: list[IntSet], doms: dict[Var, Range],
                  solved: dict[Var, IntSet], analyzer: Analyzer) -> bool:
    """Invert an index map of points such as B[vi // 4, vi % 4]; False where that is not needed."""
    if not all(op.is_const_int(r.extent, 1) for r in provided):
        return False
    points = [r.min for r in provided]
    if all(isinstance(p, Var) or _linear(p, doms) is not None for p in points):
        return False  # dimension by dimension is exact and keeps simpler forms
    used = {v: d for v, d in doms.items() if any(uses_var(p, v) for p in points)}
    found = detect_iter_map(points, used, op.const(True), "bijective", analyzer)
    if not found.indices:
        return False
    lows: dict[Var, PrimExpr] = {}
    highs: dict[Var, PrimExpr] = {}
    names = [Var(f"p{i}", p.dtype) for i, p in enumerate(points)]
    inverse = inverse_affine_iter_map(found.indices, names)
    sets = dict(zip(names, required))
    for var, dom in used.items():
        if var not in inverse:
            if not op.is_const_int(dom.extent, 1):
                return False
            inverse[var] = dom.min
        answer = eval_set(inverse[var], sets)
        if not (answer.has_lower_bound() and answer.has_upper_bound()):
            return False
        lows[var], highs[var] = answer.min_value, answer.max_value
    for var in used:
        _merge(solved, var, lows[var], highs[var], analyzer)
    return True


def _linear(expr: PrimExpr, doms: dict[Var, Range]) -> tuple[Var, int, PrimExpr] | None:
    """expr as var * factor + rest with one block iterator, a constant factor and a free rest."""
    used = [v for v in doms if uses_var(expr, v)]
    if len(used) != 1:
        return None
    coefficients = detect_linear_equation(expr, used)
    if not coefficients:
        return None
    factor = op.as_int(coefficients[0])
    if factor is None or factor == 0:
        return None
    return used[0], factor, coefficients[1]


def _solve_dimension(provided: Range, required: IntSet, doms: dict[Var, Range],
                     solved: dict[Var, IntSet], analyzer: Analyzer) -> None:
    """Find the iterator values whose regions cover `required` in one dimension."""
    low, high = required.min_value, required.max_value
    start = provided.min
    if isinstance(start, Var) and start in doms and op.is_const_int(provided.extent, 1):
        _merge(solved, start, low, high, analyzer)
        return
    if type(start) is FloorDiv and isinstance(start.a, Var) and start.a in doms and (
            type(start.b) is IntImm and op.is_const_int(provided.extent, 1)):
        factor = start.b
        _merge(solved, start.a, op.mul(low, factor),
               op.add(op.mul(high, factor), factor.value - 1), analyzer)
        return
    found = _linear(start, doms)
    if found is None:
        return
    var, factor, rest = found
    extent = op.as_int(provided.extent)
    if extent is None:
        return
    # cover [low, high] with intervals [v*factor + rest, v*factor + rest + extent - 1]
    if factor > 0 and extent >= factor or factor == 1:
        _merge(solved, var, op.floordiv(op.sub(low, rest), factor),
               op.floordiv(op.sub(high, rest), factor), analyzer)
    elif factor > 1:
        # strided points: take every v whose point falls into the interval
        first = op.floordiv(op.add(op.sub(low, rest), factor - extent), factor)
        _merge(solved, var, first, op.floordiv(op.sub(high, rest), factor), analyzer)
    elif factor == -1 and extent == 1:
        _merge(solved, var, op.sub(rest, high), op.sub(rest, low), analyzer)


__all__ = ["Domain", "iter_domains", "needed_regions"]

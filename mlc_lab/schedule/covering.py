"""Stage pipelines: whether producers have written what consumers read by the time they read it.

A scope is a *stage pipeline* when every block in it is complete or a reduction, and each reads only
what its producers have fully written (the TensorIR paper, section on validation). What a producer
writes below the loops that it shares with the consumer is bounded by a box; triangles, which no box
is, are asked element by element (`executed.reaches`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from ..arith import Analyzer, estimate_region_lower_bound, estimate_region_upper_bound
from ..arith.access import conjuncts
from ..tir import op
from ..tir.expr import FloorDiv, FloorMod, IntImm, IterVar, PrimExpr, Range, Var
from ..tir.functor import substitute
from ..tir.op import min_value_of
from ..tir.stmt import For
from .error import Refusal
from .executed import comes_to_run, reaches, runs_everywhere
from .footprint import Loop, loops_of
from .guards import element_range
from .independence import surroundings
from .state import ScheduleState, StmtSRef
from .witness import loop_triples, unwritten_read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..arith.int_set import IntSet
    from ..tir.stmt import BufferRegion


def region_cover(state: ScheduleState, scope: StmtSRef,
                 consumer: StmtSRef) -> tuple[str, Callable[[], str]] | None:
    """Why `consumer` may read what its producers have not written, and a finder of two iterations
    that show it; None if all is covered.

    For each buffer it reads, the union of what the producers write below their common ancestor
    must cover what it reads there. A scan reads what it has written itself, in its own order.
    """
    deps = state.scope(scope).deps_into(consumer.stmt)
    producers: dict[Any, list[StmtSRef]] = {}
    for dep in deps:
        if dep.kind == "RAW":
            producers.setdefault(dep.buffer, []).append(state.refs[dep.src])
    if _is_scan(consumer):
        own = {w.buffer for w in consumer.stmt.writes}
        producers = {b: sources for b, sources in producers.items() if b not in own}
    for buffer, sources in producers.items():
        for region in consumer.stmt.reads:
            if region.buffer is not buffer:
                continue
            ok = _scanned_before(state, scope, sources, consumer)
            for producer in () if ok else sources:
                if _written_before(state, scope, producer, consumer, region):
                    ok = True
                    break
            if not ok:
                return (f"block {consumer.stmt.name_hint} reads parts of {buffer.name} that block "
                        f"{sources[-1].stmt.name_hint} has not written by then",
                        lambda p=sources[-1], r=region: _too_early(state, scope, p, consumer, r))
    return None


def _is_scan(block: StmtSRef) -> bool:
    return any(iv.iter_type == IterVar.Ordered for iv in block.stmt.iter_vars)


def _scanned_before(state: ScheduleState, scope: StmtSRef, producers: list[StmtSRef],
                    consumer: StmtSRef) -> bool:
    """Whether a scan is among the producers, and all of them are done before the consumer's nest:
    they fill the buffer together, the first rows and then the others."""
    return any(map(_is_scan, producers)) and (
        lowest_common_ancestor(state, scope, [*producers, consumer]) is scope)


def _written_before(state: ScheduleState, scope: StmtSRef, producer: StmtSRef,
                    consumer: StmtSRef, read: BufferRegion) -> bool:
    """Whether a producer has written all that a consumer reads of a buffer.

    In the outermost scope this depends on the two loop nests alone, which most steps leave as they
    are: the answer is kept for as long as both are.
    """
    key = None
    if scope.parent is None:
        key = ("covers", _nest(state, scope, producer), producer.stmt,
               _nest(state, scope, consumer), consumer.stmt, read)
        if key in state.cache:
            return state.cache[key]
    lca = lowest_common_ancestor(state, scope, [producer, consumer])
    written = [w for w in producer.stmt.writes if w.buffer is read.buffer]
    found = any(_covers(state, lca, producer, w, consumer, read) for w in written)
    if key is not None:
        state.cache[key] = found
    return found


def _nest(state: ScheduleState, scope: StmtSRef, block: StmtSRef) -> Any:
    """The outermost loop around a block in a scope, or how it is executed where there is none."""
    top = block
    while top.parent is not None and top.parent is not scope:
        top = top.parent
    return top.stmt if top is not block else state.realize_of(block)


def _too_early(state: ScheduleState, scope: StmtSRef, producer: StmtSRef, consumer: StmtSRef,
               region: BufferRegion) -> str:
    lca = lowest_common_ancestor(state, scope, [producer, consumer])
    shared = [] if lca is scope else [*state.loops_above(lca), lca]
    own = [s.stmt for s in state.loops_above(consumer) if s not in shared]
    write = next((w for w in producer.stmt.writes if w.buffer is region.buffer), None)
    if write is None:  # it writes the memory by another name, whose elements are counted otherwise
        return ""
    have = relaxed_region(state, producer, write.region, lca, lower=False)
    if not all(_bounded(h) for h in have):
        return ""
    return unwritten_read(
        consumer.stmt.name_hint, producer.stmt.name_hint, region.buffer,
        loop_triples([s.stmt for s in shared]), loop_triples(own),
        element_range(state, consumer, region), [(h.min_value, h.max_value) for h in have],
        state.realize_of(consumer).predicate if not consumer.stmt.iter_vars else None)


@overload
def relaxed_region(state: ScheduleState, block: StmtSRef, region: Sequence[Range], stop: StmtSRef,
                   lower: Literal[False]) -> list[IntSet]: ...
@overload
def relaxed_region(state: ScheduleState, block: StmtSRef, region: Sequence[Range], stop: StmtSRef,
                   lower: bool) -> list[IntSet] | None: ...
def relaxed_region(state: ScheduleState, block: StmtSRef, region: Sequence[Range], stop: StmtSRef,
                   lower: bool) -> list[IntSet] | None:
    """A region of a block in terms of loops above `stop` (inclusive): the loops below are relaxed.

    Returns IntSets, or None when no exact lower bound is known (`lower`).
    """
    realize = state.realize_of(block)
    binding = {iv.var: v for iv, v in zip(block.stmt.iter_vars, realize.iter_values)}
    bound_region = [Range.from_min_extent(substitute(r.min, binding), substitute(r.extent, binding))
                    for r in region]
    domains: dict[Var, Range] = {}
    analyzer = Analyzer()
    parent = block.parent
    below: list[tuple[Var, Range]] = []
    passed = False
    while parent is not None and type(parent.stmt) is For:
        if parent is stop:
            passed = True
        dom = Range.from_min_extent(parent.stmt.min, parent.stmt.extent)
        if not passed:
            below.append((parent.stmt.loop_var, dom))
        else:
            analyzer.bind(parent.stmt.loop_var, dom)
        parent = parent.parent
    for var, dom in reversed(below):
        domains[var] = dom
    predicate = substitute(realize.predicate, binding)
    if lower:
        return estimate_region_lower_bound(bound_region, domains, predicate, analyzer)
    return estimate_region_upper_bound(bound_region, domains, predicate, analyzer)


def _covers(state: ScheduleState, lca: StmtSRef, producer: StmtSRef, written: BufferRegion,
            consumer: StmtSRef, read: Any) -> bool:
    if _writes_all(state, lca, producer, written):
        return True
    have = relaxed_region(state, producer, written.region, lca, lower=True) if _runs_for(
        state, lca, producer, written, consumer) else None
    if have is None:
        return _each_is_written(state, lca, producer, written, consumer, read)
    if all(_is_whole(got, dim) for got, dim in zip(have, written.buffer.shape)):
        return True
    return _box_covers(state, lca, have, consumer, read) or _each_is_written(
        state, lca, producer, written, consumer, read)


def _runs_for(state: ScheduleState, lca: StmtSRef, producer: StmtSRef, written: BufferRegion,
              consumer: StmtSRef) -> bool:
    """Whether the predicate of a producer lets it run below `lca` where a consumer does."""
    realize = state.realize_of(producer)
    if op.is_const_int(realize.predicate, 1):
        return True
    values = {iv.var: v for iv, v in zip(realize.block.iter_vars, realize.iter_values)}
    return comes_to_run([substitute(r.min, values) for r in written.region], realize.predicate,
                        _below(state, lca, producer), _around(state, lca, consumer),
                        conjuncts(state.realize_of(consumer).predicate))


def _below(state: ScheduleState, lca: StmtSRef, block: StmtSRef) -> list[For]:
    """The loops of a block below `lca`."""
    above = state.loops_above(block)
    return [s.stmt for s in (above[above.index(lca) + 1:] if lca in above else above)]


def _around(state: ScheduleState, lca: StmtSRef, consumer: StmtSRef) -> list[Loop]:
    """What stands still while a consumer runs once: its loops, and all that is around `lca`."""
    return [*surroundings(lca), *loops_of([lca.stmt] if type(lca.stmt) is For else []),
            *loops_of(_below(state, lca, consumer))]


def _box_covers(state: ScheduleState, lca: StmtSRef, have: list[IntSet], consumer: StmtSRef,
                read: Any) -> bool:
    """Whether all that a block reads below `lca` is in a box."""
    need = relaxed_region(state, consumer, read.region, lca, lower=False)
    analyzer = Analyzer()
    state.loop_domains_into(lca, analyzer)
    for got, want, dim in zip(have, need, read.buffer.shape):
        if want.is_nothing() or _is_whole(got, dim):
            continue
        if not _bounded(got):
            return False
        # what is read without a known bound is read up to the buffer's own
        low = want.min_value if want.has_lower_bound() else IntImm(dim.dtype, 0)
        high = want.max_value if want.has_upper_bound() else dim - 1
        if not (analyzer.can_prove(got.min_value <= low) or analyzer.can_prove(got.min_value <= 0)):
            return False
        if not (analyzer.can_prove(got.max_value >= high)
                or analyzer.can_prove(got.max_value >= min_value_of(high, dim - 1))):
            return False
    return True


def _each_is_written(state: ScheduleState, lca: StmtSRef, producer: StmtSRef, written: BufferRegion,
                     consumer: StmtSRef, read: BufferRegion) -> bool:
    """Whether there is, for each element that a block reads, an iteration of the producer below
    `lca` that writes it. This knows of triangles, which no box is."""
    def points(block: StmtSRef, region: BufferRegion) -> list[PrimExpr] | None:
        """The indices in terms of loops; None if they are no points."""
        realize = state.realize_of(block)
        values = {iv.var: v for iv, v in zip(block.stmt.iter_vars, realize.iter_values)}
        if not all(op.is_const_int(r.extent, 1) for r in region.region):
            return None
        return [substitute(r.min, values) for r in region.region]

    there, here = points(producer, written), points(consumer, read)
    if there is None or here is None:
        return False
    return reaches(there, _below(state, lca, producer), state.realize_of(producer).predicate, here,
                   _around(state, lca, consumer), conjuncts(state.realize_of(consumer).predicate))


def _writes_all(state: ScheduleState, lca: StmtSRef, producer: StmtSRef, written: BufferRegion
                ) -> bool:
    """Whether it is seen at a glance that the loops below `lca` write each element of a buffer: its
    places are iterators, each over all of a dimension or by its digits, `v // 8` and `v % 8`."""
    domains = {iv.var: iv.dom for iv in producer.stmt.iter_vars}
    digits: dict[Var, dict[type, tuple[int, int]]] = {}
    for r, dim in zip(written.region, written.buffer.shape):
        place = r.min
        if not op.is_const_int(r.extent, 1):
            return False
        if op.is_const_int(place, 0) and op.is_const_int(dim, 1):
            continue
        if isinstance(place, (FloorDiv, FloorMod)):
            base, size = op.as_int(place.b), op.as_int(dim)
            if type(place.a) is not Var or base is None or size is None:
                return False
            digits.setdefault(place.a, {})[type(place)] = base, size
            continue
        dom = domains.pop(place, None) if type(place) is Var else None
        if dom is None or not op.is_const_int(dom.min, 0) or not (
                dom.extent is dim or type(dim) is IntImm and (
                    op.is_const_int(dom.extent, dim.value))):
            return False
    for var, both in digits.items():
        dom = domains.pop(var, None)
        high, low = both.get(FloorDiv), both.get(FloorMod)
        if dom is None or high is None or low is None or not op.is_const_int(dom.min, 0) or (
                not high[0] == low[0] == low[1]) or not op.is_const_int(
                    dom.extent, high[1] * low[1]):
            return False
    return runs_everywhere(state.realize_of(producer), _below(state, lca, producer))


def _is_whole(interval: Any, dim: Any) -> bool:
    """Whether an interval is known at a glance to be all of a dimension."""
    low, high = interval.min_value, interval.max_value
    return (type(low) is IntImm and type(high) is IntImm and type(dim) is IntImm
            and low.value <= 0 and high.value >= dim.value - 1)


def _bounded(interval: Any) -> bool:
    return interval.has_lower_bound() and interval.has_upper_bound()


def stage_pipeline(state: ScheduleState, scope: StmtSRef) -> None:
    """The scope must be a stage pipeline: producers finish what consumers read."""
    facts = state.facts(scope)
    if "stage pipeline" in facts:
        return
    for child in state.child_blocks(scope):
        found = region_cover(state, scope, child)
        if found:
            reason, conflict = found
            raise Refusal("stage_pipeline", f"the scope {scope.stmt.name_hint} is not a stage "
                          f"pipeline: {reason}; moving blocks in it could change what they see",
                          nodes=[scope.stmt], conflict=conflict)
    facts["stage pipeline"] = True


def lowest_common_ancestor(state: ScheduleState, scope: StmtSRef, srefs: Sequence[StmtSRef]
                           ) -> StmtSRef:
    """The lowest loop that contains all of `srefs`, or the scope root."""
    chains: list[list[StmtSRef]] = []
    for sref in srefs:
        chain = [scope, *state.loops_above(sref)]
        chains.append(chain)
    best = scope
    for level in zip(*chains):
        if all(s is level[0] for s in level):
            best = level[0]
        else:
            break
    return best

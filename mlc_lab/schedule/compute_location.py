"""Moving a block under a loop of its consumers or producers: rules, regions, new loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ..arith import Analyzer, IntSet, estimate_region_upper_bound, eval_set
from ..arith.access import conjuncts
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import IntImm, IterVar, PrimExpr, Range, Var
from ..tir.functor import free_vars, substitute, uses_var
from ..tir.stmt import Block, BlockRealize, For, ForKind, SeqStmt, Stmt, seq
from .covering import stage_pipeline
from .error import Refusal
from .footprint import reads_memory
from .guards import (
    REDUCE,
    complete_or_reduction,
    element_range,
    is_block,
    is_loop,
    same_scope,
)
from .move import replace_loop, without_block
from .needed_region import iter_domains, needed_regions
from .provenance import came_from
from .relocation import may_be_computed_at, not_an_output_block
from .state import ScheduleState, StmtSRef, child_realizes
from .witness import loop_triples, unwritten_read, touched_twice


def special_location(state: ScheduleState, block: StmtSRef, loop: Any, inline: bool) -> bool:
    """-1 (stay at the root) and -2 (inline), as sample_compute_location gives them."""
    if type(loop) is not int:
        return False
    if loop == -1:
        return True
    if loop == -2:
        from .inlining import inline_consumer, inline_producer

        (inline_producer if inline else inline_consumer)(state, block)
        return True
    return False


def move_block(state: ScheduleState, block: StmtSRef, loop: StmtSRef, preserve_unit_loops: bool,
               index: int, producer: bool) -> None:
    """Move `block` under `loop`, as a producer of what is there or as a consumer of it."""
    is_block(block)
    is_loop(loop)
    scope = same_scope(state, block, loop)
    stage_pipeline(state, scope)
    _close_domains(state, block)
    complete_or_reduction(state, block, scope)
    if loop in state.loops_above(block):
        raise Refusal("block_is_not_under_loop", f"block {block.stmt.name_hint} is under loop "
                      f"{loop.stmt.loop_var.name} already", nodes=[loop.stmt, block.stmt],
                      hint="use a loop of a consumer" if producer else "use a loop of a producer")
    graph = state.scope(scope)
    producers = [state.refs[b] for b in graph.producers(block.stmt)]
    consumers = [state.refs[b] for b in graph.consumers(block.stmt)]
    partners = consumers if producer else producers
    outlives = producer and any(r.buffer not in scope.stmt.alloc_buffers
                                for r in block.stmt.writes)
    if outlives and not consumers:
        raise not_an_output_block(block.stmt)
    _partners_under_loop(state, block, partners, loop, producer)
    if not producer:
        _reduction_finished(state, partners, loop, block)
    position = _insertion_point(state, loop, producers, consumers, index, block)
    nest, why_not = _new_nest(state, scope, block, loop, partners, preserve_unit_loops, producer)
    try:
        may_be_computed_at(state, scope, block, loop, position, nest, producer, outlives)
    except Refusal:
        why_not()
        raise
    body = without_block(state, scope, block)

    def insert(found: For) -> Stmt:
        items = list(found.body.seq) if type(found.body) is SeqStmt else [found.body]
        items.insert(position, nest)
        return found.replace(body=seq(*items))

    body = replace_loop(body, loop.stmt.loop_var, insert)
    new_scope = scope.stmt.replace(body=body)
    state.replace(scope, new_scope, {scope.stmt: new_scope})


def _close_domains(state: ScheduleState, block: StmtSRef) -> None:
    """Iterator domains that name loops around the block, as of a triangle, become all that they
    are in these loops: the block is about to leave them."""
    stmt: Block = block.stmt
    around = state.loop_domains(block)
    if not around or not any(uses_var(iv.dom.extent, around) or uses_var(iv.dom.min, around)
                             for iv in stmt.iter_vars):
        return
    new: list[IterVar] = []
    for iv in stmt.iter_vars:
        low, high = iv.dom.min, op.add(iv.dom.min, iv.dom.extent)
        for var, dom in reversed(around.items()):
            low = eval_set(low, {var: dom}).min_value
            high = eval_set(high, {var: dom}).max_value
        if not all(type(e) is IntImm or e.dtype == iv.var.dtype for e in (low, high)):
            raise Refusal("domains_stay_defined", f"the domain of iterator {iv.var.name} of block "
                          f"{stmt.name_hint} names a loop around it and has no bound without it",
                          nodes=[stmt], hint="give the iterator a domain that names no loop")
        extent = Analyzer().simplify(op.sub(high, low))
        new.append(iv.replace(dom=Range.from_min_extent(low, extent)))
    state.replace(block, stmt.replace(iter_vars=tuple(new)))


def _partners_under_loop(state: ScheduleState, block: StmtSRef, partners: list[StmtSRef],
                         loop: StmtSRef, producer: bool) -> None:
    word = "consumer" if producer else "producer"
    if not partners:
        raise Refusal(f"has_{word}s", f"block {block.stmt.name_hint} has no {word} in its scope, "
                      "so there is nothing to say which part of it to compute under the loop",
                      nodes=[block.stmt])
    outside = [s for s in partners if loop not in state.loops_above(s)]
    if outside:
        names = ", ".join(s.stmt.name_hint for s in outside)
        raise Refusal(
            f"all_{word}s_under_loop", f"{word} {names} of block {block.stmt.name_hint} is not "
            f"under loop {loop.stmt.loop_var.name}: it would "
            + ("read what is not there yet" if producer else "not have run when the block does"),
            nodes=[loop.stmt, *(s.stmt for s in outside)],
            conflict=lambda: _shared_element(state, block, outside[0], producer),
            hint=f"choose a loop that is around every {word}, or move that {word} first")


def _shared_element(state: ScheduleState, block: StmtSRef, partner: StmtSRef,
                    producer: bool) -> str:
    """An element that one of the two blocks writes and the other reads, and where they do."""
    ours = block.stmt.writes if producer else block.stmt.reads
    theirs = partner.stmt.reads if producer else partner.stmt.writes
    for mine in ours:
        for other in theirs:
            if mine.buffer is other.buffer:
                return touched_twice(
                    block.stmt.name_hint,
                    loop_triples([s.stmt for s in state.loops_above(block)]),
                    element_range(state, block, mine), partner.stmt.name_hint,
                    loop_triples([s.stmt for s in state.loops_above(partner)]),
                    element_range(state, partner, other), mine.buffer,
                    ("writes", "reads") if producer else ("reads", "writes"))
    return ""


def _reduction_finished(state: ScheduleState, partners: list[StmtSRef], loop: StmtSRef,
                        block: StmtSRef) -> None:
    around = [*state.loops_above(loop), loop]
    for partner in partners:
        realize = state.realize_of(partner)
        for iv, value in zip(partner.stmt.iter_vars, realize.iter_values):
            if iv.iter_type != REDUCE:
                continue
            for outer in around:
                if uses_var(value, outer.stmt.loop_var):
                    raise Refusal(
                        "reduction_is_finished", f"loop {outer.stmt.loop_var.name} drives the "
                        f"reduction iterator {iv.var.name} of producer {partner.stmt.name_hint}: "
                        f"inside it block {block.stmt.name_hint} would read unfinished sums",
                        nodes=[outer.stmt, partner.stmt],
                        conflict=f"{outer.stmt.loop_var.name} = 0: {block.stmt.name_hint} reads "
                        f"an element; {outer.stmt.loop_var.name} = 1: {partner.stmt.name_hint} "
                        "still adds to it",
                        hint="choose a loop outside the reduction, or reorder the reduction loop "
                        "inside first")


def _insertion_point(state: ScheduleState, loop: StmtSRef, producers: list[StmtSRef],
                     consumers: list[StmtSRef], index: int, block: StmtSRef) -> int:
    body = loop.stmt.body
    items = list(body.seq) if type(body) is SeqStmt else [body]
    blocks_of = [_blocks_under(item) for item in items]
    made, wanted = {s.stmt for s in producers}, {s.stmt for s in consumers}
    after = max((i for i, found in enumerate(blocks_of) if found & made), default=-1) + 1
    before = min((i for i, found in enumerate(blocks_of) if found & wanted), default=len(items))
    if after > before:
        raise Refusal("producers_before_consumers", f"under loop {loop.stmt.loop_var.name} a "
                      f"consumer of block {block.stmt.name_hint} comes before a producer of it: "
                      "there is no place for the block", nodes=[loop.stmt])
    if index == -1:
        return before
    if index == -2:
        return after
    if not after <= index <= before:
        raise Refusal("index_is_possible", f"index={index}: the block can go to positions {after} "
                      f"to {before} of the loop's body", nodes=[loop.stmt])
    return index


def _blocks_under(stmt: Stmt) -> set[Block]:
    if type(stmt) is BlockRealize:
        return {stmt.block}
    return {r.block for r in child_realizes(stmt)}


def _new_nest(state: ScheduleState, scope: StmtSRef, block: StmtSRef, loop: StmtSRef,
              partners: list[StmtSRef], preserve_unit_loops: bool, producer: bool
              ) -> tuple[Stmt, Callable[[], None]]:
    """The block in its new loops, and what raises a Refusal that says which reads or iterations
    would be lost, if that is why the block may not be computed there."""
    stmt: Block = block.stmt
    analyzer = Analyzer()
    state.loop_domains_into(loop, analyzer)
    needed = needed_regions(state, stmt, loop, partners, producer, analyzer)
    own = stmt.writes if producer else stmt.reads
    domains = iter_domains(stmt, own, needed, analyzer)
    loops: list[tuple[Var, PrimExpr]] = []
    values: list[PrimExpr] = []
    predicate: PrimExpr = op.const(True)
    realize = state.realize_of(block)
    bound_to = {iv.var: v for iv, v in zip(stmt.iter_vars, realize.iter_values)}
    # what the block reads is all there: it may compute more than is needed in this iteration
    repeatable = producer and not _blocks_under(loop.stmt).intersection(
        state.scope(scope).producers(stmt))
    for iv in stmt.iter_vars:
        dom, bound = domains[iv.var]
        low = analyzer.simplify(dom.min_value)
        extent = analyzer.simplify(op.add(op.sub(dom.max_value, dom.min_value), 1))
        longest = _longest(extent, analyzer) if repeatable else None
        if longest is not None:
            extent, bound = longest, iv.dom
        if preserve_unit_loops or not op.is_const_int(extent, 1):
            var = came_from(Var(f"ax{len(loops)}", iv.var.dtype), *free_vars(bound_to[iv.var]))
            extent = op.cast(extent, iv.var.dtype)
            loops.append((var, extent))
            analyzer.bind(var, Range.from_min_extent(IntImm(extent.dtype, 0), extent))
            values.append(op.add(low, var))
        else:
            values.append(low)
        if bound is not None:
            value = values[-1]
            for condition in (op.greater_equal(value, bound.min),
                              op.less(value, op.add(bound.min, bound.extent))):
                if not analyzer.can_prove(condition):
                    predicate = op.logical_and(predicate, condition)
    if not producer:
        around = {s.stmt.loop_var for s in state.loops_above(block)}
        predicate = _where_it_ran(realize, around, values, predicate, analyzer)

    def why_not() -> None:
        if not producer:
            _reads_are_covered(state, stmt, values, loops, needed, analyzer, loop)
            _no_iteration_is_lost(state, stmt, values, loops, loop)

    nest: Stmt = BlockRealize(values, analyzer.simplify(predicate), stmt)
    for var, extent in reversed(loops):
        nest = For(var, IntImm(var.dtype, 0), extent, ForKind.SERIAL, nest)
    return nest, why_not


def _where_it_ran(realize: BlockRealize, loops: set[Var], values: list[PrimExpr],
                  predicate: PrimExpr, analyzer: Analyzer) -> PrimExpr:
    """A predicate of the new place, and what the old one asks of those of its loops that an
    iterator stands for each, as far as it does not follow."""
    table = {old: new for old, new in zip(realize.iter_values, values) if isinstance(old, Var)}
    for part in conjuncts(realize.predicate):
        if loops.isdisjoint(set(free_vars(part)) - table.keys()) and not reads_memory(part):
            with analyzer.constraint_scope(predicate):
                condition = analyzer.simplify(substitute(part, table))
            if not op.is_const_int(condition, 1):
                predicate = op.logical_and(predicate, condition)
    return predicate


def _longest(extent: PrimExpr, analyzer: Analyzer) -> PrimExpr | None:
    """The most iterations that a loop makes whose extent changes with outer loops.

    A loop of fixed extent can be vectorized and unrolled; it computes a little twice. None where
    the extent is fixed already or depends on what has no bound, as a symbolic size.
    """
    if type(extent) is IntImm or not _are_bounded(free_vars(extent), analyzer):
        return None
    found = analyzer.const_int_bound(extent)
    if not 0 < found.max_value < 2**31:
        return None
    return IntImm(extent.dtype, int(found.max_value))


def _are_bounded(names: Iterable[Var], analyzer: Analyzer) -> bool:
    """Whether variables run over ranges of known lengths: those of others end where their type
    does, as that of a loop up to a symbolic size."""
    for name in names:
        rng = analyzer.ranges.get(name)
        if rng is None or type(rng.extent) is not IntImm or not _are_bounded(
                free_vars(rng.min), analyzer):
            return False
    return True


def _reads_are_covered(state: ScheduleState, stmt: Block, values: list[PrimExpr],
                       loops: list[tuple[Var, PrimExpr]], needed: dict[Buffer, list[IntSet]],
                       analyzer: Analyzer, loop: StmtSRef) -> None:
    """What the moved consumer reads in one iteration must be what the producers wrote in it."""
    binding = {iv.var: v for iv, v in zip(stmt.iter_vars, values)}
    domains = {var: Range.from_min_extent(IntImm(e.dtype, 0), e) for var, e in loops}
    for region in stmt.reads:
        have = needed.get(region.buffer)
        if have is None:
            continue
        bound = [Range.from_min_extent(substitute(r.min, binding), substitute(r.extent, binding))
                 for r in region.region]
        want = estimate_region_upper_bound(bound, domains, op.const(True), analyzer)
        for axis, (w, h) in enumerate(zip(want, have)):
            dim = region.buffer.shape[axis]
            low = h.has_lower_bound() and any(
                analyzer.can_prove(op.less_equal(h.min_value, e))
                for e in (w.min_value, 0)[not w.has_lower_bound():])
            high = h.has_upper_bound() and any(
                analyzer.can_prove(op.greater_equal(h.max_value, e))
                for e in (w.max_value, op.sub(dim, 1))[not w.has_upper_bound():])
            if not (low and high):
                raise Refusal(
                    "producer_covers_consumer", f"in one iteration block {stmt.name_hint} reads "
                    f"{region.buffer.name}[{w.min_value!r} .. {w.max_value!r}] in dimension "
                    f"{axis}, but its producers have written only {h.min_value!r} .. "
                    f"{h.max_value!r} by then", nodes=[stmt],
                    conflict=partial(
                        unwritten_read, stmt.name_hint, "its producer", region.buffer,
                        loop_triples([s.stmt for s in (*state.loops_above(loop), loop)]),
                        [(v, IntImm(e.dtype, 0), e) for v, e in loops],
                        [(r.min, op.sub(op.add(r.min, r.extent), 1)) for r in bound],
                        [(x.min_value, x.max_value) for x in have]),
                    hint="choose an outer loop, whose iterations produce more")


def _no_iteration_is_lost(state: ScheduleState, stmt: Block, values: list[PrimExpr],
                          loops: list[tuple[Var, PrimExpr]], loop: StmtSRef) -> None:
    """A consumer must still run for iterations that read nothing of its producers, as at the rim
    of a padded buffer: all iterations of `loop` and of those around it together reach the whole
    domain of each iterator."""
    domains: dict[Var, Range] = {}
    for sref in [*(s for s in state.ancestors(loop) if type(s.stmt) is For), loop]:
        domains[sref.stmt.loop_var] = Range.from_min_extent(sref.stmt.min, sref.stmt.extent)
    for var, extent in loops:
        domains[var] = Range.from_min_extent(IntImm(extent.dtype, 0), extent)
    analyzer = Analyzer()
    for iv, value in zip(stmt.iter_vars, values):
        reached = eval_set(value, domains)
        if not (reached.has_lower_bound() and reached.has_upper_bound()):
            continue
        last = op.sub(op.add(iv.dom.min, iv.dom.extent), 1)
        if analyzer.can_prove(op.greater(reached.min_value, iv.dom.min)) or (
                analyzer.can_prove(op.less(reached.max_value, last))):
            raise Refusal(
                "no_iteration_is_lost", f"under loop {loop.stmt.loop_var.name} iterator "
                f"{iv.var.name} of block {stmt.name_hint} would only reach "
                f"{analyzer.simplify(reached.min_value)!r} .. "
                f"{analyzer.simplify(reached.max_value)!r} of its domain "
                f"{iv.dom.min!r} .. {analyzer.simplify(last)!r}: some iterations read nothing that "
                "its producers write, and would not run", nodes=[stmt],
                hint="leave the block where it is, or move its producer to it: sch.compute_at")

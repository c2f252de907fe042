"""Moving a block under a loop of its consumers or producers: rules, regions, new loops."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from ..arith import (
    Analyzer,
    IntSet,
    detect_iter_map,
    estimate_region_upper_bound,
    eval_set,
    inverse_affine_iter_map,
)
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import (
    FloorDiv,
    IntImm,
    PrimExpr,
    Range,
    Var,
)
from ..tir.functor import free_vars, substitute, uses_var
from ..tir.stmt import Block, BlockRealize, For, ForKind, SeqStmt, Stmt, seq
from .error import Refusal
from .guards import (
    REDUCE,
    complete_or_reduction,
    element_range,
    is_block,
    is_loop,
    same_scope,
    stage_pipeline,
)
from .move import replace_loop, without_block
from .provenance import came_from
from .state import ScheduleState, StmtSRef, child_realizes
from .witness import loop_triples, unwritten_read, touched_twice


def special_location(state: ScheduleState, block: StmtSRef, loop: Any, inline: bool) -> bool:
    """-1 (stay at the root) and -2 (inline), as sample_compute_location gives them."""
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
    complete_or_reduction(state, block, scope)
    if loop in state.loops_above(block):
        raise Refusal("block_is_not_under_loop", f"block {block.stmt.name_hint} is under loop "
                      f"{loop.stmt.loop_var.name} already", nodes=[loop.stmt, block.stmt],
                      hint="use a loop of a consumer" if producer else "use a loop of a producer")
    graph = state.scope(scope)
    producers = [state.refs[b] for b in graph.producers(block.stmt)]
    consumers = [state.refs[b] for b in graph.consumers(block.stmt)]
    if producer:
        _not_output(scope, block)
        partners = consumers
    else:
        partners = producers
    _partners_under_loop(state, block, partners, loop, producer)
    if not producer:
        _reduction_finished(state, partners, loop, block)
    position = _insertion_point(state, loop, producers, consumers, index, block)
    nest = _new_nest(state, scope, block, loop, partners, preserve_unit_loops, producer)
    body = without_block(state, scope, block)

    def insert(found: For) -> Stmt:
        items = list(found.body.seq) if type(found.body) is SeqStmt else [found.body]
        items.insert(position, nest)
        return found.replace(body=seq(*items))

    body = replace_loop(body, loop.stmt.loop_var, insert)
    new_scope = scope.stmt.replace(body=body)
    state.replace(scope, new_scope, {scope.stmt: new_scope})


def _not_output(scope: StmtSRef, block: StmtSRef) -> None:
    local = set(scope.stmt.alloc_buffers)
    for region in block.stmt.writes:
        if region.buffer not in local:
            raise Refusal(
                "not_an_output_block", f"block {block.stmt.name_hint} writes {region.buffer.name}, "
                "which outlives the scope: computing only the part that a consumer needs could "
                "leave parts of it unwritten", nodes=[block.stmt],
                hint="move the consumer instead: sch.reverse_compute_at")


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


class _Domain(NamedTuple):
    """What a block iterator has to run over, and the bound it must not leave (or None)."""

    dom: IntSet
    bound: Range | None


def _new_nest(state: ScheduleState, scope: StmtSRef, block: StmtSRef, loop: StmtSRef,
              partners: list[StmtSRef], preserve_unit_loops: bool, producer: bool) -> Stmt:
    stmt: Block = block.stmt
    analyzer = Analyzer()
    state.loop_domains_into(loop, analyzer)
    needed = _needed_regions(state, stmt, loop, partners, producer, analyzer)
    own = stmt.writes if producer else stmt.reads
    domains = _iter_domains(stmt, own, needed, analyzer)
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
        _reads_are_covered(state, stmt, values, loops, needed, analyzer, loop)
        _no_iteration_is_lost(state, stmt, values, loops, loop)
    nest: Stmt = BlockRealize(values, analyzer.simplify(predicate), stmt)
    for var, extent in reversed(loops):
        nest = For(var, IntImm(var.dtype, 0), extent, ForKind.SERIAL, nest)
    return nest


def _longest(extent: PrimExpr, analyzer: Analyzer) -> PrimExpr | None:
    """The most iterations that a loop makes whose extent changes with outer loops.

    A loop of fixed extent can be vectorized and unrolled; it computes a little twice. None where
    the extent is fixed already or depends on what has no bound, as a symbolic size.
    """
    if type(extent) is IntImm or any(type(v) is not Var for v in free_vars(extent)):
        return None
    found = analyzer.const_int_bound(extent)
    if not 0 < found.max_value < 2**31:
        return None
    return IntImm(extent.dtype, int(found.max_value))


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
            low = analyzer.can_prove(op.less_equal(h.min_value, w.min_value)) or (
                analyzer.can_prove(op.less_equal(h.min_value, 0)))
            high = analyzer.can_prove(op.greater_equal(h.max_value, w.max_value)) or (
                analyzer.can_prove(op.greater_equal(h.max_value, op.sub(dim, 1))))
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


def _needed_regions(state: ScheduleState, block: Block, loop: StmtSRef, partners: list[StmtSRef],
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
            if region.buffer in out:
                from ..arith import union

                sets = [union([a, b]) for a, b in zip(out[region.buffer], sets)]
            out[region.buffer] = sets
    return out


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
    while parent is not loop:
        chain.append(parent.stmt)
        parent = parent.parent
    rank = _SCOPE_RANK.get(scope.split(".")[0], 3)
    if rank == 1:
        while parent is not None:
            stmt = parent.stmt
            if type(stmt) is For and stmt.thread_binding is not None and (
                    stmt.thread_binding.thread_tag.startswith("threadIdx")):
                chain.append(stmt)
            parent = parent.parent
    return {lp.loop_var: Range.from_min_extent(lp.min, lp.extent) for lp in reversed(chain)}


def _iter_domains(block: Block, own: tuple, needed: dict[Buffer, list[IntSet]],
                  analyzer: Analyzer) -> dict[Var, _Domain]:
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
    out: dict[Var, _Domain] = {}
    for iv in block.iter_vars:
        high = op.sub(op.add(iv.dom.min, iv.dom.extent), 1)
        found = solved.get(iv.var)
        if found is None:
            out[iv.var] = _Domain(IntSet.interval(iv.dom.min, high), None)
            continue
        low_ok = analyzer.can_prove(op.greater_equal(found.min_value, iv.dom.min))
        high_ok = analyzer.can_prove(op.less_equal(found.max_value, high))
        if low_ok and high_ok:
            out[iv.var] = _Domain(found, None)
        elif analyzer.can_prove(op.less_equal(found.min_value, iv.dom.min)) and (
                analyzer.can_prove(op.greater_equal(found.max_value, high))):
            out[iv.var] = _Domain(IntSet.interval(iv.dom.min, high), None)
        else:
            out[iv.var] = _Domain(found, iv.dom)
    return out


def _merge(solved: dict[Var, IntSet], var: Var, low: PrimExpr, high: PrimExpr,
           analyzer: Analyzer) -> None:
    new = IntSet.interval(analyzer.simplify(low), analyzer.simplify(high))
    if var in solved:
        from ..arith import union

        new = union([solved[var], new])
    solved[var] = new


def _solve_affine(provided: tuple, required: list[IntSet], doms: dict[Var, Range],
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
    lows, highs = {}, {}
    names = [Var(f"p{i}", p.dtype) for i, p in enumerate(points)]
    inverse = inverse_affine_iter_map(found.indices, names)
    sets = dict(zip(names, required))
    for var in used:
        if var not in inverse:
            return False
        answer = eval_set(inverse[var], sets)
        if not (answer.has_lower_bound() and answer.has_upper_bound()):
            return False
        lows[var], highs[var] = answer.min_value, answer.max_value
    for var in used:
        _merge(solved, var, lows[var], highs[var], analyzer)
    return True


def _linear(expr: PrimExpr, doms: dict[Var, Range]) -> tuple[Var, int, PrimExpr] | None:
    """expr as var * factor + rest with one block iterator, a constant factor and a free rest."""
    from ..arith import detect_linear_equation

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

"""Writing one block's computation into another: what the two inlining primitives do."""

from __future__ import annotations

from collections.abc import Sequence

from ..arith import Analyzer, detect_iter_map, inverse_affine_iter_map
from ..arith.access import conjuncts
from ..ir import dtype as dt
from ..ir.structural import structural_equal
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import (
    Broadcast, BufferLoad, Call, IntImm, PrimExpr, Ramp, Range, Select, Var,
)
from ..tir.functor import Mutator, free_vars, pre_order, substitute, uses_var
from ..tir.stmt import (
    AttrStmt, Block, BlockRealize, BufferRegion, BufferStore, For, IfThenElse, Stmt,
)
from .covering import relaxed_region, stage_pipeline
from .dependency import BlockScope, Site
from .error import Refusal
from .executed import run_at_all, runs_everywhere
from .footprint import WORLD, Access, binding_reads, footprint
from .guards import complete_block, is_block
from .move import without_block
from .order import Place, flow, passed
from .provenance import came_from
from .repeatable import name_of, one_store, why_not_repeatable
from .rewrite import replace_block, with_regions
from .state import ScheduleState, StmtSRef


def inline_producer(state: ScheduleState, block: StmtSRef) -> None:
    """See `compute_inline`."""
    is_block(block)
    scope = state.scope_root(block)
    complete_block(state, block, scope)
    stmt: Block = block.stmt
    store = _single_store(stmt)
    buffer = store.buffer
    if buffer not in scope.stmt.alloc_buffers:
        raise Refusal("not_an_output_block", f"buffer {buffer.name} outlives the scope, somebody "
                      "else may read it: its block cannot be inlined away", nodes=[stmt])
    graph = state.scope(scope)
    site = graph.site(stmt)
    readers = _plain_readers(graph, site, buffer)
    stage_pipeline(state, scope)
    # a dimension of one element has but one index, whatever says so
    places = [None if op.is_const_int(index, 0) and op.is_const_int(dim, 1) else index
              for index, dim in zip(store.indices, buffer.shape)]
    variables = [v for v in places if isinstance(v, Var)]
    if len(set(variables)) + places.count(None) != len(places):
        raise Refusal("store_at_iterators", f"block {stmt.name_hint} stores at "
                      f"[{', '.join(map(repr, store.indices))}]: to inline it, each index must be "
                      "an iterator of its own, so that the value for any index can be written down",
                      nodes=[store])
    strangers = set(free_vars(store.value)) & {iv.var for iv in stmt.iter_vars} - set(variables)
    if strangers:
        names = ", ".join(v.name for v in strangers)
        raise Refusal("value_follows_from_index", f"the value stored depends on {names}, which no "
                      f"index of {buffer.name} determines", nodes=[store])
    if any(isinstance(n, BufferLoad) and n.buffer is buffer for n in pre_order(store.value)):
        raise Refusal("complete_block", f"the block reads {buffer.name}, which it writes",
                      nodes=[store])
    if any(a.memory is WORLD for a in footprint(stmt)):
        raise Refusal("value_is_pure", f"the value that block {stmt.name_hint} stores is computed "
                      "by a call that may do more than that: it would be made at other times, and "
                      "more or less often", nodes=[store])
    for reader in readers:
        _may_be_read_there(graph, site, reader, buffer, places)
    inliner = _InlineLoads(buffer, places, store.value, scope.stmt)
    body = inliner.visit(without_block(state, scope, block))
    for consumer in inliner.reuse.values():
        came_from(consumer, stmt)
    _drop_buffer(state, scope, buffer, body, inliner.reuse)


def _plain_readers(graph: BlockScope, site: Site, buffer: Buffer) -> list[Site]:
    """The sites that read what a block computes: blocks behind it, which load it by its name.
    Nobody else writes it, a statement outside of blocks neither."""
    for other in graph.sites:
        if other is not site and not other.writes.isdisjoint(site.writes):
            raise Refusal("only_writer", f"{other.name} writes {buffer.name} too: it must stay",
                          nodes=[other.node])
    readers = [s for s in graph.sites if s is not site and not s.reads.isdisjoint(site.writes)]
    for reader in readers:
        if reader.block is None or reader.index < site.index:
            raise Refusal("readers_follow", f"{reader.name} reads {buffer.name} and "
                          + ("is no block" if reader.block is None else
                             f"comes before block {site.name}, which computes it"),
                          nodes=[reader.node])
        for access in reader.accesses:
            if access.memory is buffer.data and not (
                    type(access.node) is BufferLoad and access.node.buffer is buffer):
                raise Refusal("read_by_name", f"block {reader.name} reads {buffer.name} through a "
                              "pointer or a view (T.match_buffer): there must be memory to point "
                              "to", nodes=[access.node, reader.node],
                              hint="inline the reader's view first, or leave the block where it is")
    return readers


def _may_be_read_there(graph: BlockScope, site: Site, reader: Site, buffer: Buffer,
                       places: Sequence[PrimExpr | None]) -> None:
    """What the block reads must still be there when `reader` computes the value itself."""
    assert site.block is not None and reader.block is not None
    values = [a for a in footprint(site.block) if not a.write]
    there: list[Access] = []
    for load in reader.accesses:
        if load.memory is buffer.data and load.spans is not None:
            table = {v: s[0] for v, s in zip(places, load.spans)
                     if isinstance(v, Var) and s is not None}
            there += [a.bound(table, load.loops, load.conditions) for a in values]
    # a reader with several stores may overwrite what it is to read later in the same iteration
    place = Place(reader.loops, reader.index + (not one_store(reader.block)))
    settled = flow(graph).may_pass(site, (site.loops, reader.loops))

    def but(a: Access, b: Access) -> bool:
        return a.memory in site.writes or settled(a, b)

    found = passed(graph, site, place, there, True, but)
    if found is not None:
        touched = name_of(found.clash.a)
        raise Refusal("nothing_is_passed", f"{found.site.name} writes elements of {touched} after "
                      f"block {site.name} has read them and before {reader.name} would: inlined, "
                      "the value would be another", nodes=[site.block, found.site.node],
                      conflict=lambda: found.text(site.name),
                      hint="keep the block: its result is what was there before")


def _single_store(block: Block) -> BufferStore:
    body = block.body
    if type(body) is not BufferStore or block.init is not None:
        raise Refusal("body_is_one_store", f"the body of block {block.name_hint} is not a single "
                      "store, so it cannot be written as an expression", nodes=[block])
    return body


class _InlineLoads(Mutator):
    """Loads of `buffer` become its defining expression, that of the element at `places`; None is
    the index of a dimension of one element."""

    def __init__(self, buffer: Buffer, places: Sequence[PrimExpr | None], value: PrimExpr,
                 root: Block) -> None:
        super().__init__()
        self.buffer, self.places, self.value, self.root = buffer, places, value, root
        self.reuse: dict[Block, Block] = {}

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        new = super().visit_BufferLoad(node)
        if new.buffer is not self.buffer:
            return new
        value = substitute(self.value, {v: index for v, index in zip(self.places, new.indices)
                                        if isinstance(v, Var)})
        lanes = dt.lanes_of(new.dtype)
        if lanes == 1:
            return value
        if not _lane_by_lane(value):
            raise Refusal("computed_lane_by_lane", f"{self.buffer.name} is read as a vector, and "
                          f"the value {self.value!r} can be written for one element at a time "
                          "only", nodes=[node], hint="inline before the reader is written with "
                          "vectors, or vectorize a loop instead")
        return value if dt.lanes_of(value.dtype) == lanes else Broadcast(value, lanes)

    def visit_Block(self, node: Block) -> Stmt:
        init = self.visit(node.init) if node.init is not None else None
        body = self.visit(node.body)
        said = any(r.buffer is self.buffer for r in (*node.reads, *node.writes))
        if init is node.init and body is node.body and not said:
            return node
        new = node.replace(init=init, body=body)
        if node is self.root:
            new = new.replace(reads=_without(node.reads, self.buffer),
                              writes=_without(node.writes, self.buffer))
        else:
            new = with_regions(new)
            self.reuse[node] = new
        return new


def _lane_by_lane(value: PrimExpr) -> bool:
    """Whether each part of an expression has as many lanes as what it is computed from."""
    for node in pre_order(value):
        if type(node) is BufferLoad and any(dt.lanes_of(i.dtype) > 1 for i in node.indices[:-1]):
            return False  # only in the last dimension may an index be a vector
        if type(node) in (BufferLoad, Ramp):
            continue
        lanes = 1 if type(node) is Broadcast else dt.lanes_of(getattr(node, "dtype", "int32"))
        if any(dt.lanes_of(part.dtype) != lanes for part in node.children()
               if isinstance(part, PrimExpr)):
            return False
    return True


def _without(regions: tuple[BufferRegion, ...], buffer: Buffer) -> tuple[BufferRegion, ...]:
    return tuple(r for r in regions if r.buffer is not buffer)


def _drop_buffer(state: ScheduleState, scope: StmtSRef, buffer: Buffer, body: Stmt,
                 reuse: dict[Block, Block]) -> None:
    """Give the scope a new body that needs `buffer` no more."""
    old: Block = scope.stmt
    new = old.replace(body=body, alloc_buffers=tuple(
        b for b in old.alloc_buffers if b is not buffer), reads=_without(old.reads, buffer),
        writes=_without(old.writes, buffer))
    state.replace(scope, new, {**reuse, old: new})


def inline_consumer(state: ScheduleState, block: StmtSRef) -> None:
    """See `reverse_compute_inline`."""
    is_block(block)
    scope = state.scope_root(block)
    stmt: Block = block.stmt
    complete_block(state, block, scope)
    stage_pipeline(state, scope)
    graph = state.scope(scope)
    producers = graph.producers(stmt)
    if len(producers) != 1:
        raise Refusal("one_producer", f"block {stmt.name_hint} has {len(producers)} producers in "
                      "its scope; it can be written into exactly one", nodes=[stmt])
    producer = producers[0]
    source = state.refs[producer]
    complete_block(state, source, scope)
    others = [b.name_hint for b in graph.consumers(producer) if b is not stmt]
    if others:
        raise Refusal("only_consumer", f"block {others[0]} reads the result of "
                      f"{producer.name_hint} too: the buffer must stay", nodes=[producer])
    made = _single_store(producer)
    store = _consumer_store(stmt)
    buffer = made.buffer
    if buffer not in scope.stmt.alloc_buffers:
        raise Refusal("not_an_output_block", f"buffer {buffer.name} outlives the scope: it must "
                      "still be written", nodes=[producer])
    loads = [n for n in pre_order(store) if isinstance(n, BufferLoad) and n.buffer is buffer]
    if not loads or len(_plain_readers(graph, graph.site(producer), buffer)) != 1:
        raise Refusal("only_consumer", f"others read {buffer.name} too, or not by its name: it "
                      "must stay", nodes=[producer])
    if any(a.memory is buffer.data for a in binding_reads(state.realize_of(block))):
        raise Refusal("conditions_stay", f"whether block {stmt.name_hint} runs, or for which "
                      f"values, is read from {buffer.name}, which its producer has not computed "
                      "before it runs", nodes=[state.realize_of(block)])
    first = loads[0].indices
    for load in loads[1:]:
        if not structural_equal(first, load.indices):
            raise Refusal("one_index_pattern", f"{buffer.name} is read at different places by one "
                          "iteration, which the producer computes in different iterations",
                          nodes=[store])
    _every_iteration_has_a_maker(state, block, producer, first, buffer)
    table, guard = _invert(state, block, source, first, made, buffer)
    written = _ReplaceLoad(buffer, made.value)
    new_store = BufferStore(
        store.buffer, written.visit(substitute(store.value, table)),
        [Analyzer().simplify(written.visit(substitute(i, table))) for i in store.indices])
    predicate = None if guard is None else _with_guard(state, source, guard)
    _may_be_computed_there(graph, graph.site(stmt), graph.site(producer), buffer, table)
    new_block = came_from(with_regions(producer.replace(body=new_store)), stmt)
    body = replace_block(without_block(state, scope, block), producer, new_block, predicate)
    _drop_buffer(state, scope, buffer, body, {producer: new_block})


def _with_guard(state: ScheduleState, block: StmtSRef, guard: PrimExpr) -> PrimExpr:
    """The predicate of a block that is to run only where a condition on its iterators holds."""
    realize = state.realize_of(block)
    analyzer = Analyzer()
    for item in state.loops_above(block):
        analyzer.bind(item.stmt.loop_var, Range.from_min_extent(item.stmt.min, item.stmt.extent))
    binding = {iv.var: v for iv, v in zip(block.stmt.iter_vars, realize.iter_values)}
    asked = realize.predicate
    for part in conjuncts(guard):
        part = substitute(part, binding)
        with analyzer.constraint_scope(realize.predicate):
            follows = analyzer.can_prove(part)
        if not follows:
            asked = part if op.is_const_int(asked, 1) else op.logical_and(asked, part)
    return analyzer.simplify(asked)


def _may_be_computed_there(graph: BlockScope, site: Site, source: Site, buffer: Buffer,
                           table: dict[Var, PrimExpr]) -> None:
    """What the consumer reads besides must be there when its producer runs, and nobody may read or
    write what it writes in between."""
    assert site.block is not None and source.block is not None
    shared = [w for _, w in source.wrappers]
    left = [w for _, w in site.wrappers if type(w) is not AttrStmt and w not in shared]
    if left or not run_at_all(site.loops, graph.around):
        raise Refusal("conditions_stay", f"block {site.name} stands in a statement that says "
                      "whether it runs or defines what it uses, which is not around block "
                      f"{source.name}", nodes=left[:1] or [site.node])
    reason = why_not_repeatable(site.block)
    if reason:
        raise Refusal("may_run_again", f"written into {source.name}, the iterations of block "
                      f"{site.name} run in another order, and would not leave the same: {reason}",
                      nodes=[site.block])
    binding = {iv.var: v for iv, v in zip(source.block.iter_vars, source.node.iter_values)}
    there = [a.bound(table).bound(binding) for a in footprint(site.block)
             if a.memory is not buffer.data]

    def but(a: Access, b: Access) -> bool:
        return a.memory is buffer.data

    found = passed(graph, site, Place(source.loops, source.index + 1), there, False, but)
    if found is not None:
        touched = name_of(found.clash.a)
        raise Refusal("nothing_is_passed", f"written into {source.name}, block {site.name} would "
                      f"run before {found.site.name}, and both touch elements of {touched}",
                      nodes=[site.block, found.site.node],
                      conflict=lambda: found.text(site.name))


def _every_iteration_has_a_maker(state: ScheduleState, block: StmtSRef, producer: Block,
                                 indices: Sequence[PrimExpr], buffer: Buffer) -> None:
    """A consumer that reads under a condition may name elements outside of the buffer, and stores
    something else there: those iterations belong to no iteration of the producer."""
    stmt: Block = block.stmt
    if not any(type(n) is Select or isinstance(n, Call) and n.op.name == "tir.if_then_else"
               for n in pre_order(stmt.body)):
        return
    named = tuple(Range.from_min_extent(i, IntImm(i.dtype, 1)) for i in indices)
    analyzer = Analyzer()
    for found, dim in zip(relaxed_region(state, block, named, state.scope_root(block), lower=False),
                          buffer.shape):
        if not (found.has_lower_bound() and found.has_upper_bound()
                and analyzer.can_prove(found.min_value >= 0)
                and analyzer.can_prove(found.max_value < dim)):
            raise Refusal("producer_covers_consumer", f"block {stmt.name_hint} also runs where "
                          f"{producer.name_hint} makes no element of {buffer.name}: written into "
                          "it, those iterations would be lost", nodes=[stmt.body])


def _consumer_store(block: Block) -> BufferStore:
    body = block.body
    if type(body) is IfThenElse and body.else_case is None:
        raise Refusal("body_is_one_store", f"the body of block {block.name_hint} is conditional",
                      nodes=[block])
    return _single_store(block)


def _invert(state: ScheduleState, block: StmtSRef, source: StmtSRef, indices: Sequence[PrimExpr],
            made: BufferStore, buffer: Buffer) -> tuple[dict[Var, PrimExpr], PrimExpr | None]:
    """The consumer's iterators as expressions of the producer's, and a condition if needed."""
    stmt: Block = block.stmt
    doms = {iv.var: iv.dom for iv in stmt.iter_vars}
    unit = {v: d.min for v, d in doms.items() if op.is_const_int(d.extent, 1)}
    needed = {v: d for v, d in doms.items() if v not in unit}
    at = [substitute(i, unit) for i in indices]
    analyzer = Analyzer()
    inverse = _inverse(at, needed, list(made.indices)) if needed else {}
    if inverse is None:
        raise Refusal("index_is_invertible", f"block {stmt.name_hint} reads {buffer.name} at "
                      f"[{', '.join(map(repr, indices))}], from which its iterators cannot be "
                      "computed", nodes=[stmt])
    missing = [v.name for v in needed if v not in inverse]
    if missing:
        raise Refusal("index_is_invertible", f"iterator {', '.join(missing)} of block "
                      f"{stmt.name_hint} does not follow from where it reads {buffer.name}: one "
                      "element is read several times", nodes=[stmt])
    for iv in source.stmt.iter_vars:
        analyzer.bind(iv.var, iv.dom)
    table: dict[Var, PrimExpr] = {**unit}
    for index, place in zip(indices, made.indices):  # the producer's name for the only value
        if isinstance(index, Var) and index in unit and analyzer.can_prove_equal(
                place, unit[index]):
            table[index] = place
    guard: PrimExpr | None = None
    for var in needed:
        table[var] = analyzer.simplify(inverse[var])
        dom: Range = doms[var]
        for condition in (op.greater_equal(table[var], dom.min),
                          op.less(table[var], op.add(dom.min, dom.extent))):
            if not analyzer.can_prove(condition):
                guard = condition if guard is None else op.logical_and(guard, condition)
    # the consumer must read exactly where the producer stores
    for index, place in zip(at, made.indices):
        if any(dt.lanes_of(e.dtype) > 1 for e in (index, place, *table.values())):
            if not structural_equal(substitute(index, table), place) or any(
                    dt.lanes_of(e.dtype) > 1 for e in table.values()):
                raise Refusal("computed_lane_by_lane", f"{buffer.name} is stored or read as a "
                              "vector, and whether both are the same elements can be asked for "
                              "one element at a time only", nodes=[stmt, made],
                              hint="inline before the blocks are written with vectors, or "
                              "vectorize a loop instead")
            continue
        back = analyzer.simplify(op.sub(substitute(index, table), place))
        if not op.is_const_int(back, 0):
            condition = op.equal(substitute(index, table), place)
            if not analyzer.can_prove(condition):
                guard = condition if guard is None else op.logical_and(guard, condition)
    realize = state.realize_of(block)
    loops = [s.stmt for s in state.loops_above(block)]
    if not runs_everywhere(realize, loops):
        condition = _condition_of(block, realize, loops, table)
        analyzer = Analyzer()
        for iv in source.stmt.iter_vars:
            analyzer.bind(iv.var, iv.dom)
        condition = analyzer.simplify(condition)
        if not analyzer.can_prove(condition):
            guard = condition if guard is None else op.logical_and(guard, condition)
    return table, guard


def _inverse(indices: Sequence[PrimExpr], needed: dict[Var, Range], places: list[PrimExpr]
             ) -> dict[Var, PrimExpr] | None:
    """The iterators that read at `indices`, as expressions of the element `places`; None if there
    is no such expression."""
    analyzer = Analyzer()
    for var, dom in needed.items():
        analyzer.bind(var, dom)
    names = [Var(f"p{n}", p.dtype) for n, p in enumerate(places)]
    for chosen in (list(range(len(indices))), _telling(indices, needed)):
        found = detect_iter_map([indices[n] for n in chosen], needed, op.const(True), "nocheck",
                                Analyzer(), simplify_trivial_iterators=False)
        if not found.indices:
            continue
        inverse = dict(inverse_affine_iter_map(found.indices, [names[n] for n in chosen]))
        back = dict(zip(names, indices))
        if all(analyzer.can_prove_equal(substitute(e, back), v) for v, e in inverse.items()
               if v in needed):
            return {v: substitute(e, dict(zip(names, places))) for v, e in inverse.items()}
    return None


def _telling(indices: Sequence[PrimExpr], needed: dict[Var, Range]) -> list[int]:
    """Which indices tell of an iterator that none before them told of, as C[v, v] does once."""
    known: set[Var] = set()
    out: list[int] = []
    for n, index in enumerate(indices):
        used = {v for v in needed if uses_var(index, v)}
        if used - known:
            out.append(n)
            known |= used
    return out


def _condition_of(block: StmtSRef, realize: BlockRealize, loops: list[For],
                  table: dict[Var, PrimExpr]) -> PrimExpr:
    """When a consumer that does not run for all values of its iterators runs, in terms of those of
    its producer."""
    binding = {value: table[iv.var] for iv, value in zip(block.stmt.iter_vars, realize.iter_values)
               if isinstance(value, Var) and iv.var in table}
    condition = substitute(realize.predicate, binding)
    whole = realize.replace(predicate=op.const(True))
    if not runs_everywhere(whole, loops) or any(uses_var(condition, lp.loop_var) for lp in loops):
        raise Refusal("predicate_is_invertible", f"when block {block.stmt.name_hint} runs cannot "
                      "be written in terms of its producer's iterators", nodes=[realize])
    return condition


class _ReplaceLoad(Mutator):
    def __init__(self, buffer: Buffer, value: PrimExpr) -> None:
        super().__init__()
        self.buffer, self.value = buffer, value

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        return self.value if node.buffer is self.buffer else super().visit_BufferLoad(node)

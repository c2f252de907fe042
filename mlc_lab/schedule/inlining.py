"""Writing one block's computation into another: what the two inlining primitives do."""

from __future__ import annotations

from ..arith import Analyzer, detect_iter_map, inverse_affine_iter_map
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, Call, IntImm, PrimExpr, Range, Select, Var
from ..tir.functor import Mutator, free_vars, pre_order, substitute
from ..tir.stmt import Block, BufferStore, IfThenElse, Stmt
from .error import Refusal
from .guards import complete_block, is_block, relaxed_region, stage_pipeline
from .move import without_block
from .provenance import came_from
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
    consumers = state.scope(scope).consumers(stmt)
    if not consumers:
        raise Refusal("has_consumers", f"nobody in the scope reads {buffer.name}", nodes=[stmt])
    stage_pipeline(state, scope)
    variables = list(store.indices)
    if not all(isinstance(v, Var) for v in variables) or len(set(variables)) != len(variables):
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
    inliner = _InlineLoads(buffer, variables, store.value, scope.stmt)
    body = inliner.visit(without_block(state, scope, block))
    for consumer in inliner.reuse.values():
        came_from(consumer, stmt)
    _drop_buffer(state, scope, buffer, body, inliner.reuse)


def _single_store(block: Block) -> BufferStore:
    body = block.body
    if type(body) is not BufferStore or block.init is not None:
        raise Refusal("body_is_one_store", f"the body of block {block.name_hint} is not a single "
                      "store, so it cannot be written as an expression", nodes=[block])
    return body


class _InlineLoads(Mutator):
    """Loads of `buffer` become its defining expression."""

    def __init__(self, buffer: Buffer, variables: list[Var], value: PrimExpr, root: Block) -> None:
        super().__init__()
        self.buffer, self.variables, self.value, self.root = buffer, variables, value, root
        self.reuse: dict[Block, Block] = {}

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        new = super().visit_BufferLoad(node)
        if new.buffer is self.buffer:
            return substitute(self.value, dict(zip(self.variables, new.indices)))
        return new

    def visit_Block(self, node: Block) -> Stmt:
        init = self.visit(node.init) if node.init is not None else None
        body = self.visit(node.body)
        if init is node.init and body is node.body:
            return node
        new = node.replace(init=init, body=body)
        if node is not self.root:
            new = with_regions(new)
            self.reuse[node] = new
        return new


def _drop_buffer(state: ScheduleState, scope: StmtSRef, buffer: Buffer, body: Stmt,
                 reuse: dict[Block, Block]) -> None:
    """Give the scope a new body that needs `buffer` no more."""
    old: Block = scope.stmt
    new = old.replace(body=body, alloc_buffers=tuple(
        b for b in old.alloc_buffers if b is not buffer))
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
    first = loads[0].indices
    from ..ir.structural import structural_equal

    for load in loads[1:]:
        if not structural_equal(first, load.indices):
            raise Refusal("one_index_pattern", f"{buffer.name} is read at different places by one "
                          "iteration, which the producer computes in different iterations",
                          nodes=[store])
    _every_iteration_has_a_maker(state, block, producer, first, buffer)
    table, guard = _invert(state, block, source, first, made, buffer)
    value = _ReplaceLoad(buffer, made.value).visit(substitute(store.value, table))
    new_store: Stmt = BufferStore(store.buffer, value,
                                  [Analyzer().simplify(substitute(i, table))
                                   for i in store.indices])
    if guard is not None:
        new_store = IfThenElse(guard, new_store, None)
    new_block = came_from(with_regions(producer.replace(body=new_store)), stmt)
    body = replace_block(without_block(state, scope, block), producer, new_block)
    _drop_buffer(state, scope, buffer, body, {producer: new_block})


def _every_iteration_has_a_maker(state: ScheduleState, block: StmtSRef, producer: Block,
                                 indices: tuple, buffer: Buffer) -> None:
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


def _invert(state: ScheduleState, block: StmtSRef, source: StmtSRef, indices: tuple,
            made: BufferStore, buffer: Buffer) -> tuple[dict[Var, PrimExpr], PrimExpr | None]:
    """The consumer's iterators as expressions of the producer's, and a condition if needed."""
    stmt: Block = block.stmt
    doms = {iv.var: iv.dom for iv in stmt.iter_vars}
    unit = {v: d.min for v, d in doms.items() if op.is_const_int(d.extent, 1)}
    needed = {v: d for v, d in doms.items() if v not in unit}
    at = [substitute(i, unit) for i in indices]
    analyzer = Analyzer()
    found = detect_iter_map(at, needed, op.const(True), "nocheck", analyzer,
                            simplify_trivial_iterators=False) if needed else None
    if needed and not found.indices:
        raise Refusal("index_is_invertible", f"block {stmt.name_hint} reads {buffer.name} at "
                      f"[{', '.join(map(repr, indices))}], from which its iterators cannot be "
                      "computed", nodes=[stmt])
    inverse = dict(inverse_affine_iter_map(found.indices, list(made.indices))) if needed else {}
    missing = [v.name for v in needed if v not in inverse]
    if missing:
        raise Refusal("index_is_invertible", f"iterator {', '.join(missing)} of block "
                      f"{stmt.name_hint} does not follow from where it reads {buffer.name}: one "
                      "element is read several times", nodes=[stmt])
    for iv in source.stmt.iter_vars:
        analyzer.bind(iv.var, iv.dom)
    table: dict[Var, PrimExpr] = {**unit}
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
        back = analyzer.simplify(op.sub(substitute(index, table), place))
        if not op.is_const_int(back, 0):
            condition = op.equal(substitute(index, table), place)
            if not analyzer.can_prove(condition):
                guard = condition if guard is None else op.logical_and(guard, condition)
    realize = state.realize_of(block)
    if not op.is_const_int(realize.predicate, 1):
        binding = {}
        for iv, value in zip(stmt.iter_vars, realize.iter_values):
            if isinstance(value, Var):
                binding[value] = table[iv.var]
        condition = analyzer.simplify(substitute(realize.predicate, binding))
        if any(v in {s.stmt.loop_var for s in state.loops_above(block)}
               for v in free_vars(condition)):
            raise Refusal("predicate_is_invertible", f"the predicate of block {stmt.name_hint} "
                          "cannot be written in terms of its producer's iterators", nodes=[realize])
        if not analyzer.can_prove(condition):
            guard = condition if guard is None else op.logical_and(guard, condition)
    return table, guard


class _ReplaceLoad(Mutator):
    def __init__(self, buffer: Buffer, value: PrimExpr) -> None:
        super().__init__()
        self.buffer, self.value = buffer, value

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        return self.value if node.buffer is self.buffer else super().visit_BufferLoad(node)

"""Copies of a buffer laid out as a block iterates: what the reindex primitives share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..arith import Analyzer
from ..arith.access import bind_loops
from ..arith.index_map import map_shape, non_surjective_inverse
from ..ir.structural import structural_equal
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import (
    And, BufferLoad, Call, Div, FloorDiv, FloorMod, IntImm, IterVar, Let, Mod, PrimExpr, Range,
    Select, Var,
)
from ..tir.function import IndexMap
from ..tir.functor import free_vars, pre_order, substitute, uses_var
from ..tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, IfThenElse, LetStmt, SeqStmt,
    Stmt,
)
from .arguments import mapping
from .buffers import (
    READ, WRITE, Redirect, accesses, block_argument, buffer_like, index_of, places_start_at_zero,
    rewrite_blocks,
)
from .cache_stage import (
    Location, Stage, after_definitions, copy_block, every_element_is_written, finish, holds,
    insert_statement, only_writer,
)
from .error import Refusal
from .executed import runs_everywhere
from .footprint import choice_reads
from .guards import complete_or_reduction
from .independence import chooses_by_results
from .provenance import renewed
from .repeatable import builds_on, changes_itself, why_not_repeatable
from .staging import copy_holds, stored_in_time
from .state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from .instruction import BlockRV
    from .schedule import Schedule

_DIVISIONS = (Div, Mod, FloorDiv, FloorMod)


def block_index_map(sch: Schedule, args: dict[str, Any], name: str = "index_map") -> None:
    """A function of a block's iterators as an IndexMap."""
    block = block_argument(sch, args)
    if not isinstance(args[name], IndexMap):
        dtype = block.iter_vars[0].var.dtype if block.iter_vars else "int32"
        given = args[name]
        args[name] = mapping(name, given, lambda: IndexMap.from_func(
            given, len(block.iter_vars), index_dtype=dtype))


def index_and_map(kind: str, name: str) -> Any:
    def normalize(sch: Schedule, args: dict[str, Any]) -> None:
        index_of(kind, name)(sch, args)
        block_index_map(sch, args)

    return normalize


def cache_with_map(state: ScheduleState, scope: StmtSRef, block: StmtSRef, target: Buffer,
                    storage_scope: str, index_map: IndexMap, kind: str, location: Location
                    ) -> BlockRV:
    stmt: Block = block.stmt
    indices = the_indices(stmt, target)
    may_be_staged(state, scope, block, target, indices, kind, location)
    used = covered_iterators(stmt, indices)
    places = _mapped(stmt, index_map, used, indices)
    places_start_at_zero(places, [(iv.var, iv.dom) for iv in used], target, stmt)
    used_map = IndexMap([iv.var for iv in used], places)
    shape = map_shape(used_map, [iv.dom for iv in used])
    try:
        non_surjective_inverse(used_map, [iv.dom for iv in used])
    except ValueError:
        raise Refusal("map_is_injective", f"{index_map!r} may take different iterations to the "
                      "same place of the copy, or it cannot be seen that it does not",
                      nodes=[stmt], hint="use each iterator once, split with // and %") from None
    copy = buffer_like(target, f"{target.name}_{storage_scope}", storage_scope, shape)
    stage = _own_loops_stage(state, block, target, copy, used, indices, places, kind, location)
    at = RewriteAccesses(target, copy, places)
    body = rewrite_blocks(scope.stmt.body, {stmt: at.visit}, at.reuse)
    body = insert_statement(body, location, stage.stmt)
    return finish(state, scope, body, [copy], at.reuse, [stage.block])[0]


def _mapped(block: Block, index_map: IndexMap, used: Sequence[IterVar],
            indices: Sequence[PrimExpr]) -> list[PrimExpr]:
    if len(index_map.initial_indices) != len(block.iter_vars):
        raise Refusal("map_takes_the_iterators", f"the index map takes "
                      f"{len(index_map.initial_indices)} indices, block {block.name_hint} has "
                      f"{len(block.iter_vars)} iterators", nodes=[block])
    analyzer = Analyzer()
    for iv in block.iter_vars:
        analyzer.bind(iv.var, iv.dom)
    places = [analyzer.simplify(e)
              for e in index_map.map_indices([iv.var for iv in block.iter_vars])]
    for iv in block.iter_vars:
        mapped, accessed = any(uses_var(p, iv.var) for p in places), iv in used
        if mapped and not accessed or accessed and not mapped:
            text = ", ".join(map(repr, indices))
            raise Refusal("map_uses_the_access", f"iterator {iv.var.name} is used by "
                          + (f"the map but not by the access at [{text}]" if mapped else
                             f"the access at [{text}] but not by the map"), nodes=[block])
    return places


def _own_loops_stage(state: ScheduleState, block: StmtSRef, target: Buffer, copy: Buffer,
                     used: Sequence[IterVar], indices: Sequence[PrimExpr],
                     places: Sequence[PrimExpr], kind: str, location: Location) -> Stage:
    """A copying block with the block's own loops, as far as the access depends on them."""
    realize = state.realize_of(block)
    values = {iv.var: v for iv, v in zip(block.stmt.iter_vars, realize.iter_values)}
    loops: list[For] = []
    at = block.parent
    while at is not location.at and at is not None and type(at.stmt) is For:
        if any(uses_var(values[iv.var], at.stmt.loop_var) for iv in used):
            loops.insert(0, at.stmt)
        at = at.parent
    others = {s.stmt.loop_var for s in state.loops_above(block)} - {lp.loop_var for lp in loops}
    others -= {s.stmt.loop_var for s in _path(location.at)}
    for loop in loops:
        if uses_var(loop.min, others) or uses_var(loop.extent, others):
            raise Refusal("loops_are_independent", f"the bounds of loop {loop.loop_var.name} "
                          "depend on a loop that the copy does not have", nodes=[loop])
    fresh = {lp.loop_var: renewed(lp.loop_var) for lp in loops}
    names = {iv.var: renewed(iv.var) for iv in used}
    iters = [IterVar(iv.dom, names[iv.var], IterVar.DataPar) for iv in used]
    there, here = ([substitute(e, names) for e in group] for group in (indices, places))
    (source, read_at), (sink, write_at) = ((target, there), (copy, here))
    if kind == WRITE:
        (source, read_at), (sink, write_at) = (copy, here), (target, there)
    made = copy_block(iters, source, read_at, sink, write_at, copy.name)
    predicate, left_out = _kept_conditions(realize.predicate, state.loops_above(block), loops,
                                           location)
    if left_out:
        predicate = _within_domains(predicate, [(values[iv.var], iv.dom) for iv in used],
                                    [item.stmt for item in state.loops_above(block)])
    stmt: Stmt = BlockRealize([substitute(values[iv.var], fresh) for iv in used],
                              substitute(predicate, fresh), made)
    for loop in reversed(loops):
        stmt = For(fresh[loop.loop_var], substitute(loop.min, fresh),
                   substitute(loop.extent, fresh), ForKind.SERIAL, stmt)
    return Stage(stmt, made)


def _kept_conditions(predicate: PrimExpr, around: Sequence[StmtSRef], loops: Sequence[For],
                     location: Location) -> tuple[PrimExpr, bool]:
    """The parts of a predicate that speak only of the loops that the stage has, and whether there
    are others."""
    known = {lp.loop_var for lp in loops}
    known.update(item.stmt.loop_var for item in around if item in _path(location.at))
    conditions, out, left_out = [predicate], op.const(True), False
    while conditions:
        item = conditions.pop(0)
        if type(item) is And:
            conditions[:0] = [item.a, item.b]
        elif all(v in known for v in free_vars(item)
                 if any(v is s.stmt.loop_var for s in around)):
            out = op.logical_and(out, item)
        else:
            left_out = True
    return out, left_out


def _within_domains(predicate: PrimExpr, values: Sequence[tuple[PrimExpr, Range]],
                    loops: Sequence[For]) -> PrimExpr:
    """A predicate, and what keeps the values of iterators, given with their domains from 0 on, in
    these: a condition that was left out may have done so."""
    analyzer = Analyzer()
    bind_loops(analyzer, loops)
    out = predicate
    with analyzer.constraint_scope(predicate):
        for value, domain in values:
            for inside in (op.greater_equal(value, 0), op.less(value, domain.extent)):
                if not analyzer.can_prove(inside):
                    out = op.logical_and(out, inside)
    return out


def _path(at: StmtSRef | None) -> list[StmtSRef]:
    out: list[StmtSRef] = []
    while at is not None and type(at.stmt) is For:
        out.append(at)
        at = at.parent
    return out


def the_indices(block: Block, buffer: Buffer) -> tuple[PrimExpr, ...]:
    """The indices of the block's accesses of a buffer, which must all be the same."""
    found: tuple[PrimExpr, ...] | None = None
    views = any(m.source.buffer is buffer for m in block.match_buffers)
    parts = [block.body] if block.init is None else [block.init, block.body]
    for part in parts:
        for node in pre_order(part):
            kind = node.__class__
            if kind is Block:
                views = views or any(m.source.buffer is buffer for m in node.match_buffers)
            if kind is not BufferLoad and kind is not BufferStore or node.buffer is not buffer:
                continue
            if found is not None and not structural_equal(found, node.indices):
                raise Refusal("one_index_pattern", f"block {block.name_hint} accesses "
                              f"{buffer.name} at [{_text(found)}] and at [{_text(node.indices)}]; "
                              "a copy laid out by iterators has one place for both", nodes=[node],
                              hint="use sch.cache_read, which copies the buffer as it is")
            found = node.indices
    own = {iv.var for iv in block.iter_vars}
    if found is None or views or any(i.dtype not in ("int32", "int64") for i in found) or any(
            v not in own and v.dtype != "handle" and _bound_inside(block, v)
            for i in found for v in free_vars(i)):
        raise Refusal("accesses_points", f"block {block.name_hint} does not access {buffer.name} "
                      "at one element for each iteration", nodes=[block],
                      hint="do this before blockize, tensorize and vectorized accesses")
    if changes_itself(block, found):
        raise Refusal("index_is_known_outside", f"block {block.name_hint} accesses {buffer.name} "
                      f"at [{_text(found)}], which it sets itself: a copy that is made outside of "
                      "the block cannot know it", nodes=[block])
    return _without_idle_iterators(block, found)


def _without_idle_iterators(block: Block, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
    """Indices without iterators that make no difference in their domains, as v // 8 of eight."""
    if all(type(i) is Var for i in indices):
        return indices
    analyzer = Analyzer()
    for iv in block.iter_vars:
        if not op.is_const_int(iv.dom.extent, 1):  # that stays, though it is always the same
            analyzer.bind(iv.var, iv.dom)
    simple = [analyzer.simplify(i) for i in indices]
    return tuple(s if set(free_vars(s)) < set(free_vars(i)) else i for s, i in zip(simple, indices))


def _bound_inside(block: Block, var: Var) -> bool:
    return any(type(n) is For and n.loop_var is var
               or isinstance(n, (Let, LetStmt)) and n.var is var
               or type(n) is Block and any(iv.var is var for iv in n.iter_vars)
               for part in (block.init, block.body) if part is not None for n in pre_order(part))


def _text(indices: Sequence[PrimExpr]) -> str:
    return ", ".join(map(repr, indices))


def covered_iterators(block: Block, indices: Sequence[PrimExpr]) -> list[IterVar]:
    used = [iv for iv in block.iter_vars if any(uses_var(i, iv.var) for i in indices)]
    for iv in used:
        if not op.is_const_int(iv.dom.min, 0):
            raise Refusal("iterators_start_at_zero", f"iterator {iv.var.name} of block "
                          f"{block.name_hint} starts at {iv.dom.min!r}, a buffer's dimension at 0",
                          nodes=[block])
    return used


def may_be_staged(state: ScheduleState, scope: StmtSRef, block: StmtSRef, buffer: Buffer,
                  indices: Sequence[PrimExpr], kind: str, location: Location) -> None:
    """A block may access a buffer through a copy with a place for each of its iterations."""
    stmt: Block = block.stmt
    chosen = choice_reads(state.realize_of(block), [s.stmt for s in state.loops_above(block)])
    if kind == READ:
        if accesses(stmt, buffer, WRITE):
            raise Refusal("reader_does_not_write", f"block {stmt.name_hint} also writes "
                          f"{buffer.name}", nodes=[stmt])
        also = {n.buffer.data for i in indices for n in pre_order(i) if type(n) is BufferLoad}
        realize = state.realize_of(block)
        if chooses_by_results(realize):
            raise Refusal("copy_is_current", f"whether block {stmt.name_hint} runs depends on what "
                          "it writes: a copy that is made before cannot know it", nodes=[realize])
        copy_holds(state, scope, block, buffer, location, also, chosen)
        if _guarded(stmt) or not _always_runs(state, block) or (
                _others_may_be_empty(state, block, indices)):
            _in_bounds(stmt, buffer, indices)
        return
    only_writer(state, scope, buffer)
    every_element_is_written(stmt, buffer)
    complete_or_reduction(state, block, scope)
    if builds_on(stmt, buffer):
        raise Refusal("writer_does_not_read", f"block {stmt.name_hint} reads {buffer.name}, which "
                      "it writes: the copy would start without the values it builds on",
                      nodes=[stmt], hint="do this before sch.decompose_reduction")
    reason = why_not_repeatable(stmt)
    if reason:
        raise Refusal("may_run_again", f"each iteration of block {stmt.name_hint} would store to a "
                      f"place of its own, and be copied from there in another order: {reason}",
                      nodes=[stmt])
    stored_in_time(state, scope, block, buffer, location, more=chosen)
    if not _always_runs(state, block):
        _in_bounds(stmt, buffer, indices)
        if not state.scope(scope).makes_all(stmt, buffer):
            raise Refusal("every_element_is_written", f"block {stmt.name_hint} may not run for all "
                          "values of its iterators; for the others the copy holds nothing that "
                          f"could be stored to {buffer.name}", nodes=[state.realize_of(block)])


def _always_runs(state: ScheduleState, block: StmtSRef) -> bool:
    return runs_everywhere(state.realize_of(block), [s.stmt for s in state.loops_above(block)])


def _others_may_be_empty(state: ScheduleState, block: StmtSRef, indices: Sequence[PrimExpr]
                         ) -> bool:
    """Whether a loop that the indices do not follow, and the copy does not have, may have no
    iteration: its extent is a size."""
    values = [v for iv, v in zip(block.stmt.iter_vars, state.realize_of(block).iter_values)
              if any(uses_var(i, iv.var) for i in indices)]
    return any(type(lp.stmt.extent) is not IntImm
               and not any(uses_var(v, lp.stmt.loop_var) for v in values)
               for lp in state.loops_above(block))


def _guarded(stmt: Block) -> bool:
    """Whether a block accesses something under a condition only."""
    return any(type(n) in (Select, IfThenElse)
               or type(n) is Call and getattr(n.op, "name", "") == "tir.if_then_else"
               for n in pre_order(stmt.body))


def _in_bounds(stmt: Block, buffer: Buffer, indices: Sequence[PrimExpr]) -> None:
    """A copy accesses unconditionally what the block accesses under a condition."""
    analyzer = Analyzer()
    for iv in stmt.iter_vars:
        analyzer.bind(iv.var, iv.dom)
    for index, dim in zip(indices, buffer.shape):
        outside = not (analyzer.can_prove(op.greater_equal(index, 0))
                       and analyzer.can_prove(op.less(index, dim)))
        if outside or any(isinstance(n, _DIVISIONS) and not analyzer.can_prove(op.not_equal(n.b, 0))
                          for n in pre_order(index)):
            raise Refusal("copy_reads_in_bounds", f"block {stmt.name_hint} accesses {buffer.name} "
                          f"at {index!r} only under a condition, or in a loop that may be empty; "
                          "the copy would do so always, "
                          + ("outside of the buffer" if outside else "and divide by 0"),
                          nodes=[stmt])


def before_its_nest(state: ScheduleState, scope: StmtSRef, block: StmtSRef) -> Location:
    """The place right before the outermost loop around a block, and the conditions around that."""
    loops = state.loops_above(block)
    top = loops[0].stmt if loops else state.realize_of(block)
    body = after_definitions(scope.stmt.body)
    return Location(scope, next(i for i, s in enumerate(body.seq) if holds(s, top))
                    if type(body) is SeqStmt else 0)


class RewriteAccesses(Redirect):
    """Every access of one buffer goes to fixed places of another."""

    def __init__(self, old: Buffer, new: Buffer, places: Sequence[PrimExpr]) -> None:
        super().__init__({old: new})
        self.old, self.new, self.places = old, new, tuple(places)

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        if node.buffer is self.old:
            return BufferLoad(self.new, self.places)
        return super().visit_BufferLoad(node)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        if node.buffer is self.old:
            return BufferStore(self.new, self.visit(node.value), self.places)
        return super().visit_BufferStore(node)

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        if node.buffer is self.old:
            return BufferRegion(self.new, tuple(
                Range.from_min_extent(p, IntImm(p.dtype, 1)) for p in self.places))
        return super().visit_BufferRegion(node)

"""decompose_reduction: a reduction's init becomes a block of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tir.access import block_access_regions
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, PrimExpr, Var
from ...tir.functor import pre_order, substitute, uses_var
from ...tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, MatchBufferRegion, Stmt, seq,
)
from ..error import Refusal
from ..guards import REDUCE, is_block, is_loop, reduction_block
from ..init_first import FirstIterations, first_iterations, init_may_go_first
from ..instruction import primitive
from ..loop_kind import loops_stay_independent
from ..provenance import came_from, renewed
from ..rewrite import fresh_vars, replace_block
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import BlockRV


@primitive("DecomposeReduction")
def decompose_reduction(state: ScheduleState, block: StmtSRef, loop: StmtSRef) -> BlockRV:
    """Move a reduction's init out of its block, to right before `loop`; the init block is returned.

    The block keeps the update and is called `<name>_update`, the new one `<name>_init`.

    Before::

        for i, k in T.grid(128, 64):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0.0)
                B[vi] = B[vi] + A[vi, vk]

    After `sch.decompose_reduction(B, k)`::

        for i in range(128):
            with T.block("B_init"):
                vi = T.axis.spatial(128, i)
                B[vi] = T.float32(0.0)
            for k in range(64):
                with T.block("B_update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    B[vi] = B[vi] + A[vi, vk]

    Errors: the block is a reduction, `loop` is around it, no loop outside of `loop` drives a
    reduction iterator; inside of `loop` nothing is added to an element before the init sets it, or
    sets it again, and nobody else reads or writes it before.
    """
    is_block(block)
    is_loop(loop)
    stmt: Block = block.stmt
    loops = state.loops_above(block)
    if loop not in loops:
        raise Refusal("loop_is_around_block", f"loop {loop.stmt.loop_var.name} is not around block "
                      f"{stmt.name_hint}", nodes=[loop.stmt, stmt],
                      hint="use one of sch.get_loops(block)")
    reduction_block(state, block, state.scope_root(block), affine=False)
    realize = state.realize_of(block)
    place = loops.index(loop)
    for outer in loops[:place]:
        for iv, value in zip(stmt.iter_vars, realize.iter_values):
            if iv.iter_type == REDUCE and uses_var(value, outer.stmt.loop_var):
                raise Refusal(
                    "init_runs_once", f"loop {outer.stmt.loop_var.name}, outside of "
                    f"{loop.stmt.loop_var.name}, drives the reduction iterator {iv.var.name}: an "
                    "init inside it would wipe out what was summed before",
                    nodes=[outer.stmt, stmt],
                    conflict=f"{outer.stmt.loop_var.name} = 0 adds to an element of "
                    f"{stmt.writes[0].buffer.name}, {outer.stmt.loop_var.name} = 1 resets it",
                    hint=f"decompose at {outer.stmt.loop_var.name} or further out, or reorder it "
                    "inside first")
    first = first_iterations(state, block, place, [
        value for iv, value in zip(stmt.iter_vars, realize.iter_values)
        if iv.iter_type != REDUCE], realize.predicate, "_init")
    init = _init_nest(stmt, realize, first)
    init_may_go_first(state, block, place, init, first)
    update = _update_block(stmt)
    new_loop = replace_block(loop.stmt, stmt, update)
    state.replace(loop, seq(init, new_loop), {stmt: update})
    made = state.refs[_innermost(init).block]
    # An iteration of a loop further out is what it was. Of the loops inside, each half touches no
    # more than both did together; only threads that reduced together had leave to meet.
    if any(s.stmt.kind is ForKind.THREAD_BINDING and any(
            iv.iter_type == REDUCE and uses_var(value, s.stmt.loop_var)
            for iv, value in zip(stmt.iter_vars, realize.iter_values)) for s in loops[place:]):
        loops_stay_independent(state, [*state.loops_above(made)[place:], *loops[place:]])
    return made


def _init_nest(block: Block, realize: BlockRealize, first: FirstIterations) -> Stmt:
    """The loops and the block that set the outputs to the reduction's start value."""
    table: dict[Var, PrimExpr] = {}
    spatial = [(iv, value) for iv, value in zip(block.iter_vars, realize.iter_values)
               if iv.iter_type != REDUCE]
    iter_vars = fresh_vars([iv for iv, _ in spatial], table)
    table.update({iv.var: iv.dom.min for iv in block.iter_vars if iv.iter_type == REDUCE})
    views, renamed_views = _own_views(block, table)
    new_block = Block.from_fields(
        iter_vars, (), tuple(substitute(w, table) for w in block.writes),
        f"{block.name_hint}_init", (), views, block.annotations, None,
        substitute(block.init, table, renamed_views))
    if block.annotations:  # they may name iterators, and loops around
        new_block = substitute(new_block, {**table, **first.table})
    if any(type(n) is BufferLoad for n in pre_order(new_block.body)):
        reads, writes, _ = block_access_regions(new_block)
        new_block = new_block.replace(reads=reads, writes=writes)
    came_from(new_block, block)
    values = [value for _, value in spatial]
    return first.around(BlockRealize([substitute(v, first.table) for v in values],
                                     first.predicate, new_block))


def _own_views(block: Block, table: dict[Var, PrimExpr]
               ) -> tuple[tuple[MatchBufferRegion, ...], dict[Buffer, Buffer]]:
    """The views of a block that its init uses, made anew: one block defines a view. What their
    variables become goes into `table`."""
    if not block.match_buffers or block.init is None:
        return (), {}
    named = set(pre_order(block.init))
    named |= {item.buffer for item in named
              if type(item) in (BufferLoad, BufferStore, BufferRegion)}
    out: list[MatchBufferRegion] = []
    fresh: dict[Buffer, Buffer] = {}
    for match in block.match_buffers:
        view = match.buffer
        if view not in named and view.data not in named:
            continue
        own = [v for v in (view.data, *view.strides, view.elem_offset) if isinstance(v, Var)]
        table.update((v, renewed(v)) for v in own)
        fresh[view] = came_from(view.replace(
            data=table[view.data], strides=tuple(substitute(e, table) for e in view.strides),
            shape=tuple(substitute(e, table) for e in view.shape),
            elem_offset=substitute(view.elem_offset, table)), view)
        out.append(MatchBufferRegion(fresh[view], substitute(match.source, table)))
    return tuple(out), fresh


def _update_block(block: Block) -> Block:
    """The block without init; what it accumulates into is now read as well."""
    have = {r.buffer for r in block.reads}
    reads: list[BufferRegion] = [w for w in block.writes if w.buffer not in have]
    return block.replace(name_hint=f"{block.name_hint}_update", init=None,
                         reads=(*reads, *block.reads))


def _innermost(stmt: Stmt) -> BlockRealize:
    while type(stmt) is For:
        stmt = stmt.body
    assert type(stmt) is BlockRealize
    return stmt

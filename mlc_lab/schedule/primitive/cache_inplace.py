"""cache_inplace: a block that updates a buffer works on a copy that is read and written back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.structural import structural_equal
from ...tir.buffer import Buffer
from ...tir.stmt import ForKind
from ..buffers import (
    READ, WRITE, Redirect, accesses, buffer_like, index_of, nth_region, one_name,
    storage_scope_exists,
)
from ..cache_stage import copy_stage, finish, loops_known, region_at
from ..error import Refusal
from ..guards import is_block
from ..instruction import primitive
from ..move import replace_realize
from ..staging import fixed, whole
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...tir.expr import Range
    from ...tir.stmt import BufferRegion
    from ..instruction import BlockRV


@primitive("CacheInplace", moves=True, normalize=index_of(READ, "read_buffer_index"))
def cache_inplace(state: ScheduleState, block: StmtSRef, read_buffer_index: int | str | Buffer,
                  storage_scope: str) -> list[BlockRV]:
    """Copy what a block reads and writes of a buffer before it, and back after it.

    Both copying blocks, which are returned, are called `<buffer>_<scope>` and stand right beside
    the block, inside its loops: they copy the part that one iteration touches.

    Before::

        for n in range(1):
            with T.block("B"):
                T.reads(B[0:64])
                T.writes(B[0:64])
                for i in range(64):
                    B[i] = B[i] * T.float32(2.0)

    After `sch.cache_inplace(B, 0, "local")`::

        B_local = T.alloc_buffer((64,), scope="local")
        for n in range(1):
            for ax0 in range(64):
                with T.block("B_local"):
                    v0 = T.axis.spatial(64, ax0)
                    B_local[v0] = B[v0]
            with T.block("B"):
                T.reads(B_local[0:64])
                T.writes(B_local[0:64])
                for i in range(64):
                    B_local[i] = B_local[i] * T.float32(2.0)
            for ax0 in range(64):
                with T.block("B_local"):
                    v0 = T.axis.spatial(64, ax0)
                    B[v0] = B_local[v0]

    Errors: the block must read and write the buffer; no loop around it may run in parallel, since
    the parts that are copied back could overlap.
    """
    is_block(block)
    storage_scope_exists(storage_scope)
    stmt = block.stmt
    buffer = nth_region(stmt, read_buffer_index, READ).buffer
    if not accesses(stmt, buffer, WRITE):
        raise Refusal("block_updates_the_buffer", f"block {stmt.name_hint} reads {buffer.name} but "
                      "does not write it", nodes=[stmt], hint="use sch.cache_read")
    scope = state.scope_root(block)
    around = block.parent or scope
    for loop in state.loops_above(block):
        if loop.stmt.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            raise Refusal("loops_are_sequential", f"loop {loop.stmt.loop_var.name} runs its "
                          "iterations at the same time", nodes=[loop.stmt],
                          hint="cache_inplace first, then parallelize")
    one_name(stmt, buffer)
    read, written = (_span(state, block, buffer, regions, around)
                     for regions in (stmt.reads, stmt.writes))
    # what is stored back must have been copied, if the block leaves it alone
    same = all(structural_equal(a, b) for a, b in zip(read, written))
    spans = [read if same else whole(buffer), written]
    copy = buffer_like(buffer, f"{buffer.name}_{storage_scope}", storage_scope)
    redirect = Redirect({buffer: copy})
    into = copy_stage(buffer, copy, spans[0], buffer.shape, copy.name, None,
                      loops_known(around))
    back = copy_stage(copy, buffer, spans[1], buffer.shape, copy.name, None,
                      loops_known(around))
    realize = state.realize_of(block)
    new = realize.replace(block=redirect.visit(stmt))
    redirect.reuse[stmt] = new.block
    body = replace_realize(scope.stmt.body, realize, into.stmt, new, back.stmt)
    return finish(state, scope, body, [copy], redirect.reuse, [into.block, back.block])


def _span(state: ScheduleState, block: StmtSRef, buffer: Buffer, regions: Sequence[BufferRegion],
          around: StmtSRef) -> tuple[Range, ...]:
    """What one iteration touches by all of these regions: a block may name several of a buffer."""
    touched = [r for r in regions if r.buffer is buffer]
    if len(touched) > 1:
        return whole(buffer)
    return fixed(region_at(state, block, touched[0], around), buffer)

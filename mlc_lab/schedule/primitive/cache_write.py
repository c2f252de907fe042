"""cache_write: a block writes to a copy of its output, which is stored afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...arith import Analyzer
from ...tir.buffer import Buffer
from ...tir.functor import uses_var
from ...tir.stmt import Block
from ..annotations import variables_around
from ..buffers import (
    WRITE, Redirect, buffer_like, index_of, nth_region, rewrite_blocks,
    storage_scope_exists,
)
from ..cache_stage import (
    copy_stage, every_element_is_written, find_location, finish, given_consumers, insert_statement,
    loops_known, names_a_loop_around, only_writer, readers, region_at,
)
from ..error import Refusal
from ..guards import REDUCE, is_block
from ..instruction import primitive
from ..repeatable import builds_on
from ..staging import covered, fixed, only_what_was_written, stored_in_time, whole
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import BlockRV


@primitive("CacheWrite", moves=True, normalize=index_of(WRITE, "write_buffer_index"))
def cache_write(state: ScheduleState, block: StmtSRef, write_buffer_index: int | str | Buffer,
                storage_scope: str, consumer_blocks: Sequence[StmtSRef] | None = None) -> BlockRV:
    """Let a block write into another kind of memory, from where a new block stores the result.

    The storing block, which is returned, is called `<buffer>_<scope>`. It goes right before the
    first reader of the buffer, as deep in the loops as the writer is, or to the end of the scope.
    `consumer_blocks` names readers that read the copy directly.

    Before::

        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)

    After `sch.cache_write(B, 0, "local")`::

        B_local = T.alloc_buffer((128, 128), scope="local")
        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B_local[vi, vj] = A[vi, vj] * T.float32(2.0)
        for ax0, ax1 in T.grid(128, 128):
            with T.block("B_local"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                B[v0, v1] = B_local[v0, v1]

    Errors: the block must be the only writer of the buffer in its scope, and must not build on what
    the buffer held before (a reduction's own init is fine, where it runs each time that the scope
    does); nobody may read or write the buffer before the copy is stored, of which every element
    must have been written; the storage scope must exist.
    """
    is_block(block)
    storage_scope_exists(storage_scope)
    region = nth_region(block.stmt, write_buffer_index, WRITE)
    buffer = region.buffer
    scope = state.scope_root(block)
    only_writer(state, scope, buffer)
    if builds_on(block.stmt, buffer):
        raise Refusal("writer_does_not_read", f"block {block.stmt.name_hint} reads {buffer.name}, "
                      "which it writes: the copy would start without the values it builds on",
                      nodes=[block.stmt], hint="cache_write a reduction before "
                      "sch.decompose_reduction, while its init is part of it; or sch.cache_inplace")
    _starts_in_scope(state, scope, block, buffer)
    every_element_is_written(block.stmt, buffer)
    direct = given_consumers(state, scope, buffer, consumer_blocks or ())
    others = [r for r in readers(state, scope, buffer) if r not in direct]
    location = find_location(scope, block, others)
    stored_in_time(state, scope, block, buffer, location, direct)
    if sum(w.buffer is buffer for w in block.stmt.writes) > 1:
        span = whole(buffer)
        if location.at is not scope:
            raise Refusal("one_region_is_stored", f"block {block.stmt.name_hint} writes "
                          f"{buffer.name} in several regions: which of its elements are stored in "
                          "each iteration cannot be said as one", nodes=[block.stmt])
    else:
        span = fixed(region_at(state, block, region, location.at), buffer)
    only_what_was_written(state, scope, block, buffer, location.at, span)
    local = state.scope(scope).makes_all(block.stmt, buffer)
    if not all(covered(state, d, buffer, scope, span) if location.at is scope else local
               for d in direct):
        raise Refusal("copy_holds_what_is_read", "a block of consumer_blocks may read elements of "
                      f"{buffer.name} that block {block.stmt.name_hint} does not write: they are "
                      "not in the copy", nodes=[d.stmt for d in direct])
    full = location.at is not scope or names_a_loop_around(scope, span)
    copy = buffer_like(buffer, f"{buffer.name}_{storage_scope}", storage_scope,
                       None if full else [r.extent for r in span])
    stage = copy_stage(copy, buffer, span, buffer.shape, copy.name, None if full else copy,
                       loops_known(location.at))
    offsets = None if full or all(getattr(r.min, "value", None) == 0 for r in span) else {
        buffer: [r.min for r in span]}
    redirect = Redirect({buffer: copy}, offsets, Analyzer())
    rewrites: dict[Block, Any] = {block.stmt: redirect.visit}
    rewrites.update({c.stmt: redirect.visit for c in direct})
    body = rewrite_blocks(scope.stmt.body, rewrites, redirect.reuse)
    body = insert_statement(body, location, stage.stmt)
    return finish(state, scope, body, [copy], redirect.reuse, [stage.block])[0]


def _starts_in_scope(state: ScheduleState, scope: StmtSRef, block: StmtSRef, buffer: Buffer
                     ) -> None:
    """The copy is made anew each time the scope runs: a reduction has its init then."""
    if block.stmt.init is None:
        return
    outside = variables_around(scope)
    for iv, value in zip(block.stmt.iter_vars, state.realize_of(block).iter_values):
        if iv.iter_type == REDUCE and outside and uses_var(value, outside):
            raise Refusal("init_runs_first", f"block {block.stmt.name_hint} goes on with what "
                          f"{buffer.name} holds each time that block {scope.stmt.name_hint} around "
                          "it runs: its init runs in the first of these only, and the copy is made "
                          "anew in each", nodes=[block.stmt, scope.stmt],
                          hint=f"let all of the reduction run inside of {scope.stmt.name_hint}")

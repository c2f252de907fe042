"""reindex_cache_read: read a buffer through a copy in a layout of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad
from ...tir.functor import pre_order
from ..buffers import READ, nth_region, storage_scope_exists
from ..cache_stage import Location, find_location, only_writer
from ..error import Refusal
from ..guards import is_block
from ..instruction import primitive
from ..reindexing import (
    before_its_nest, cache_with_map, index_and_map, may_be_staged, the_indices,
)
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import BlockRV


@primitive("ReindexCacheRead", moves=True, normalize=index_and_map(READ, "read_buffer_index"))
def reindex_cache_read(state: ScheduleState, block: StmtSRef, read_buffer_index: int | str | Buffer,
                       storage_scope: str, index_map: Any) -> BlockRV:
    """Let a block read a copy of a buffer that is laid out by `index_map` of the block's iterators.

    The copying block, which is returned, has the block's own loops and iterators, as far as the
    access uses them.

    Before::

        for i, j in T.grid(128, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)

    After `sch.reindex_cache_read(B, 0, "local", lambda i, j: (j, i))`::

        A_local = T.alloc_buffer((64, 128), scope="local")
        for i, j in T.grid(128, 64):
            with T.block("A_local"):
                vi, vj = T.axis.remap("SS", [i, j])
                A_local[vj, vi] = A[vi, vj]
        for i, j in T.grid(128, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A_local[vj, vi] * T.float32(2.0)

    Errors: the block reads one element at a time; the map uses just the iterators that the access
    uses, and takes different ones to different places; otherwise as for cache_read.
    """
    is_block(block)
    storage_scope_exists(storage_scope)
    target = nth_region(block.stmt, read_buffer_index, READ).buffer
    scope = state.scope_root(block)
    writer = only_writer(state, scope, target)
    location = Location(scope, 0) if writer is None else find_location(
        scope, writer, [block])
    indices = the_indices(block.stmt, target)
    if any(type(n) is BufferLoad for i in indices for n in pre_order(i)):
        try:  # what the indices are read from may be written later than the buffer
            may_be_staged(state, scope, block, target, indices, READ, location)
        except Refusal:
            location = before_its_nest(state, scope, block)
    return cache_with_map(state, scope, block, target, storage_scope, index_map, READ, location)

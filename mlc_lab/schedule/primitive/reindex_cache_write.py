"""reindex_cache_write: write a buffer through a copy in a layout of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...tir.buffer import Buffer
from ..buffers import WRITE, nth_region, storage_scope_exists
from ..cache_stage import find_location, readers
from ..guards import is_block
from ..instruction import primitive
from ..reindexing import cache_with_map, index_and_map
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import BlockRV


@primitive("ReindexCacheWrite", moves=True, normalize=index_and_map(WRITE, "write_buffer_index"))
def reindex_cache_write(state: ScheduleState, block: StmtSRef,
                        write_buffer_index: int | str | Buffer, storage_scope: str,
                        index_map: Any) -> BlockRV:
    """Let a block write to a copy of a buffer that is laid out by `index_map` of its iterators.

    Before::

        for i, j in T.grid(128, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)

    After `sch.reindex_cache_write(B, 0, "local", lambda i, j: (j // 8, i, j % 8))`::

        B_local = T.alloc_buffer((8, 128, 8), scope="local")
        for i, j in T.grid(128, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B_local[vj // 8, vi, vj % 8] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(128, 64):
            with T.block("B_local"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = B_local[vj // 8, vi, vj % 8]

    Errors: the block is the only writer, writes one element at a time and does not build on what
    the buffer held before; the map uses just the iterators that the access uses, and takes
    different ones to different places.
    """
    is_block(block)
    storage_scope_exists(storage_scope)
    target = nth_region(block.stmt, write_buffer_index, WRITE).buffer
    scope = state.scope_root(block)
    location = find_location(scope, block, readers(state, scope, target))
    return cache_with_map(state, scope, block, target, storage_scope, index_map, WRITE, location)

"""set_scope: the memory in which a buffer that a block writes lies."""

from __future__ import annotations

from ...tir.buffer import Buffer
from ..buffers import (
    WRITE, Redirect, allocated_by, buffer_like, index_of, nth_region, storage_scope_exists,
)
from ..buffers import replace_buffer
from ..guards import is_block
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("SetScope", moves=True, normalize=index_of(WRITE, "buffer_index"))
def set_scope(state: ScheduleState, block: StmtSRef, buffer_index: int | str | Buffer,
              storage_scope: str) -> None:
    """Put a buffer that a block writes into another kind of memory; it is renamed accordingly.

    Before::

        B = T.alloc_buffer((128, 128))
        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1.0)

    After `sch.set_scope(B, 0, "shared")`::

        B_shared = T.alloc_buffer((128, 128), scope="shared")
        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B_shared[vi, vj] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B_shared[vi, vj] + T.float32(1.0)

    Errors: the buffer must be allocated by a block of the function; the scope must exist.
    """
    is_block(block)
    storage_scope_exists(storage_scope)
    buffer = nth_region(block.stmt, buffer_index, WRITE).buffer
    site = allocated_by(block, buffer)
    if buffer.scope == storage_scope:
        return
    new = buffer_like(buffer, f"{buffer.name}_{storage_scope}", storage_scope)
    replace_buffer(state, site, Redirect({buffer: new}))

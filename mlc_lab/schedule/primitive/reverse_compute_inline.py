"""reverse_compute_inline: a block is written into its producer."""

from __future__ import annotations

from ..inlining import inline_consumer
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("ReverseComputeInline", moves=True)
def reverse_compute_inline(state: ScheduleState, block: StmtSRef) -> None:
    """Write a consumer's computation into its only producer, in place of storing the result.

    Before::

        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * T.float32(2.0)
        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                C[vi] = B[vi] + T.float32(1.0)

    After `sch.reverse_compute_inline(C)`::

        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                C[vi] = A[vi] * T.float32(2.0) + T.float32(1.0)

    Errors: both blocks are complete; the block has one producer and is its only consumer; it reads
    each element of the buffer between them exactly once, at an invertible index.
    """
    inline_consumer(state, block)

"""compute_inline: a block is written into its consumers."""

from __future__ import annotations

from ..inlining import inline_producer
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("ComputeInline", moves=True)
def compute_inline(state: ScheduleState, block: StmtSRef) -> None:
    """Write a block's computation into every consumer, in place of reading its result.

    Before::

        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * T.float32(2.0)
        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                C[vi] = B[vi] + T.float32(1.0)

    After `sch.compute_inline(B)`::

        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                C[vi] = A[vi] * T.float32(2.0) + T.float32(1.0)

    Errors: the block is complete, is no output of its scope, writes one buffer with one store whose
    indices are distinct iterators, and has consumers.
    """
    inline_producer(state, block)

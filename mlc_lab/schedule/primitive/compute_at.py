"""compute_at: a block moves under a loop of its consumers."""

from __future__ import annotations

from ..compute_location import move_block, special_location
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("ComputeAt", moves=True)
def compute_at(state: ScheduleState, block: StmtSRef, loop: StmtSRef,
               preserve_unit_loops: bool = False, index: int = -1) -> None:
    """Compute a producer inside a loop of its consumers: just the part that one iteration needs.

    The block's own loops are removed; under `loop`, before the first consumer, new loops `ax0`,
    `ax1`, ... run over the region that the consumers read there. `index` chooses the place in the
    loop's body: -1 the last possible one, -2 the first.

    Before::

        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1.0)

    After `sch.compute_at(B, i)` with the loop i of C::

        for i in range(128):
            for ax0 in range(128):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, ax0])
                    B[vi, vj] = A[vi, vj] * T.float32(2.0)
            for j in range(128):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj] + T.float32(1.0)

    Errors: the scope is a stage pipeline; the block is complete or a reduction, is no output of its
    scope, and all its consumers are under `loop`, which is not around the block already.
    """
    if special_location(state, block, loop, inline=True):
        return
    move_block(state, block, loop, preserve_unit_loops, index, producer=True)

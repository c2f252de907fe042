"""reverse_compute_at: a block moves under a loop of its producers."""

from __future__ import annotations

from ..compute_location import move_block, special_location
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("ReverseComputeAt", moves=True)
def reverse_compute_at(state: ScheduleState, block: StmtSRef, loop: StmtSRef,
                       preserve_unit_loops: bool = False, index: int = -1) -> None:
    """Compute a consumer inside a loop of its producers: just the part one iteration provides.

    Before::

        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1.0)

    After `sch.reverse_compute_at(C, i)` with the loop i of B::

        for i in range(128):
            for j in range(128):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2.0)
            for ax0 in range(128):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, ax0])
                    C[vi, vj] = B[vi, vj] + T.float32(1.0)

    Errors: the scope is a stage pipeline; the block is complete or a reduction, all its producers
    are under `loop`, and what they compute in one iteration is finished when the block reads it.
    """
    if special_location(state, block, loop, inline=False):
        return
    move_block(state, block, loop, preserve_unit_loops, index, producer=False)

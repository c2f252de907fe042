"""unroll: the body of a loop is repeated without a loop."""

from __future__ import annotations

from ...tir.stmt import ForKind
from ..guards import is_loop, loop_is_not_left
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("Unroll")
def unroll(state: ScheduleState, loop: StmtSRef) -> None:
    """Repeat the body of a loop as often as it runs, without a loop.

    Before::

        for i_0, i_1 in T.grid(32, 4):
            with T.block("B"):
                vi = T.axis.spatial(128, i_0 * 4 + i_1)
                B[vi] = A[vi] * T.float32(2.0)

    After `sch.unroll(i_1)`::

        for i_0 in range(32):
            for i_1 in T.unroll(4):
                with T.block("B"):
                    vi = T.axis.spatial(128, i_0 * 4 + i_1)
                    B[vi] = A[vi] * T.float32(2.0)

    Errors: the loop is not left early; unrolling keeps the order of iterations.
    """
    is_loop(loop)
    loop_is_not_left(loop, "leaves no loop where the iterations are written out")
    state.replace(loop, loop.stmt.replace(kind=ForKind.UNROLLED, thread_binding=None))

"""vectorize: the iterations of a loop run as lanes of vector instructions."""

from __future__ import annotations

from ...tir.stmt import ForKind
from ..instruction import primitive
from ..loop_kind import set_kind
from ..state import ScheduleState, StmtSRef


@primitive("Vectorize")
def vectorize(state: ScheduleState, loop: StmtSRef) -> None:
    """Run the iterations of a loop as the lanes of vector instructions.

    Before::

        for i_0, i_1 in T.grid(8, 16):
            with T.block("B"):
                vi = T.axis.spatial(128, i_0 * 16 + i_1)
                B[vi] = A[vi] * T.float32(2.0)

    After `sch.vectorize(i_1)`::

        for i_0 in range(8):
            for i_1 in T.vectorized(16):
                with T.block("B"):
                    vi = T.axis.spatial(128, i_0 * 16 + i_1)
                    B[vi] = A[vi] * T.float32(2.0)

    Errors: as for `parallel`.
    """
    set_kind(state, loop, ForKind.VECTORIZED, "as lanes of a vector")

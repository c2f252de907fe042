"""parallel: the iterations of a loop run on all cores."""

from __future__ import annotations

from ...tir.stmt import ForKind
from ..instruction import primitive
from ..loop_kind import set_kind
from ..state import ScheduleState, StmtSRef


@primitive("Parallel")
def parallel(state: ScheduleState, loop: StmtSRef) -> None:
    """Run the iterations of a loop on all cores.

    Before::

        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * T.float32(2.0)

    After `sch.parallel(i)`::

        for i in T.parallel(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * T.float32(2.0)

    The bounds of inner loops may depend on the loop, as in a triangle.

    Errors: every block below must be complete or a reduction, the loop may drive spatial iterators
    only, and no two of its iterations may touch an element that one of them writes.
    """
    set_kind(state, loop, ForKind.PARALLEL, "in parallel")

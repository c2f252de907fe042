"""bind: the iterations of a loop run on the threads of a GPU axis."""

from __future__ import annotations

from ...tir.stmt import ForKind
from ..error import Refusal
from ..instruction import primitive
from ..loop_kind import set_kind
from ..state import ScheduleState, StmtSRef


@primitive("Bind")
def bind(state: ScheduleState, loop: StmtSRef, thread_axis: str) -> None:
    """Bind a loop to a GPU thread axis: blockIdx.x/y/z, threadIdx.x/y/z or vthread.x/y/z.

    Errors: as for `parallel`; a reduction may be bound to threadIdx (a cross-thread reduction).
    """
    known = [f"{a}.{d}" for a in ("blockIdx", "threadIdx", "vthread") for d in "xyz"]
    if thread_axis not in [*known, "vthread"]:
        raise Refusal("thread_axis_exists", f"{thread_axis!r} is no thread axis; there are "
                      + ", ".join(known))
    set_kind(state, loop, ForKind.THREAD_BINDING, f"on the threads of {thread_axis}", thread_axis)

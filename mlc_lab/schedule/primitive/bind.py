"""bind: the iterations of a loop run on the threads of a GPU axis."""

from __future__ import annotations

from ...tir.functor import uses_var
from ...tir.stmt import ForKind
from ..error import Refusal
from ..guards import is_loop
from ..instruction import primitive
from ..loop_kind import set_kind
from ..state import ScheduleState, StmtSRef


@primitive("Bind", binds=True)
def bind(state: ScheduleState, loop: StmtSRef, thread_axis: str) -> None:
    """Bind a loop to a GPU thread axis: blockIdx.x/y/z, threadIdx.x/y/z or vthread.x/y/z.

    Errors: as for `parallel`; a reduction with affine bindings and of a known kind (sum, product,
    min, max, argmin, argmax) may be bound to threadIdx: each thread reduces a slice, then all of
    them together. How many threads there are depends on no loop around, and what is in a
    loop does not depend on another one around it on the same axis.
    """
    known = [f"{a}.{d}" for a in ("blockIdx", "threadIdx", "vthread") for d in "xyz"]
    if thread_axis not in [*known, "vthread"]:
        raise Refusal("thread_axis_exists", f"{thread_axis!r} is no thread axis; there are "
                      + ", ".join(known))
    is_loop(loop)
    around = {s.stmt.loop_var for s in state.loops_above(loop)}
    if uses_var(loop.stmt.extent, around):
        raise Refusal("number_of_threads_is_fixed", f"loop {loop.stmt.loop_var.name} runs "
                      f"{loop.stmt.extent!r} times, which depends on a loop around it: a kernel "
                      "is started with one number of threads", nodes=[loop.stmt],
                      hint="bind the loop on which the extent depends")
    set_kind(state, loop, ForKind.THREAD_BINDING, f"on the threads of {thread_axis}", thread_axis)

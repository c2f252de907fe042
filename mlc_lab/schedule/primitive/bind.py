"""bind: the iterations of a loop run on the threads of a GPU axis."""

from __future__ import annotations

from ...tir import op
from ...tir.functor import uses_var
from ...tir.stmt import For, ForKind
from ..error import Refusal
from ..guards import is_loop
from ..instruction import primitive
from ..loop_kind import set_kind
from ..state import ScheduleState, StmtSRef


@primitive("Bind")
def bind(state: ScheduleState, loop: StmtSRef, thread_axis: str) -> None:
    """Bind a loop to a GPU thread axis: blockIdx.x/y/z, threadIdx.x/y/z or vthread.x/y/z.

    Errors: as for `parallel`; a reduction with affine bindings and of a known kind (sum, product,
    min, max, argmin, argmax) may be bound to threadIdx: each thread reduces a slice, then all of
    them together. How many threads there are depends on no loop around, and no loop around or
    inside is bound to the same axis.
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
    _bound_once(state, loop, thread_axis)
    set_kind(state, loop, ForKind.THREAD_BINDING, f"on the threads of {thread_axis}", thread_axis)


def _bound_once(state: ScheduleState, loop: StmtSRef, axis: str) -> None:
    """No loop around, and none inside, is on the same axis of threads: of nested ones, both would
    be at the same iteration."""
    if axis.startswith("vthread") or op.is_const_int(loop.stmt.extent, 1):
        return
    for other in state.refs.values():
        stmt = other.stmt
        if type(stmt) is For and stmt.kind is ForKind.THREAD_BINDING and (
                stmt.thread_binding.thread_tag == axis) and other is not loop and not (
                op.is_const_int(stmt.extent, 1)) and (_is_in(other, loop) or _is_in(loop, other)):
            raise Refusal("axis_is_bound_once", f"loop {stmt.loop_var.name} is bound to {axis}, "
                          f"{'inside of' if _is_in(other, loop) else 'around'} loop "
                          f"{loop.stmt.loop_var.name}: a thread has one index on an axis, so of "
                          "both loops only iterations with the same number would run",
                          nodes=[loop.stmt, stmt], hint=f"bind it to another axis than {axis}, or "
                          "sch.fuse the loops first")


def _is_in(inner: StmtSRef, outer: StmtSRef) -> bool:
    at = inner.parent
    while at is not None and at is not outer:
        at = at.parent
    return at is not None

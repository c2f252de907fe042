"""parallel, vectorize, unroll, bind: how the iterations of a loop run."""

from __future__ import annotations

from typing import Any

from ...tir.expr import IterVar, Var
from ...tir.stmt import EMPTY, ForKind
from ..error import Refusal
from ..guards import compact_dataflow, is_loop, parallelizable
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


def _set_kind(state: ScheduleState, loop: StmtSRef, kind: ForKind, word: str,
              thread_tag: str = "") -> None:
    is_loop(loop)
    compact_dataflow(state, loop)
    parallelizable(state, loop, word, thread_tag)
    stmt = loop.stmt
    binding = None
    if thread_tag:
        binding = IterVar.from_fields(None, Var("", stmt.loop_var.dtype), IterVar.ThreadIndex,
                                      thread_tag)
    state.replace(loop, stmt.replace(kind=kind, thread_binding=binding))


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

    Errors: every block below must be complete or a reduction with affine bindings, and the loop
    may drive spatial iterators only.
    """
    _set_kind(state, loop, ForKind.PARALLEL, "in parallel")


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
    _set_kind(state, loop, ForKind.VECTORIZED, "as lanes of a vector")


@primitive("Bind")
def bind(state: ScheduleState, loop: StmtSRef, thread_axis: str) -> None:
    """Bind a loop to a GPU thread axis: blockIdx.x/y/z, threadIdx.x/y/z or vthread.x/y/z.

    Errors: as for `parallel`; a reduction may be bound to threadIdx (a cross-thread reduction).
    """
    known = [f"{a}.{d}" for a in ("blockIdx", "threadIdx", "vthread") for d in "xyz"]
    if thread_axis not in [*known, "vthread"]:
        raise Refusal("thread_axis_exists", f"{thread_axis!r} is no thread axis; there are "
                      + ", ".join(known))
    _set_kind(state, loop, ForKind.THREAD_BINDING, f"on the threads of {thread_axis}", thread_axis)


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

    Errors: none; unrolling keeps the order of iterations.
    """
    is_loop(loop)
    state.replace(loop, loop.stmt.replace(kind=ForKind.UNROLLED, thread_binding=None))


@primitive("AddUnitLoop")
def add_unit_loop(state: ScheduleState, block_or_loop: StmtSRef) -> StmtSRef:
    """Put a loop of extent 1 around a block or loop.

    Before::

        with T.block("B"):
            vi = T.axis.spatial(1, 0)
            B[vi] = A[vi] * T.float32(2.0)

    After `sch.add_unit_loop(B)`::

        for u in range(1):
            with T.block("B"):
                vi = T.axis.spatial(1, 0)
                B[vi] = A[vi] * T.float32(2.0)
    """
    from ...tir.stmt import Block, For

    target: Any = block_or_loop.stmt
    if type(target) is Block:
        state.scope_root(block_or_loop)  # the root block cannot be wrapped
        inner = state.realize_of(block_or_loop)
    else:
        inner = target
    new = For(Var("u", "int32"), 0, 1, ForKind.SERIAL, inner, None, EMPTY)
    state.replace(block_or_loop, new)
    return state.refs[new]

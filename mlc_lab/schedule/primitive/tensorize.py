"""tensorize: a block's computation becomes a call of a tensor intrinsic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir.diagnostics import WellFormedError
from ...tir.function import TensorIntrin
from ...tir.functor import pre_order
from ...tir.layout import alignments, layout_with
from ...tir.stmt import Block
from ...tir.well_formed import verify_well_formed
from ..buffers import views_fit
from ..error import Refusal
from ..instruction import primitive
from ..intrinsic_match import instantiate, match_description
from ..state import ScheduleState, StmtSRef
from ..subspace import blockized

if TYPE_CHECKING:
    from ..schedule import Schedule


def _name(sch: Schedule, args: dict[str, Any]) -> None:
    given = args["tensor_intrin"]
    if isinstance(given, TensorIntrin):
        names = [n for n, i in TensorIntrin.registered().items() if i is given]
        if not names:
            raise Refusal("intrinsic_is_registered", "this tensor intrinsic is not registered, so "
                          "a trace could not name it",
                          hint="TensorIntrin.register(name, desc, impl) first")
        args["tensor_intrin"] = names[0]
    if isinstance(args["block_or_loop"], str):
        args["block_or_loop"] = sch.get_block(args["block_or_loop"])


@primitive("Tensorize", normalize=_name)
def tensorize(state: ScheduleState, block_or_loop: StmtSRef, tensor_intrin: str,
              preserve_unit_iters: bool = True) -> None:
    """Replace what a block computes by the implementation of a tensor intrinsic.

    A tensor intrinsic is a pair of functions: `desc` says in plain TensorIR what is computed,
    `impl` how the machine does it. The block must compute just what `desc` does, on parts of its
    buffers; `impl` then gets views of those parts (`T.match_buffer`). Given a loop, the nest at it
    is made a block first, as by blockize.

    Before::

        for i_0, j_0, i_1, j_1 in T.grid(8, 8, 16, 16):
            with T.block("B"):
                vi = T.axis.spatial(128, i_0 * 16 + i_1)
                vj = T.axis.spatial(128, j_0 * 16 + j_1)
                B[vi, vj] = A[vi, vj]

    with the implementation of an intrinsic `copy_16x16`::

        with T.block("root"):
            T.reads(A[0:16, 0:16])
            T.writes(B[0:16, 0:16])
            T.evaluate(T.call_extern("int32", "copy_16x16", A.access_ptr("r"), B.access_ptr("w")))

    `sch.tensorize(i_1, "copy_16x16")` gives a block B_o over i_0 and j_0 with that call as body.

    Errors: the intrinsic must be registered, its implementation well formed; the loop can be made a
    block (see blockize); the block's loops, iterators, accesses and expressions are those of the
    description; strides that the implementation declares as numbers are those of the buffers.
    """
    stmt = getattr(block_or_loop, "stmt", None)
    try:
        intrinsic = TensorIntrin.get(tensor_intrin)
    except ValueError as err:
        raise Refusal("intrinsic_is_registered", str(err),
                      hint="TensorIntrin.register(name, desc, impl)") from None
    try:
        verify_well_formed(intrinsic.impl)
    except WellFormedError as err:
        raise Refusal("implementation_is_well_formed", f"the implementation of {tensor_intrin} is "
                      f"no well-formed function: {err}",
                      hint="mend it and register it again") from None
    if type(stmt) is Block:
        realize = state.realize_of(block_or_loop)
    else:
        from ..guards import is_loop

        is_loop(block_or_loop)
        realize, _ = blockized(state, block_or_loop, preserve_unit_iters)
    matched = match_description(realize.block, intrinsic.desc, tensor_intrin)
    new_block = instantiate(realize.block, intrinsic, matched)
    if any(m.buffer.strides for m in new_block.match_buffers):
        nodes = pre_order(state.func_of(block_or_loop).body)
        views_fit([new_block], layout_with(alignments(nodes)),
                  [m.source.buffer for m in new_block.match_buffers])
    if type(stmt) is Block:
        state.replace(block_or_loop, new_block, {stmt: new_block})
    else:
        state.replace(block_or_loop, realize.replace(block=new_block))

"""add_unit_loop: a loop of extent 1 around a block or loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...tir.expr import Var
from ...tir.functor import leaves_loop
from ...tir.stmt import EMPTY, Block, For, ForKind
from ..error import Refusal
from ..guards import is_loop
from ..instruction import primitive
from ..provenance import came_from
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import LoopRV


@primitive("AddUnitLoop")
def add_unit_loop(state: ScheduleState, block_or_loop: StmtSRef) -> LoopRV:
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

    Errors: the block does not leave the loop that it is in.
    """
    target: Any = getattr(block_or_loop, "stmt", None)
    if type(target) is Block:
        state.scope_root(block_or_loop)  # the root block cannot be wrapped
        inner: Any = state.realize_of(block_or_loop)
        if leaves_loop(inner):
            raise Refusal("loop_runs_to_its_end", f"block {target.name_hint} leaves the loop that "
                          "it is in, and would leave the new one instead", nodes=[target])
    else:
        is_loop(block_or_loop)
        inner = target
    unit = came_from(Var("u", "int32"), target)
    new = For(unit, 0, 1, ForKind.SERIAL, inner, None, EMPTY)
    state.replace(block_or_loop, new)
    return state.refs[new]

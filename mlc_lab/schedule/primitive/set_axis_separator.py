"""set_axis_separator: which dimensions of a buffer are flattened together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..buffers import (
    Redirect, allocation_site, block_argument, buffer_position, nth_region, one_name,
)
from ..error import Refusal
from ..guards import is_block
from ..instruction import primitive
from ..provenance import came_from
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..schedule import Schedule


def _position(sch: Schedule, args: dict[str, Any]) -> None:
    args["buffer"] = buffer_position(block_argument(sch, args), args["buffer"])


@primitive("SetAxisSeparator", normalize=_position)
def set_axis_separator(state: ScheduleState, block: StmtSRef, buffer: Any,
                       axis_separators: Sequence[int]) -> None:
    """Say which dimensions of a buffer stay apart when it is flattened.

    Flattening joins the dimensions between separators into one: separators [1] of a buffer of 3
    dimensions leave 2 (for memory that is addressed by row and column, such as textures).

    Before::

        B = T.alloc_buffer((128, 128))
        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1.0)

    After `sch.set_axis_separator(B, ("write", 0), [1])`::

        B = T.alloc_buffer((128, 128), axis_separators=[1])
        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1.0)

    Errors: separators are increasing and lie between dimensions.
    """
    is_block(block)
    old = nth_region(block.stmt, buffer[1], buffer[0]).buffer
    site, is_param = allocation_site(state, block, old)
    one_name(site.stmt.body, old)
    rank = len(old.shape)
    if sorted(set(axis_separators)) != list(axis_separators) or not all(
            0 <= a <= rank for a in axis_separators):
        raise Refusal("separators_lie_between_dimensions", f"axis_separators={axis_separators}: "
                      f"buffer {old.name} has {rank} dimensions; separators are increasing and in "
                      f"0 .. {rank}", nodes=[block.stmt])
    state.accepted()
    new = came_from(old.replace(axis_separators=tuple(axis_separators)), old)
    redirect = Redirect({old: new})
    redirect.data = {}
    changed = redirect.visit(site.stmt)
    state.replace(site, changed, {**redirect.reuse, site.stmt: changed})
    if is_param:
        func = state.func_of(site)
        state.update_func(site, func.replace(buffer_map={
            p: new if b is old else b for p, b in func.buffer_map.items()}))

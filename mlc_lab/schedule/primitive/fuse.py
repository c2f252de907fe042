"""fuse: nested loops become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...arith import Analyzer
from ...ir.dtype import int_range
from ...tir import op
from ...tir.expr import IntImm, PrimExpr, Var
from ...tir.functor import substitute, uses_var
from ...tir.stmt import Block, For, ForKind
from ..error import Refusal
from ..guards import is_loop, loop_from_zero, loop_is_not_left, loop_is_plain
from ..instruction import primitive
from ..provenance import came_from
from ..rewrite import pair_blocks, simplify_bindings, widen_iterators
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import LoopRV


#: characters of the names of fused loops together, beyond which they are cut
_LONGEST = 200


@primitive("Fuse")
def fuse(state: ScheduleState, *loops: StmtSRef, preserve_unit_iters: bool = True) -> LoopRV:
    """Fuse nested loops, given outermost first, into one over the product of their extents.

    Before::

        for i, j in T.grid(128, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)

    After `sch.fuse(i, j)`::

        for i_j_fused in range(8192):
            with T.block("B"):
                vi = T.axis.spatial(128, i_j_fused // 64)
                vj = T.axis.spatial(64, i_j_fused % 64)
                B[vi, vj] = A[vi, vj] * T.float32(2.0)

    The new loop counts in int64 where the extents' product does not fit into int32.

    Errors: each loop must directly and only contain the next, start at zero, carry no annotation
    or thread binding, and no inner extent may depend on an outer loop.
    """
    if not loops:
        raise Refusal("fuse_needs_loops", "fuse takes at least one loop")
    outermost, innermost = loops[0], loops[-1]
    for loop in loops:
        is_loop(loop)
        loop_is_plain(loop)
        loop_from_zero(loop)
        if len(loops) > 1:
            loop_is_not_left(loop, "would leave all of the fused loops")
    if len(set(loops)) != len(loops):
        raise Refusal("loops_are_distinct", "a loop is given twice", nodes=[outermost.stmt])
    for outer, inner in zip(loops, loops[1:]):
        if inner.parent is not outer:
            raise Refusal("loops_are_adjacent", f"loop {inner.stmt.loop_var.name} is not directly "
                          f"inside loop {outer.stmt.loop_var.name}",
                          nodes=[outer.stmt, inner.stmt],
                          hint="reorder the loops so that they are adjacent, outermost first")
        if outer.stmt.body is not inner.stmt:
            raise Refusal("single_branch", f"loop {outer.stmt.loop_var.name} holds more than loop "
                          f"{inner.stmt.loop_var.name}", nodes=[outer.stmt])
        if any(uses_var(inner.stmt.extent, o.stmt.loop_var) for o in loops):
            raise Refusal("extents_are_independent", f"the extent of {inner.stmt.loop_var.name} "
                          "depends on a loop it would be fused with", nodes=[inner.stmt])
    names = "_".join(s.stmt.loop_var.name for s in loops)
    if len(names) > _LONGEST:  # fusing what was split doubles a name each time
        names = names[:_LONGEST // 2].rstrip("_")
    dtype = _dtype(loops)
    fused = came_from(Var(f"{names}_fused", dtype), *(s.stmt for s in loops))
    table: dict[Var, PrimExpr] = {}
    lower: PrimExpr = IntImm(dtype, 1)
    for loop in reversed(loops):
        size = op.cast(loop.stmt.extent, dtype)
        through = op.mul(lower, size)
        if op.is_const_int(through, 0) or (
                op.is_const_int(size, 1) and not preserve_unit_iters):  # of 0, nothing runs
            table[loop.stmt.loop_var] = IntImm(loop.stmt.loop_var.dtype, 0)
        elif loop is outermost:
            table[loop.stmt.loop_var] = op.floordiv(fused, lower)
        else:
            table[loop.stmt.loop_var] = op.floordiv(op.floormod(fused, through), lower)
        lower = through
    analyzer = Analyzer()
    state.loop_domains_into(outermost, analyzer)
    body = substitute(innermost.stmt.body, table)
    if any(s.stmt.loop_var.dtype != dtype for s in loops):
        body = widen_iterators(body)
    extent = analyzer.simplify(_product(loops, dtype))
    new = For(fused, IntImm(dtype, 0), extent, ForKind.SERIAL, body)
    new = simplify_bindings(new, state.loops_above(outermost), preserve_unit_iters)
    reuse: dict[Block, Block] = {}
    pair_blocks(innermost.stmt.body, new.body, reuse)
    state.replace(outermost, new, reuse)
    return state.refs[new]


def _dtype(loops: tuple[StmtSRef, ...]) -> str:
    """The type of the fused variable: int64 if a loop has it, or if the product of the extents that
    are known needs it."""
    product = 1
    for loop in loops:
        product *= op.as_int(loop.stmt.extent) or 1
    dtype = loops[0].stmt.loop_var.dtype
    wide = any(s.stmt.loop_var.dtype == "int64" for s in loops)
    return "int64" if wide or product > int_range(dtype)[1] else dtype


def _product(loops: tuple[StmtSRef, ...], dtype: str) -> PrimExpr:
    out = op.cast(loops[0].stmt.extent, dtype)
    for loop in loops[1:]:
        out = op.mul(out, op.cast(loop.stmt.extent, dtype))
    return out

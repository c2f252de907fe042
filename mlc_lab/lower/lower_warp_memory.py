"""LowerWarpMemory: memory that the lanes of a warp share, as a part of shared memory for each warp.

Before, with 64 threads in a block::

    W = T.allocate([32], "float32", "warp")
    W[threadIdx_x % 32] = A[threadIdx_x]
    B[threadIdx_x] = W[31 - threadIdx_x % 32]

After::

    W = T.allocate([64], "float32", "shared")
    W[threadIdx_x // 32 * 32 + threadIdx_x % 32] = A[threadIdx_x]
    B[threadIdx_x] = W[threadIdx_x // 32 * 32 + (31 - threadIdx_x % 32)]

The threads of a block are counted along x first, and 32 of them are a warp, whatever the target: so
a program means the same on all. ThreadSync, which comes next, puts barriers between the lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import dtype as dt
from ..ir.transform import Pass
from ..tir import op
from ..tir.expr import IterVar, PointerType, PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements
from ..tir.stmt import Allocate, AttrStmt, Stmt
from .common import function_pass
from .threads_to_loops import Shifted

if TYPE_CHECKING:
    from ..ir.transform import PassContext

#: lanes of a warp
WARP = 32


class _Lower(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.axes: dict[str, tuple[Var, PrimExpr]] = {}

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if not isinstance(node.node, IterVar) or not node.node.thread_tag.startswith("threadIdx"):
            return self.default(node)
        before, tag = dict(self.axes), node.node.thread_tag
        self.axes[tag] = node.node.var, node.value
        new = self.default(node)
        self.axes = before
        return new

    def visit_Allocate(self, node: Allocate) -> Stmt:
        if node.buffer_var.storage_scope != "warp":
            return self.default(node)
        size: PrimExpr = op.const(1)
        for extent in node.extents:
            size = op.mul(size, op.cast(extent, "int32"))
        place: PrimExpr = op.const(0)
        count: PrimExpr = op.const(1)
        for _, (var, extent) in sorted(self.axes.items()):  # x varies fastest
            place = op.add(place, op.mul(op.cast(var, "int32"), count))
            count = op.mul(count, op.cast(extent, "int32"))
        one = op.as_int(count)
        warps = op.truncdiv(op.add(count, WARP - 1), WARP)
        first = op.const(0) if one is not None and one <= WARP else (
            op.mul(op.truncdiv(place, WARP), size))
        extents = (op.mul(warps, size),)
        data = Var(node.buffer_var.name, PointerType(dt.element_of(node.dtype), "shared"))
        body = Shifted(node.buffer_var, data, first, extents).visit(node.body)
        return Allocate.from_fields(data, node.dtype, extents, node.condition, self.visit(body),
                                    node.annotations)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Memory of warps as shared memory."""
    if not any(type(s) is Allocate and s.buffer_var.storage_scope == "warp"
               for s in all_statements(func.body)):
        return func
    return func.with_body(_Lower().visit(func.body))


def LowerWarpMemory() -> Pass:
    """Make memory of warps a part of shared memory for each."""
    return function_pass("LowerWarpMemory", _rewrite)


__all__ = ["WARP", "LowerWarpMemory"]

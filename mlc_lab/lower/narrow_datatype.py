"""NarrowDataType: indices are computed in a narrower type, where all that they come to fits it.

Before::

    for i, j in T.grid(T.int64(16), T.int64(8)):
        A[i * T.int64(8) + j] = 0.0

After `NarrowDataType(32)`::

    for i, j in T.grid(16, 8):
        A[i * 8 + j] = 0.0

A loop whose index, or anything that is computed from it, may be larger stays as it is, and so does
one whose extent is only known when the program runs. Data keeps its type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..tir.expr import Call, IntImm, IterVar, Let, PrimExpr, Ramp, Range, Select, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator
from ..tir.op import cast, const
from ..tir.stmt import AttrStmt, BlockRealize, BufferStore, For, LetStmt, Stmt
from .common import function_pass
from .index_widths import Widths

if TYPE_CHECKING:
    from ..ir.transform import PassContext

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def retyped(e: PrimExpr, dtype: str) -> PrimExpr:
    """An index in another type: a constant of it, or a cast."""
    if type(e) is IntImm:
        return e if e.dtype == dtype else const(e.value, dtype)
    return e if e.dtype == dtype else cast(e, dtype)


def agreed(a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """Two operands in one type: that of the one that is no constant, or the wider one."""
    if a.dtype == b.dtype:
        return a, b
    if a.dtype not in _BITS or b.dtype not in _BITS:
        return a, b
    if type(b) is IntImm or (type(a) is not IntImm and _BITS[a.dtype] > _BITS[b.dtype]):
        return a, retyped(b, a.dtype)
    return retyped(a, b.dtype), b


class _Narrow(Mutator):
    """Puts narrower variables in place of others."""

    def __init__(self, table: dict[Var, Var]) -> None:
        super().__init__()
        self.table = table

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.table.get(node, node)

    def visit_var_def(self, var: Var) -> Var:
        return self.table.get(var, var)

    def visit_BinaryOp(self, node: Any) -> PrimExpr:
        a, b = self.visit(node.a), self.visit(node.b)
        if a is node.a and b is node.b:
            return node
        return type(node)(*agreed(a, b))

    def visit_Select(self, node: Select) -> PrimExpr:
        condition, *arms = map(self.visit, (node.condition, node.true_value, node.false_value))
        if condition is node.condition and arms[0] is node.true_value and (
                arms[1] is node.false_value):
            return node
        return Select(condition, *agreed(*arms))

    def visit_Ramp(self, node: Ramp) -> PrimExpr:
        base, stride = self.visit(node.base), self.visit(node.stride)
        if base is node.base and stride is node.stride:
            return node
        return Ramp(base, retyped(stride, base.dtype), node.lanes)

    def visit_Call(self, node: Call) -> PrimExpr:
        args = [self.visit(a) for a in node.args]
        if all(a is b for a, b in zip(args, node.args)):
            return node
        return node.replace(args=tuple(  # what is called takes what it took
            retyped(a, b.dtype) if b.dtype in _BITS else a for a, b in zip(args, node.args)))

    def visit_Let(self, node: Let) -> PrimExpr:
        new = super().visit_Let(node)
        assert isinstance(new, Let)
        return new if new is node else new.replace(value=retyped(new.value, new.var.dtype))

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        new = super().visit_LetStmt(node)
        assert isinstance(new, LetStmt)
        return new if new is node else new.replace(value=retyped(new.value, new.var.dtype))

    def visit_For(self, node: For) -> Stmt:
        new = super().visit_For(node)
        assert isinstance(new, For)
        dtype = new.loop_var.dtype
        if new is node or dtype == node.loop_var.dtype and new.min is node.min and (
                new.extent is node.extent):
            return new
        return new.replace(min=retyped(new.min, dtype), extent=retyped(new.extent, dtype))

    def visit_IterVar(self, node: IterVar[Any]) -> IterVar[Any]:
        new = super().visit_IterVar(node)
        if new is node or new.dom is None:
            return new
        dtype = new.var.dtype
        return new.replace(dom=Range.from_min_extent(retyped(new.dom.min, dtype),
                                                     retyped(new.dom.extent, dtype)))

    def visit_Range(self, node: Range) -> Range:
        new = self.default(node)
        if new is node:
            return node
        return Range.from_min_extent(new.min, retyped(new.extent, new.min.dtype))

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        new = super().visit_AttrStmt(node)
        assert isinstance(new, AttrStmt)
        if new is node or not isinstance(new.node, IterVar):
            return new
        return new.replace(value=retyped(new.value, new.node.var.dtype))

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        new = self.default(node)
        if new is node:
            return new
        values = tuple(retyped(v, iv.var.dtype)
                       for v, iv in zip(new.iter_values, new.block.iter_vars))
        return new.replace(iter_values=values)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        new = super().visit_BufferStore(node)
        value = new.value
        if new is node or value.dtype == node.value.dtype or node.value.dtype not in _BITS:
            return new
        return new.replace(value=retyped(value, node.value.dtype))


def NarrowDataType(target_bits: int) -> Pass:
    """Compute indices in a narrower type, where all that they come to fits it.

    The width is 8, 16, 32 or 64 bits.
    """
    dtype = f"int{target_bits}"
    if dtype not in _BITS:
        raise ValueError(f"NarrowDataType takes 8, 16, 32 or 64 bits, not {target_bits!r}")

    def rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        """Narrower indices."""
        found = Widths(dtype)
        found.visit(func.body)
        wide = found.wide()
        table = {v: v.__class__(v.name, dtype) for v in found.local
                 if v not in wide and v.dtype in _BITS and _BITS[v.dtype] > target_bits}
        return func.with_body(_Narrow(table).visit(func.body)) if table else func

    return function_pass("NarrowDataType", rewrite)


__all__ = ["NarrowDataType", "agreed", "retyped"]

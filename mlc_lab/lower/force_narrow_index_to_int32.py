"""ForceNarrowIndexToInt32: all indices and sizes are int32.

Before::

    @T.prim_func
    def main(A: T.Buffer((T.int64(128),), "float32"), n: T.int64):
        for i in range(T.int64(16)):
            A[i + n] = T.float32(0)

After::

    @T.prim_func
    def main(A: T.Buffer((128,), "float32"), n: T.int32):
        for i in range(16):
            A[i + n] = T.float32(0)

Sizes and parameters are int32 as well, so that the function is another one for its callers: it is
for those who know that all sizes fit. What certainly does not fit is refused, and so is data of
int64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..tir.buffer import Buffer
from ..tir.expr import Call, Cast, IntImm, PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator
from ..tir.op import add, cast, const, sub
from ..tir.stmt import For, Stmt
from .common import LowerError, function_pass
from .index_widths import Widths

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class _Int32(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.table: dict[Var, Var] = {}
        self.known: dict[Buffer, Buffer] = {}

    def variable(self, var: Var) -> Var:
        """A variable in int32, where it was int64."""
        if var.dtype != "int64":
            return var
        return self.table.setdefault(var, var.__class__(var.name, "int32"))

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.variable(node)

    def visit_var_def(self, var: Var) -> Var:
        return self.variable(var)

    def visit_IntImm(self, node: IntImm) -> PrimExpr:
        return const(node.value, "int32") if node.dtype == "int64" else node

    def visit_Cast(self, node: Cast) -> PrimExpr:
        value = self.visit(node.value)
        dtype = "int32" if node.dtype == "int64" else node.dtype
        return node if value is node.value and dtype == node.dtype else cast(value, dtype)

    def visit_Call(self, node: Call) -> PrimExpr:
        args = tuple(map(self.visit, node.args))
        name = getattr(node.op, "name", "")
        if name == "tir.clz" and node.args[0].dtype == "int64":
            # a number has 32 leading zeros less in int32
            return add(sub(node.replace(args=args), 32), 64)
        if node.dtype == "int64":
            return node.replace(args=args, dtype="int32")
        return node if all(a is b for a, b in zip(args, node.args)) else node.replace(args=args)

    def visit_buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self.known:
            if buffer.dtype == "int64":
                raise LowerError(f"ForceNarrowIndexToInt32: {buffer.name} holds int64, which are "
                                 "data and would lose numbers; only indices are narrowed")
            self.known[buffer] = buffer.map_children(self._in_buffer)
        return self.known[buffer]

    def visit_buffer_def(self, buffer: Buffer) -> Buffer:
        return self.visit_buffer(buffer)

    def visit_For(self, node: For) -> Stmt:
        new = super().visit_For(node)
        assert isinstance(new, For)
        axis = new.thread_binding
        if axis is None or axis.var.dtype != "int64":
            return new
        return new.replace(thread_binding=axis.replace(var=self.variable(axis.var)))

    def visit_BinaryOp(self, node: Any) -> PrimExpr:
        a, b = self.visit(node.a), self.visit(node.b)
        return node if a is node.a and b is node.b else type(node)(a, b)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Indices and sizes of int32."""
    found = Widths("int32")
    found.visit(func.body)
    for e, low, high in found.beyond:
        if isinstance(e, IntImm) or (abs(low) < 1 << 62 and abs(high) < 1 << 62):
            raise LowerError(f"ForceNarrowIndexToInt32: {e!r} comes to {low} .. {high}, which no "
                             "int32 holds: this program needs int64")
    mutator = _Int32()
    buffer_map = {mutator.variable(p): mutator.visit_buffer(b) for p, b in func.buffer_map.items()}
    params = tuple(map(mutator.variable, func.params))
    return PrimFunc.from_fields(params, buffer_map, func.attrs, func.ret_type,
                                mutator.visit(func.body))


def ForceNarrowIndexToInt32() -> Pass:
    """Make all indices and sizes int32."""
    return function_pass("ForceNarrowIndexToInt32", _rewrite)

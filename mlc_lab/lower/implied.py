"""Conditions that follow from others beside them are dropped.

A loop that is split twice is guarded twice: `(a * 2 + b) * 2 + c < n and a * 2 + b < (n + 1) // 2`.
The second condition follows from the first, as c is not negative. LoopPartition cuts all loops
around each condition that is left, so ten of them make a thousand pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..arith.expr_util import INDEX_DTYPES, conjuncts
from ..arith.linear_form import follows
from ..tir import op
from ..tir.expr import GE, GT, LE, LT, BufferLoad, Call, IterVar, PrimExpr, Var
from ..tir.functor import Mutator, pre_order
from ..tir.stmt import TRUE, AttrStmt, For, IfThenElse, Stmt
from .common import may_change

if TYPE_CHECKING:
    from ..ir.node import Node


class DropImplied(Mutator):
    """Rewrites the conditions of `if` statements."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: list[tuple[Var, PrimExpr, PrimExpr]] = []

    def visit(self, node: Node) -> Any:
        """Only statements matter."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_For(self, node: For) -> Stmt:
        if may_change((node.min, node.extent), node.body):
            return self.default(node)
        self.loops.append((node.loop_var, node.min, node.extent))
        new = self.default(node)
        self.loops.pop()
        return new

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if not isinstance(node.node, IterVar):
            return self.default(node)
        var = node.node.var
        self.loops.append((var, op.const(0, var.dtype), node.value))
        new = self.default(node)
        self.loops.pop()
        return new

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        new = self.default(node)
        condition = self._shorter(node.condition)
        if op.is_const_int(condition, 1):
            return new.then_case
        return new if condition is node.condition else new.replace(condition=condition)

    def _shorter(self, condition: PrimExpr) -> PrimExpr:
        parts = conjuncts(condition)
        if sum(map(_is_bound, parts)) < 2:
            return condition
        kept = list(parts)
        for part in reversed(parts):  # that on the whole index stands before those on its parts
            others = [p for p in kept if p is not part]
            if _is_bound(part) and follows(part, self.loops, list(filter(_is_bound, others))):
                kept = others
        if len(kept) == len(parts):
            return condition
        return op.all(*kept) if kept else TRUE


def _is_bound(e: PrimExpr) -> bool:
    """Whether a condition compares indices, which do not wrap around, and reads no memory."""
    return isinstance(e, (LT, LE, GT, GE)) and e.a.dtype in INDEX_DTYPES and not any(
        type(n) in (BufferLoad, Call) for n in pre_order(e))


__all__ = ["DropImplied"]

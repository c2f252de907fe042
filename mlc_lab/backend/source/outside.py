"""Accesses of a kernel that may lie outside of the arrays that it is given.

Indices that come with the numbers of an array cannot be proved to lie inside. A device does what it
likes with them: OpenCL on a CPU ends the process, WebGPU reads another element. A driver of such a
device has these accesses looked at when the kernel runs (`generator.watched`): an index outside
becomes 0, and the kernel notes which access it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...arith import Analyzer
from ...tir import expr as E
from ...tir import op
from ...tir import stmt as S
from ...tir.functor import (
    Mutator, Visitor, all_statements, pre_order, substitute, variables_of,
)
from ...tir.op import as_int

if TYPE_CHECKING:
    from ...tir.function import PrimFunc


class _WithoutLets(Mutator):
    """Values in the place of names: what is looked at must be what is written."""

    def visit_Let(self, node: E.Let) -> Any:
        return self.visit(substitute(node.body, {node.var: node.value}))


class _Accesses(Visitor):
    """Finds the accesses, under the ranges of the loops and the conditions around them."""

    def __init__(self, func: PrimFunc) -> None:
        self.analyzer = Analyzer()
        self.given = {p for p in func.params if p.dtype == "handle"}
        self.written = {s.buffer.data for s in all_statements(func.body)
                        if type(s) is S.BufferStore}
        #: access -> how many indices its array has
        self.found: dict[Any, E.PrimExpr] = {}

    def visit_AttrStmt(self, node: S.AttrStmt) -> None:
        if node.attr_key == "thread_extent" and isinstance(node.node, E.IterVar):
            self._range(node.node.var, op.const(0, node.node.var.dtype), node.value)
        self.visit_children(node)

    def visit_For(self, node: S.For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        self._range(node.loop_var, node.min, node.extent)
        self.visit(node.body)

    def _range(self, var: E.Var, low: E.PrimExpr, extent: E.PrimExpr) -> None:
        self.analyzer.bind(var, E.Range.from_min_extent(low, extent), allow_override=True)

    def visit_LetStmt(self, node: S.LetStmt) -> None:
        self.visit(node.value)
        if node.var.dtype in ("int32", "int64") and self._lasts(node.value):
            self.analyzer.bind(node.var, node.value, allow_override=True)
        self.visit(node.body)

    def visit_IfThenElse(self, node: S.IfThenElse) -> None:
        self._choice(node.condition, node.then_case, node.else_case)

    def visit_Select(self, node: E.Select) -> None:
        self._choice(node.condition, node.true_value, node.false_value)

    def visit_Call(self, node: E.Call) -> None:
        if getattr(node.op, "name", "") == "tir.if_then_else":
            self._choice(*node.args)
        else:
            self.visit_children(node)

    def _choice(self, condition: Any, then: Any, other: Any) -> None:
        self.visit(condition)
        if not self._lasts(condition):
            condition = op.const(True)
        with self.analyzer.constraint_scope(condition):
            self.visit(then)
        if other is not None:
            with self.analyzer.constraint_scope(op.logical_not(condition)):
                self.visit(other)

    def _lasts(self, e: E.PrimExpr) -> bool:
        """Whether an expression keeps its value while the kernel runs."""
        return not any(type(n) is E.BufferLoad and (
            n.buffer.data in self.written or n.buffer.data not in self.given) for n in pre_order(e))

    def visit_BufferLoad(self, node: E.BufferLoad) -> None:
        self._access(node)
        self.visit_children(node)

    def visit_BufferStore(self, node: S.BufferStore) -> None:
        self._access(node)
        self.visit_children(node)

    def _access(self, node: E.BufferLoad | S.BufferStore) -> None:
        if node.buffer.data not in self.given or len(node.indices) != 1 or (
                len(node.buffer.shape) != 1):
            return
        index, size = node.indices[0], node.buffer.shape[0]
        if type(index) is E.Ramp:
            size, index = op.sub(size, (as_int(index.lanes) or 1) - 1), index.base
        if not (self.analyzer.can_prove(op.greater_equal(index, 0))
                and self.analyzer.can_prove(op.less(index, size))):
            self.found[node] = size


def without_lets(func: PrimFunc) -> PrimFunc:
    """A kernel whose expressions name no values."""
    return func.with_body(_WithoutLets().visit(func.body))


def may_be_outside(func: PrimFunc) -> dict[Any, E.PrimExpr]:
    """The accesses of a kernel's arrays that are not proved to lie inside, each with the number of
    indices that do; only those whose sizes are numbers or parameters of the kernel."""
    accesses = _Accesses(func)
    accesses.visit(func.body)
    params = set(func.params)
    return {node: size for node, size in accesses.found.items() if variables_of([size]) <= params}


__all__ = ["may_be_outside", "without_lets"]

"""What a kernel on the simulated device reads or writes outside of its memory is reported.

A GPU with robust access gives a default there, others go on with what they find. On the CPU the
process would end. Before a statement stands an assertion for each of its accesses that cannot be
proved to be inside::

    assert 0 <= I[i] and I[i] < 64, "A is accessed outside of its 64 elements"
    B[i] = A[I[i]]

In kernels whose indices follow from loops and threads nothing is left to check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...arith import Analyzer
from ...ir.transform import Pass
from ...lower.common import function_pass
from ...lower.split_host_device import is_kernel
from ...tir import op
from ...tir.expr import (
    And, Broadcast, BufferLoad, Call, IntImm, Not, Or, PrimExpr, Ramp, Range, StringImm,
)
from ...tir.functor import Mutator
from ...tir.stmt import (
    AssertStmt, AttrStmt, BufferStore, Evaluate, For, IfThenElse, LetStmt, Stmt, While, seq,
)

if TYPE_CHECKING:
    from ...ir.transform import PassContext
    from ...tir.buffer import Buffer
    from ...tir.function import PrimFunc


def accesses_stay_inside() -> Pass:
    """The pass: assertions before what may access memory outside of a buffer."""
    return function_pass("AccessesStayInside", _checked)


def _checked(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Assertions before what may access memory outside of a buffer."""
    return func.with_body(_Asserts().visit(func.body)) if is_kernel(func) else func


class _Asserts(Mutator):
    """Puts assertions before statements, knowing the loops, threads and conditions around."""

    def __init__(self) -> None:
        super().__init__()
        self.known = Analyzer()

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == "thread_extent":
            self.known.bind(node.node.var, Range.from_min_extent(
                IntImm(node.node.var.dtype, 0), node.value), True)
        return self.default(node)

    def visit_For(self, node: For) -> Stmt:
        asserts = self._of((node.min, node.extent))
        self.known.bind(node.loop_var, Range.from_min_extent(node.min, node.extent), True)
        return seq(*asserts, node.replace(body=self.visit(node.body)))

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        asserts = self._of((node.value,))
        return seq(*asserts, LetStmt(node.var, node.value, self.visit(node.body)))

    def visit_While(self, node: While) -> Stmt:
        asserts = self._of((node.condition,))  # it is asked again after each iteration
        return seq(*asserts, While(node.condition, seq(self.visit(node.body), *asserts)))

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        asserts = self._of((node.condition,))
        with self.known.constraint_scope(node.condition):
            yes = self.visit(node.then_case)
        no = node.else_case
        if no is not None:
            with self.known.constraint_scope(Not(node.condition)):
                no = self.visit(no)
        return seq(*asserts, IfThenElse(node.condition, yes, no))

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        parts = [*node.indices, node.value]
        if node.predicate is not None:
            return seq(*self._of((*parts, node.predicate)), node)
        return seq(*self._of(parts), *self._outside(node.buffer, node.indices, ()), node)

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        return seq(*self._of((node.value,)), node)

    def _of(self, parts: Sequence[PrimExpr]) -> list[Stmt]:
        out: list[Stmt] = []
        for e in parts:
            self._loads(e, (), out)
        return out

    def _loads(self, e: Any, under: tuple[PrimExpr, ...], out: list[Stmt]) -> None:
        """Assertions for what is loaded in an expression that is computed where all of `under`
        hold; those of indices first."""
        kind = type(e)
        if kind is Call and getattr(e.op, "name", "") == "tir.if_then_else":
            condition, yes, no = e.args
            self._loads(condition, under, out)
            self._under(condition, yes, under, out)
            self._under(Not(condition), no, under, out)
            return
        if kind is And or kind is Or:
            self._loads(e.a, under, out)
            self._under(e.a if kind is And else Not(e.a), e.b, under, out)
            return
        for item in e.children():
            if isinstance(item, PrimExpr):
                self._loads(item, under, out)
        if kind is BufferLoad and e.predicate is None:
            out += self._outside(e.buffer, e.indices, under)

    def _under(self, condition: PrimExpr, e: PrimExpr, under: tuple[PrimExpr, ...],
               out: list[Stmt]) -> None:
        with self.known.constraint_scope(condition):
            self._loads(e, (*under, condition), out)

    def _outside(self, buffer: Buffer, indices: Sequence[PrimExpr], under: tuple[PrimExpr, ...]
                 ) -> list[Stmt]:
        """An assertion that an access is inside, where that is not known."""
        left: list[PrimExpr] = []
        for index, extent in zip(indices, buffer.shape):
            for end in _ends(index):
                zero = IntImm(end.dtype, 0)
                left += [c for c in (op.less_equal(zero, end), op.less(end, op.cast(
                    extent, end.dtype))) if not self.known.can_prove(c)]
        if not left:
            return []
        inside = op.const(True)
        for condition in left:
            inside = op.logical_and(inside, condition)
        for condition in reversed(under):
            inside = Call("bool", "tir.if_then_else", (condition, inside, op.const(True)))
        size = ", ".join(map(repr, buffer.shape))
        text = f"{buffer.name} is accessed outside of its elements, of which there are ({size})"
        return [AssertStmt(inside, StringImm(text), seq())]


def _ends(index: PrimExpr) -> list[PrimExpr]:
    """The first and last of the places that an index, maybe one of vectors, means."""
    if type(index) is Ramp:
        return [index.base, op.add(index.base, op.mul(index.stride, IntImm(
            index.base.dtype, int(index.lanes) - 1)))]
    return [index.value] if type(index) is Broadcast else [index]


__all__ = ["accesses_stay_inside"]

"""What a kernel on the simulated device reads or writes outside of its memory is reported.

A GPU with robust access gives a default there, others go on with what they find. On the CPU the
process would end. Before a statement stands an assertion for each of its accesses that cannot be
proved to be inside::

    assert 0 <= I[i] and I[i] < 64, "A is accessed outside of its 64 elements"
    B[i] = A[I[i]]

In kernels whose indices follow from loops and threads nothing is left to check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...arith import Analyzer
from ...ir import dtype as dt
from ...ir.transform import Pass
from ...lower.common import LowerError, function_pass
from ...lower.scalarize_vectors import Lane
from ...lower.split_host_device import is_kernel
from ...tir import op
from ...tir.expr import (
    And, BufferLoad, Call, IntImm, Not, Or, PrimExpr, Ramp, Range, StringImm,
)
from ...tir.functor import Mutator, pre_order
from ...tir.stmt import (
    AssertStmt, AttrStmt, BufferStore, Evaluate, For, IfThenElse, LetStmt, Stmt, While, seq,
)

from .real import KernelError

if TYPE_CHECKING:
    from ...ir.transform import PassContext
    from ...tir.buffer import Buffer
    from ...tir.function import PrimFunc


_OUTSIDE = "is accessed outside of its elements, of which there are"


def accesses_stay_inside() -> Pass:
    """The pass: assertions before what may access memory outside of a buffer."""
    return function_pass("AccessesStayInside", _checked)


def reported(run: Callable[..., Any]) -> Callable[..., Any]:
    """A host's function whose kernels report an access outside of a buffer as a KernelError."""
    def call(*args: Any) -> Any:
        try:
            return run(*args)
        except (AssertionError, RuntimeError) as error:  # the latter where blocks run in parallel
            kernel, _, what = str(error).partition(": assertion failed: ")
            if _OUTSIDE not in what:
                raise
            raise KernelError(f"kernel {kernel} on the simulated device: {what}") from None

    return call


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
        # statements inside may change memory that the condition has read
        lasts = not any(type(n) is BufferLoad for n in pre_order(node.condition))
        with self.known.constraint_scope(node.condition if lasts else op.const(True)):
            yes = self.visit(node.then_case)
        no = node.else_case
        if no is not None:
            with self.known.constraint_scope(Not(node.condition) if lasts else op.const(True)):
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
        """Assertions that an access is inside, where that is not known."""
        try:
            return self._asserted(buffer, indices, under)
        except (LowerError, KeyError):  # lanes in another order, or vectors with a name
            return []

    def _asserted(self, buffer: Buffer, indices: Sequence[PrimExpr], under: tuple[PrimExpr, ...]
                  ) -> list[Stmt]:
        out: list[Stmt] = []
        for lane in _lanes((*indices, *under)):
            left = [c for index, extent in zip(indices, buffer.shape)
                    for c in _conditions(index, extent, lane) if not self.known.can_prove(c)]
            if not left:
                continue
            inside = op.const(True)
            for condition in left:
                inside = op.logical_and(inside, condition)
            for condition in reversed(under):
                inside = Call("bool", "tir.if_then_else", (
                    _of_lane(condition, lane), inside, op.const(True)))
            size = ", ".join(map(repr, buffer.shape))
            text = f"{buffer.name} {_OUTSIDE} ({size})"
            out.append(AssertStmt(inside, StringImm(text), seq()))
        return out


def _lanes(parts: Sequence[PrimExpr]) -> Sequence[int | None]:
    """The lanes for which an access is looked at one by one; None where its ends tell all."""
    if all(dt.lanes_of(e.dtype) == 1 or type(e) is Ramp for e in parts):
        return (None,)
    return range(max(dt.lanes_of(e.dtype) for e in parts))


def _conditions(index: PrimExpr, extent: PrimExpr, lane: int | None) -> list[PrimExpr]:
    """That an index is inside: of a lane, or of the first and the last."""
    if lane is None and type(index) is Ramp:
        last = IntImm(index.base.dtype, int(index.lanes) - 1)
        ends = [index.base, op.add(index.base, op.mul(index.stride, last))]
    else:
        ends = [_of_lane(index, lane)]
    return [c for e in ends for c in (op.less_equal(IntImm(e.dtype, 0), e),
                                      op.less(e, op.cast(extent, e.dtype)))]


def _of_lane(e: PrimExpr, lane: int | None) -> PrimExpr:
    return e if lane is None or dt.lanes_of(e.dtype) == 1 else Lane(
        "", IntImm("int32", lane), {}).visit(e)


__all__ = ["accesses_stay_inside", "reported"]

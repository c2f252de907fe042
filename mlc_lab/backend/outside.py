"""Accesses of a kernel that may lie outside of their arrays.

Indices that come with the numbers of an array cannot be proved to lie inside. A device does what it
likes with them: OpenCL on a CPU ends the process, WebGPU reads another element. One walk finds them
for all devices; what follows from the loops, threads and conditions around is proved. The others
are looked at when the kernel runs: by assertions on the simulated device (`device/inside.py`), in
the source elsewhere (`source/generator.watched`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ..arith import Analyzer, Extension
from ..ir import dtype as dt
from ..lower.common import LowerError
from ..lower.scalarize_vectors import Lane
from ..tir import expr as E
from ..tir import op
from ..tir import stmt as S
from ..tir.functor import Mutator, Visitor, all_statements, pre_order, substitute, variables_of
from ..tir.op import as_int

if TYPE_CHECKING:
    from ..tir.buffer import Buffer
    from ..tir.function import PrimFunc


class Access(NamedTuple):
    """An access, or a lane of one, that may lie outside."""

    node: E.BufferLoad | S.BufferStore
    #: what it is part of: for a load in the head of a loop or branch, that
    statement: S.Stmt
    #: what is not proved of its indices
    inside: E.PrimExpr
    #: conditions in the statement's expressions under which it is made
    under: tuple[E.PrimExpr, ...]


class _WithoutLets(Mutator):
    """Values in the place of names: what is looked at must be what is written."""

    def visit_Let(self, node: E.Let) -> Any:
        return self.visit(substitute(node.body, {node.var: node.value}))


def without_lets(func: PrimFunc) -> PrimFunc:
    """A kernel whose expressions name no values."""
    return func.with_body(_WithoutLets().visit(func.body))


class _Walk(Visitor):
    """Finds the accesses, under the ranges of the loops and the conditions around them."""

    def __init__(self, func: PrimFunc, concerned: Callable[[Buffer], bool]) -> None:
        self.concerned = concerned
        self.known = Analyzer()
        self.known.enabled_extensions = Extension.TransitivelyProveInequalities
        stored = {s.buffer.data for s in all_statements(func.body) if type(s) is S.BufferStore}
        given = {p for p in func.params if p.dtype == "handle"}
        # arrays that are given may be the same one, unless the function says that they are not
        apart = as_int((func.attrs or {}).get("tir.noalias", 0)) or given.isdisjoint(stored)
        #: memory whose numbers stay what they are while the kernel runs
        self.lasting: set[E.Var] = given - stored if apart else set()
        self.at: Any = None  # the statement
        self.under: tuple[E.PrimExpr, ...] = ()
        self.found: list[Access] = []

    def visit_AttrStmt(self, node: S.AttrStmt) -> None:
        if node.attr_key == "thread_extent" and isinstance(node.node, E.IterVar):
            self._range(node.node.var, op.const(0, node.node.var.dtype), node.value)
        self._parts(node, node.value)
        self.visit(node.body)

    def visit_For(self, node: S.For) -> None:
        self._parts(node, node.min, node.extent)
        self._range(node.loop_var, node.min, node.extent)
        self.visit(node.body)

    def _range(self, var: E.Var, low: E.PrimExpr, extent: E.PrimExpr) -> None:
        self.known.bind(var, E.Range.from_min_extent(low, extent), allow_override=True)

    def visit_LetStmt(self, node: S.LetStmt) -> None:
        self._parts(node, node.value)
        if node.var.dtype in ("int32", "int64") and self._lasts(node.value):
            self.known.bind(node.var, node.value, allow_override=True)
        self.visit(node.body)

    def visit_While(self, node: S.While) -> None:
        self._parts(node, node.condition)
        self.visit(node.body)

    def visit_IfThenElse(self, node: S.IfThenElse) -> None:
        self._parts(node, node.condition)
        # statements inside may change memory that the condition has read
        condition = node.condition if self._lasts(node.condition) else None
        with self._where(condition):
            self.visit(node.then_case)
        if node.else_case is not None:
            with self._where(None if condition is None else op.logical_not(condition)):
                self.visit(node.else_case)

    def visit_AssertStmt(self, node: S.AssertStmt) -> None:
        self._parts(node, node.condition)
        self.visit(node.body)

    def visit_Evaluate(self, node: S.Evaluate) -> None:
        self._parts(node, node.value)

    def visit_BufferStore(self, node: S.BufferStore) -> None:
        self._parts(node, *node.indices, node.value, *filter(None, [node.predicate]))
        self._access(node)

    def _parts(self, s: S.Stmt, *parts: Any) -> None:
        self.at = s
        for part in parts:
            self.visit(part)

    def _lasts(self, e: E.PrimExpr) -> bool:
        """Whether an expression keeps its value while the kernel runs."""
        return not any(type(n) is E.BufferLoad and n.buffer.data not in self.lasting
                       for n in pre_order(e))

    @contextmanager
    def _where(self, condition: E.PrimExpr | None) -> Iterator[None]:
        leave = self.known.enter_constraint(op.const(True) if condition is None else condition)
        yield
        leave()

    def visit_Call(self, node: E.Call) -> None:
        if getattr(node.op, "name", "") != "tir.if_then_else":
            self.visit_children(node)
            return
        condition, then, other = node.args
        self.visit(condition)
        self._under(condition, then)
        self._under(op.logical_not(condition), other)

    def visit_And(self, node: E.And) -> None:
        self.visit(node.a)
        self._under(node.a, node.b)

    def visit_Or(self, node: E.Or) -> None:
        self.visit(node.a)
        self._under(op.logical_not(node.a), node.b)

    def _under(self, condition: E.PrimExpr, e: Any) -> None:
        before, self.under = self.under, (*self.under, condition)
        with self._where(condition):
            self.visit(e)
        self.under = before

    def visit_BufferLoad(self, node: E.BufferLoad) -> None:
        self.visit_children(node)
        self._access(node)

    def _access(self, node: Any) -> None:
        if node.predicate is not None or not self.concerned(node.buffer):
            return
        for lane in _lanes((*node.indices, *self.under)):
            try:
                left = [c for index, extent in zip(node.indices, node.buffer.shape)
                        for c in self._left(index, extent, lane)]
                under = tuple(_of_lane(c, lane) for c in self.under)
            except (LowerError, KeyError):  # lanes in another order, or vectors with a name
                return
            if left:
                self.found.append(Access(node, self.at, op.all(*left), under))

    def _left(self, index: E.PrimExpr, extent: E.PrimExpr, lane: int | None) -> list[E.PrimExpr]:
        """What is not proved of an index of a lane, or of the first lane and the last."""
        if lane is None and type(index) is E.Ramp:
            last = E.IntImm(index.base.dtype, int(index.lanes) - 1)
            ends = [index.base, op.add(index.base, op.mul(index.stride, last))]
        else:
            ends = [_of_lane(index, lane)]
        return [c for e in ends for c in (op.less_equal(E.IntImm(e.dtype, 0), e),
                                          op.less(e, op.cast(extent, e.dtype)))
                if not self.known.can_prove(c)]


def _lanes(parts: Sequence[E.PrimExpr]) -> Sequence[int | None]:
    """The lanes for which an access is looked at one by one; None where its ends tell all."""
    if all(dt.lanes_of(e.dtype) == 1 or type(e) is E.Ramp for e in parts):
        return (None,)
    return range(max(dt.lanes_of(e.dtype) for e in parts))


def _of_lane(e: E.PrimExpr, lane: int | None) -> E.PrimExpr:
    return e if lane is None or dt.lanes_of(e.dtype) == 1 else Lane(
        "", E.IntImm("int32", lane), {}).visit(e)


def accesses_outside(func: PrimFunc, concerned: Callable[[Buffer], bool] = lambda buffer: True
                     ) -> list[Access]:
    """The accesses of the concerned memories that are not proved to lie inside, in the order of the
    program, those of indices first. The kernel must be one without lets in expressions."""
    walk = _Walk(func, concerned)
    walk.visit(func.body)
    return walk.found


def may_be_outside(func: PrimFunc) -> dict[Any, E.PrimExpr]:
    """The accesses of arrays which the kernel is given that may lie outside, each with the number
    of indices that do not; only those whose sizes are numbers or parameters of the kernel."""
    params = set(func.params)
    found = {a.node: a.node.indices[0] for a in accesses_outside(
        func, lambda buffer: buffer.data in params and len(buffer.shape) == 1)}
    sizes = {node: op.sub(node.buffer.shape[0], (as_int(index.lanes) or 1) - 1)
             if type(index) is E.Ramp else node.buffer.shape[0] for node, index in found.items()}
    return {node: size for node, size in sizes.items() if variables_of([size]) <= params}


__all__ = ["Access", "accesses_outside", "may_be_outside", "without_lets"]

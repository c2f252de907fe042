"""ScalarizeVectors: vectors become their lanes, for languages that have no such vectors.

Before::

    A_shared[t * 4:t * 4 + 4] = A[i * 4:i * 4 + 4]          # a copy: stays, where it can
    B[t * 4:t * 4 + 4] = A[t * 4:t * 4 + 4] * T.Broadcast(x, 4)

After::

    A_shared[t * 4:t * 4 + 4] = A[i * 4:i * 4 + 4]
    for lane in T.unroll(4):
        B[t * 4 + lane] = A[t * 4 + lane] * x

A store that copies consecutive elements stays a vector where the language has one of that type and
length, and where the index is provably a multiple of the length if it asks for that. All lanes are
computed before one is stored, in local memory, where the store may change what other lanes read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ..arith import Analyzer
from ..ir import dtype as dt
from ..ir.transform import Pass
from ..tir import op
from ..tir.buffer import Buffer, decl_buffer
from ..tir.expr import (
    Broadcast, BufferLoad, Call, Cast, IterVar, PrimExpr, Ramp, Range, Shuffle, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, pre_order
from ..tir.stmt import (
    EMPTY, TRUE, Allocate, AttrStmt, BufferStore, DeclBuffer, For, ForKind, IfThenElse, LetStmt,
    Stmt, seq,
)
from .common import LowerError, bind_loop, function_pass

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class Lane(Mutator):
    """One lane of an expression."""

    def __init__(self, name: str, lane: PrimExpr, memories: dict[Var, Buffer]) -> None:
        super().__init__()
        self.name, self.lane, self.memories = name, lane, memories

    def visit(self, node: Any) -> Any:
        if not isinstance(node, PrimExpr) or dt.lanes_of(node.dtype) == 1:
            return node
        return super().visit(node)

    def visit_Var(self, node: Var) -> PrimExpr:
        return BufferLoad(self.memories[node], (self.lane,))

    def visit_Ramp(self, node: Ramp) -> PrimExpr:
        return op.add(node.base, op.mul(op.cast(self.lane, node.base.dtype), node.stride))

    def visit_Broadcast(self, node: Broadcast) -> PrimExpr:
        return node.value

    def visit_Shuffle(self, node: Shuffle) -> PrimExpr:
        raise LowerError(f"{self.name}: lanes are put in another order, which is not written for "
                         f"GPUs: {node!r}")

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        new = BufferLoad(node.buffer, tuple(self.visit(i) for i in node.indices))
        if node.predicate is None:
            return new
        return op.if_then_else(self.visit(node.predicate), new, op.const(0, new.dtype))

    def visit_Cast(self, node: Cast) -> PrimExpr:
        return Cast(dt.element_of(node.dtype), self.visit(node.value))

    def visit_Call(self, node: Call) -> PrimExpr:
        if getattr(node.op, "name", "") in ("tir.vectorlow", "tir.vectorhigh", "tir.vectorcombine"):
            raise LowerError(f"{self.name}: halves of vectors are not written for GPUs: {node!r}")
        return Call(dt.element_of(node.dtype), node.op, tuple(map(self.visit, node.args)))


class _Scalarize(Mutator):
    def __init__(self, name: str, types: Collection[str], lanes: Collection[int], aligned: bool
                 ) -> None:
        super().__init__()
        self.name, self.types, self.lanes, self.aligned = name, types, lanes, aligned
        self.analyzer = Analyzer()
        self.memories: dict[Var, Buffer] = {}

    def visit(self, node: Any) -> Any:
        """Expressions are rewritten with the statements that they are in."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_For(self, node: For) -> Stmt:
        bind_loop(self.analyzer, node)
        return super().visit_For(node)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if isinstance(node.node, IterVar):
            self.analyzer.bind(node.node.var, Range.from_min_extent(
                op.const(0, node.node.var.dtype), node.value), True)
        return self.default(node)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        """A vector by name is kept in memory of its own."""
        lanes = dt.lanes_of(node.var.dtype)
        if lanes == 1:
            return self.default(node)
        memory = self.memories[node.var] = decl_buffer(
            (lanes,), dt.element_of(node.var.dtype), node.var.name, scope="local")
        return _own(memory, seq(self._each(memory, Ramp(op.const(0), op.const(1), lanes),
                                           node.value, None), self.visit(node.body)))

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        (index,) = node.indices
        lanes = max(dt.lanes_of(index.dtype), dt.lanes_of(node.value.dtype))
        if lanes == 1:
            return node
        if self._is_copy(node):
            return node
        before = [x for x in pre_order(node.value) if type(x) is BufferLoad
                  and x.buffer.data is node.buffer.data]
        if all(type(x.indices[0]) is Ramp and self._same(x.indices[0], index) for x in before):
            return self._each(node.buffer, index, node.value, node.predicate)
        memory = decl_buffer((lanes,), dt.element_of(node.value.dtype), "lanes", scope="local")
        whole = Ramp(op.const(0), op.const(1), lanes)
        return _own(memory, seq(
            self._each(memory, whole, node.value, None),
            self._each(node.buffer, index, BufferLoad(memory, (whole,)), node.predicate)))

    def _same(self, a: PrimExpr, b: PrimExpr) -> bool:
        return type(a) is Ramp and type(b) is Ramp and (
            self.analyzer.can_prove_equal(a.base, b.base)
            and self.analyzer.can_prove_equal(a.stride, b.stride))

    def _each(self, buffer: Buffer, index: PrimExpr, value: PrimExpr, predicate: PrimExpr | None
              ) -> Stmt:
        lanes = max(dt.lanes_of(index.dtype), dt.lanes_of(value.dtype))
        var = Var("lane", "int32")
        lane = Lane(self.name, var, self.memories)
        body: Stmt = BufferStore(buffer, lane.visit(value), (lane.visit(index),))
        if predicate is not None:
            body = IfThenElse(lane.visit(predicate), body)
        return For(var, 0, lanes, ForKind.UNROLLED, body)

    def _is_copy(self, node: BufferStore) -> bool:
        value = node.value
        if node.predicate is not None or node.buffer.dtype not in self.types:
            return False
        if type(value) is not BufferLoad or value.predicate is not None:
            return False
        if value.buffer.dtype != node.buffer.dtype:
            return False
        return all(self._is_row(i) for i in (node.indices[0], value.indices[0]))

    def _is_row(self, index: PrimExpr) -> bool:
        if type(index) is not Ramp or index.lanes not in self.lanes or op.as_int(index.stride) != 1:
            return False
        return not self.aligned or self.analyzer.can_prove_equal(
            op.floormod(index.base, op.const(index.lanes, index.base.dtype)), 0)


def _own(memory: Buffer, body: Stmt) -> Stmt:
    """Memory of one thread around a body."""
    return Allocate.from_fields(memory.data, memory.dtype, memory.shape, TRUE,
                                DeclBuffer.from_fields(memory, body), EMPTY)


def ScalarizeVectors(types: Collection[str] = (), lanes: Collection[int] = (), aligned: bool = True
                     ) -> Pass:
    """Turn vectors into their lanes, for languages that have no such vectors.

    Copies of `types` in vectors of so many `lanes` stay.
    """
    def rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        """A function without vectors."""
        name = str(func.attrs.get("global_symbol", "main"))
        return func.with_body(_Scalarize(name, types, lanes, aligned).visit(func.body))

    return function_pass("ScalarizeVectors", rewrite)

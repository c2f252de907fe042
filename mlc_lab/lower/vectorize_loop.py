"""VectorizeLoop: a vectorized loop becomes statements on vectors.

Before::

    for j in T.vectorized(4):
        C[i * 4 + j] = A[i * 4 + j] + B[i]

After::

    C[i * 4:i * 4 + 4] = A[i * 4:i * 4 + 4] + T.Broadcast(B[i], 4)

The loop variable becomes a Ramp; what depends on it becomes a vector, what does not stays a scalar
and is broadcast where it meets one. A statement that has no vector form (a branch or a loop bound
that differs between lanes, a call with effects, an update of one element by all lanes) stays a
serial loop over the lanes; where lanes leave a loop at different times, each does the loop by
itself. Memory that is allocated inside becomes wider, a part for each lane:
element e of lane l lies at e * lanes + l. Memory of another scope, such as a thread's registers, is
not widened: the lanes use it one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir import dtype as dt
from ..ir.structural import structural_equal
from ..ir.transform import Pass
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import (
    Add, BinaryOp, Broadcast, BufferLoad, Call, Cast, IntImm, Let, Mul, Not, PrimExpr,
    Ramp, Select, Shuffle, Sub, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements, leaves_loop, pre_order, substitute
from ..tir.op import PURE, as_int, const, effect_of
from ..tir.stmt import (
    EMPTY, Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate,
    For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, seq,
)
from .common import function_pass, lane_arithmetic, start_of

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext


class _NoVector(Exception):
    """This statement has no vector form."""


_RAMPS = (Add, Sub, Mul)
#: calls that take scalars only
_SCALAR_CALLS = {"tir.call_extern", "tir.call_pure_extern", "tir.call_llvm_intrin",
                 "tir.call_llvm_pure_intrin"}


class _Vectorizer(Mutator):
    """Rewrites the body of one vectorized loop."""

    def __init__(self, var: Var, low: PrimExpr, lanes: int) -> None:
        super().__init__()
        self.var, self.low, self.lanes = var, low, lanes
        self.ramp = Ramp(low, const(1, var.dtype), lanes)
        self.lets: dict[Var, Var] = {}

    # ---------------------------------------------------------------- expressions

    def wide(self, e: PrimExpr) -> PrimExpr:
        """An expression with all lanes."""
        have = dt.lanes_of(e.dtype)
        if have == self.lanes:
            return e
        if have != 1:
            raise _NoVector("vectors of two widths")
        return Broadcast(e, self.lanes)

    def is_vector(self, e: PrimExpr) -> bool:
        return dt.lanes_of(e.dtype) > 1

    def visit_Var(self, node: Var) -> PrimExpr:
        if node is self.var:
            return self.ramp
        return self.lets.get(node, node)

    def _binary(self, node: BinaryOp) -> PrimExpr:
        a, b = self.visit(node.a), self.visit(node.b)
        if a is node.a and b is node.b:
            return node
        if self.is_vector(node.a) or self.is_vector(node.b):
            raise _NoVector("a vector inside of a vectorized loop")
        kind = type(node)
        if kind in _RAMPS and not dt.is_float(node.a.dtype):
            ramp = lane_arithmetic(kind, a, b)
            if ramp is not None:
                return ramp
        if self.is_vector(a) or self.is_vector(b):
            return kind(self.wide(a), self.wide(b))
        return kind(a, b)

    visit_BinaryOp = _binary
    visit_CmpOp = _binary
    visit_And = _binary
    visit_Or = _binary

    def visit_Not(self, node: Not) -> PrimExpr:
        a = self.visit(node.a)
        return node if a is node.a else Not(a)

    def visit_Cast(self, node: Cast) -> PrimExpr:
        value = self.visit(node.value)
        if value is node.value:
            return node
        return Cast(dt.with_lanes(node.dtype, dt.lanes_of(value.dtype)), value)

    def visit_Select(self, node: Select) -> PrimExpr:
        parts = [self.visit(e) for e in (node.condition, node.true_value, node.false_value)]
        if all(a is b for a, b in zip(parts, node.children())):
            return node
        if self.is_vector(parts[0]):
            return Select(*map(self.wide, parts))
        return Select(parts[0], self.wide(parts[1]), self.wide(parts[2]))

    def visit_Ramp(self, node: Ramp) -> PrimExpr:
        return self._fixed(node)

    def visit_Broadcast(self, node: Broadcast) -> PrimExpr:
        return self._fixed(node)

    def visit_Shuffle(self, node: Shuffle) -> PrimExpr:
        return self._fixed(node)

    def _fixed(self, node: PrimExpr) -> PrimExpr:
        new = self.default(node)
        if new is not node:
            raise _NoVector("a vector inside of a vectorized loop")
        return node

    def visit_Let(self, node: Let) -> PrimExpr:
        value = self.visit(node.value)
        if not self.is_vector(value):
            body = self.visit(node.body)
            return node if value is node.value and body is node.body else Let(
                node.var, value, body)
        var = self.lets[node.var] = Var(node.var.name, value.dtype)
        return Let(var, value, self.visit(node.body))

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        indices = tuple(self.visit(i) for i in node.indices)
        if all(a is b for a, b in zip(indices, node.indices)):
            return node
        if dt.lanes_of(node.buffer.dtype) > 1 or node.predicate is not None:
            raise _NoVector("vectors of vectors")
        return BufferLoad(node.buffer, self._lanes(indices))

    def _lanes(self, indices: tuple) -> tuple:
        """Indices whose last one is a vector."""
        if any(self.is_vector(i) for i in indices[:-1]):
            raise _NoVector("an outer index differs between lanes")
        return indices

    def visit_Call(self, node: Call) -> PrimExpr:
        args = tuple(self.visit(a) if isinstance(a, PrimExpr) else a for a in node.args)
        changed = not all(a is b for a, b in zip(args, node.args))
        name = getattr(node.op, "name", "")
        if effect_of(node) != PURE:
            raise _NoVector(f"{name} has effects")
        if not changed:
            return node
        if name in _SCALAR_CALLS:
            raise _NoVector(f"{name} takes scalars")
        if name == "tir.if_then_else":
            return self._if_then_else(node, args)
        if name == "tir.likely":
            return args[0]
        return Call(dt.with_lanes(node.dtype, self.lanes), node.op, tuple(map(self.wide, args)),
                    node.annotations)

    def _if_then_else(self, node: Call, args: tuple) -> PrimExpr:
        condition, t, f = args
        if self.is_vector(condition):
            if not (_harmless(node.args[1]) and _harmless(node.args[2])):
                raise _NoVector("lanes take different sides of if_then_else")
            return Select(condition, self.wide(t), self.wide(f))
        t, f = self.wide(t), self.wide(f)
        return Call(t.dtype, node.op, (condition, t, f), node.annotations)

    # ---------------------------------------------------------------- statements

    def stmt(self, s: Stmt) -> Stmt:
        """A statement for all lanes: in vectors, or lane by lane where that cannot be."""
        lets = dict(self.lets)
        try:
            return self.visit(s)
        except _NoVector:
            if leaves_loop(s):
                raise  # it would leave the loop over the lanes: they do the loop around it in turn
            self.lets = lets
            return self.scalar(s)

    def scalar(self, s: Stmt) -> Stmt:
        """The lanes one after the other."""
        if self.lets:
            raise _NoVector("a vector value is in scope")
        lane = Var(f"{self.var.name}_s", self.var.dtype)
        return For(lane, self.low, const(self.lanes, self.var.dtype), ForKind.SERIAL,
                   substitute(s, {self.var: lane}))

    def visit_Allocate(self, node: Allocate) -> Stmt:
        plain = node.buffer_var.storage_scope == "global" and len(node.extents) == 1
        if not plain or self.visit(node.extents[0]) is not node.extents[0] or _is_passed_on(
                node.buffer_var, node.body):
            raise _NoVector("memory allocated in a vectorized loop")
        lane = op.sub(self.var, self.low)
        body = self.stmt(_InLane(node.buffer_var, lane, self.lanes).visit(node.body))
        return node.replace(extents=(op.mul(node.extents[0], self.lanes),), body=body)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        value = self.visit(node.value)
        indices = tuple(self.visit(i) for i in node.indices)
        same_place = all(a is b for a, b in zip(indices, node.indices))
        if same_place:
            if value is node.value and not _loads(node.value, node.buffer):
                return node  # every lane stores the same: once is enough
            raise _NoVector("all lanes store to one place")
        if dt.lanes_of(node.buffer.dtype) > 1 or node.predicate is not None:
            raise _NoVector("vectors of vectors")
        for item in pre_order(node.value):
            if type(item) is BufferLoad and item.buffer.data is node.buffer.data:
                if not all(structural_equal(a, b, True) is True
                           for a, b in zip(item.indices, node.indices)):
                    self._independent(item, node)
        return BufferStore(node.buffer, self.wide(value), self._lanes(indices))

    def _independent(self, load: BufferLoad, store: BufferStore) -> None:
        """Raise unless no lane reads what another lane of the statement writes."""
        distance = as_int(_difference(load.indices[-1], store.indices[-1]))
        if len(load.indices) != 1 or distance is None or 0 < abs(distance) < self.lanes:
            raise _NoVector("lanes may read what others write")

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        new = [self.stmt(s) for s in node.seq]
        return node if all(a is b for a, b in zip(new, node.seq)) else seq(*new)

    def visit_For(self, node: For) -> Stmt:
        low, extent = self.visit(node.min), self.visit(node.extent)
        if low is not node.min or extent is not node.extent:
            raise _NoVector("the loop's bounds differ between lanes")
        if node.kind is ForKind.VECTORIZED:
            raise _NoVector("a vectorized loop inside of another")
        body = self.stmt(node.body)
        return node if body is node.body else node.replace(body=body)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        condition = self.visit(node.condition)
        if self.is_vector(condition) or condition is not node.condition:
            raise _NoVector("lanes take different branches")
        then = self.stmt(node.then_case)
        other = self.stmt(node.else_case) if node.else_case is not None else None
        if then is node.then_case and other is node.else_case:
            return node
        return IfThenElse(condition, then, other)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        value = self.visit(node.value)
        if not self.is_vector(value):
            body = self.stmt(node.body)
            return node if body is node.body and value is node.value else LetStmt.from_fields(
                node.var, value, body)
        var = self.lets[node.var] = Var(node.var.name, value.dtype)
        body = self.visit(node.body)  # if it fails, the let itself is done lane by lane
        del self.lets[node.var]
        return LetStmt.from_fields(var, value, body)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        value, body = self.visit(node.value), self.stmt(node.body)
        if value is not node.value:
            raise _NoVector("an attribute differs between lanes")
        return node if body is node.body else node.replace(body=body)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        body = self.stmt(node.body)
        return node if body is node.body else DeclBuffer.from_fields(node.buffer, body)

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        if type(node.value) is IntImm or leaves_loop(node):  # all lanes leave the loop together
            return node
        raise _NoVector("a call for its effect is done for each lane")

    def _never(self, node: Stmt) -> Stmt:
        raise _NoVector(f"{type(node).__name__} in a vectorized loop")

    visit_AllocateConst = visit_While = visit_AssertStmt = visit_Block = _never


class _InLane(Mutator):
    """Redirects accesses of memory that is allocated once a lane to the part of one lane."""

    def __init__(self, pointer: Var, lane: PrimExpr, lanes: int) -> None:
        super().__init__()
        self.pointer, self.lane, self.lanes = pointer, lane, lanes

    def visit_buffer(self, buffer: Buffer) -> Buffer:
        if buffer.data is not self.pointer:
            return buffer
        if buffer not in self.buffers:
            if len(buffer.shape) != 1 or buffer.strides:
                raise _NoVector("memory of the lanes is flat")
            self.buffers[buffer] = buffer.replace(shape=(op.mul(buffer.shape[0], self.lanes),))
        return self.buffers[buffer]

    def visit_buffer_def(self, buffer: Buffer) -> Buffer:
        return self.visit_buffer(buffer)

    def _placed(self, node: BufferLoad | BufferStore) -> Any:
        new = self.default(node)
        if node.buffer.data is not self.pointer:
            return new
        index = new.indices[0]
        at = op.add(op.mul(index, self.lanes), op.cast(self.lane, index.dtype))
        return new.replace(buffer=self.visit_buffer(node.buffer), indices=(at,))

    visit_BufferLoad = visit_BufferStore = _placed


def _is_passed_on(pointer: Var, body: Stmt) -> bool:
    """Whether a pointer is used otherwise than by loads and stores."""
    for item in pre_order(body):
        if item is pointer:
            return True
        if type(item) is Call and any(type(a) is BufferLoad and a.buffer.data is pointer
                                      for a in item.args) and effect_of(item) != PURE:
            return True
    return False


def _returns(body: Stmt) -> bool:
    return any(type(n) is Evaluate and type(n.value) is Call and (
        getattr(n.value.op, "name", "") == "tir.ret") for n in all_statements(body))


def _loads(value: PrimExpr, buffer: Buffer) -> bool:
    return any(type(item) is BufferLoad and item.buffer.data is buffer.data
               for item in pre_order(value))


def _harmless(e: PrimExpr) -> bool:
    """Whether an expression may be computed where it is not needed: it reads no memory and
    divides nothing."""
    for item in pre_order(e):
        if type(item) in (BufferLoad, Call) or type(item).__name__ in (
                "Div", "Mod", "FloorDiv", "FloorMod"):
            return False
    return True


def _difference(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    from ..arith import Analyzer

    if a.dtype != b.dtype or "x" in a.dtype:
        return Var("unknown")
    return Analyzer().simplify(op.sub(a, b))


class _Vectorize(Mutator):
    def visit(self, node: Node) -> Any:
        """Only statements hold loops."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_For(self, node: For) -> Stmt:
        body = self.visit(node.body)
        if node.kind is not ForKind.VECTORIZED:
            return node if body is node.body else node.replace(body=body)
        lanes = as_int(node.extent)
        if lanes is None or lanes == 1:
            return For.from_fields(node.loop_var, node.min, node.extent, ForKind.SERIAL, body,
                                   None, EMPTY)
        start, around = start_of(node)
        vectorizer = _Vectorizer(node.loop_var, start, lanes)
        if leaves_loop(body) or _returns(body):  # then the next lanes do nothing
            return around(vectorizer.scalar(body))
        return around(vectorizer.stmt(body))


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Vectors in place of vectorized loops."""
    if ctx.config.get("tir.disable_vectorize"):
        return func.with_body(_Serial().visit(func.body))
    return func.with_body(_Vectorize().visit(func.body))


class _Serial(Mutator):
    def visit_For(self, node: For) -> Stmt:
        new = self.default(node)
        return new.replace(kind=ForKind.SERIAL) if new.kind is ForKind.VECTORIZED else new


def VectorizeLoop() -> Pass:
    """Make the statements of a vectorized loop statements on vectors."""
    return function_pass("VectorizeLoop", _rewrite)



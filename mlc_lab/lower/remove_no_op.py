"""RemoveNoOp: statements that do nothing are removed.

Before::

    for i in range(8):
        T.evaluate(0)
    B = T.allocate([16], "float32")
    C[0] = 1.0

After::

    C[0] = 1.0

Also: loops without iterations, branches without statements, unused lets and allocations, and stores
of what is there already (`A[i] = A[i]`). A let whose value has an effect leaves that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..arith import Analyzer
from ..ir.transform import Pass
from ..tir.expr import BufferLoad, Call, IntImm, PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, pre_order
from ..tir.op import PURE, READS, as_int, effect_of, less_equal, logical_not
from ..tir.stmt import (
    Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, IfThenElse, LetStmt, SeqStmt,
    Stmt, seq,
)
from .common import bind_loop, function_pass, steady_scope
from .simplify import NO_OP

if TYPE_CHECKING:
    from ..ir.transform import PassContext


def _does_nothing(s: Any) -> bool:
    if s is None or s is NO_OP:
        return True
    if type(s) is not Evaluate:
        return False
    return _without_effect(s.value)


def _without_effect(e: PrimExpr) -> bool:
    return all(type(item) is not Call or effect_of(item) in (PURE, READS) for item in pre_order(e))


def stores_what_is_there(store: BufferStore, analyzer: Analyzer) -> bool:
    """Whether a store puts an element back where it was read."""
    load = store.value
    return isinstance(load, BufferLoad) and load.buffer is store.buffer and (
        store.predicate is None and load.predicate is None) and all(
        _without_effect(i) and (i is j or i.dtype == j.dtype and analyzer.can_prove_equal(i, j))
        for i, j in zip(load.indices, store.indices))


class _RemoveNoOp(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.used: set[Var] = set()
        self.pointers: set[Var] = set()  # names that the program gives to memory
        self.analyzer = Analyzer()

    def visit_Var(self, node: Var) -> PrimExpr:
        self.used.add(node)
        return node

    def visit_IntImm(self, node: IntImm) -> PrimExpr:
        return node

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        self.used.add(node.buffer.data)
        return self.default(node)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        if stores_what_is_there(node, self.analyzer):
            return NO_OP
        self.used.add(node.buffer.data)
        return self.default(node)

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        if _does_nothing(node):
            return NO_OP
        for item in pre_order(node.value):
            if type(item) is Call:
                self.used.update(a.data for a in item.args if hasattr(a, "data"))
        return self.default(node)

    def visit_For(self, node: For) -> Stmt:
        if (count := as_int(node.extent)) is not None and count <= 0:
            return NO_OP
        if self.analyzer.can_prove(less_equal(node.extent, 0)):
            return NO_OP
        bind_loop(self.analyzer, node, self.pointers)
        body = self.visit(node.body)
        if _does_nothing(body):
            return NO_OP
        self.visit(node.min)
        self.visit(node.extent)
        return node if body is node.body else node.replace(body=body)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        then = self._under(node.condition, node.then_case)
        other = None
        if node.else_case is not None:
            negated = self.analyzer.simplify(logical_not(node.condition))
            other = self._under(negated, node.else_case)
        if _does_nothing(other):
            other = None
        condition = self.visit(node.condition)
        if _does_nothing(then):
            if other is None:
                return NO_OP if _without_effect(condition) else Evaluate(condition)
            return IfThenElse(logical_not(condition), other)
        if then is node.then_case and other is node.else_case:
            return node
        return IfThenElse(condition, then, other)

    def _under(self, condition: PrimExpr, node: Stmt) -> Stmt:
        """`node` rewritten where `condition` holds, as far as it holds to the end of `node`."""
        with steady_scope(self.analyzer, condition, node, self.pointers):
            return self.visit(node)

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        new = [self.visit(s) for s in node.seq]
        kept = [s for s in new if not _does_nothing(s)]
        if not kept:
            return NO_OP
        if len(kept) == len(new) and all(a is b for a, b in zip(new, node.seq)):
            return node
        return seq(*kept)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        if node.var.dtype == "handle":
            self.pointers.add(node.var)
        if not any(type(e) in (BufferLoad, Call) for e in pre_order(node.value)):
            self.analyzer.bind(node.var, node.value, True)
        body = self.visit(node.body)
        if _does_nothing(body) and _without_effect(node.value):
            return NO_OP
        if node.var not in self.used and _without_effect(node.value):
            return body
        value = self.visit(node.value)
        if node.var not in self.used:
            effect = Evaluate(value)
            return effect if _does_nothing(body) else seq(effect, body)
        return node if body is node.body and value is node.value else LetStmt.from_fields(
            node.var, value, body)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        body = self.visit(node.body)
        if _does_nothing(body):
            return NO_OP
        self.visit(node.value)
        return node if body is node.body else node.replace(body=body)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        body = self.visit(node.body)
        if _does_nothing(body):
            return NO_OP
        if node.buffer.data not in self.used:
            return body
        return node if body is node.body else DeclBuffer.from_fields(node.buffer, body)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        body = self.visit(node.body)
        if _does_nothing(body):
            return NO_OP
        if node.buffer_var not in self.used:
            return body
        return node if body is node.body else node.replace(body=body)


def without_no_ops(body: Stmt) -> Stmt:
    """A statement without the parts that do nothing."""
    return _RemoveNoOp().visit(body)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Only statements that do something."""
    return func.with_body(_RemoveNoOp().visit(func.body))


def RemoveNoOp() -> Pass:
    """Remove statements that do nothing."""
    return function_pass("RemoveNoOp", _rewrite)

"""LiftAttrScope: an attribute that all statements of a scope are under is said once, around them.

Before, of `LiftAttrScope("pragma")`::

    for i in range(8):
        with T.attr(x, "pragma", 1):
            A[i] = 0.0
        with T.attr(x, "pragma", 1):
            B[i] = 0.0

After::

    with T.attr(x, "pragma", 1):
        for i in range(8):
            A[i] = 0.0
            B[i] = 0.0

Neighbours that are under the same attribute are joined where others are not. It stays within
allocations, and within what binds a variable of its value.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..ir.node import Node
from ..ir.structural import structural_equal
from ..ir.transform import Pass
from ..tir.expr import PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, pre_order
from ..tir.stmt import (
    Allocate, AllocateConst, AttrStmt, Block, For, IfThenElse, LetStmt, SeqStmt, Stmt, While, seq,
)
from .common import function_pass

if TYPE_CHECKING:
    from ..ir.transform import PassContext

#: the node and the value of an attribute
_Scope = tuple[Any, PrimExpr]


def _same(a: _Scope | None, b: _Scope | None) -> bool:
    if a is None or b is None:
        return a is b
    return (a[0] is b[0] or bool(structural_equal(a[0], b[0]))) and bool(
        structural_equal(a[1], b[1]))


class _Lift(Mutator):
    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        #: what the statement that was visited last is under, and was taken off
        self.lifted: _Scope | None = None

    def under(self, scope: _Scope | None, body: Stmt) -> Stmt:
        """A statement under an attribute."""
        return body if scope is None else AttrStmt(scope[0], self.key, scope[1], body)

    def inside(self, stmt: Stmt) -> Stmt:
        """A statement with the attribute of its body kept there."""
        new = self.visit(stmt)
        scope, self.lifted = self.lifted, None
        return self.under(scope, new)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != self.key:
            return self.default(node)
        self.lifted = node.node, node.value
        return node.body

    def _around(self, node: Allocate | AllocateConst | Block | While) -> Any:
        return node.replace(body=self.inside(node.body))

    visit_Allocate = visit_AllocateConst = visit_Block = visit_While = _around

    def _binds(self, node: For | LetStmt, var: Var) -> Stmt:
        body = self.visit(node.body)
        if self.lifted is not None and any(
                part is var for said in self.lifted if isinstance(said, Node)
                for part in pre_order(said)):
            body, self.lifted = self.under(self.lifted, body), None
        return node if body is node.body else node.replace(body=body)

    def visit_For(self, node: For) -> Stmt:
        return self._binds(node, node.loop_var)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        return self._binds(node, node.var)

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        parts: list[tuple[_Scope | None, Stmt]] = []
        for stmt in node.seq:
            self.lifted = None
            new = self.visit(stmt)
            parts.append((self.lifted, new))
        if all(_same(scope, parts[0][0]) for scope, _ in parts):
            self.lifted = parts[0][0]
            return seq(*(stmt for _, stmt in parts))
        self.lifted, numbers = None, [0]
        for (before, _), (scope, _) in zip(parts, parts[1:]):
            numbers.append(numbers[-1] + (not _same(before, scope)))
        groups = groupby(zip(numbers, parts), key=lambda item: item[0])
        runs = [[part for _, part in group] for _, group in groups]
        return seq(*(self.under(run[0][0], seq(*(stmt for _, stmt in run))) for run in runs))

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        if node.else_case is None:
            then_case = self.visit(node.then_case)
            return node if then_case is node.then_case else node.replace(then_case=then_case)
        self.lifted = None
        then_case = self.visit(node.then_case)
        scope, self.lifted = self.lifted, None
        else_case = self.visit(node.else_case)
        if not _same(scope, self.lifted):
            then_case, else_case = self.under(scope, then_case), self.under(self.lifted, else_case)
            self.lifted = None
        return node.replace(then_case=then_case, else_case=else_case)


def LiftAttrScope(attr_key: str) -> Pass:
    """The attribute `attr_key` is said around as much as is under it."""

    def rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        if not any(type(s) is AttrStmt and s.attr_key == attr_key for s in pre_order(func.body)):
            return func
        return func.with_body(_Lift(attr_key).inside(func.body))

    rewrite.__doc__ = LiftAttrScope.__doc__
    return function_pass("LiftAttrScope", rewrite)


__all__ = ["LiftAttrScope"]

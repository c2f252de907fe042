"""HoistExpression: what a loop does not change is computed before it, wherever in it that stands.

Before::

    for i, j, k in T.grid(4, 4, 4):
        if j < 3 and i < 2:
            A[i, j] = 0.0

After::

    for i in range(4):
        if i < 2:
            for j in range(4):
                if j < 3:
                    for k in range(4):
                        A[i, j] = 0.0

Conditions of statements and of `T.if_then_else` are decided before the outermost loop that they do
not depend on, each operand of `and` and `or` by itself; the loop is then there twice, once for
either answer. Values that have a name leave the loop as well. Only arithmetic of variables leaves a
loop: no loads, calls or divisions that might fail.

`PassContext(config={"tir.HoistExpression": {"hoisted_conditionals": ..., "hoisted_let_bindings":
...}})` says what is hoisted, in flags of HoistedConditionals and HoistedLetBindings; all is, if
nothing is said. This pass is not among those of a build.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Flag
from typing import TYPE_CHECKING, Any

from ..ir.node import Node
from ..arith import Analyzer
from ..ir.structural import structural_equal
from ..ir.transform import Pass
from ..tir.expr import (
    And, BufferLoad, Call, Div, FloorDiv, FloorMod, IntImm, IterVar, Let, Mod, Not, Or, PrimExpr,
    Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, free_vars, pre_order
from ..tir.op import all as all_of
from ..tir.op import any as any_of
from ..tir.op import as_int, logical_not
from ..tir.stmt import AttrStmt, Block, Evaluate, For, IfThenElse, LetStmt, SeqStmt, Stmt, seq
from .common import function_pass
from .convert_ssa import bound_once, bound_variables
from .simplify import NO_OP

if TYPE_CHECKING:
    from ..ir.transform import PassContext

#: conditions of one function that are hoisted: each may double what is inside of it
_MOST = 12


class HoistedConditionals(Flag):
    """Which conditions leave loops."""

    Never = 0
    IfElseStmt = 1
    IfElseExpr = 2
    BooleanExpression = 4
    UsingBlockVar = 8
    All = 15


class HoistedLetBindings(Flag):
    """Which names of values leave loops."""

    Never = 0
    RequiredByConditional = 1
    LetStmt = 2
    LetExpr = 4
    All = 7


def _is_plain(e: PrimExpr) -> bool:
    """Whether an expression can be computed anywhere that its variables are known."""
    return not any(isinstance(n, (BufferLoad, Call, Let)) or (
        isinstance(n, (Div, Mod, FloorDiv, FloorMod)) and not as_int(n.b)) for n in pre_order(e))


def _is_launch(stmt: object) -> bool:
    return isinstance(stmt, AttrStmt) and stmt.attr_key in ("thread_extent", "virtual_thread")


class _Hoist:
    def __init__(self, conditionals: HoistedConditionals, lets: HoistedLetBindings) -> None:
        self.conditionals, self.lets = conditionals, lets
        self.threads: set[Var] = set()
        self.hoisted = 0

    def visit(self, stmt: Any) -> Any:
        """A statement after hoisting in it, and out of it where it is a loop."""
        if _is_launch(stmt):
            if isinstance(stmt.node, IterVar):
                self.threads.add(stmt.node.var)
        across = HoistedConditionals.UsingBlockVar in self.conditionals
        if isinstance(stmt, For) or _is_launch(stmt) and across:
            return self.out_of(stmt)
        return self.inside(stmt)

    def inside(self, stmt: Stmt) -> Any:
        return stmt.map_children(lambda c: self.visit(c) if isinstance(c, Stmt) else c)

    def out_of(self, loop: For) -> Any:
        """A loop with what can leave it before it."""
        own = bound_variables(loop)
        if isinstance(loop, For):
            found = self.binding(loop, own)
            if found is not None:
                var, value, rest = found
                return LetStmt(var, value, self.out_of(rest))
        condition = next(self.conditions(loop, own), None) if self.hoisted < _MOST else None
        if condition is None:
            return self.inside(loop)
        self.hoisted += 1
        yes, no = (_Assume(condition, truth).visit(loop) for truth in (True, False))
        no = None if no is NO_OP else bound_once(no, set(own))
        yes, other = self.visit(yes), None if no is None else self.visit(no)
        if yes is NO_OP:
            return NO_OP if other is None else IfThenElse(logical_not(condition), other)
        return IfThenElse(condition, yes, other)

    # ------------------------------------------------------------------- what can leave

    def leaves(self, e: PrimExpr, own: set[Var]) -> bool:
        """Whether an expression can be computed before a loop that binds `own`."""
        used = set(free_vars(e))
        return bool(used) and used.isdisjoint(own) and _is_plain(e)

    def conditions(self, loop: For, own: set[Var]) -> Iterator[PrimExpr]:
        """Conditions in a loop that can be decided before it."""
        kinds = self.conditionals
        for item in pre_order(loop.body):
            found = None
            if isinstance(item, IfThenElse) and HoistedConditionals.IfElseStmt in kinds:
                found = item.condition
            elif isinstance(item, Call) and getattr(item.op, "name", "") == "tir.if_then_else" and (
                    HoistedConditionals.IfElseExpr in kinds):
                found = item.args[0]
            if found is None or found.dtype != "bool":
                continue
            for part in self.parts(found):
                if self.leaves(part, own) and (
                        HoistedConditionals.UsingBlockVar in kinds
                        or self.threads.isdisjoint(free_vars(part))):
                    yield part

    def parts(self, condition: PrimExpr) -> Iterator[PrimExpr]:
        """A condition, and the operands of and, or and not in it, if they are to be split."""
        split = HoistedConditionals.BooleanExpression in self.conditionals
        if split and isinstance(condition, (And, Or)):
            yield from self.parts(condition.a)
            yield from self.parts(condition.b)
        elif split and isinstance(condition, Not):
            yield from self.parts(condition.a)
        else:
            yield condition

    def binding(self, loop: For, own: set[Var]) -> tuple[Var, PrimExpr, For] | None:
        """A name in a loop whose value can be computed before it, and the loop without it."""
        wanted: set[Var] = set()
        if HoistedLetBindings.RequiredByConditional in self.lets:
            wanted = {v for item in pre_order(loop.body) if isinstance(item, IfThenElse)
                      for v in free_vars(item.condition)}
        for item in pre_order(loop.body):
            if not isinstance(item, (LetStmt, Let)) or item.var.dtype == "handle":
                continue
            flag = HoistedLetBindings.LetStmt if isinstance(item, LetStmt) else (
                HoistedLetBindings.LetExpr)
            if (flag in self.lets or item.var in wanted) and self.leaves(item.value, own):
                rest = _Without(item).visit(loop)
                return item.var, item.value, rest
        return None


class _Without(Mutator):
    """Takes one binding away; its variable is bound outside."""

    def __init__(self, binding: object) -> None:
        super().__init__()
        self.binding = binding

    def visit(self, node: Any) -> Any:
        return super().visit(node.body if node is self.binding else node)


class _Assume(Mutator):
    """Rewrites statements for one answer to a condition."""

    def __init__(self, condition: PrimExpr, truth: bool) -> None:
        super().__init__()
        self.condition, self.truth = condition, truth
        self.analyzer = Analyzer()
        self.analyzer.enter_constraint(condition if truth else self.analyzer.simplify(
            logical_not(condition)))

    def decided(self, e: PrimExpr) -> PrimExpr:
        """A condition where the answer is known."""
        new = self.visit(e)
        if type(new) is IntImm or new.dtype != "bool" or not _is_plain(new):
            return new
        if self.analyzer.can_prove(new):
            return IntImm("bool", 1)
        return IntImm("bool", 0) if self.analyzer.can_prove(logical_not(new)) else new

    def visit(self, node: Node) -> Any:
        if isinstance(node, PrimExpr) and type(node) is type(self.condition) and (
                structural_equal(node, self.condition)):
            return IntImm("bool", int(self.truth))
        return super().visit(node)

    def visit_And(self, node: And) -> PrimExpr:
        a, b = self.visit(node.a), self.visit(node.b)
        return node if a is node.a and b is node.b else all_of(a, b)

    def visit_Or(self, node: Or) -> PrimExpr:
        a, b = self.visit(node.a), self.visit(node.b)
        return node if a is node.a and b is node.b else any_of(a, b)

    def visit_Not(self, node: Not) -> PrimExpr:
        a = self.visit(node.a)
        return node if a is node.a else logical_not(a)

    def visit_Call(self, node: Call) -> PrimExpr:
        if getattr(node.op, "name", "") != "tir.if_then_else":
            return self.default(node)
        condition = self.decided(node.args[0])
        if type(condition) is IntImm:
            return self.visit(node.args[1 if condition.value else 2])
        arms = [self.visit(a) for a in node.args[1:]]
        return node.replace(args=(condition, *arms))

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        condition = self.decided(node.condition)
        if type(condition) is IntImm:
            chosen = node.then_case if condition.value else node.else_case
            return NO_OP if chosen is None else self.visit(chosen)
        then = self.visit(node.then_case)
        other = None if node.else_case is None else self.visit(node.else_case)
        other = None if other is NO_OP else other
        if then is NO_OP:
            return NO_OP if other is None else IfThenElse(logical_not(condition), other)
        return IfThenElse(condition, then, other)

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        kept = [s for s in map(self.visit, node.seq) if s is not NO_OP]
        return seq(*kept) if kept else NO_OP

    def visit_For(self, node: For) -> Stmt:
        new = super().visit_For(node)
        return NO_OP if isinstance(new, For) and new.body is NO_OP else new

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        new = super().visit_LetStmt(node)
        assert isinstance(new, LetStmt)
        gone = new.body is NO_OP
        return NO_OP if gone and _is_plain(new.value) else (
            Evaluate(new.value) if gone else new)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        new = super().visit_AttrStmt(node)
        return NO_OP if isinstance(new, AttrStmt) and new.body is NO_OP else new


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """What loops do not change before them."""
    if any(isinstance(n, Block) and n.init is not None for n in pre_order(func.body)):
        return func  # blocks that are not lowered yet say what they read of whole loops
    config = ctx.config.get("tir.HoistExpression") or {}
    conditionals = config.get("hoisted_conditionals", HoistedConditionals.All)
    lets = config.get("hoisted_let_bindings", HoistedLetBindings.All)
    return func.with_body(_Hoist(HoistedConditionals(conditionals), HoistedLetBindings(lets)
                                 ).visit(func.body))


def HoistExpression() -> Pass:
    """Compute what a loop does not change before it, wherever in it that stands."""
    return function_pass("HoistExpression", _rewrite)


__all__ = ["HoistExpression", "HoistedConditionals", "HoistedLetBindings"]

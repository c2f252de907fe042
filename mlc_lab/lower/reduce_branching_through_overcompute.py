"""ReduceBranchingThroughOvercompute: a branch goes where running it each time changes nothing.

Before::

    for i in range(16):
        if i > 0:
            A[0] = A[0] + i * i

After::

    for i in range(16):
        A[0] = A[0] + i * i

Where the condition does not hold, what is computed in vain must put elements back as they were, or
be what the other branch does; it must touch no element outside of a buffer, divide by nothing, and
call nothing that has an effect. Stores that are made in vain are not added to loops whose
iterations run at the same time, as an element put back may be another iteration's by then.

`PassContext(config={"tir.ReduceBranchingThroughOvercompute": {"use_dataflow_analysis": True}})` is
accepted, and changes nothing: what other statements store or overwrite is not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..arith import Analyzer
from ..ir.structural import structural_equal
from ..ir.transform import Pass
from ..tir.expr import (
    Add, BufferLoad, Call, Div, FloorDiv, FloorMod, Mod, Mul, PrimExpr, Sub, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, free_vars, pre_order, substitute
from ..tir.op import (
    as_int, const, effect_of, equal, greater_equal, less, logical_and, logical_not,
)
from ..tir.op.intrinsic import PURE
from ..tir.stmt import (
    BufferStore, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, seq,
)
from .common import bind_loop, function_pass, steady_scope
from .simplify import NO_OP

if TYPE_CHECKING:
    from ..ir.transform import PassContext

#: loops whose iterations run one after another
_IN_ORDER = (ForKind.SERIAL, ForKind.UNROLLED)


class _InVain:
    """What is left of a statement where a condition does not hold, and whether it may run there."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def known(self, e: PrimExpr) -> PrimExpr:
        """An expression with the variables that have one value here replaced by it."""
        table: dict[Var, Any] = {}
        for var in free_vars(e):
            if var.dtype.startswith("int"):
                bound = self.analyzer.const_int_bound(var)
                if bound.min_value == bound.max_value:
                    table[var] = const(bound.min_value, var.dtype)
        return self.analyzer.simplify(substitute(e, table) if table else e)

    def is_number(self, e: PrimExpr, number: int) -> bool:
        return as_int(self.known(e)) == number

    def may_run(self, s: Any) -> bool:
        """Whether the statement can be run here without harm, whatever it stores."""
        if isinstance(s, SeqStmt):
            return all(map(self.may_run, s.seq))
        if isinstance(s, For):
            if s.kind not in _IN_ORDER or not all(map(self.harmless, (s.min, s.extent))):
                return False
            bind_loop(self.analyzer, s)
            return self.may_run(s.body)
        if isinstance(s, IfThenElse):
            with steady_scope(self.analyzer, s.condition, s.then_case):
                then = self.may_run(s.then_case)
            return then and self.harmless(s.condition) and (
                s.else_case is None or self.may_run(s.else_case))
        if isinstance(s, BufferStore):
            return s.predicate is None and self.inside(s) and all(
                map(self.harmless, (*s.indices, s.value)))
        return isinstance(s, Evaluate) and self.harmless(s.value)

    def harmless(self, e: PrimExpr) -> bool:
        """Whether an expression can be evaluated here."""
        for item in pre_order(e):
            if isinstance(item, Call) and effect_of(item) != PURE:
                return False
            if isinstance(item, (Div, Mod, FloorDiv, FloorMod)) and not as_int(item.b):
                return False
            if isinstance(item, BufferLoad) and (item.predicate is not None
                                                 or not self.inside(item)):
                return False
        return True

    def inside(self, access: Any) -> bool:
        """Whether an access stays within its buffer."""
        return all("x" not in i.dtype and self.analyzer.can_prove(
            logical_and(greater_equal(i, 0), less(i, extent)))
            for i, extent in zip(access.indices, access.buffer.shape))

    def left(self, s: Any) -> Stmt:
        """The statement without what changes nothing here."""
        if isinstance(s, SeqStmt):
            kept = [part for part in map(self.left, s.seq) if part is not NO_OP]
            return seq(*kept) if kept else NO_OP
        if isinstance(s, For):
            bind_loop(self.analyzer, s)
            body = self.left(s.body)
            return NO_OP if body is NO_OP else s.replace(body=body)
        if isinstance(s, IfThenElse):
            with steady_scope(self.analyzer, s.condition, s.then_case):
                then = self.left(s.then_case)
            other = NO_OP if s.else_case is None else self.left(s.else_case)
            return NO_OP if then is other is NO_OP else IfThenElse(
                s.condition, then, None if other is NO_OP else other)
        if isinstance(s, BufferStore):
            return NO_OP if self.puts_back(s) else s
        if isinstance(s, Evaluate) and self.harmless(s.value):
            return NO_OP
        return s

    def puts_back(self, s: BufferStore) -> bool:
        """Whether a store leaves its element as it was: what is read, plus 0 or times 1."""
        value = s.value
        if isinstance(value, (Add, Mul)):
            neutral = 0 if isinstance(value, Add) else 1
            for load, other in ((value.a, value.b), (value.b, value.a)):
                if isinstance(load, BufferLoad) and other.dtype.startswith(("int", "uint")) and (
                        self.is_number(other, neutral)):
                    value = load
                    break
        elif isinstance(value, Sub) and value.dtype.startswith(("int", "uint")) and (
                self.is_number(value.b, 0)):
            value = value.a
        return isinstance(value, BufferLoad) and (
            value.buffer is s.buffer and value.predicate is None and s.predicate is None) and all(
                i.dtype == j.dtype and self.analyzer.can_prove(equal(self.known(i), self.known(j)))
                for i, j in zip(value.indices, s.indices))


class _Reduce(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.at_once = 0  # loops around whose iterations run at the same time

    def visit_For(self, node: For) -> Stmt:
        bind_loop(self.analyzer, node)
        at_once = node.kind not in _IN_ORDER
        self.at_once += at_once
        body = self.visit(node.body)
        self.at_once -= at_once
        return node if body is node.body else node.replace(body=body)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        with steady_scope(self.analyzer, node.condition, node.then_case):
            then = self.visit(node.then_case)
        negated = self.analyzer.simplify(logical_not(node.condition))
        with steady_scope(self.analyzer, negated, node):
            other = None if node.else_case is None else self.visit(node.else_case)
            there = _InVain(self.analyzer)
            if not self.at_once and there.harmless(node.condition) and there.may_run(then):
                left = there.left(then)
                if left is NO_OP if other is None else structural_equal(left, there.left(other)):
                    return then
        if then is node.then_case and other is node.else_case:
            return node
        return IfThenElse(node.condition, then, other)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Branches that are without need are gone."""
    return func.with_body(_Reduce().visit(func.body))


def ReduceBranchingThroughOvercompute() -> Pass:
    """Branches go where running them each time changes nothing."""
    return function_pass("ReduceBranchingThroughOvercompute", _rewrite)


__all__ = ["ReduceBranchingThroughOvercompute"]

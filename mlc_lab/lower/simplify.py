"""Simplify: indices, bounds and conditions in their simplest form; decided branches are dropped.

Before::

    for i, j in T.grid(8, 16):
        if i * 16 + j < 128:
            A[(i * 16 + j) // 16 * 16 + (i * 16 + j) % 16] = 0.0

After::

    for i, j in T.grid(8, 16):
        A[i * 16 + j] = 0.0

Only index arithmetic, conditions and truth values are touched: the other values that a program
computes are left as they were written, since integers of data may wrap around and floats round.

`PassContext(config={"tir.Simplify": {NAME: True}})` asks for more:
`apply_constraints_to_boolean_branches` for each side of an `and` to be simplified where the other
side holds, and each side of an `or` where it does not; `transitively_prove_inequalities` for
comparisons that follow from several conditions at once; `propagate_knowns_to_prove_conditional` and
`propagate_knowns_to_simplify_expressions` for what elements are known to hold, from stores and
`T.assume`, to decide conditions and to give the values of stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..arith import Analyzer, Extension
from ..arith.expr_util import same
from ..ir.transform import Pass
from ..tir import op
from ..tir.expr import (
    EQ, LE, LT, NE, And, Broadcast, BufferLoad, Call, CmpOp, IntImm, IterVar, Let, Or, PrimExpr,
    Ramp, Range, Select, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, leaves_loop
from ..tir.op import as_int, const
from ..tir.stmt import (
    Allocate, AssertStmt, AttrStmt, BlockRealize, BufferStore, Evaluate, For, ForKind, IfThenElse,
    LetStmt, SeqStmt, Stmt, While, seq,
)
from .common import function_pass, may_change, steady_parts
from .contents import Contents, is_assumption, written_by

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext

NO_OP = Evaluate(IntImm("int32", 0))


class Simplifier(Mutator):
    """Rewrites statements under what loops and conditions say of the variables."""

    def __init__(self, branches: bool = False, transitive: bool = False) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.branches = branches  # whether a side of `and` says something of the other one
        if transitive:  # comparisons are proved from several conditions
            self.analyzer.enabled_extensions = Extension.TransitivelyProveInequalities
        self.constraints = 0  # how many conditions hold here
        self.values: dict[Var, PrimExpr] = {}
        self.memo: dict[PrimExpr, PrimExpr] = {}
        self.bound: dict[Var, Any] = {}  # what each variable was bound to; None: to several
        self.pointers: set[Var] = set()  # names that the program gives to memory
        self.cleared = 0  # how often `memo` was cleared

    def bind(self, var: Var, low: PrimExpr, extent: PrimExpr) -> None:
        """Enter the scope of a loop variable."""
        numbers = as_int(low), as_int(extent)
        self.begin(var, (low, extent) if None in numbers else numbers)
        if numbers[1] == 1:
            self.analyzer.bind(var, low, True)
        else:
            self.analyzer.bind(var, Range.from_min_extent(low, extent), True)

    def begin(self, var: Var, own: Any) -> None:
        """Enter the scope of a variable. The pieces of a partitioned loop, and the copies of an
        unrolled one, bind the same variable to other values: what was cached is dropped then."""
        if self.bound.setdefault(var, own) != own:
            self.bound[var] = None
            self.memo, self.cleared = {}, self.cleared + 1
            self.values.pop(var, None)
            self.analyzer.unbind(var)

    # expressions

    def index(self, e: PrimExpr) -> PrimExpr:
        """An index, bound or condition, simplified."""
        if type(e) is IntImm:
            return e
        if type(e) is Var:
            return self.values.get(e, e)
        if type(e) is Ramp:
            base, stride = self.index(e.base), self.index(e.stride)
            return e if base is e.base and stride is e.stride else Ramp(base, stride, e.lanes)
        if type(e) is Broadcast:
            value = self.index(e.value)
            return e if value is e.value else Broadcast(value, e.lanes)
        found = self.memo.get(e)
        if found is None:
            found = self.memo[e] = self.analyzer.simplify(self.default(e))
        return found

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.values.get(node, node)

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        indices = tuple(map(self.index, node.indices))
        predicate = None if node.predicate is None else self.visit(node.predicate)
        if predicate is node.predicate and all(a is b for a, b in zip(indices, node.indices)):
            return node
        return BufferLoad.from_fields(node.buffer, indices, predicate)

    def visit_Select(self, node: Select) -> PrimExpr:
        condition = self.condition(node.condition)
        t, f = self.visit(node.true_value), self.visit(node.false_value)
        if as_int(condition) is not None:
            return t if as_int(condition) else f
        if condition is node.condition and t is node.true_value and f is node.false_value:
            return node
        return Select(condition, t, f)

    def visit_Call(self, node: Call) -> PrimExpr:
        if getattr(node.op, "name", "") != "tir.if_then_else":
            return self.default(node)
        condition = self.condition(node.args[0])
        if as_int(condition) is not None:
            return self.visit(node.args[1 if as_int(condition) else 2])
        t = self._under(condition, node.args[1])
        f = self._under(self._contrary(condition), node.args[2])
        if condition is node.args[0] and t is node.args[1] and f is node.args[2]:
            return node
        return Call.from_fields(node.dtype, node.op, (condition, t, f), node.annotations)

    def _under(self, condition: PrimExpr, node: Node) -> Any:
        """`node` rewritten where `condition` holds, as far as it holds to the end of `node`."""
        if "x" in condition.dtype:
            return self.visit(node)
        kept = steady_parts(condition, node, self.pointers)
        if not kept:
            return self.visit(node)
        condition = op.all(*kept)
        memo, self.memo, cleared = self.memo, {}, self.cleared
        self.constraints += 1
        with self.analyzer.constraint_scope(condition):
            out = self.visit(node)
        self.constraints -= 1
        self.memo = memo if self.cleared == cleared else {}
        return out

    def _contrary(self, condition: PrimExpr) -> PrimExpr:
        """The negation in a form that facts can be read from."""
        return condition if "x" in condition.dtype else self.analyzer.simplify(
            op.logical_not(condition))

    def condition(self, e: PrimExpr) -> PrimExpr:
        """A condition, simplified; a constant where it is decided."""
        if type(e) is Call and getattr(e.op, "name", "") == "tir.likely":
            e = e.args[0]
        return self.index(e)

    def _truth(self, node: PrimExpr) -> PrimExpr:
        """A truth value: the same as a condition."""
        return self.index(node) if node.dtype == "bool" else self.default(node)

    visit_Not = _truth

    def visit_CmpOp(self, node: CmpOp) -> PrimExpr:
        """A comparison; where conditions hold, the strongest that comes to the same under them."""
        new = self._truth(node)
        if not self.constraints or not isinstance(new, CmpOp) or (
                new.a.dtype not in ("int32", "int64")):
            return new
        prove = self.analyzer.can_prove
        if self.analyzer.enabled_extensions:
            if prove(new):
                return IntImm("bool", 1)
            if prove(op.logical_not(new)):
                return IntImm("bool", 0)
        if not isinstance(new, (LE, NE)):
            return new
        if type(new) is LE:
            if prove(op.not_equal(new.a, new.b)) or prove(op.not_equal(new.b, new.a)):
                return LT(new.a, new.b)
            return EQ(new.a, new.b) if prove(op.less_equal(new.b, new.a)) else new
        if prove(op.less_equal(new.a, new.b)):
            return LT(new.a, new.b)
        return LT(new.b, new.a) if prove(op.less_equal(new.b, new.a)) else new

    def visit_And(self, node: And) -> PrimExpr:
        return self._both_sides(node, lambda side: side)

    def visit_Or(self, node: Or) -> PrimExpr:
        return self._both_sides(node, self._contrary)

    def _both_sides(self, node: And | Or, holds: Callable[[PrimExpr], PrimExpr]) -> PrimExpr:
        if not self.branches or node.dtype != "bool":
            return self._truth(node)
        b = self._under(holds(node.a), node.b)
        a = self._under(holds(b), node.a)
        return self.index(type(node)(a, b))

    def visit_Let(self, node: Let) -> PrimExpr:
        return self.default(node)

    # statements

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        indices = tuple(map(self.index, node.indices))
        value = self.visit(node.value)
        predicate = None if node.predicate is None else self.visit(node.predicate)
        if type(value) is BufferLoad and value.buffer is node.buffer and predicate is None and (
                value.predicate is None) and all(map(same, value.indices, indices)):
            return NO_OP  # what is there already
        if value is node.value and predicate is node.predicate and all(
                a is b for a, b in zip(indices, node.indices)):
            return node
        return BufferStore.from_fields(node.buffer, value, indices, predicate)

    def visit_For(self, node: For) -> Stmt:
        low, extent = self.index(node.min), self.index(node.extent)
        count = as_int(extent)
        if count is not None and count <= 0:
            return NO_OP
        steady = not may_change((low, extent), node.body, self.pointers)
        if count == 1 and steady and not node.annotations and (
                node.kind is not ForKind.THREAD_BINDING) and not leaves_loop(node.body):
            self.bind(node.loop_var, low, extent)
            self.values[node.loop_var] = low
            return self.visit(node.body)
        if steady:
            self.bind(node.loop_var, low, extent)
        else:  # its bounds are those of the time when the loop began
            self.begin(node.loop_var, node)
        body = self.visit(node.body)
        if body is NO_OP:
            return body
        if low is node.min and extent is node.extent and body is node.body:
            return node
        return For.from_fields(node.loop_var, low, extent, node.kind, body, node.thread_binding,
                               node.annotations)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        condition = self.condition(node.condition)
        decided = as_int(condition)
        if decided is not None:
            if decided:
                return self.visit(node.then_case)
            return self.visit(node.else_case) if node.else_case is not None else NO_OP
        then, other = self._sides(condition, node)
        if other is NO_OP:
            other = None
        if then is NO_OP and other is None:
            return NO_OP
        if condition is node.condition and then is node.then_case and other is node.else_case:
            return node
        return IfThenElse(condition, then, other)

    def _sides(self, condition: PrimExpr, node: IfThenElse) -> tuple[Stmt, Stmt | None]:
        """Both sides of an if, each under what the condition says there."""
        then = self._under(condition, node.then_case)
        if node.else_case is None:
            return then, None
        return then, self._under(self._contrary(condition), node.else_case)

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        new = [self.visit(s) for s in node.seq]
        if all(a is b for a, b in zip(new, node.seq)):
            return node
        kept = [s for s in new if s is not NO_OP]
        return seq(*kept) if kept else NO_OP

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        value = self.visit(node.value)
        simple = node.var.dtype in ("int32", "int64") and type(value) in (IntImm, Var)
        self.begin(node.var, as_int(value) if as_int(value) is not None else value)
        if simple:
            self.values[node.var] = value
            self.analyzer.bind(node.var, value, True)
            return self.visit(node.body)
        self.analyzer.name_data(node.var, value)
        if node.var.dtype == "handle":
            self.pointers.add(node.var)
        body = self.visit(node.body)
        if value is node.value and body is node.body:
            return node
        return LetStmt.from_fields(node.var, value, body)

    def visit_AssertStmt(self, node: AssertStmt) -> Stmt:
        condition = self.condition(node.condition)
        if as_int(condition):
            return self.visit(node.body)
        body = self._under(condition, node.body)
        if condition is node.condition and body is node.body:
            return node
        return AssertStmt.from_fields(condition, node.message, body)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key in ("thread_extent", "virtual_thread") and isinstance(node.node, IterVar):
            var = node.node.var
            self.analyzer.bind(var, Range.from_min_extent(const(0, var.dtype), node.value), True)
        body = self.visit(node.body)
        if body is NO_OP:
            return body
        return node if body is node.body else node.replace(body=body)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        body = self.visit(node.body)
        extents = tuple(map(self.index, node.extents))
        if body is NO_OP:
            return body
        if body is node.body and all(a is b for a, b in zip(extents, node.extents)):
            return node
        return node.replace(extents=extents, body=body)


class ContentSimplifier(Simplifier):
    """A Simplifier that follows what elements of buffers hold: to `decide` conditions by it, and to
    `give` the values of stores."""

    def __init__(self, branches: bool, transitive: bool, decide: bool, give: bool) -> None:
        super().__init__(branches, transitive)
        self.decide, self.give = decide, give
        self.contents = Contents(self.analyzer)

    def condition(self, e: PrimExpr) -> PrimExpr:
        """A condition, simplified; a constant where it is decided, by what is known if need be."""
        if self.decide and (known := self.contents.known(e)) is not e:
            decided = self.analyzer.simplify(known)
            if type(decided) is IntImm:
                return decided
        return super().condition(e)

    def _under(self, condition: PrimExpr, node: Node) -> Any:
        if isinstance(node, Stmt) and "x" not in condition.dtype:
            self.contents.learn(condition)
        return super()._under(condition, node)

    def _sides(self, condition: PrimExpr, node: IfThenElse) -> tuple[Stmt, Stmt | None]:
        contents, before = self.contents, self.contents.facts
        then, other = self._under(condition, node.then_case), None
        end, contents.facts = contents.facts, before
        if node.else_case is not None:
            other = self._under(self._contrary(condition), node.else_case)
        contents.branched(condition, end, contents.facts)
        return then, other

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        if self.give and (known := self.contents.known(node.value)) is not node.value:
            value = self.analyzer.simplify(known)
            if type(value) is IntImm:
                node = node.replace(value=value)
        new = super().visit_BufferStore(node)
        if type(new) is BufferStore:
            self.contents.stored(new)
        return new

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        new = self.default(node)
        if is_assumption(new.value):
            self.contents.learn(new.value.args[0])
        else:
            self.contents.forget(node)
        return new

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        """Where something is assumed, it holds for the statements behind."""
        for n, stmt in enumerate(node.seq[:-1]):
            if type(stmt) is Evaluate and is_assumption(stmt.value):
                new = [self.visit(s) for s in node.seq[:n + 1]]
                new.append(self._under(new[-1].value.args[0], seq(*node.seq[n + 1:])))
                return seq(*(s for s in new if s is not NO_OP))
        return super().visit_SeqStmt(node)

    def visit_For(self, node: For) -> Stmt:
        contents, before = self.contents, self.contents.facts
        written, anything = written_by(node.body)
        if anything or node.kind in (ForKind.THREAD_BINDING, ForKind.VECTORIZED) or leaves_loop(
                node.body) or may_change((node.min, node.extent), node.body, self.pointers):
            return self._apart(node, super().visit_For)
        contents.turn(before, written, node.loop_var)
        new = super().visit_For(node)
        if new is NO_OP:
            contents.facts = before
        elif type(new) is For and new.loop_var is node.loop_var:
            contents.after(before, written, node.loop_var, new.min, new.extent)
        else:  # a single turn
            contents.without(node.loop_var)
        return new

    def _apart(self, node: Stmt, visit: Callable[[Any], Stmt]) -> Stmt:
        """A statement in which nothing is known, and after which nothing of what it may write."""
        contents = self.contents
        contents.forget(node)
        before, contents.facts = contents.facts, ()
        was, contents.closed = contents.closed, True
        new = visit(node)
        contents.facts, contents.closed = before, was
        return new

    def visit_While(self, node: While) -> Stmt:
        return self._apart(node, self.default)

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        return self._apart(node, self.default)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        """Threads may change what others know."""
        if isinstance(node.node, IterVar):
            return self._apart(node, super().visit_AttrStmt)
        return super().visit_AttrStmt(node)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        if node.var.dtype == "handle":  # memory under another name
            return self._apart(node, super().visit_LetStmt)
        new = super().visit_LetStmt(node)
        self.contents.without(node.var)
        return new


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Simplest indices and conditions."""
    config = ctx.config.get("tir.Simplify") or {}
    wanted = [bool(config.get(name)) for name in (
        "apply_constraints_to_boolean_branches", "transitively_prove_inequalities",
        "propagate_knowns_to_prove_conditional", "propagate_knowns_to_simplify_expressions")]
    simplifier = ContentSimplifier(*wanted) if any(wanted[2:]) else Simplifier(*wanted[:2])
    return func.with_body(simplifier.visit(func.body))


def Simplify() -> Pass:
    """Bring indices, bounds and conditions into their simplest form, and drop decided branches."""
    return function_pass("Simplify", _rewrite)

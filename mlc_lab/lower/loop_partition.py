"""LoopPartition: a loop is cut where a bound stops to matter, so that most of it has no branches.

Before (a split of 100 by 16)::

    for i in range(7):
        for j in T.vectorized(16):
            if i * 16 + j < 100:
                B[i * 16 + j] = A[i * 16 + j] + 1.0

After::

    for i in range(6):
        for j in T.vectorized(16):
            B[i * 16 + j] = A[i * 16 + j] + 1.0
    for j in T.vectorized(4):
        B[96 + j] = A[96 + j] + 1.0

From the outermost loop inwards: where a condition in the loop's body holds in the worst case over
the inner loops, it is dropped; the rest of the iterations keep it.
A parallel loop, and one whose variable sits inside of a division, is not cut: it gets the
two versions of its body under one `if`. So does a statement that takes only a small part of a
body's time, as the writing of a tile does beside the sum that fills it: that is not worth a second
loop. Reference: the loop partitioning of Halide and of TVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..arith import Analyzer, detect_linear_equation, eval_set, is_evaluable
from ..ir.structural import structural_equal
from ..ir.transform import Pass
from ..tir import op
from ..tir.expr import (
    GE, GT, LE, LT, And, BufferLoad, Call, CmpOp, IntImm, IterVar, Max, Min, PrimExpr, Range, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements, leaves_loop, pre_order, substitute, uses_var
from ..tir.op import as_int, const
from ..tir.stmt import (
    AttrStmt, BufferStore, Evaluate, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, seq,
)
from .common import function_pass, may_change
from .implied import DropImplied
from .simplify import NO_OP, Simplifier

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext

#: a function is not partitioned further when it has grown by this many nodes
_GROWTH = 20000
#: code at the edge of so many loops at once is not partitioned further: each condition doubles the
#: versions, and a loop that is split again and again has many conditions
_EDGES = 3
#: a statement is a minor part of a sequence when it has at most an eighth of the iterations of the
#: sequence, and that has at least so many
_SMALL, _MANY = 8, 256


class _Condition:
    """One part of a conjunction that guards statements, with the loops between it and the loop
    that is looked at; `minor` where it guards only a minor part of the body."""

    __slots__ = ("expr", "loops", "minor")

    def __init__(self, expr: CmpOp, loops: tuple[For, ...], minor: bool) -> None:
        self.expr, self.loops, self.minor = expr, loops, minor


def _iterations(s: Any) -> int:
    """How many innermost statements run, loops of unknown length taken as long."""
    kind = type(s)
    if kind is For:
        return (as_int(s.extent) or _MANY) * _iterations(s.body)
    if kind is SeqStmt:
        return sum(map(_iterations, s.seq))
    if kind is IfThenElse:
        return max(_iterations(s.then_case), 0 if s.else_case is None else _iterations(s.else_case))
    return _iterations(s.body) if isinstance(getattr(s, "body", None), Stmt) else 1


def _small_parts(s: SeqStmt) -> list[bool]:
    """Which statements of a sequence are a minor part of it."""
    each = [_iterations(item) for item in s.seq]
    return [sum(each) >= _MANY and one * _SMALL <= sum(each) for one in each]


def _conjuncts(e: PrimExpr) -> list[PrimExpr]:
    if type(e) is And:
        return _conjuncts(e.a) + _conjuncts(e.b)
    if type(e) is Call and getattr(e.op, "name", "") == "tir.likely":
        return _conjuncts(e.args[0])
    return [e]


def _conditions(body: Stmt) -> list[_Condition]:
    """The bounds that guard statements under `body`, outermost first."""
    out: list[_Condition] = []

    def walk(s: Any, loops: tuple[For, ...], hidden: frozenset, minor: bool) -> None:
        kind = type(s)
        if kind is For:
            if may_change((s.min, s.extent), body):
                hidden = hidden | {s.loop_var}
            walk(s.body, (*loops, s), hidden, minor)
        elif kind is IfThenElse:
            for part in _conjuncts(s.condition):
                if isinstance(part, (LT, LE, GT, GE)) and _plain(part, hidden):
                    out.append(_Condition(part, loops, minor))
            walk(s.then_case, loops, hidden, minor)
            if s.else_case is not None:
                walk(s.else_case, loops, hidden, minor)
        elif kind is SeqStmt:
            for item, small in zip(s.seq, _small_parts(s)):
                walk(item, loops, hidden, minor or small)
        elif kind is LetStmt:
            walk(s.body, loops, hidden | {s.var}, minor)
        elif kind is AttrStmt and isinstance(s.node, IterVar):
            walk(s.body, loops, hidden | {s.node.var}, minor)
        elif hasattr(s, "body"):
            walk(s.body, loops, hidden, minor)

    walk(body, (), frozenset(), False)
    return out


#: what must be negative for a comparison of a and b to hold
_COMPARISONS = {LT: lambda a, b: op.sub(a, b), LE: lambda a, b: op.sub(a, b) - 1,
                GT: lambda a, b: op.sub(b, a), GE: lambda a, b: op.sub(b, a) - 1}


def _plain(e: CmpOp, hidden: frozenset) -> bool:
    """Whether a condition is arithmetic on loop variables and sizes only."""
    if e.a.dtype not in ("int32", "int64"):
        return False
    for item in pre_order(e):
        if type(item) in (BufferLoad, Call) or (isinstance(item, Var) and item in hidden):
            return False
    return True


def _decided(body: Stmt, group: list[PrimExpr], known: bool | None) -> Stmt:
    """`body` where conditions are known to hold, or not to (None: unknown)."""
    return body if known is None else _Decide(group, known).visit(body)


class _Decide(Mutator):
    """Replaces conditions by what is known of them."""

    def __init__(self, conditions: list[PrimExpr], known: bool) -> None:
        super().__init__()
        self.targets, self.value = conditions, IntImm("bool", int(known))

    def visit(self, node: Node) -> Any:
        """Only conditions of if statements matter."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        condition = self._replaced(node.condition)
        decided = as_int(condition)
        if decided is not None and condition is not node.condition:
            case = node.then_case if decided else node.else_case
            return NO_OP if case is None else self.visit(case)
        new = self.default(node)
        return new if condition is node.condition else new.replace(condition=condition)

    def visit_For(self, node: For) -> Stmt:
        body = self.visit(node.body)
        if body is NO_OP:
            return NO_OP
        return node if body is node.body else node.replace(body=body)

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        new = [self.visit(s) for s in node.seq]
        if all(a is b for a, b in zip(new, node.seq)):
            return node
        kept = [s for s in new if s is not NO_OP]
        return seq(*kept) if kept else NO_OP

    def _replaced(self, e: PrimExpr) -> PrimExpr:
        if any(e is target for target in self.targets):
            return self.value
        if type(e) is And:
            a, b = self._replaced(e.a), self._replaced(e.b)
            return e if a is e.a and b is e.b else op.logical_and(a, b)
        if type(e) is Call and getattr(e.op, "name", "") == "tir.likely":
            inner = self._replaced(e.args[0])
            return e if inner is e.args[0] else inner
        return e


class _Partition(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.outer: list[tuple[Var, Any]] = []
        self.known: list[PrimExpr] = []
        self.budget = _GROWTH
        self.lanes: list[Var] = []
        #: how many of the conditions around are still checked here
        self.edges = 0

    def visit(self, node: Node) -> Any:
        """Only statements hold loops."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def _analyzer(self) -> Analyzer:
        analyzer = Analyzer()
        for var, rng in self.outer:
            analyzer.bind(var, rng, True)
        for condition in self.known:
            analyzer.enter_constraint(condition)
        return analyzer

    def _simplified(self, s: Stmt) -> Stmt:
        """A piece in its simplest form, under what is known around it."""
        simplifier = Simplifier()
        simplifier.analyzer = self._analyzer()
        return simplifier.visit(s)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if isinstance(node.node, IterVar):
            var = node.node.var
            self.outer.append((var, Range.from_min_extent(const(0, var.dtype), node.value)))
            if node.node.thread_tag.startswith("threadIdx"):
                self.lanes.append(var)
            new = self.default(node)
            self.outer.pop()
            return new
        return self.default(node)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        held = [] if may_change((node.condition,), node.then_case) else [node.condition]
        self.known += held
        then = self.visit(node.then_case)
        del self.known[len(self.known) - len(held):]
        other = self.visit(node.else_case) if node.else_case is not None else None
        if then is node.then_case and other is node.else_case:
            return node
        return IfThenElse(node.condition, then, other)

    def visit_For(self, node: For) -> Stmt:
        conditions = _conditions(node.body)
        if not conditions:
            return node  # none further in either
        if may_change((node.min, node.extent), node.body):
            # where it ends is known where it begins alone
            body = self.visit(node.body)
            return NO_OP if body is NO_OP else (
                node if body is node.body else node.replace(body=body))
        analyzer = self._analyzer()
        domain = Range.from_min_extent(node.min, node.extent)
        analyzer.bind(node.loop_var, domain, True)
        for condition in conditions:
            if condition.minor and self._of_loops(condition, node):
                continue  # not worth a second loop: `visit_SeqStmt` makes two versions of it
            new = self._try(node, condition, conditions, analyzer)
            if new is not None:
                return new
        self.outer.append((node.loop_var, domain))
        body = self.visit(node.body)
        self.outer.pop()
        if body is NO_OP:
            return NO_OP
        return node if body is node.body else node.replace(body=body)

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        parts = [self._minor(item) if small else self.visit(item)
                 for item, small in zip(node.seq, _small_parts(node))]
        if all(new is old for new, old in zip(parts, node.seq)):
            return node
        parts = [part for part in parts if part is not NO_OP]
        return seq(*parts) if parts else NO_OP

    def _of_loops(self, found: _Condition, *more: For) -> bool:
        """Whether a condition depends on loops of constant extent alone. With symbolic extents two
        versions of a statement are no shorter than two loops."""
        loops = {lp.loop_var: lp.extent for lp in (*found.loops, *more)}
        loops.update((var, rng.extent) for var, rng in self.outer)
        return all(as_int(loops.get(v)) is not None for v in pre_order(found.expr)
                   if isinstance(v, Var))

    def _minor(self, item: Stmt) -> Stmt:
        """A minor part of a loop's body: two versions under an `if`, rather than two loops."""
        analyzer = self._analyzer()
        for found in _conditions(item):
            if found.minor or not found.loops or not self._of_loops(found) or (
                    self.budget <= 0 or self.edges >= _EDGES) or (
                    self._differs_by_thread(found.expr, item)):
                continue
            e = found.expr
            excess = analyzer.simplify(_COMPARISONS[type(e)](e.a, e.b))
            inner = {f.loop_var: Range.from_min_extent(f.min, f.extent) for f in found.loops}
            worst = eval_set(excess, inner, analyzer)
            if worst.has_upper_bound() and self._can_be_asked(worst.max_value, analyzer):
                holds = analyzer.simplify(op.less(worst.max_value, 0))
                if as_int(holds) is None:
                    return self._two_versions(item, [e], holds, self._minor)
        return self.visit(item)

    def _excess(self, node: For, found: _Condition, analyzer: Analyzer
                ) -> tuple[int, Any] | None:
        """A condition as excess < 0: by how much that grows with the loop variable, and the range
        of the rest over the loops between; growth 0 where it is not cut along this loop."""
        e, var = found.expr, node.loop_var
        if not any(item is var for item in pre_order(e)):
            return None
        excess = analyzer.simplify(_COMPARISONS[type(e)](e.a, e.b))
        inner = {f.loop_var: Range.from_min_extent(f.min, f.extent) for f in found.loops}
        linear = detect_linear_equation(excess, [var])
        factor = as_int(linear[0]) if len(linear) == 2 else None
        if factor and node.kind is not ForKind.PARALLEL:
            rest = eval_set(linear[1], inner, analyzer)
            if not (rest.has_upper_bound() and rest.has_lower_bound() and all(
                    self._can_be_asked(e, analyzer) for e in (rest.min_value, rest.max_value))):
                return None
            if not (uses_var(rest.min_value, var) or uses_var(rest.max_value, var)):
                return factor, rest
            # extents of the loops between depend on this one: it cannot be cut at one place
        worst = eval_set(excess, inner, analyzer)
        return (0, worst) if worst.has_upper_bound() and found.loops and (
            self._can_be_asked(worst.max_value, analyzer, node.extent)) else None

    def _can_be_asked(self, e: PrimExpr, analyzer: Analyzer, *more: PrimExpr) -> bool:
        """Whether a bound can be computed here, further out than the condition that it is of: what
        that divides by may be zero where nothing runs under it."""
        return is_evaluable(e, [*(rng.extent for _, rng in self.outer), *more], analyzer)

    def _differs_by_thread(self, condition: PrimExpr, body: Stmt) -> bool:
        """Whether threads that meet at barriers would run different pieces. Barriers stand inside
        of what reads shared memory that it writes; what only fetches has them before and after.
        Threads that reduce together meet as well."""
        if not any(uses_var(condition, lane) for lane in self.lanes):
            return False
        read, written = set(), set()
        for item in pre_order(body):
            if isinstance(item, BufferLoad):
                read.add(item.buffer.data)
            elif isinstance(item, BufferStore):
                written.add(item.buffer.data)
            elif isinstance(item, Call):  # what gets a pointer may do both
                if getattr(item.op, "name", "") == "tir.tvm_thread_allreduce":
                    return True
                passed = {v for v in item.args if isinstance(v, Var)}
                read |= passed
                written |= passed
        return any(data.storage_scope.startswith("shared")
                   for data in read & written)

    def _try(self, node: For, found: _Condition, conditions: list[_Condition],
             analyzer: Analyzer) -> Stmt | None:
        """The loop in pieces for one condition, and for all that change where it does (those of an
        initialisation and of its update); None if there is nothing to gain."""
        if self.budget <= 0 or self.edges >= _EDGES or leaves_loop(node.body, ("tir.break_loop",)):
            return None
        own = self._excess(node, found, analyzer)
        if own is None or self._differs_by_thread(found.expr, node.body):
            return None
        factor, rest = own
        top = analyzer.simplify(rest.max_value)
        bottom = analyzer.simplify(rest.min_value) if factor else top
        group: list[PrimExpr] = [found.expr]
        for other in conditions:
            if other is found or type(other.expr) is not type(found.expr):
                continue
            its = self._excess(node, other, analyzer)
            if its is None or its[0] != factor:
                continue
            if _same(analyzer.simplify(its[1].max_value), top) and (
                    not factor or _same(analyzer.simplify(its[1].min_value), bottom)):
                group.append(other.expr)
        if factor:
            return self._cut(node, group, factor, rest, analyzer)
        return self._versions(node, group, op.less(top, 0), analyzer)

    def _cut(self, node: For, e: list[PrimExpr], factor: int, rest: Any,
             analyzer: Analyzer) -> Stmt | None:
        """A serial loop in up to three pieces: where factor * var + rest < 0 holds for all values
        of `rest`, where it holds for none, and between these, where it has to be checked."""
        begin, end = node.min, node.min + node.extent

        def edge(value: PrimExpr) -> PrimExpr:
            """Where factor * var + value changes its sign."""
            if factor > 0:
                at = op.floordiv(const(0, value.dtype) - value - 1, factor) + 1
            else:
                at = op.floordiv(value, -factor) + 1
            return analyzer.simplify(op.max(op.min(at, end), begin))

        all_hold = edge(analyzer.simplify(rest.max_value))
        none_hold = edge(analyzer.simplify(rest.min_value))
        if factor > 0:
            ranges = [(begin, all_hold, True), (all_hold, none_hold, None), (none_hold, end, False)]
        else:
            ranges = [(begin, none_hold, False), (none_hold, all_hold, None), (all_hold, end, True)]
        if not self._is_simple(all_hold) or not self._is_simple(none_hold) or all(
                known is None or analyzer.can_prove(low >= high) for low, high, known in ranges):
            return None
        self.budget -= sum(1 for _ in pre_order(node.body))
        parts = []
        for low, high, known in ranges:
            self.edges += known is None
            parts.append(self._piece(node, low, high, _decided(node.body, e, known), analyzer))
            self.edges -= known is None
        parts = [p for p in parts if p is not NO_OP]
        return seq(*parts) if parts else NO_OP

    def _is_simple(self, edge: PrimExpr) -> bool:
        """Whether a bound is simple enough to cut at: at most two minima and maxima."""
        depth = sum(type(item) in (Min, Max) for item in pre_order(edge))
        return depth <= 2

    def _piece(self, node: For, begin: PrimExpr, end: PrimExpr, body: Stmt,
               analyzer: Analyzer) -> Stmt:
        if body is NO_OP:
            return NO_OP
        extent = analyzer.simplify(op.sub(end, begin))
        count = as_int(extent)
        if count is not None and count <= 0:
            return NO_OP
        var = Var(node.loop_var.name, node.loop_var.dtype)
        kind = node.kind
        if count is None and kind in (ForKind.VECTORIZED, ForKind.UNROLLED):
            kind = ForKind.SERIAL
        loop = For.from_fields(var, begin, extent, kind, substitute(body, {node.loop_var: var}),
                               node.thread_binding, node.annotations)
        return self.visit(self._simplified(loop))

    def _versions(self, node: For, e: list[PrimExpr], holds: PrimExpr,
                  analyzer: Analyzer) -> Stmt | None:
        """The loop with two versions of its body: where the condition holds in the worst case, and
        elsewhere."""
        holds = analyzer.simplify(holds)
        var = node.loop_var
        if as_int(holds) is not None or not any(item is var for item in pre_order(holds)):
            return None
        self.outer.append((var, Range.from_min_extent(node.min, node.extent)))
        body = self._two_versions(node.body, e, holds, self.visit)
        self.outer.pop()
        return node.replace(body=body)

    def _certain(self, condition: PrimExpr) -> dict[Var, PrimExpr]:
        """The variables of a condition that can have only one value where it holds."""
        analyzer = self._analyzer()
        out = {}
        for var in {v for v in pre_order(condition) if isinstance(v, Var)}:
            bound = analyzer.const_int_bound(var)
            if bound.min_value == bound.max_value:
                out[var] = const(bound.min_value, var.dtype)
        return out

    def _two_versions(self, body: Stmt, e: list[PrimExpr], holds: PrimExpr,
               further: Callable[[Stmt], Stmt]) -> Stmt:
        """Two versions of a statement under an `if`: where `holds`, which implies the conditions
        `e`, and elsewhere. `further` partitions both."""
        self.budget -= sum(1 for _ in pre_order(body))
        contrary = self._analyzer().simplify(op.logical_not(holds))
        bodies = []
        for condition, version, edge in ((holds, _decided(body, e, True), 0),
                                         (contrary, body, 1)):
            self.known.append(condition)
            self.edges += edge
            # each version has loop variables of its own
            version = substitute(_renamed(version), self._certain(condition))
            bodies.append(further(self._simplified(version)))
            self.edges -= edge
            self.known.pop()
        then, other = bodies
        return IfThenElse(holds, then, None if other is NO_OP else other)


def _same(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether two expressions are the same."""
    return structural_equal(a, b) is True


def _renamed(body: Stmt) -> Stmt:
    """A copy of a statement with loop variables of its own."""
    return _Rename().visit(body)


class _Rename(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.table: dict[Var, Var] = {}

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.table.get(node, node)

    def visit_For(self, node: For) -> Stmt:
        self.table[node.loop_var] = Var(node.loop_var.name, node.loop_var.dtype)
        return self.default(node).replace(loop_var=self.table[node.loop_var])


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Loops cut so that their main part has no bound checks."""
    if not any(type(s) is IfThenElse for s in all_statements(func.body)):
        return func
    body = _Partition().visit(DropImplied().visit(func.body))
    return func.with_body(body if body is not NO_OP else Evaluate(IntImm("int32", 0)))


def LoopPartition() -> Pass:
    """Cut loops where a bound stops to matter, so that most of them has no branches."""
    return function_pass("LoopPartition", _rewrite)

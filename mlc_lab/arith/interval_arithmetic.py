"""Interval arithmetic: the set of values of an expression as its variables run over their domains.

`eval_set(e, dom_map)` keeps `e` in the interval returned; its bounds are expressions in the
variables that have no domain. One function a node type says what it does to intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping

from ..tir.expr import (
    EQ, GE, GT, LE, LT, NE, Add, And, BinaryOp, Broadcast, Call, Cast, Div, FloorDiv, FloorMod,
    IntImm, Let, Max, Min, Mod, Mul, Not, Or, PrimExpr, Ramp, Range, Select, SizeVar, Sub, Var,
    const_index,
)
from ..tir.functor import pre_order
from . import expr_util as U
from .expr_util import INDEX_DTYPES, DoesNotFit
from .int_set import (
    NEG_INF_EXPR, POS_INF_EXPR, IntSet, analyzer_or_new, as_set, is_infinite, larger, plus, smaller,
    union,
)

if TYPE_CHECKING:
    from .analyzer import Analyzer


def eval_set(e: Any, dom_map: Mapping[Var, Any], analyzer: Analyzer | None = None,
             must_fit: bool = False) -> IntSet:
    """The values of an expression (or of a Range) as variables run over `dom_map`.

    `dom_map` maps Vars to IntSets or Ranges, whose bounds may mention other variables of it. The
    result is an interval that contains every value; it may contain more. Where a bound does not fit
    its type there is none, or with `must_fit` DoesNotFit is raised.
    """
    walker = _Evaluator(dom_map, analyzer_or_new(analyzer), must_fit)
    if isinstance(e, Range):
        low = walker.of(e.min)
        if type(e.extent) is IntImm:
            high = low if e.extent.value == 1 else walker.shifted(low, e.extent.value - 1)
        else:
            high = walker.of(e.min + e.extent - 1)
        return IntSet(low.min_value, high.max_value)
    if isinstance(e, IntSet):
        return walker.of_set(e)
    return walker.of(const_index(e))


class _Evaluator:
    """The sets of expressions while variables run over `domains`; what is found is kept."""

    def __init__(self, dom_map: Mapping[Any, Any], analyzer: Analyzer, must_fit: bool) -> None:
        self.domains = dom_map
        self.must_fit = must_fit
        self.analyzer = analyzer
        self.sets: dict[PrimExpr, IntSet] = {}
        self.depth = 0

    def of(self, e: PrimExpr) -> IntSet:
        """The set of values of an expression."""
        kind = type(e)
        if kind is IntImm:
            return IntSet(e, e)
        if kind is Var or kind is SizeVar:
            return self.of_var(e)
        visit = _EVAL.get(kind)
        if visit is None:
            return self.unknown(e)
        try:
            return visit(self, e)
        except DoesNotFit:
            return self.unfit()

    def unfit(self) -> IntSet:
        """What a set is of which a bound does not fit its type."""
        if self.must_fit:
            raise DoesNotFit
        return IntSet.everything()

    def of_var(self, var: PrimExpr) -> IntSet:
        found = self.sets.get(var)
        if found is None:
            domain = self.domains.get(var)
            if domain is None:
                found = IntSet(var, var)
            else:
                found = as_set(domain)
                if not (found.min_value is var and found.max_value is var):
                    found = self.of_set(found)
            self.sets[var] = found
        return found

    def of_set(self, found: IntSet) -> IntSet:
        """A domain whose own bounds run over other domains."""
        low, high = found.min_value, found.max_value
        if type(low) is IntImm and type(high) is IntImm or self.depth > 8:
            return found
        self.depth += 1
        low = low if is_infinite(low) else self.of(low).min_value
        high = high if is_infinite(high) else self.of(high).max_value
        self.depth -= 1
        return IntSet(low, high)

    def unknown(self, e: PrimExpr) -> IntSet:
        """What is not analysed: a point if none of the variables is in it."""
        for item in pre_order(e):
            if isinstance(item, Var) and item in self.domains:
                return IntSet.everything()
        return IntSet(e, e)

    def shifted(self, s: IntSet, c: int) -> IntSet:
        """The set moved by a number."""
        try:
            low = s.min_value if is_infinite(s.min_value) else plus(s.min_value, c)
            high = s.max_value if is_infinite(s.max_value) else plus(s.max_value, c)
        except DoesNotFit:
            return self.unfit()
        return IntSet(low, high)


# ------------------------------------------------------------------------------- two operands


def _bound(s: _Evaluator, build: Callable, a: PrimExpr, b: PrimExpr, infinity: PrimExpr
           ) -> PrimExpr:
    """build(a, b) in simple form; `infinity` where one of them is without bound."""
    if a is NEG_INF_EXPR or a is POS_INF_EXPR or b is NEG_INF_EXPR or b is POS_INF_EXPR:
        return infinity
    out = build(a, b)
    return out if type(out) is IntImm else s.analyzer.simplify(out)


def _simple(s: _Evaluator, build: Callable, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    out = build(a, b)
    return out if type(out) is IntImm else s.analyzer.simplify(out)


def _of_intervals(case: Callable[[_Evaluator, Any, IntSet, IntSet], IntSet]) -> Callable:
    """The visit of a node with two operands: `case` is asked for intervals, not empty, not points.

    A node whose operands are points is a point itself.
    """

    def visit(s: _Evaluator, e: BinaryOp) -> IntSet:
        a, b = s.of(e.a), s.of(e.b)
        if a.min_value is a.max_value and b.min_value is b.max_value:
            if a.min_value is e.a and b.min_value is e.b:
                return IntSet(e, e)
            return IntSet.single_point(U.BUILDERS[type(e)](a.min_value, b.min_value))
        if a.is_nothing() or b.is_nothing():
            return IntSet.nothing()
        return case(s, e, a, b)

    return visit


def _add(s: _Evaluator, e: Add, a: IntSet, b: IntSet) -> IntSet:
    return IntSet(_bound(s, U.add, a.min_value, b.min_value, NEG_INF_EXPR),
                  _bound(s, U.add, a.max_value, b.max_value, POS_INF_EXPR))


def _sub(s: _Evaluator, e: Sub, a: IntSet, b: IntSet) -> IntSet:
    return IntSet(_bound(s, U.sub, a.min_value, b.max_value, NEG_INF_EXPR),
                  _bound(s, U.sub, a.max_value, b.min_value, POS_INF_EXPR))


def _scaled(s: _Evaluator, build: Callable, a: IntSet, factor: PrimExpr) -> IntSet:
    """build(x, factor) for all x of `a`, where that is monotonic: the sign of `factor` is known."""
    sign = _sign(s, factor)
    if sign == 0:
        return IntSet.everything()
    first, last = (a.min_value, a.max_value) if sign > 0 else (a.max_value, a.min_value)
    return IntSet(_bound(s, build, first, factor, NEG_INF_EXPR),
                  _bound(s, build, last, factor, POS_INF_EXPR))


def _sign(s: _Evaluator, e: PrimExpr) -> int:
    """1 where e >= 0 is known, -1 where e <= 0 is, else 0."""
    if type(e) is IntImm:
        return 1 if e.value >= 0 else -1
    if s.analyzer.can_prove_greater_equal(e, 0):
        return 1
    return -1 if s.analyzer.can_prove_less(e, 1) else 0


def _mul(s: _Evaluator, e: Mul, a: IntSet, b: IntSet) -> IntSet:
    if a.is_single_point():
        a, b = b, a
    if b.is_single_point():
        factor = b.min_value
        if type(factor) is IntImm and factor.value == 0:
            return IntSet(factor, factor)
        return _scaled(s, U.mul, a, factor)
    corners = [v.value for v in (a.min_value, a.max_value, b.min_value, b.max_value)
               if type(v) is IntImm]
    if len(corners) == 4:
        values = [x * y for x in corners[:2] for y in corners[2:]]
        return IntSet(U.imm(min(values), e.dtype), U.imm(max(values), e.dtype))
    return IntSet.everything()


def _divide(build: Callable) -> Callable:
    def case(s: _Evaluator, e: PrimExpr, a: IntSet, b: IntSet) -> IntSet:
        divisor = b.min_value
        if e.dtype not in INDEX_DTYPES or not b.is_single_point() or (
                type(divisor) is IntImm and divisor.value == 0):
            return IntSet.everything()
        return _scaled(s, build, a, divisor)

    return _of_intervals(case)


def _floormod(s: _Evaluator, e: FloorMod, a: IntSet, b: IntSet) -> IntSet:
    if not b.is_single_point() or e.dtype not in INDEX_DTYPES:
        return IntSet.everything()
    divisor = b.min_value
    if not s.analyzer.can_prove_greater_equal(divisor, 1):
        if type(divisor) is IntImm and divisor.value < 0:
            return IntSet(U.imm(divisor.value + 1, e.dtype), U.imm(0, e.dtype))
        if not s.analyzer.can_prove_greater_equal(divisor, 0):
            return IntSet.everything()
    if not is_infinite(a.min_value) and not is_infinite(a.max_value):
        first = _simple(s, U.floordiv, a.min_value, divisor)
        last = _simple(s, U.floordiv, a.max_value, divisor)
        if s.analyzer.can_prove_equal(first, last):
            start = _simple(s, U.mul, first, divisor)
            return IntSet(_simple(s, U.sub, a.min_value, start),
                          _simple(s, U.sub, a.max_value, start))
    return IntSet(U.imm(0, e.dtype), _simple(s, U.sub, divisor, U.imm(1, e.dtype)))


def _mod(s: _Evaluator, e: Mod, a: IntSet, b: IntSet) -> IntSet:
    if not b.is_single_point() or e.dtype not in INDEX_DTYPES:
        return IntSet.everything()
    divisor = b.min_value
    if not s.analyzer.can_prove_greater_equal(divisor, 1):
        return IntSet.everything()
    limit = _simple(s, U.sub, divisor, U.imm(1, e.dtype))
    if a.can_prove_non_negative(s.analyzer):
        if a.has_upper_bound() and s.analyzer.can_prove(U.lt(a.max_value, divisor)):
            return a
        return IntSet(U.imm(0, e.dtype), limit)
    return IntSet(_simple(s, U.sub, U.imm(0, e.dtype), limit), limit)


def _min(s: _Evaluator, e: Min, a: IntSet, b: IntSet) -> IntSet:
    return IntSet(smaller(a.min_value, b.min_value, s.analyzer),
                  smaller(a.max_value, b.max_value, s.analyzer))


def _max(s: _Evaluator, e: Max, a: IntSet, b: IntSet) -> IntSet:
    return IntSet(larger(a.min_value, b.min_value, s.analyzer),
                  larger(a.max_value, b.max_value, s.analyzer))


# ------------------------------------------------------------------------------- other nodes


def _compare(s: _Evaluator, e: PrimExpr) -> IntSet:
    kids = [s.of(k) for k in e.children()]
    if all(k.min_value is k.max_value for k in kids):
        return IntSet(e, e) if all(k.min_value is o for k, o in zip(kids, e.children())) else (
            IntSet(U.FALSE, U.TRUE))
    return IntSet(U.FALSE, U.TRUE)


def _select(s: _Evaluator, e: Select) -> IntSet:
    cond = s.of(e.condition)
    a, b = s.of(e.true_value), s.of(e.false_value)
    if (cond.min_value is e.condition and a.is_single_point() and b.is_single_point()
            and a.min_value is e.true_value and b.min_value is e.false_value):
        return IntSet(e, e)
    return union([a, b], s.analyzer)


def _call(s: _Evaluator, e: Call) -> IntSet:
    name = getattr(e.op, "name", None)
    if name == "tir.if_then_else":
        found = s.unknown(e)
        return found if not found.is_everything() else union(
            [s.of(e.args[1]), s.of(e.args[2])], s.analyzer)
    if name == "tir.likely":
        return s.of(e.args[0])
    if name == "tir.shift_right" and type(e.args[1]) is IntImm and e.args[1].value >= 0:
        return s.of(FloorDiv(e.args[0], IntImm(e.dtype, 1 << e.args[1].value)))
    return s.unknown(e)


def _cast(s: _Evaluator, e: Cast) -> IntSet:
    if e.dtype not in INDEX_DTYPES or e.value.dtype not in INDEX_DTYPES:
        return s.unknown(e)
    inner = s.of(e.value)
    if inner.is_single_point() and inner.min_value is e.value:
        return IntSet(e, e)
    return IntSet(*(v if is_infinite(v) else v.astype(e.dtype)
                    for v in (inner.min_value, inner.max_value)))


def _ramp(s: _Evaluator, e: Ramp) -> IntSet:
    base, stride = s.of(e.base), s.of(e.stride)
    if stride.is_single_point() and type(stride.min_value) is IntImm:
        span = stride.min_value.value * (e.lanes - 1)
        low, high = base.min_value, base.max_value
        if span >= 0:
            return IntSet(low, high if is_infinite(high) else plus(high, span))
        return IntSet(low if is_infinite(low) else plus(low, span), high)
    return IntSet.everything()


def _let(s: _Evaluator, e: Let) -> IntSet:
    s.sets[e.var] = s.of(e.value)
    return s.of(e.body)


_EVAL: dict[type, Callable[[_Evaluator, Any], IntSet]] = {
    Add: _of_intervals(_add), Sub: _of_intervals(_sub), Mul: _of_intervals(_mul),
    FloorDiv: _divide(U.floordiv), Div: _divide(U.div), FloorMod: _of_intervals(_floormod),
    Mod: _of_intervals(_mod), Min: _of_intervals(_min), Max: _of_intervals(_max),
    Select: _select, Call: _call, Cast: _cast, Ramp: _ramp,
    Broadcast: lambda s, e: s.of(e.value), Let: _let,
    **dict.fromkeys((EQ, NE, LT, LE, GT, GE, And, Or, Not), _compare),
}

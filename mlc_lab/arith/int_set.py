"""Sets of integers with symbolic bounds, and the set of values of an expression.

`eval_set(e, dom_map)` is interval arithmetic: as the variables in `dom_map` run over their
domains, `e` stays in the interval returned. The bounds are expressions in the other variables.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from ..tir.expr import (
    EQ, GE, GT, LE, LT, NE, Add, And, Broadcast, Call, Cast, Div, FloorDiv, FloorMod, IntImm, Let,
    Max, Min, Mod, Mul, Not, Or, PrimExpr, Ramp, Range, Select, SizeVar, Sub, Var, const_index,
    int32,
)
from ..tir.functor import pre_order
from . import expr_util as U
from .expr_util import INDEX_DTYPES, same

#: stand for no bound above and below; compare with `is`
POS_INF_EXPR = Var("pos_inf", "handle")
NEG_INF_EXPR = Var("neg_inf", "handle")


class IntSet:
    """The integers min_value .. max_value (both included, symbolic or without bound)."""

    __slots__ = ("min_value", "max_value")

    def __init__(self, min_value: Any, max_value: Any) -> None:
        self.min_value = const_index(min_value)
        self.max_value = const_index(max_value)

    # ------------------------------------------------------------------- making

    @staticmethod
    def interval(min_value: Any, max_value: Any) -> "IntSet":
        """min_value .. max_value, both included."""
        return IntSet(min_value, max_value)

    @staticmethod
    def single_point(point: Any) -> "IntSet":
        """One value."""
        point = const_index(point)
        return IntSet(point, point)

    @staticmethod
    def vector(vec: PrimExpr) -> "IntSet":
        """The lanes of a vector expression."""
        return eval_set(vec, {})

    @staticmethod
    def nothing() -> "IntSet":
        """The empty set."""
        return IntSet(POS_INF_EXPR, NEG_INF_EXPR)

    @staticmethod
    def everything() -> "IntSet":
        """All integers."""
        return IntSet(NEG_INF_EXPR, POS_INF_EXPR)

    @staticmethod
    def from_range(rng: Range) -> "IntSet":
        """The values of a Range."""
        return IntSet.from_min_extent(rng.min, rng.extent)

    @staticmethod
    def from_min_extent(low: PrimExpr, extent: PrimExpr) -> "IntSet":
        """low .. low + extent - 1."""
        if type(extent) is IntImm:
            if extent.value == 1:
                return IntSet(low, low)
            return IntSet(low, _plus(low, extent.value - 1))
        return IntSet(low, low + extent - 1)

    # ------------------------------------------------------------------- asking

    def is_nothing(self) -> bool:
        """Whether the set is known to be empty."""
        return self.min_value is POS_INF_EXPR or self.max_value is NEG_INF_EXPR

    def is_everything(self) -> bool:
        """Whether the set has no bounds."""
        return self.min_value is NEG_INF_EXPR and self.max_value is POS_INF_EXPR

    def is_single_point(self) -> bool:
        """Whether the set is one value by the look of its bounds."""
        return self.min_value is self.max_value or same(self.min_value, self.max_value)

    def has_lower_bound(self) -> bool:
        """Whether there is a smallest value."""
        return self.min_value is not NEG_INF_EXPR and self.min_value is not POS_INF_EXPR

    def has_upper_bound(self) -> bool:
        """Whether there is a largest value."""
        return self.max_value is not NEG_INF_EXPR and self.max_value is not POS_INF_EXPR

    def point_value(self) -> PrimExpr:
        """The one value of a single point."""
        return self.min_value

    def can_prove_positive(self, analyzer: Any = None) -> bool:
        """Whether all values are > 0."""
        return self.has_lower_bound() and _analyzer(analyzer).can_prove_greater_equal(
            self.min_value, 1)

    def can_prove_non_negative(self, analyzer: Any = None) -> bool:
        """Whether all values are >= 0."""
        return self.has_lower_bound() and _analyzer(analyzer).can_prove_greater_equal(
            self.min_value, 0)

    def can_prove_negative(self, analyzer: Any = None) -> bool:
        """Whether all values are < 0."""
        return self.has_upper_bound() and _analyzer(analyzer).can_prove_less(self.max_value, 0)

    def can_prove_non_positive(self, analyzer: Any = None) -> bool:
        """Whether all values are <= 0."""
        return self.has_upper_bound() and _analyzer(analyzer).can_prove_less(self.max_value, 1)

    def can_prove_single_point(self, analyzer: Any = None) -> bool:
        """Whether the set is one value."""
        return self.is_single_point() or (
            self.has_lower_bound() and self.has_upper_bound()
            and _analyzer(analyzer).can_prove_equal(self.min_value, self.max_value))

    def cover_range(self, default: Range | None = None) -> Range:
        """The Range of the set; `default` where it is not bounded."""
        if self.has_lower_bound() and self.has_upper_bound():
            if self.is_single_point():
                return Range.from_min_extent(self.min_value, IntImm(self.min_value.dtype, 1))
            extent = _simple(self.max_value - self.min_value + 1)
            return Range.from_min_extent(self.min_value, extent)
        if default is None:
            raise ValueError(f"{self!r} has no range: it is not bounded")
        return default

    def __repr__(self) -> str:
        return f"IntSet[{self.min_value!r}, {self.max_value!r}]"


IntervalSet = IntSet


def _analyzer(given: Any) -> Any:
    if given is not None:
        return given
    from .analyzer import Analyzer

    return Analyzer()


def _simple(e: PrimExpr) -> PrimExpr:
    return _analyzer(None).simplify(e)


def _plus(a: PrimExpr, c: int) -> PrimExpr:
    if type(a) is IntImm:
        return int32(a.value + c) if a.dtype == "int32" else IntImm(a.dtype, a.value + c)
    return a + c


def _is_inf(e: PrimExpr) -> bool:
    return e is POS_INF_EXPR or e is NEG_INF_EXPR


def _min(a: PrimExpr, b: PrimExpr, analyzer: Any) -> PrimExpr:
    if a is NEG_INF_EXPR or b is NEG_INF_EXPR:
        return NEG_INF_EXPR
    if a is POS_INF_EXPR or a is b:
        return b
    if b is POS_INF_EXPR:
        return a
    return analyzer.simplify(Min(a, b)) if not _both_const(a, b) else U.minimum(a, b)


def _max(a: PrimExpr, b: PrimExpr, analyzer: Any) -> PrimExpr:
    if a is POS_INF_EXPR or b is POS_INF_EXPR:
        return POS_INF_EXPR
    if a is NEG_INF_EXPR or a is b:
        return b
    if b is NEG_INF_EXPR:
        return a
    return analyzer.simplify(Max(a, b)) if not _both_const(a, b) else U.maximum(a, b)


def _both_const(a: PrimExpr, b: PrimExpr) -> bool:
    return type(a) is IntImm and type(b) is IntImm


def union(sets: Sequence[IntSet], analyzer: Any = None) -> IntSet:
    """The smallest interval that contains all of `sets`."""
    analyzer = _analyzer(analyzer)
    low, high = POS_INF_EXPR, NEG_INF_EXPR
    for item in sets:
        if not item.is_nothing():
            low, high = _min(low, item.min_value, analyzer), _max(high, item.max_value, analyzer)
    return IntSet(low, high)


union_lower_bound = union


def intersect(sets: Sequence[IntSet], analyzer: Any = None) -> IntSet:
    """The interval common to all of `sets`; `nothing` where that is known to be empty."""
    analyzer = _analyzer(analyzer)
    low, high = NEG_INF_EXPR, POS_INF_EXPR
    for item in sets:
        if item.is_nothing():
            return IntSet.nothing()
        low = item.min_value if low is NEG_INF_EXPR else (
            low if item.min_value is NEG_INF_EXPR else _max(low, item.min_value, analyzer))
        high = item.max_value if high is POS_INF_EXPR else (
            high if item.max_value is POS_INF_EXPR else _min(high, item.max_value, analyzer))
    if not _is_inf(low) and not _is_inf(high) and analyzer.can_prove(U.lt(high, low)):
        return IntSet.nothing()
    return IntSet(low, high)


def as_set(value: Any) -> IntSet:
    """A Range, IntSet, expression or int as a set."""
    if isinstance(value, IntSet):
        return value
    if isinstance(value, Range):
        return IntSet.from_range(value)
    return IntSet.single_point(value)


def eval_set(e: Any, dom_map: Mapping[Var, Any], analyzer: Any = None) -> IntSet:
    """The values of an expression (or of a Range) as variables run over `dom_map`.

    `dom_map` maps Vars to IntSets or Ranges, whose bounds may mention other variables of it. The
    result is an interval that contains every value; it may contain more.
    """
    walker = _Evaluator(dom_map, _analyzer(analyzer))
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
    def __init__(self, dom_map: Mapping[Var, Any], analyzer: Any) -> None:
        self.domains = dom_map
        self.analyzer = analyzer
        self.sets: dict[Var, IntSet] = {}
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
        return visit(self, e)

    def of_var(self, var: Var) -> IntSet:
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
        low = low if _is_inf(low) else self.of(low).min_value
        high = high if _is_inf(high) else self.of(high).max_value
        self.depth -= 1
        return IntSet(low, high)

    def unknown(self, e: PrimExpr) -> IntSet:
        """What is not analysed: a point if none of the variables is in it."""
        for item in pre_order(e):
            if isinstance(item, Var) and item in self.domains:
                return IntSet.everything()
        return IntSet(e, e)

    def shifted(self, s: IntSet, c: int) -> IntSet:
        low = s.min_value if _is_inf(s.min_value) else _plus(s.min_value, c)
        high = s.max_value if _is_inf(s.max_value) else _plus(s.max_value, c)
        return IntSet(low, high)

    def simple(self, e: PrimExpr) -> PrimExpr:
        return self.analyzer.simplify(e)


def _op(s: _Evaluator, build: Callable, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """build(a, b) in simple form; infinities are the callers' business."""
    out = build(a, b)
    return out if type(out) is IntImm else s.simple(out)


def _point(e: Any, a: IntSet, b: IntSet) -> IntSet | None:
    """A node whose operands are points is a point itself."""
    if a.min_value is a.max_value and b.min_value is b.max_value:
        if a.min_value is e.a and b.min_value is e.b:
            return IntSet(e, e)
        out = U.BUILDERS[type(e)](a.min_value, b.min_value)
        return IntSet(out, out)
    return None


def _add(s: _Evaluator, e: Add) -> IntSet:
    a, b = s.of(e.a), s.of(e.b)
    found = _point(e, a, b)
    if found is not None:
        return found
    if a.is_nothing() or b.is_nothing():
        return IntSet.nothing()
    low = NEG_INF_EXPR if a.min_value is NEG_INF_EXPR or b.min_value is NEG_INF_EXPR else _op(
        s, U.add, a.min_value, b.min_value)
    high = POS_INF_EXPR if a.max_value is POS_INF_EXPR or b.max_value is POS_INF_EXPR else _op(
        s, U.add, a.max_value, b.max_value)
    return IntSet(low, high)


def _sub(s: _Evaluator, e: Sub) -> IntSet:
    a, b = s.of(e.a), s.of(e.b)
    found = _point(e, a, b)
    if found is not None:
        return found
    if a.is_nothing() or b.is_nothing():
        return IntSet.nothing()
    low = NEG_INF_EXPR if a.min_value is NEG_INF_EXPR or b.max_value is POS_INF_EXPR else _op(
        s, U.sub, a.min_value, b.max_value)
    high = POS_INF_EXPR if a.max_value is POS_INF_EXPR or b.min_value is NEG_INF_EXPR else _op(
        s, U.sub, a.max_value, b.min_value)
    return IntSet(low, high)


def _sign(s: _Evaluator, e: PrimExpr) -> int:
    if type(e) is IntImm:
        return (e.value > 0) - (e.value < 0) or 1
    if s.analyzer.can_prove_greater_equal(e, 0):
        return 1
    return -1 if s.analyzer.can_prove_less(e, 1) else 0


def _mul(s: _Evaluator, e: Mul) -> IntSet:
    a, b = s.of(e.a), s.of(e.b)
    found = _point(e, a, b)
    if found is not None:
        return found
    if a.is_nothing() or b.is_nothing():
        return IntSet.nothing()
    if a.is_single_point():
        a, b = b, a
    if not b.is_single_point():
        corners = (a.min_value, a.max_value, b.min_value, b.max_value)
        if all(type(v) is IntImm for v in corners):
            values = [x.value * y.value for x in corners[:2] for y in corners[2:]]
            return IntSet(U.imm(min(values), e.dtype), U.imm(max(values), e.dtype))
        return IntSet.everything()
    factor = b.min_value
    sign = _sign(s, factor)
    if sign == 0:
        return IntSet.everything()
    if type(factor) is IntImm and factor.value == 0:
        return IntSet(factor, factor)
    low = a.min_value if _is_inf(a.min_value) else _op(s, U.mul, a.min_value, factor)
    high = a.max_value if _is_inf(a.max_value) else _op(s, U.mul, a.max_value, factor)
    if sign > 0:
        return IntSet(low, high)
    return IntSet(NEG_INF_EXPR if high is POS_INF_EXPR else high,
                  POS_INF_EXPR if low is NEG_INF_EXPR else low)


def _divide(build: Callable) -> Callable:
    def visit(s: _Evaluator, e: Any) -> IntSet:
        a, b = s.of(e.a), s.of(e.b)
        found = _point(e, a, b)
        if found is not None:
            return found
        if a.is_nothing() or b.is_nothing():
            return IntSet.nothing()
        if e.dtype not in INDEX_DTYPES or not b.is_single_point():
            return IntSet.everything()
        divisor = b.min_value
        if type(divisor) is IntImm and divisor.value == 0:
            return IntSet.everything()
        sign = _sign(s, divisor)
        if sign == 0:
            return IntSet.everything()
        low = a.min_value if _is_inf(a.min_value) else _op(s, build, a.min_value, divisor)
        high = a.max_value if _is_inf(a.max_value) else _op(s, build, a.max_value, divisor)
        if sign > 0:
            return IntSet(low, high)
        return IntSet(NEG_INF_EXPR if high is POS_INF_EXPR else high,
                      POS_INF_EXPR if low is NEG_INF_EXPR else low)

    return visit


def _floormod(s: _Evaluator, e: FloorMod) -> IntSet:
    a, b = s.of(e.a), s.of(e.b)
    found = _point(e, a, b)
    if found is not None:
        return found
    if a.is_nothing() or b.is_nothing():
        return IntSet.nothing()
    if not b.is_single_point() or e.dtype not in INDEX_DTYPES:
        return IntSet.everything()
    divisor = b.min_value
    if not s.analyzer.can_prove_greater_equal(divisor, 1):
        if type(divisor) is IntImm and divisor.value < 0:
            return IntSet(U.imm(divisor.value + 1, e.dtype), U.imm(0, e.dtype))
        if not s.analyzer.can_prove_greater_equal(divisor, 0):
            return IntSet.everything()
    if not _is_inf(a.min_value) and not _is_inf(a.max_value):
        first = _op(s, U.floordiv, a.min_value, divisor)
        last = _op(s, U.floordiv, a.max_value, divisor)
        if s.analyzer.can_prove_equal(first, last):
            start = _op(s, U.mul, first, divisor)
            return IntSet(_op(s, U.sub, a.min_value, start), _op(s, U.sub, a.max_value, start))
    return IntSet(U.imm(0, e.dtype), _op(s, U.sub, divisor, U.imm(1, e.dtype)))


def _mod(s: _Evaluator, e: Mod) -> IntSet:
    a, b = s.of(e.a), s.of(e.b)
    found = _point(e, a, b)
    if found is not None:
        return found
    if not b.is_single_point() or e.dtype not in INDEX_DTYPES:
        return IntSet.everything()
    divisor = b.min_value
    if not s.analyzer.can_prove_greater_equal(divisor, 1):
        return IntSet.everything()
    limit = _op(s, U.sub, divisor, U.imm(1, e.dtype))
    if a.can_prove_non_negative(s.analyzer):
        if a.has_upper_bound() and s.analyzer.can_prove(U.lt(a.max_value, divisor)):
            return a
        return IntSet(U.imm(0, e.dtype), limit)
    return IntSet(_op(s, U.sub, U.imm(0, e.dtype), limit), limit)


def _min_node(s: _Evaluator, e: Min) -> IntSet:
    a, b = s.of(e.a), s.of(e.b)
    found = _point(e, a, b)
    if found is not None:
        return found
    return IntSet(_min(a.min_value, b.min_value, s.analyzer),
                  _lesser(a.max_value, b.max_value, s))


def _max_node(s: _Evaluator, e: Max) -> IntSet:
    a, b = s.of(e.a), s.of(e.b)
    found = _point(e, a, b)
    if found is not None:
        return found
    low = b.min_value if a.min_value is NEG_INF_EXPR else (
        a.min_value if b.min_value is NEG_INF_EXPR else _max(a.min_value, b.min_value, s.analyzer))
    return IntSet(low, _max(a.max_value, b.max_value, s.analyzer))


def _lesser(a: PrimExpr, b: PrimExpr, s: _Evaluator) -> PrimExpr:
    if a is POS_INF_EXPR:
        return b
    return a if b is POS_INF_EXPR else _min(a, b, s.analyzer)


def _compare(s: _Evaluator, e: Any) -> IntSet:
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
    return IntSet(*(v if _is_inf(v) else v.astype(e.dtype)
                    for v in (inner.min_value, inner.max_value)))


def _ramp(s: _Evaluator, e: Ramp) -> IntSet:
    base, stride = s.of(e.base), s.of(e.stride)
    if stride.is_single_point() and type(stride.min_value) is IntImm:
        span = stride.min_value.value * (e.lanes - 1)
        low, high = base.min_value, base.max_value
        if span >= 0:
            return IntSet(low, high if _is_inf(high) else _plus(high, span))
        return IntSet(low if _is_inf(low) else _plus(low, span), high)
    return IntSet.everything()


def _let(s: _Evaluator, e: Let) -> IntSet:
    s.sets[e.var] = s.of(e.value)
    return s.of(e.body)


_EVAL: dict[type, Callable[[_Evaluator, Any], IntSet]] = {
    Add: _add, Sub: _sub, Mul: _mul, FloorDiv: _divide(U.floordiv), Div: _divide(U.div),
    FloorMod: _floormod, Mod: _mod, Min: _min_node, Max: _max_node, Select: _select, Call: _call,
    Cast: _cast, Ramp: _ramp, Broadcast: lambda s, e: s.of(e.value), Let: _let,
    **dict.fromkeys((EQ, NE, LT, LE, GT, GE, And, Or, Not), _compare),
}

"""Sets of integers with symbolic bounds, their union and intersection.

A set is an interval; which set an expression has is in `interval_arithmetic.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..above import above
from ..tir.expr import IntImm, Max, Min, PrimExpr, Range, Var, const_index
from . import expr_util as U
from .expr_util import DoesNotFit, imm, same

if TYPE_CHECKING:
    from .analyzer import Analyzer

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
        return above("eval_set")(vec, {})

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
            try:
                return IntSet(low, plus(low, extent.value - 1))
            except DoesNotFit:
                return IntSet(low, POS_INF_EXPR)
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

    def can_prove_positive(self, analyzer: Analyzer | None = None) -> bool:
        """Whether all values are > 0."""
        return self.has_lower_bound() and analyzer_or_new(analyzer).can_prove_greater_equal(
            self.min_value, 1)

    def can_prove_non_negative(self, analyzer: Analyzer | None = None) -> bool:
        """Whether all values are >= 0."""
        return self.has_lower_bound() and analyzer_or_new(analyzer).can_prove_greater_equal(
            self.min_value, 0)

    def can_prove_negative(self, analyzer: Analyzer | None = None) -> bool:
        """Whether all values are < 0."""
        return self.has_upper_bound() and analyzer_or_new(analyzer).can_prove_less(
            self.max_value, 0)

    def can_prove_non_positive(self, analyzer: Analyzer | None = None) -> bool:
        """Whether all values are <= 0."""
        return self.has_upper_bound() and analyzer_or_new(analyzer).can_prove_less(
            self.max_value, 1)

    def can_prove_single_point(self, analyzer: Analyzer | None = None) -> bool:
        """Whether the set is one value."""
        return self.is_single_point() or (
            self.has_lower_bound() and self.has_upper_bound()
            and analyzer_or_new(analyzer).can_prove_equal(self.min_value, self.max_value))

    def cover_range(self, default: Range | None = None) -> Range:
        """The Range of the set; `default` where it is not bounded.

        Raises ValueError where it is not bounded and there is no default.
        """
        if self.has_lower_bound() and self.has_upper_bound():
            if self.is_single_point():
                return Range.from_min_extent(self.min_value, IntImm(self.min_value.dtype, 1))
            extent = analyzer_or_new(None).simplify(self.max_value - self.min_value + 1)
            return Range.from_min_extent(self.min_value, extent)
        if default is None:
            raise ValueError(f"{self!r} has no range: it is not bounded")
        return default

    def __repr__(self) -> str:
        return f"IntSet[{self.min_value!r}, {self.max_value!r}]"


IntervalSet = IntSet


def pos_inf() -> PrimExpr:
    """What stands for no bound above."""
    return POS_INF_EXPR


def neg_inf() -> PrimExpr:
    """What stands for no bound below."""
    return NEG_INF_EXPR


def analyzer_or_new(given: Analyzer | None) -> Analyzer:
    """The analyzer that was given, or one that knows nothing."""
    if given is not None:
        return given
    return above("Analyzer")()


def plus(a: PrimExpr, c: int) -> PrimExpr:
    """a + c; a constant stays one. Raises DoesNotFit where its type does not hold it."""
    return imm(a.value + c, a.dtype) if type(a) is IntImm else a + c


def is_infinite(e: PrimExpr) -> bool:
    """Whether a bound is one of the two infinities."""
    return e is POS_INF_EXPR or e is NEG_INF_EXPR


def _choice(build: type, fold: Callable, absorbing: PrimExpr, neutral: PrimExpr) -> Callable:
    def choose(a: PrimExpr, b: PrimExpr, analyzer: Analyzer) -> PrimExpr:
        if a is absorbing or b is absorbing:
            return absorbing
        if a is neutral or a is b:
            return b
        if b is neutral:
            return a
        if type(a) is IntImm and type(b) is IntImm:
            return fold(a, b)
        return analyzer.simplify(build(a, b))

    return choose


#: (a, b, analyzer) -> the smaller, and the larger, of two bounds
smaller = _choice(Min, U.minimum, NEG_INF_EXPR, POS_INF_EXPR)
larger = _choice(Max, U.maximum, POS_INF_EXPR, NEG_INF_EXPR)


def union(sets: Sequence[IntSet], analyzer: Analyzer | None = None) -> IntSet:
    """The smallest interval that contains all of `sets`."""
    analyzer = analyzer_or_new(analyzer)
    low, high = POS_INF_EXPR, NEG_INF_EXPR
    for item in sets:
        if not item.is_nothing():
            low = smaller(low, item.min_value, analyzer)
            high = larger(high, item.max_value, analyzer)
    return IntSet(low, high)


union_lower_bound = union


def intersect(sets: Sequence[IntSet], analyzer: Analyzer | None = None) -> IntSet:
    """The interval common to all of `sets`; `nothing` where that is known to be empty."""
    analyzer = analyzer_or_new(analyzer)
    low, high = NEG_INF_EXPR, POS_INF_EXPR
    for item in sets:
        if item.is_nothing():
            return IntSet.nothing()
        low = larger(low, item.min_value, analyzer)
        high = smaller(high, item.max_value, analyzer)
    if not is_infinite(low) and not is_infinite(high) and analyzer.can_prove(U.lt(high, low)):
        return IntSet.nothing()
    return IntSet(low, high)


def as_set(value: Any) -> IntSet:
    """A Range, IntSet, expression or int as a set."""
    if isinstance(value, IntSet):
        return value
    if isinstance(value, Range):
        return IntSet.from_range(value)
    return IntSet.single_point(value)

"""Python's own operators on expressions: `a + b`, `a < b`, `-a` build what this package builds.

They are set from here because they need all that stands above the classes of `tir/expr.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ...ir import dtype as dt
from ..expr import EQ, NE, IntImm, IterVar, PrimExpr, StringImm, Var
from . import arithmetic, logic, math
from .conversion import cast, match_values

if TYPE_CHECKING:
    from ..expr import ExprLike

    Operator = Callable[[Any, Any], PrimExpr]


def install() -> None:
    """Give the operators to PrimExpr and, for its variable, to IterVar."""

    def forward(fn: Operator) -> Operator:
        def operator(self: PrimExpr, other: Any) -> Any:
            try:
                return fn(self, other)
            except TypeError:
                if getattr(other, "takes_operators", False):  # a whole tensor, see te/tensor.py
                    return NotImplemented
                raise

        return operator

    def reflected(fn: Operator) -> Operator:
        return lambda self, other: fn(other, self)

    table: dict[str, Operator] = {
        "add": arithmetic.add, "sub": arithmetic.sub, "mul": arithmetic.mul,
        "truediv": arithmetic.div, "floordiv": arithmetic.floordiv, "mod": arithmetic.floormod,
        "and": _either(logic.logical_and, math.bitwise_and),
        "or": _either(logic.logical_or, math.bitwise_or), "xor": math.bitwise_xor,
        "lshift": math.shift_left, "rshift": math.shift_right}
    for name, fn in table.items():
        for cls in (PrimExpr, IterVar):  # an axis computes as its variable does
            setattr(cls, f"__{name}__", forward(fn))
            setattr(cls, f"__r{name}__", reflected(fn))
    for name, fn in (("eq", logic.equal), ("ne", logic.not_equal), ("lt", logic.less),
                     ("le", logic.less_equal), ("gt", logic.greater),
                     ("ge", logic.greater_equal)):
        for cls in (PrimExpr, IterVar):
            setattr(cls, f"__{name}__", _comparison(fn))
    for cls in (PrimExpr, EQ, NE, IntImm, Var, IterVar):
        cls.__hash__ = object.__hash__
    for name, wanted in (("eq", True), ("ne", False)):  # strings are compared at once
        setattr(StringImm, f"__{name}__", _same_text(wanted))
    StringImm.__hash__ = lambda self: hash(self.value)
    PrimExpr.__neg__ = arithmetic.neg
    IterVar.__neg__ = lambda self: arithmetic.neg(self.var)
    IterVar.astype = lambda self, dtype, span=None: cast(self.var, dtype)
    PrimExpr.__invert__ = lambda self: (
        logic.logical_not(self) if dt.is_bool(self.dtype) else math.bitwise_not(self))
    PrimExpr.equal = lambda self, other, span=None: logic.equal(self, other)


def _same_text(wanted: bool) -> Callable[[StringImm, object], bool]:
    def compare(self: StringImm, other: object) -> bool:
        return wanted == (self.value == getattr(other, "value", other))

    return compare


def _comparison(fn: Operator) -> Operator:
    def compare(self: PrimExpr, other: object) -> Any:
        if other is None or isinstance(other, (str, tuple, list, dict)):
            return NotImplemented
        return fn(self, other)

    return compare


def _either(of_conditions: Operator, of_bits: Operator) -> Operator:
    """& and | are `and` and `or` on conditions, and work on the bits of integers."""

    def combine(a: ExprLike, b: ExprLike) -> PrimExpr:
        a, b = match_values(a, b)
        return of_conditions(a, b) if dt.is_bool(a.dtype) else of_bits(a, b)

    return combine


__all__ = ["install"]

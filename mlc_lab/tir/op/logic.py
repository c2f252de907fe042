"""Conditions: comparisons, and / or / not, and the values chosen by a condition."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Callable

from ...ir import dtype as dt
from ..expr import And, Call, FloatImm, IntImm, Not, Or, PrimExpr, Select
from ..numbers import COMPARE, fit
from .arithmetic import folding_operator
from .conversion import convert, match_types, match_values

if TYPE_CHECKING:
    from ..expr import ExprLike

# ------------------------------------------------------------------------------- comparisons


def fold_comparison(cls: type, a: PrimExpr, b: PrimExpr) -> IntImm | None:
    """True or False where two constants decide a comparison, else None."""
    if type(a) is IntImm and type(b) is IntImm:
        return IntImm("bool", int(COMPARE[cls](a.value, b.value)))
    if type(a) is FloatImm and type(b) is FloatImm:
        try:
            rounded = fit(a.dtype)
        except ValueError:  # a float8 without the package that knows it
            return None
        return IntImm("bool", int(COMPARE[cls](rounded(a.value), rounded(b.value))))
    return None


equal, not_equal, less, less_equal, greater, greater_equal = (
    folding_operator(cls, fold_comparison) for cls in COMPARE)

# ------------------------------------------------------------------------------- connectives


def _condition(a: ExprLike) -> PrimExpr:
    if isinstance(a, bool):
        return IntImm("bool", int(a))
    a = convert(a)
    if not dt.is_bool(a.dtype):
        raise TypeError(f"expected a condition (bool), got a value of type {a.dtype}: compare it, "
                        "for example with != 0")
    return a


def _connective(cls: type, decisive: bool) -> Callable[..., PrimExpr]:
    """The builder of And or Or; an operand known to be `decisive` is the result by itself."""

    def build(a: ExprLike, b: ExprLike, span: object = None) -> PrimExpr:
        a, b = _condition(a), _condition(b)
        if type(a) is IntImm:
            return a if bool(a.value) is decisive else b
        if type(b) is IntImm:
            return b if bool(b.value) is decisive else a
        return cls(*match_types(a, b))

    build.__name__ = f"logical_{cls.__name__.lower()}"
    build.__doc__ = f"{cls.__doc__}, for conditions. Raises TypeError for values of other types."
    return build


logical_and, logical_or = _connective(And, False), _connective(Or, True)


def logical_not(a: ExprLike, span: object = None) -> PrimExpr:
    """not a, for conditions. Raises TypeError for a value of another type."""
    a = _condition(a)
    if type(a) is IntImm:
        return IntImm("bool", int(not a.value))
    return Not(a)


def all(*args: ExprLike, span: object = None) -> PrimExpr:
    """The conjunction of conditions. Raises ValueError if there are none."""
    return _joined("all", logical_and, args)


def any(*args: ExprLike, span: object = None) -> PrimExpr:
    """The disjunction of conditions. Raises ValueError if there are none."""
    return _joined("any", logical_or, args)


def _joined(name: str, connective: Callable[..., PrimExpr], args: tuple[ExprLike, ...]
            ) -> PrimExpr:
    if not args:
        raise ValueError(f"{name}() needs at least one condition")
    return reduce(connective, args[1:], _condition(args[0]))


# ------------------------------------------------------------------------------- choices


def select(condition: ExprLike, true_value: Any, false_value: Any, span: object = None
           ) -> PrimExpr:
    """true_value where condition, else false_value; both may be evaluated."""
    true_value, false_value = match_values(true_value, false_value)
    return Select(_condition(condition), true_value, false_value)


def if_then_else(cond: ExprLike, t: ExprLike, f: ExprLike, span: object = None) -> PrimExpr:
    """t if cond else f, evaluating only the side that is taken."""
    t, f = match_values(t, f)
    cond = _condition(cond)
    if type(cond) is IntImm:
        return t if cond.value else f
    return Call(t.dtype, "tir.if_then_else", (cond, t, f))


__all__ = [
    "all", "any", "equal", "fold_comparison", "greater", "greater_equal", "if_then_else", "less",
    "less_equal", "logical_and", "logical_not", "logical_or", "not_equal", "select",
]

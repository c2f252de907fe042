"""Arithmetic: +, -, *, the divisions, min and max, with what is constant folded.

Folding here is only what never changes what a reader wrote beyond the obvious (x + 0, 1 * x,
constants with constants), as in TVM; real simplification is `arith`. Constants give what the
machine would (`tir/numbers.py`). Of floats x + 0, x * 0 and 0 / x stay: they are -0.0 or NaN for
some x. `PassContext(config={"tir.fast_math": True})` takes them for x and 0.
"""

from __future__ import annotations

import threading
from functools import reduce
from typing import TYPE_CHECKING, Any, Callable

from ...above import above
from ...ir import dtype as dt
from ...ir.transform import PassContext
from ...reading import MLCError
from ..expr import (
    Add, Div, FloatImm, FloorDiv, FloorMod, IntImm, IterVar, Max, Min, Mod, Mul, PrimExpr, Sub,
)
from ..numbers import DIVISIONS, FLOAT_OPS, INT_OPS, fit
from .conversion import const, convert, match_types

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ..expr import ExprLike

_CONSTANTS = (IntImm, FloatImm)


class ZeroDivision(MLCError, ZeroDivisionError):
    """An expression that divides by the constant zero."""


# ------------------------------------------------------------------------------- folding


class _Sizes(threading.local):
    """Whether constants of int64 are sizes, which do not wrap around, in this thread."""

    exact = False


_SIZES = _Sizes()


class exact_sizes:
    """Context: what is folded inside computes shapes, a constant past int64 is an OverflowError."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before, _SIZES.exact = _SIZES.exact, True

    def __exit__(self, *_: object) -> None:
        _SIZES.exact = self._before


def fold_binary(cls: type, a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """The value of `cls(a, b)` where constants decide it, else None. Operands have one type.

    Raises ZeroDivisionError for a division by the constant zero.
    """
    if type(a) is IntImm and type(b) is IntImm:
        if cls in DIVISIONS and b.value == 0:
            raise ZeroDivision(f"division of {a.value} by zero")
        value = INT_OPS[cls](a.value, b.value)
        if a.dtype == "int64" and _SIZES.exact and not -(1 << 63) <= value < 1 << 63:
            raise OverflowError(f"{a.value} and {b.value} make a size of {value}, which is past "
                                "the largest int64")
        return const(value, a.dtype)
    if type(a) is FloatImm:
        return _fold_floats(cls, a, b) if type(b) is FloatImm else _fold_float(cls, a, b, True)
    if type(b) is FloatImm:
        return _fold_float(cls, b, a, False)
    va = a.value if type(a) is IntImm else None
    vb = b.value if type(b) is IntImm else None
    if va is None and vb is None:
        return a if a is b and (cls is Min or cls is Max) else None
    if cls is Add:
        if va == 0:
            return b
        if vb == 0:
            return a
    elif cls is Sub:
        if vb == 0:
            return a
    elif cls is Mul:
        if va == 1:
            return b
        if vb == 1:
            return a
        if va == 0:
            return a
        if vb == 0:
            return b
    elif cls in DIVISIONS:
        if vb == 0:
            raise ZeroDivision(f"division by the constant zero in {cls.__name__}")
        if va == 0:
            return a
        if vb == 1:
            return a if cls is Div or cls is FloorDiv else const(0, a.dtype)
    return None


def _fold_floats(cls: type, a: FloatImm, b: FloatImm) -> FloatImm | None:
    """The constant that the operation gives, in the type of both; a division by zero stays."""
    if cls in DIVISIONS and b.value == 0:
        return None
    try:
        rounded = fit(a.dtype)
    except ValueError:  # a float8 without the package that knows it
        return None
    return FloatImm(a.dtype, rounded(FLOAT_OPS[cls](rounded(a.value), rounded(b.value))))


def _fold_float(cls: type, constant: FloatImm, other: PrimExpr, first: bool) -> PrimExpr | None:
    """x * 1, x / 1, x - 0 and x + (-0.0) are x for every x; the rest only in fast math."""
    value = constant.value
    if value == 1:
        return other if cls is Mul or (cls is Div and not first) else None
    if value != 0:
        return None
    negative = str(value)[0] == "-"
    if cls is Add and negative or cls is Sub and not first and not negative:
        return other
    if not PassContext.current().config.get("tir.fast_math"):
        return None
    if cls is Add or cls is Sub and not first:
        return other
    return constant if cls is Mul or (cls in DIVISIONS and first) else None


# ------------------------------------------------------------------------------- operators


def folding_operator(cls: type, fold: Callable[[type, PrimExpr, PrimExpr], PrimExpr | None]
                     ) -> Callable[..., PrimExpr]:
    """The function that builds `cls(a, b)`, or what `fold(cls, a, b)` gives if that is not None.

    It takes expressions and Python numbers and brings both to one type. `fold` is asked only where
    an operand is a constant or both are one object.
    """

    def build(a: ExprLike, b: ExprLike, span: object = None) -> PrimExpr:
        # match_values, written out: every index of every program is built here
        if not isinstance(a, PrimExpr):
            a = convert(a, b if isinstance(b, PrimExpr) else None)
        if not isinstance(b, PrimExpr):
            b = convert(b, a)
        if a.dtype != b.dtype:
            a, b = match_types(a, b)
        if type(a) in _CONSTANTS or type(b) in _CONSTANTS or a is b:
            folded = fold(cls, a, b)
            if folded is not None:
                return folded
        return cls(a, b)

    build.__name__ = cls.__name__.lower()
    build.__doc__ = f"{cls.__doc__} (types matched, constants folded)"
    return build


add, sub, mul, truncdiv, truncmod, floordiv, floormod, min_value_of, max_value_of = (
    folding_operator(cls, fold_binary)
    for cls in (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max))
indexdiv, indexmod = floordiv, floormod


def div(a: ExprLike, b: ExprLike, span: object = None) -> PrimExpr:
    """a / b: true division of floats, rounding toward zero on integers (C's rule)."""
    return truncdiv(a, b)


def ceildiv(a: ExprLike, b: Any, span: object = None) -> PrimExpr:
    """a / b rounded up."""
    return floordiv(sub(add(a, b), 1), b)


def neg(a: PrimExpr) -> PrimExpr:
    """-a; written a * -1 as TVM does, constants folded. Of an unsigned type it wraps around."""
    if isinstance(a, _CONSTANTS):
        return const(-a.value, a.dtype)
    return mul(a, const(-1, a.dtype) if dt.is_integer(a.dtype) else -1)


def min(a: ExprLike, b: ExprLike | IterVar | Sequence[IterVar] | None = None, *rest: object,
        **kwargs: object) -> Any:
    """The smaller of two values, or of more; on an axis (`axis=`) the minimum reduction of TE."""
    if _is_value(b, kwargs):
        return reduce(min_value_of, rest, min_value_of(a, b))
    return _reduction("min", a, b, rest, kwargs)


def max(a: ExprLike, b: ExprLike | IterVar | Sequence[IterVar] | None = None, *rest: object,
        **kwargs: object) -> Any:
    """The larger of two values, or of more; on an axis (`axis=`) the maximum reduction of TE."""
    if _is_value(b, kwargs):
        return reduce(max_value_of, rest, max_value_of(a, b))
    return _reduction("max", a, b, rest, kwargs)


def _is_value(b: object, kwargs: dict[str, Any]) -> bool:
    """Whether the second argument is a value, not the axis of a reduction."""
    return not (b is None or "axis" in kwargs or isinstance(b, (IterVar, list, tuple)))


def _reduction(name: str, a: ExprLike, axis: object, rest: Sequence[object],
               kwargs: dict[str, Any]) -> Any:
    reduction = getattr(above("reductions of TE"), name)
    return reduction(a, *([axis, *rest] if axis is not None else []), **kwargs)


__all__ = [
    "add", "ceildiv", "div", "floordiv", "floormod", "fold_binary", "indexdiv", "indexmod", "max",
    "max_value_of", "min", "min_value_of", "mul", "neg", "sub", "truncdiv", "truncmod",
]

"""Functions of one element."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any, Callable

from .. import te
from ..ir import dtype as dt
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import PrimExpr
from .utils import axes, need, text

if TYPE_CHECKING:
    from ..tir.expr import ExprLike


def elementwise(x: Tensor, fn: Callable, name: str = "compute") -> Tensor:
    """fn of every element."""
    return te.compute(x.shape, lambda *i: fn(x(*i)), name=name, tag="elemwise")


def _named(x: Tensor, fn: Callable, name: str) -> Tensor:
    """fn of every element, with the axes named ax0, ax1, ..."""
    return te.compute(x.shape, lambda *i: fn(x(*i)), name=name, tag="elemwise",
                      varargs_names=axes(x.ndim))


def _function(name: str, at: str | None = None) -> Callable:
    fn = getattr(O, at or name)

    def operator(x: Tensor) -> Tensor:
        return elementwise(x, fn, "compute")

    operator.__name__, operator.__doc__ = name, f"{fn.__doc__}, of every element"
    return operator


exp, log, log2, log10, sqrt, rsqrt = map(_function, (
    "exp", "log", "log2", "log10", "sqrt", "rsqrt"))
sin, cos, tan, asin, acos, atan = map(_function, ("sin", "cos", "tan", "asin", "acos", "atan"))
sinh, cosh, asinh, acosh, atanh = map(_function, ("sinh", "cosh", "asinh", "acosh", "atanh"))
tanh, erf, sigmoid = map(_function, ("tanh", "erf", "sigmoid"))
floor, ceil, trunc, abs = map(_function, ("floor", "ceil", "trunc", "abs"))
round = _function("round", "nearbyint")
isnan, isfinite = map(_function, ("isnan", "isfinite"))


def isinf(x: Tensor) -> Tensor:
    """Whether every element is infinite."""
    def element(e: PrimExpr) -> PrimExpr:
        if not dt.is_float(e.dtype):
            return O.const(False, "bool")
        return O.logical_and(O.equal(O.abs(e), O.infinity(e.dtype)), O.logical_not(O.isnan(e)))

    return elementwise(x, element)


def negative(x: Tensor) -> Tensor:
    """-x"""
    return elementwise(x, O.neg)


def identity(x: Tensor) -> Tensor:
    """A copy."""
    return elementwise(x, lambda e: e)


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1 by the sign of every element."""
    def element(e: PrimExpr) -> PrimExpr:
        zero = O.const(0, e.dtype)
        negative = O.const(-1, e.dtype) if not dt.is_uint(e.dtype) else zero
        return O.select(zero < e, O.const(1, e.dtype), O.select(e < zero, negative, zero))

    return _named(x, element, "T_sign")


def square(x: Tensor) -> Tensor:
    """x * x"""
    return elementwise(x, lambda e: e * e)


def reciprocal(x: Tensor) -> Tensor:
    """1 / x"""
    return elementwise(x, lambda e: O.const(1, e.dtype) / e)


def logical_not(data: Tensor) -> Tensor:
    """not x, of conditions; integers count as true where they are not zero."""
    return _named(data, lambda e: O.logical_not(e) if dt.is_bool(e.dtype) else O.equal(e, 0),
                  "T_logical_not")


def bitwise_not(data: Tensor) -> Tensor:
    """~x"""
    return _named(data, lambda e: O.logical_not(e) if dt.is_bool(e.dtype) else O.bitwise_not(e),
                  "T_bitwise_not")


def cast(x: Tensor, dtype: str, span: object = None) -> Any:
    """Every element as `dtype`."""
    if not isinstance(x, Tensor):
        return O.cast(x, dtype)
    return elementwise(x, lambda e: O.cast(e, dtype))


def reinterpret(x: Tensor, dtype: str) -> Tensor:
    """The bits of every element read as `dtype`, of the same size."""
    return elementwise(x, lambda e: O.reinterpret(dtype, e))


def clip(x: Tensor, a_min: ExprLike, a_max: ExprLike) -> Tensor:
    """Every element kept between a_min and a_max.

    Of integers the bounds are the integers within; what the type cannot hold does not limit it.
    """
    def bound(value: Any, dtype: str, up: bool) -> PrimExpr:
        value = getattr(value, "value", value)
        if isinstance(value, (int, float)) and dt.is_integer(dtype):
            lowest, highest = dt.int_range(dtype)
            whole = value if math.isinf(value) else (math.ceil if up else math.floor)(value)
            return O.const(int(builtins.min(builtins.max(whole, lowest), highest)), dtype)
        return O.cast(O.const(value) if isinstance(value, (int, float)) else value, dtype)

    low, high = bound(a_min, x.dtype, True), bound(a_max, x.dtype, False)
    return elementwise(x, lambda e: O.max_value_of(O.min_value_of(e, high), low))


def elemwise_sum(xs: list[Tensor]) -> Tensor:
    """The sum of tensors of one shape."""
    need(bool(xs), "elemwise_sum needs a tensor")
    for x in xs[1:]:
        need(x.ndim == xs[0].ndim, f"elemwise_sum: the shapes {text(xs[0].shape)} and "
                                   f"{text(x.shape)} differ")

    def element(*i: PrimExpr) -> PrimExpr:
        total = xs[0](*i)
        for x in xs[1:]:
            total = total + x(*i)
        return total

    return te.compute(xs[0].shape, element, name="T_elemwise_sum", tag="elemwise",
                      varargs_names=axes(xs[0].ndim))


def fast_exp(x: Tensor) -> Tensor:
    """exp; the backend's own is already a polynomial."""
    return exp(x)


def fast_tanh(x: Tensor) -> Tensor:
    """tanh; the backend's own is already a polynomial."""
    return tanh(x)


def fast_erf(x: Tensor) -> Tensor:
    """erf; the backend's own is already a polynomial."""
    return erf(x)

"""The operations of TensorIR on numpy vectors, and its functions.

What operations on single numbers give is in `tir/numbers.py`; on vectors it is the same, lane by
lane.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Callable

import numpy as np

from ..ir import dtype as dt
from ..tir import expr as E
from ..tir.numbers import (
    FLOAT_OPS, cast_word, fit, float_div, float_mod, int_power, shift_left, shift_right,
)


def _vector_trunc_div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    q = a // b
    return (q + ((a - q * b != 0) & ((a < 0) != (b < 0)))).astype(a.dtype)


def _lanewise(fn: Callable) -> Callable:
    """A function of two floats on two vectors."""
    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.array([fn(x, y) for x, y in zip(a.tolist(), b.tolist())])

    return apply


VECTOR_INT: dict[type, Callable] = {
    E.Add: np.add, E.Sub: np.subtract, E.Mul: np.multiply, E.Div: _vector_trunc_div,
    E.Mod: lambda a, b: a - _vector_trunc_div(a, b) * b, E.FloorDiv: np.floor_divide,
    E.FloorMod: lambda a, b: a - (a // b) * b, E.Min: lambda a, b: np.where(a < b, a, b),
    E.Max: lambda a, b: np.where(a > b, a, b),
}
VECTOR_FLOAT: dict[type, Callable] = {
    E.Add: np.add, E.Sub: np.subtract, E.Mul: np.multiply, E.Div: np.divide, E.Mod: np.fmod,
    E.FloorDiv: _lanewise(FLOAT_OPS[E.FloorDiv]), E.FloorMod: _lanewise(FLOAT_OPS[E.FloorMod]),
    E.Min: lambda a, b: np.where((a <= b) | np.isnan(a), a, b),
    E.Max: lambda a, b: np.where((a >= b) | np.isnan(a), a, b),
}
VECTOR_BOOL: dict[type, Callable] = {
    E.Add: np.logical_or, E.Mul: np.logical_and, E.Sub: np.logical_xor, E.Min: np.logical_and,
    E.Max: np.logical_or,
}


def vector_float_to_int(values: np.ndarray, dtype: str) -> np.ndarray:
    """`numbers.float_to_int` of every lane."""
    kind, word = dt.numpy_dtype(dtype), cast_word(dtype)
    whole, limit = np.trunc(values.astype(np.float64)), 2.0 ** (word - 1)
    inside = (whole >= -limit) & (whole < limit)
    out = np.where(inside, whole, -limit).astype(np.int64).astype(np.uint64)
    if dt.element_of(dtype) == "uint64":
        above = (whole >= limit) & (whole < 2 * limit)
        out = np.where(above, np.where(above, whole, 0).astype(np.uint64), out)
    if kind.itemsize * 8 == dt.bits_of(dtype):
        return out.astype(kind)
    return np.array([fit(dt.element_of(dtype))(int(x)) for x in out.tolist()], dtype=kind)


# ----------------------------------------------------------------------------- math functions


def _guarded(fn: Callable, ufunc: Callable) -> Callable:
    """`fn` of the math module, with IEEE's answer where Python raises."""

    def call(*args: float) -> float:
        try:
            return fn(*args)
        except (ValueError, OverflowError, ZeroDivisionError):
            return float(ufunc(*map(np.float64, args)))

    return call


def _sigmoid(x: float) -> float:
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


def _round_even(x: float) -> float:
    return math.copysign(float(round(x)), x) if math.isfinite(x) else x


def _integral(fn: Callable) -> Callable:
    return lambda x: math.copysign(float(fn(x)), x) if math.isfinite(x) else x


#: functions on floats by intrinsic name
MATH: dict[str, Callable] = {
    "exp": _guarded(math.exp, np.exp), "exp2": _guarded(lambda x: 2.0 ** x, np.exp2),
    "exp10": _guarded(lambda x: 10.0 ** x, lambda x: np.power(10.0, x)),
    "log": _guarded(math.log, np.log), "log2": _guarded(math.log2, np.log2),
    "log10": _guarded(math.log10, np.log10), "log1p": _guarded(math.log1p, np.log1p),
    "sqrt": _guarded(math.sqrt, np.sqrt),
    "rsqrt": lambda x: float_div(1.0, MATH["sqrt"](x)),
    "sin": _guarded(math.sin, np.sin), "cos": _guarded(math.cos, np.cos),
    "tan": _guarded(math.tan, np.tan), "asin": _guarded(math.asin, np.arcsin),
    "acos": _guarded(math.acos, np.arccos), "atan": math.atan,
    "sinh": _guarded(math.sinh, np.sinh), "cosh": _guarded(math.cosh, np.cosh),
    "tanh": math.tanh, "asinh": math.asinh, "acosh": _guarded(math.acosh, np.arccosh),
    "atanh": _guarded(math.atanh, np.arctanh), "erf": math.erf, "sigmoid": _sigmoid,
    "atan2": math.atan2, "hypot": math.hypot, "copysign": math.copysign,
    "ldexp": lambda x, e: _ldexp(x, int(e)), "fmod": float_mod,
    "pow": _guarded(math.pow, np.power), "nextafter": lambda x, y: float(np.nextafter(x, y)),
    "floor": _integral(math.floor), "ceil": _integral(math.ceil), "trunc": _integral(math.trunc),
    "round": _round_even, "nearbyint": _round_even, "fabs": abs,
    "fma": lambda x, y, z: fused("float64")(x, y, z),
    "fmin": lambda a, b: b if a != a else a if b != b else min(a, b),
    "fmax": lambda a, b: b if a != a else a if b != b else max(a, b),
    "abs": abs, "rint": _round_even, "cbrt": lambda x: float(np.cbrt(x)),
    "expm1": _guarded(math.expm1, np.expm1), "erfc": math.erfc, "tgamma": _guarded(
        math.gamma, lambda x: np.float64(math.nan)), "lgamma": _guarded(
            math.lgamma, lambda x: np.float64(math.inf)),
}


def fused(dtype: str) -> Callable[[float, float, float], float]:
    """x * y + z rounded once, to a scalar type.

    What is to be rounded to a narrower type is rounded to odd before (S. Boldo and G. Melquiond,
    2008): its last bit says that it is not exact, and the second rounding cannot meet a tie.
    """
    def fma(x: float, y: float, z: float) -> float:
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
            return x * y + z
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        try:
            near = float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf
        if not exact:
            return x * y + z  # the sign of zero
        away = exact - Fraction(near)
        if away and dtype != "float64" and math.frexp(near)[0] * 2.0 ** 53 % 2 == 0:
            return math.nextafter(near, math.inf if away > 0 else -math.inf)
        return near

    return fma


def _ldexp(x: float, e: int) -> float:
    try:
        return math.ldexp(x, e)
    except OverflowError:
        return math.copysign(math.inf, x)


TESTS: dict[str, Callable] = {"isnan": math.isnan, "isinf": math.isinf,
                               "isfinite": math.isfinite}


def q_multiply_shift_per_axis(x: int, y: int, left: int, right: int, q: int, shifts_left: int,
                              shifts_right: int) -> int:
    """round(x * 2^left * y * 2^-(right + q)); there is a left shift where `shifts_left` says so."""
    product = (x << left if shifts_left else x) * y
    return (product + (1 << (right + q - 1))) >> (right + q)


def integer_function(name: str, e: E.Call) -> Callable | None:
    """A function of integers by the name of its intrinsic; the call gives the width."""
    bits = dt.bits_of(e.args[0].dtype) if e.args else 0
    mask = (1 << bits) - 1
    return {
        "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
        "bitwise_not": lambda a: ~a & mask, "shift_left": shift_left(bits),
        "shift_right": shift_right(bits), "popcount": lambda a: bin(a & mask).count("1"),
        "clz": lambda a: bits - (a & mask).bit_length(), "pow": int_power(bits),
        "abs": abs, "large_uint_imm": lambda low, high: (high << 32) | low,
        "q_multiply_shift": lambda x, y, q, s: (x * y + (1 << (q + s - 1))) >> (q + s),
        "q_multiply_shift_per_axis": q_multiply_shift_per_axis,
    }.get(name)


def c_function(name: str) -> Callable | None:
    """The meaning of a C math function by its C name: `sinf` and `sin` alike."""
    if name in MATH:
        return MATH[name]
    if name.endswith("f") and name[:-1] in MATH:
        return MATH[name[:-1]]
    return {"max": max, "min": min}.get(name)


__all__ = ["MATH", "TESTS", "VECTOR_BOOL", "VECTOR_FLOAT", "VECTOR_INT", "c_function", "fused",
           "integer_function", "vector_float_to_int"]

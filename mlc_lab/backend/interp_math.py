"""What the operations and functions of TensorIR compute, on Python numbers and numpy vectors."""

from __future__ import annotations

import math
import operator
from typing import Callable

import numpy as np

from ..tir import expr as E


def trunc_div(a: int, b: int) -> int:
    """Integer division that rounds toward zero."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def trunc_mod(a: int, b: int) -> int:
    """The remainder of `trunc_div`."""
    return a - trunc_div(a, b) * b


def _float_div(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or a != a:
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _float_mod(a: float, b: float) -> float:
    try:
        return math.fmod(a, b)
    except ValueError:
        return math.nan


def _float_floormod(a: float, b: float) -> float:
    return a - math.floor(a / b) * b if b and math.isfinite(a / b) else math.nan


INT_OPS: dict[type, Callable] = {
    E.Add: operator.add, E.Sub: operator.sub, E.Mul: operator.mul, E.Div: trunc_div,
    E.Mod: trunc_mod, E.FloorDiv: operator.floordiv, E.FloorMod: operator.mod,
    E.Min: lambda a, b: a if a < b else b, E.Max: lambda a, b: a if a > b else b,
}
FLOAT_OPS: dict[type, Callable] = {
    **INT_OPS, E.Div: _float_div, E.Mod: _float_mod, E.FloorMod: _float_floormod,
    E.FloorDiv: lambda a, b: float(np.floor(_float_div(a, b))),
}
COMPARE: dict[type, Callable] = {E.EQ: operator.eq, E.NE: operator.ne, E.LT: operator.lt,
                                  E.LE: operator.le, E.GT: operator.gt, E.GE: operator.ge}


def _vector_trunc_div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    q = a // b
    return (q + ((a - q * b != 0) & ((a < 0) != (b < 0)))).astype(a.dtype)


VECTOR_INT: dict[type, Callable] = {
    E.Add: np.add, E.Sub: np.subtract, E.Mul: np.multiply, E.Div: _vector_trunc_div,
    E.Mod: lambda a, b: a - _vector_trunc_div(a, b) * b, E.FloorDiv: np.floor_divide,
    E.FloorMod: lambda a, b: a - (a // b) * b, E.Min: lambda a, b: np.where(a < b, a, b),
    E.Max: lambda a, b: np.where(a > b, a, b),
}
VECTOR_FLOAT: dict[type, Callable] = {
    **VECTOR_INT, E.Div: np.divide, E.Mod: np.fmod,
    E.FloorDiv: lambda a, b: np.floor(np.divide(a, b)),
    E.FloorMod: lambda a, b: a - np.floor(np.divide(a, b)) * b,
}
DIVISIONS = (E.Div, E.Mod, E.FloorDiv, E.FloorMod)


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
    "rsqrt": lambda x: _float_div(1.0, MATH["sqrt"](x)),
    "sin": _guarded(math.sin, np.sin), "cos": _guarded(math.cos, np.cos),
    "tan": _guarded(math.tan, np.tan), "asin": _guarded(math.asin, np.arcsin),
    "acos": _guarded(math.acos, np.arccos), "atan": math.atan,
    "sinh": _guarded(math.sinh, np.sinh), "cosh": _guarded(math.cosh, np.cosh),
    "tanh": math.tanh, "asinh": math.asinh, "acosh": _guarded(math.acosh, np.arccosh),
    "atanh": _guarded(math.atanh, np.arctanh), "erf": math.erf, "sigmoid": _sigmoid,
    "atan2": math.atan2, "hypot": math.hypot, "copysign": math.copysign,
    "ldexp": lambda x, e: _ldexp(x, int(e)), "fmod": _float_mod,
    "pow": _guarded(math.pow, np.power), "nextafter": lambda x, y: float(np.nextafter(x, y)),
    "floor": _integral(math.floor), "ceil": _integral(math.ceil), "trunc": _integral(math.trunc),
    "round": _round_even, "nearbyint": _round_even, "fabs": abs,
    # rounded once where float32 and float16 are concerned: their products are exact in double
    "fma": lambda x, y, z: x * y + z,
    "fmin": lambda a, b: b if a != a else a if b != b else min(a, b),
    "fmax": lambda a, b: b if a != a else a if b != b else max(a, b),
    "abs": abs, "rint": _round_even, "cbrt": lambda x: float(np.cbrt(x)),
    "expm1": _guarded(math.expm1, np.expm1), "erfc": math.erfc, "tgamma": _guarded(
        math.gamma, lambda x: np.float64(math.nan)), "lgamma": _guarded(
            math.lgamma, lambda x: np.float64(math.inf)),
}


def _ldexp(x: float, e: int) -> float:
    try:
        return math.ldexp(x, e)
    except OverflowError:
        return math.copysign(math.inf, x)


TESTS: dict[str, Callable] = {"isnan": math.isnan, "isinf": math.isinf,
                               "isfinite": math.isfinite}


def shift_left(bits: int) -> Callable:
    return lambda a, b: a << b if 0 <= b < bits else 0


def shift_right(bits: int) -> Callable:
    return lambda a, b: a >> min(b, bits)


def c_function(name: str) -> Callable | None:
    """The meaning of a C math function by its C name: `sinf` and `sin` alike."""
    if name in MATH:
        return MATH[name]
    if name.endswith("f") and name[:-1] in MATH:
        return MATH[name[:-1]]
    return {"max": max, "min": min}.get(name)

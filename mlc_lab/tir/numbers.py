"""What operations on numbers give, in Python: the meaning that every engine is held to.

docs/numbers.md states it operation by operation. The interpreter computes with these functions,
constants are folded by them, and machine code must give the same.

An integer is a Python int, a float a Python float, a condition a bool. Operations on integers are
exact and those on floats in double precision; `fit(dtype)` then brings the result into its type.
For + - * / and the square root of narrower types that is the correctly rounded result.
"""

from __future__ import annotations

import math
import operator
from array import array
from functools import lru_cache
from typing import Any, Callable, Mapping

from ..ir import dtype as dt
from . import expr as E

# ------------------------------------------------------------------------------- rounding, wrapping


def _float32_fit() -> Callable[[float], float]:
    cell = array("f", [0.0])

    def fit(value: float) -> float:
        cell[0] = value
        return cell[0]

    return fit


_to_float32 = _float32_fit()


def _seen_as(dtype: type, array: Any) -> Any:
    """The bits of an array as values of another type."""
    return array.view(dtype)


def bfloat16_bits(values: Any) -> Any:
    """Floats as bfloat16 bit patterns (a numpy array), rounded to nearest even."""
    import numpy as np

    raw = np.asarray(values, dtype=np.float32)
    bits = _seen_as(np.uint32, raw)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(raw), np.uint16(0x7FC0), rounded)


def bfloat16_values(bits: Any) -> Any:
    """The float32 values of bfloat16 bit patterns."""
    import numpy as np

    return _seen_as(np.float32, np.asarray(bits, dtype=np.uint16).astype(np.uint32) << 16)


def _bfloat16_fit(value: float) -> float:
    return float(bfloat16_values(bfloat16_bits(_to_float32(value))))


def _numpy_fit(kind: Any) -> Callable[[float], float]:
    import numpy as np

    half = kind == np.float16

    def fit(value: float) -> float:
        with np.errstate(all="ignore"):
            return float(np.float16(value) if half else np.float32(value).astype(kind))

    return fit


@lru_cache(maxsize=None)
def fit(dtype: str) -> Callable[[Any], Any]:
    """The function that brings a Python number into scalar type `dtype`: rounds or wraps it.

    Raises ValueError for a float8 type where the package ml_dtypes is missing.
    """
    code, bits, _ = dt.parse(dtype)
    if code == "bool":
        return bool
    if code in ("int", "uint"):
        low, high = dt.int_range(dt.element_of(dtype))
        span = high - low + 1

        def wrap(value: int) -> int:
            return value if low <= value <= high else (value - low) % span + low

        return wrap
    if code == "float" and bits == 64:
        return float
    if code == "float" and bits == 32:
        return _float32_fit()
    if code == "bfloat":
        return _bfloat16_fit
    if dt.is_float(dtype):
        kind = dt.numpy_dtype(dtype)
        if kind.kind == "u":
            raise ValueError(f"{dtype} needs the package ml_dtypes: pip install ml_dtypes")
        return _numpy_fit(kind)
    return lambda v: v


# ------------------------------------------------------------------------------- integers


def trunc_div(a: int, b: int) -> int:
    """Integer division that rounds toward zero. Raises ZeroDivisionError, as all four do."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def trunc_mod(a: int, b: int) -> int:
    """The remainder of `trunc_div`."""
    return a - trunc_div(a, b) * b


def shift_left(bits: int) -> Callable[[int, int], int]:
    """x << n of integers of so many bits: 0 where n is negative or too large."""
    return lambda a, n: a << n if 0 <= n < bits else 0


def shift_right(bits: int) -> Callable[[int, int], int]:
    """x >> n of integers of so many bits: the sign alone where n is negative or too large."""
    return lambda a, n: a >> (n if 0 <= n < bits else bits)


def int_power(bits: int) -> Callable[[int, int], int]:
    """x ** n of integers of so many bits, as torch has it for negative n: 0, 1 or -1."""
    def power(a: int, n: int) -> int:
        if n < 0:
            return a ** (n & 1) if a in (1, -1) else 0
        return pow(a, n, 1 << bits)

    return power


#: those of `operator` whose types are not known to checkers
_OPERATORS: Mapping[str, Any] = vars(operator)
INT_OPS: dict[type, Callable[[int, int], int]] = {
    E.Add: operator.add, E.Sub: operator.sub, E.Mul: operator.mul, E.Div: trunc_div,
    E.Mod: trunc_mod, E.FloorDiv: _OPERATORS["floordiv"], E.FloorMod: operator.mod,
    E.Min: lambda a, b: a if a < b else b, E.Max: lambda a, b: a if a > b else b,
}
BOOL_OPS: dict[type, Callable[[bool, bool], bool]] = {
    E.Add: _OPERATORS["or_"], E.Mul: _OPERATORS["and_"], E.Sub: _OPERATORS["xor"],
    E.Min: _OPERATORS["and_"], E.Max: _OPERATORS["or_"],
}
DIVISIONS = (E.Div, E.Mod, E.FloorDiv, E.FloorMod)

# ------------------------------------------------------------------------------- floats


def float_div(a: float, b: float) -> float:
    """a / b with IEEE's answers to a division by zero."""
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or a != a:
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def float_mod(a: float, b: float) -> float:
    """C's fmod: exact, with the sign of a; NaN for an infinite a or b = 0."""
    try:
        return math.fmod(a, b)
    except ValueError:
        return math.nan


def float_floormod(a: float, b: float) -> float:
    """The remainder with the sign of b, as torch.remainder and Python have it."""
    rest = float_mod(a, b)
    return rest + b if rest and (rest < 0) != (b < 0) else rest


def float_floordiv(a: float, b: float) -> float:
    """The quotient that goes with `float_floormod`, as torch.floor_divide and Python have it.

    It is a whole number: 1 // 0.1 is 9, although 1 / 0.1 rounds to 10.
    """
    if b == 0:
        return float_div(a, b)
    rest = float_mod(a, b)
    quotient = float_div(a - rest, b)
    if rest and (rest < 0) != (b < 0):
        quotient -= 1
    if quotient == 0:
        return math.copysign(0.0, float_div(a, b))
    if not math.isfinite(quotient):
        return quotient
    whole = float(math.floor(quotient))
    return whole + 1 if quotient - whole > 0.5 else whole


def float_max(a: float, b: float) -> float:
    """The larger one; NaN where either is NaN; the first where they are equal, as 0.0 and -0.0."""
    return a if a >= b or a != a else b


def float_min(a: float, b: float) -> float:
    """The smaller one; NaN where either is NaN; the first where they are equal."""
    return a if a <= b or a != a else b


FLOAT_OPS: dict[type, Callable[[float, float], float]] = {
    E.Add: operator.add, E.Sub: operator.sub, E.Mul: operator.mul, E.Div: float_div,
    E.Mod: float_mod, E.FloorDiv: float_floordiv, E.FloorMod: float_floormod, E.Min: float_min,
    E.Max: float_max,
}
COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    E.EQ: operator.eq, E.NE: operator.ne, E.LT: operator.lt, E.LE: operator.le,
    E.GT: operator.gt, E.GE: operator.ge,
}

# ------------------------------------------------------------------------------- conversions


def cast_word(dtype: str) -> int:
    """The bits of the signed integer that a float becomes on its way to integer type `dtype`."""
    code, bits, _ = dt.parse(dtype)
    return 64 if bits == 64 or (code == "uint" and bits == 32) else 32


def float_to_int(value: float, dtype: str) -> int:
    """A float as an integer, as C on x86-64, numpy and torch do it.

    Truncated to a signed integer of `cast_word` bits, whose low bits are kept. What that cannot
    hold, and NaN, becomes its smallest value; uint64 has the values from 2^63 on besides.
    """
    word = cast_word(dtype)
    low = -(1 << (word - 1))
    whole = math.trunc(value) if math.isfinite(value) else low
    if not low <= whole < -low and not (dt.element_of(dtype) == "uint64" and 0 < whole < 1 << 64):
        whole = low
    return fit(dtype)(whole)


def int_to_float(value: int, dtype: str) -> float:
    """The float nearest to an integer (to bfloat16: that nearest to the float32)."""
    if -(1 << 53) <= value <= 1 << 53 or dtype == "float64":
        return fit(dtype)(float(value))
    import numpy as np

    word = np.int64 if value < 1 << 63 else np.uint64
    return fit(dtype)(float(word(value).astype(np.float32)))


def convert(value: Any, source: str, target: str) -> Any:
    """A number of scalar type `source` as one of `target`."""
    if dt.is_bool(target):
        return value != 0
    if dt.is_float(target):
        return fit(target)(value) if dt.is_float(source) else int_to_float(int(value), target)
    return float_to_int(value, target) if dt.is_float(source) else fit(target)(int(value))


__all__ = [
    "BOOL_OPS", "COMPARE", "DIVISIONS", "FLOAT_OPS", "INT_OPS", "bfloat16_bits",
    "bfloat16_values", "cast_word", "convert", "fit", "float_div", "float_floordiv",
    "float_floormod", "float_max", "float_min", "float_mod", "float_to_int", "int_power",
    "int_to_float", "shift_left", "shift_right", "trunc_div", "trunc_mod",
]

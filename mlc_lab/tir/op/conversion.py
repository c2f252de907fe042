"""Values as expressions: constants, casts, and two operands brought to one type."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...ir import dtype as dt
from .. import numbers
from ..expr import (
    Broadcast, Call, Cast, FloatImm, IntImm, IterVar, PrimExpr, StringImm, const_index, int32,
)
from ..numbers import fit

if TYPE_CHECKING:
    from ..expr import ExprLike

# ------------------------------------------------------------------------------- constants


_LARGEST_FLOAT32 = 3.4028234663852886e38


def const(value: Any, dtype: str | None = None, span: object = None) -> PrimExpr:
    """A constant of `dtype`, by default bool, int32, int64, float32 or float64 by Python type and
    size.

    A str becomes a StringImm, a numpy scalar keeps its type; integers wrap around where `dtype`
    cannot hold them, and a vector type gives a Broadcast. Raises TypeError for other values.
    """
    if type(value) is int:
        if (dtype is None or dtype == "int32") and -(2**31) <= value < 2**31:
            return int32(value)  # most constants are
    elif isinstance(value, PrimExpr):
        return value if dtype is None or value.dtype == dtype else cast(value, dtype)
    elif hasattr(value, "dtype") and hasattr(value, "item"):  # a numpy scalar
        dtype = dtype or str(value.dtype)
        value = value.item()
    if dtype is None:
        if isinstance(value, bool):
            dtype = "bool"
        elif isinstance(value, int):
            dtype = "int32" if -(2**31) <= value < 2**31 else "int64"
            if not -(2**63) <= value < 2**63:
                raise ValueError(f"{_long(value)} fits no int64: give it a dtype that holds it")
        elif isinstance(value, float):
            large = math.isfinite(value) and abs(value) > _LARGEST_FLOAT32
            dtype = "float64" if large else "float32"
        elif isinstance(value, str):
            return StringImm(value)
        else:
            raise TypeError(f"cannot make a constant of {value!r}")
    dtype = dt.canonical(dtype)
    code, _, lanes = dt.parse(dtype)
    if lanes > 1:
        return Broadcast(const(value, dt.element_of(dtype)), lanes)
    if code in ("int", "uint", "bool"):
        if isinstance(value, float):
            value = numbers.convert(value, "float64", dtype)
        if dtype == "int32":
            return int32(_wrap(int(value), "int32"))
        return IntImm(dtype, _wrap(int(value), dtype))
    if code == "handle":
        return Call("handle", "tir.reinterpret", (const(int(value), "uint64"),))
    if isinstance(value, int) and abs(value) > 1 << 53:
        return FloatImm(dtype, numbers.int_to_float(value, dtype))
    return FloatImm(dtype, float(value))


def _long(value: int) -> str:
    return str(value) if abs(value) < 10**40 else f"a number of {value.bit_length()} bits"


def _wrap(value: int, dtype: str) -> int:
    """Two's complement wrap-around into `dtype`."""
    if dtype == "bool":
        return int(value != 0)
    low, high = dt.int_range(dtype)
    if low <= value <= high:
        return value
    return (value - low) % (high - low + 1) + low


def make_zero(dtype: str) -> PrimExpr:
    """The zero of a type."""
    return const(0, dtype)


def min_value(dtype: str, span: object = None) -> PrimExpr:
    """The smallest finite value of a type."""
    return FloatImm(dtype, -dt.float_max(dtype)) if dt.is_float(dtype) else const(
        dt.int_range(dtype)[0], dtype)


def max_value(dtype: str, span: object = None) -> PrimExpr:
    """The largest finite value of a type."""
    return FloatImm(dtype, dt.float_max(dtype)) if dt.is_float(dtype) else const(
        dt.int_range(dtype)[1], dtype)


def infinity(dtype: str, span: object = None) -> PrimExpr:
    """Positive infinity of a floating point type."""
    return FloatImm(dtype, math.inf)


def is_const_int(e: object, value: int | None = None) -> bool:
    """Whether `e` is an integer constant (of that value)."""
    return type(e) is IntImm and (value is None or e.value == value)


def as_int(e: object) -> int | None:
    """The Python int of a constant expression or int; None when it is symbolic."""
    if type(e) is IntImm:
        return e.value
    return e if isinstance(e, int) else None


def convert(value: Any, like: PrimExpr | None = None) -> PrimExpr:
    """A Python value as an expression; numbers take the type of `like` where it can hold them."""
    if type(value) is int and -(2**31) <= value < 2**31 and (
            like is not None and like.dtype == "int32"):
        return int32(value)
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, IterVar):
        return value.var
    if like is not None and isinstance(value, (bool, int, float)) and like.dtype != "handle":
        kind = dt.element_of(like.dtype)
        if dt.is_float(kind) or not isinstance(value, float):
            if not (dt.is_bool(kind) and not isinstance(value, bool)):
                if isinstance(value, float) or not dt.is_integer(kind) or _fits(value, kind):
                    return const(value, kind)
    if isinstance(value, (bool, int, float)) or hasattr(value, "item"):
        return const(value)
    if isinstance(value, str):
        return StringImm(value)
    return const_index(value)


def _fits(value: int, kind: str) -> bool:
    low, high = dt.int_range(kind)
    return low <= value <= high


# ------------------------------------------------------------------------------- types


def cast(value: PrimExpr, dtype: str) -> PrimExpr:
    """`value` as `dtype`; constants are converted at once, and a scalar fills a vector type.

    Raises TypeError where a vector meets a type with another number of lanes, and for a string.
    """
    dtype = dt.canonical(dtype)
    value = convert(value)
    if value.dtype == dtype:
        return value
    if type(value) is StringImm:
        raise TypeError(f"the string {value.value[:40]!r} is no number")
    lanes, have = dt.lanes_of(dtype), dt.lanes_of(value.dtype)
    if lanes != have:
        if have == 1:
            return Broadcast(cast(value, dt.element_of(dtype)), lanes)
        raise TypeError(f"cannot cast {value.dtype} to {dtype}: the numbers of lanes differ")
    if lanes == 1:
        if type(value) is IntImm and dtype != "handle":
            return const(value.value, dtype)
        if type(value) is FloatImm and dt.is_float(dtype):
            return FloatImm(dtype, _rounded_before(value, dtype))
    elif type(value) is Broadcast:
        return Broadcast(cast(value.value, dt.element_of(dtype)), lanes)
    return Cast(dtype, value)


def _rounded_before(value: FloatImm, dtype: str) -> float:
    """The number of a constant that goes on to another type: as it is written where it is the same,
    else rounded to the type that it has."""
    try:
        own, target = fit(value.dtype), fit(dtype)
    except ValueError:  # a float8 without the package that knows it
        return value.value
    number = own(value.value)
    return value.value if target(value.value) == target(number) else number


def reinterpret(dtype: str, value: ExprLike, span: object = None) -> PrimExpr:
    """The bits of value read as another type of the same size; value itself where it has it."""
    value = convert(value)
    return value if value.dtype == dtype else Call(dtype, "tir.reinterpret", (value,))


def match_types(a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """Both operands in one type: the wider one; floats win over integers; scalars broadcast.

    Raises TypeError for vectors with different numbers of lanes, and for a pointer with a number.
    """
    if a.dtype == b.dtype:
        return a, b
    la, lb = dt.lanes_of(a.dtype), dt.lanes_of(b.dtype)
    if la != lb:
        if la == 1:
            a = Broadcast(a, lb)
        elif lb == 1:
            b = Broadcast(b, la)
        else:
            raise TypeError(f"operands have {la} and {lb} lanes: they must agree")
        if a.dtype == b.dtype:
            return a, b
    ca, ba, _ = dt.parse(a.dtype)
    cb, bb, _ = dt.parse(b.dtype)
    if "handle" in (ca, cb):
        raise TypeError(f"cannot compute with {a.dtype} and {b.dtype}: a handle is a pointer, "
                        "read an element of its buffer instead")
    fa, fb = dt.is_float(a.dtype), dt.is_float(b.dtype)
    if fa != fb:
        return (a, cast(b, a.dtype)) if fa else (cast(a, b.dtype), b)
    if fa:
        return (a, cast(b, a.dtype)) if ba >= bb else (cast(a, b.dtype), b)
    if ba != bb:
        return (a, cast(b, a.dtype)) if ba > bb else (cast(a, b.dtype), b)
    # same width, signed with unsigned: go to unsigned as TVM does
    return (cast(a, b.dtype), b) if ca == "int" else (a, cast(b, a.dtype))


def match_values(a: Any, b: Any) -> tuple[PrimExpr, PrimExpr]:
    """Two values as expressions of one type; Python numbers take that of the other value.

    Raises TypeError as `match_types` does.
    """
    if not isinstance(a, PrimExpr):
        a = convert(a, b if isinstance(b, PrimExpr) else None)
    if not isinstance(b, PrimExpr):
        b = convert(b, a)
    return match_types(a, b)


__all__ = [
    "as_int", "cast", "const", "convert", "infinity", "is_const_int", "make_zero", "match_types",
    "match_values", "max_value", "min_value", "reinterpret",
]

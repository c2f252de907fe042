"""The functions of mathematics and of bits: one for each row of the table that says its type."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Callable

from ...ir import dtype as dt
from ...reading import DataError
from ..expr import OPS, Call, FloatImm, IntImm, PrimExpr
from ..numbers import shift_left as shifted_left
from ..numbers import shift_right as shifted_right
from .arithmetic import neg
from .conversion import cast, const, convert, match_types, match_values
from .intrinsic import INTRINSICS, Intrinsic
from .logic import greater_equal, select

if TYPE_CHECKING:
    from ..expr import ExprLike

#: intrinsics that take integers as they are; the others convert them to float32
ACCEPTS_INTEGERS = {"popcount", "clz", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
                    "shift_left", "shift_right", "likely", "if_then_else", "isnullptr",
                    "q_multiply_shift", "q_multiply_shift_per_axis", "assume"}
_OF_BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right"}
_UNCHANGED_ON_INT = {"floor", "ceil", "trunc", "round", "nearbyint"}
#: what is asked of floats, answered for integers
_OF_INTEGERS = {"isnan": 0, "isinf": 0, "isfinite": 1}
#: (bits of the type, a, b) -> the value
_FOLD_BITS: dict[str, Callable[[int, int, int], int]] = {
    "bitwise_and": lambda bits, a, b: a & b, "bitwise_or": lambda bits, a, b: a | b,
    "bitwise_xor": lambda bits, a, b: a ^ b,
    "shift_left": lambda bits, a, n: shifted_left(bits)(a, n),
    "shift_right": lambda bits, a, n: shifted_right(bits)(a, n)}


def abs(x: Any, span: object = None) -> PrimExpr:
    """The absolute value, of any type."""
    x = convert(x)
    if type(x) in (IntImm, FloatImm):
        return const(builtins.abs(x.value), x.dtype)
    if dt.is_float(x.dtype):
        return Call(x.dtype, "tir.fabs", (x,))
    if dt.is_uint(x.dtype):
        return x
    return select(greater_equal(x, 0), x, neg(x))


def pow(x: ExprLike, y: ExprLike, span: object = None) -> PrimExpr:
    """x to the power y, in the type of both: integers stay integers."""
    x, y = match_values(x, y)
    return Call(x.dtype, "tir.pow", (x, y))


power = pow


def likely(cond: ExprLike, span: object = None) -> PrimExpr:
    """a hint that the condition usually holds"""
    cond = convert(cond)
    return Call(cond.dtype, "tir.likely", (cond,))


def assume(cond: ExprLike, span: object = None) -> PrimExpr:
    """a fact the compiler may rely on"""
    cond = convert(cond)
    return Call(dt.with_lanes("bool", dt.lanes_of(cond.dtype)), "tir.assume", (cond,))


def _function(row: Intrinsic) -> Callable[..., PrimExpr]:
    """The function that builds calls of an intrinsic."""
    op = OPS[f"tir.{row.name}"]

    def build(*args: ExprLike, span: object = None) -> PrimExpr:
        if len(args) != row.arity:
            raise TypeError(f"{row.name} takes {row.arity} argument(s), got {len(args)}")
        like = next((a for a in args if isinstance(a, PrimExpr)), None)
        values = [convert(a, None if isinstance(a, bool) else like) for a in args]
        if row.name not in ACCEPTS_INTEGERS and not dt.is_float(values[0].dtype):
            if row.name in _UNCHANGED_ON_INT:
                return values[0]
            if row.name in _OF_INTEGERS:
                return IntImm("bool", _OF_INTEGERS[row.name])
            values = [cast(v, dt.with_lanes("float32", dt.lanes_of(v.dtype))) for v in values]
        if row.name in _OF_BITS and any(dt.is_float(v.dtype) for v in values):
            raise DataError(f"{row.name} works on the bits of integers, and "
                            f"{next(v for v in values if dt.is_float(v.dtype))!r} is a float: "
                            "convert it first, by its value with astype, or by its bits with "
                            "reinterpret")
        if row.arity == 2 and row.name != "ldexp":
            a, b = values = match_types(*values)
            if row.name in _FOLD_BITS and type(a) is IntImm and type(b) is IntImm:
                return const(_FOLD_BITS[row.name](dt.bits_of(a.dtype), a.value, b.value), a.dtype)
        first = values[0].dtype
        result = first if row.result == "same" else dt.with_lanes(row.result, dt.lanes_of(first))
        return Call(result, op, tuple(values))

    build.__name__ = row.name
    build.__doc__ = row.doc
    return build


#: all but those written out above
_MADE = {row.name: _function(row) for row in INTRINSICS
         if row.result != "given" and row.arity and row.name not in globals()}
globals().update(_MADE, __all__=[
    "ACCEPTS_INTEGERS", "abs", "assume", "likely", "pow", "power", *_MADE])

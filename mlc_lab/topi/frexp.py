"""frexp: a float as a fraction from a half up to one, times a power of two."""

from __future__ import annotations

from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import PrimExpr
from .elementwise import elementwise


def _bits(e: PrimExpr) -> tuple[PrimExpr, PrimExpr, PrimExpr, PrimExpr]:
    """(the number as float64, its bits, its exponent field, what to subtract from the exponent).
    A number below the normal ones is multiplied by 2^54 first."""
    wide = O.cast(e, "float64")
    small = O.less(O.abs(wide), O.const(2.0 ** -1022, "float64"))
    bits = O.reinterpret("int64", O.select(small, wide * O.const(2.0 ** 54, "float64"), wide))
    field = O.bitwise_and(O.shift_right(bits, O.const(52, "int64")), O.const(0x7FF, "int64"))
    bias = O.select(small, O.const(1022 + 54, "int64"), O.const(1022, "int64"))
    return wide, bits, field, bias


def _is_plain(field: PrimExpr) -> PrimExpr:
    """Whether it is neither zero, nor infinite, nor NaN."""
    return O.logical_and(O.greater(field, O.const(0, "int64")),
                         O.less(field, O.const(0x7FF, "int64")))


def frexp_fraction(x: Tensor) -> Tensor:
    """The fraction; zeros, infinities and NaN are their own."""
    def element(e: PrimExpr) -> PrimExpr:
        _, bits, field, _ = _bits(e)
        kept = O.bitwise_and(bits, O.const(-0x7FF0000000000001, "int64"))
        made = O.reinterpret("float64", O.bitwise_or(kept, O.const(1022 << 52, "int64")))
        return O.select(_is_plain(field), O.cast(made, e.dtype), e)

    return elementwise(x, element, "compute")


def frexp_exponent(x: Tensor) -> Tensor:
    """The power of two, an int32; 0 for zeros, infinities and NaN."""
    def element(e: PrimExpr) -> PrimExpr:
        _, _, field, bias = _bits(e)
        return O.cast(O.select(_is_plain(field), field - bias, O.const(0, "int64")), "int32")

    return elementwise(x, element, "compute")


__all__ = ["frexp_exponent", "frexp_fraction"]

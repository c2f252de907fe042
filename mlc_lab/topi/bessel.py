"""Modified Bessel functions of the first kind, i0 and i1, and the same times exp(-|x|).

Up to 20 they are their power series, which has positive terms only, and above it the asymptotic one
(Abramowitz and Stegun, 9.6.10 and 9.7.1), in float64.
"""

from __future__ import annotations

import math
from typing import Callable

from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import PrimExpr
from .elementwise import elementwise
from .special import Keep

_TERMS = 44


def _c(value: float) -> PrimExpr:
    return O.const(value, "float64")


def _series(x: PrimExpr, coefficients: list[float]) -> PrimExpr:
    """A polynomial, from its highest coefficient on."""
    out = _c(coefficients[-1])
    for value in reversed(coefficients[:-1]):
        out = out * x + _c(value)
    return out


def _far(order: int) -> list[float]:
    """The coefficients of 1 / x in the asymptotic series."""
    out, squared = [1.0], 4 * order * order
    for k in range(1, 31):
        out.append(-out[-1] * (squared - (2 * k - 1) ** 2) / (8 * k))
    return out


def _modified(name: str, order: int, scaled: bool) -> Callable[[Tensor], Tensor]:
    near = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(_TERMS)]
    far = _far(order)

    def element(e: PrimExpr) -> PrimExpr:
        keep = Keep()
        x = keep(O.cast(e, "float64"))
        size = keep(O.abs(x))
        close = keep(O.min_value_of(size, _c(20)))
        inner = _series(keep(close * close / _c(4)), near)
        if order:
            inner = inner * close / _c(2)
        away = keep(O.max_value_of(size, _c(20)))
        outer = _series(keep(_c(1) / away), far) / O.sqrt(_c(2 * math.pi) * away)
        if scaled:
            inner = inner * O.exp(O.neg(close))
        else:  # exp(x) overflows before the result does
            half = keep(O.exp(away / _c(2)))
            outer = outer * half * half
        out = O.select(O.less_equal(size, _c(20)), inner, outer)
        if order:
            out = O.select(O.less(x, _c(0)), O.neg(out), out)
        end = _c(0.0) if scaled else (x if order else size)
        out = O.select(O.equal(size, O.infinity("float64")), end, out)
        return keep.around(O.cast(O.select(O.isnan(x), x, out), e.dtype))

    def operator(x: Tensor) -> Tensor:
        return elementwise(x, element, "compute")

    operator.__name__ = name
    operator.__doc__ = (f"The modified Bessel function of the first kind, order {order}"
                        + (", times exp(-|x|)." if scaled else "."))
    return operator


i0 = _modified("i0", 0, False)
i0e = _modified("i0e", 0, True)
i1 = _modified("i1", 1, False)
i1e = _modified("i1e", 1, True)

__all__ = ["i0", "i0e", "i1", "i1e"]

"""Resizing along one dimension, as torch does it: by the sizes or by a given factor.

Weights of an antialiased filter are a matrix, computed beforehand: [new, old].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import te
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import PrimExpr
from .utils import axis_of, number

if TYPE_CHECKING:
    pass

CUBIC = -0.75


def resample(x: Tensor, axis: int, size: Any, method: str, scale: float | None = None,
             align_corners: bool = False) -> Tensor:
    """x with dimension `axis` resized; `scale` is how far one place of the result goes in x, by
    default the quotient of the sizes. `method` is nearest, nearest-exact, linear or cubic."""
    k = axis_of("resample", axis, x.ndim)
    have = x.shape[k]
    wanted = O.cast(O.convert(size), have.dtype)
    kind = "float64" if x.dtype == "float64" else "float32"

    def f(value: Any) -> PrimExpr:
        return O.const(value, kind) if isinstance(value, (int, float)) else O.cast(value, kind)

    if align_corners and method in ("linear", "cubic"):
        ends = f(wanted) - f(1)
        step = (f(have) - f(1)) / O.max_value_of(ends, f(1))
        if number(wanted) == 1:
            step = f(0)
    elif scale is not None:
        step = f(scale)
    else:
        step = f(have) / f(wanted)

    def inside(index: PrimExpr) -> PrimExpr:
        return O.max_value_of(O.min_value_of(O.cast(index, have.dtype), have - 1), 0)

    def taps(i: PrimExpr) -> list[tuple[PrimExpr, PrimExpr | None]]:
        if method == "nearest":
            return [(inside(O.floor(f(i) * step)), None)]
        if method == "nearest-exact":
            return [(inside(O.floor((f(i) + f(0.5)) * step)), None)]
        place = f(i) * step if align_corners else (f(i) + f(0.5)) * step - f(0.5)
        if method == "linear":
            place = O.max_value_of(place, f(0))
            first = O.floor(place)
            part = O.min_value_of(place - first, f(1))
            return [(inside(first), f(1) - part), (inside(first + f(1)), part)]
        first = O.floor(place)
        weights = cubic_weights(place - first, f)
        return [(inside(first + f(n - 1)), w) for n, w in enumerate(weights)]

    def element(*i: PrimExpr) -> PrimExpr:
        total: Any = None
        for at, weight in taps(i[k]):
            value = x(*i[:k], at, *i[k + 1:])
            if weight is not None:
                value = O.cast(value, kind) * weight
            total = value if total is None else total + value
        return O.cast(total, x.dtype)

    shape = [wanted if d == k else n for d, n in enumerate(x.shape)]
    return te.compute(shape, element, name="resample", tag="injective")


def cubic_weights(t: PrimExpr, f: Any, a: float = CUBIC) -> list[PrimExpr]:
    """The weights of four neighbours (Keys, 1981); `f` makes constants of the type of t."""
    def near(s: PrimExpr) -> PrimExpr:
        return ((f(a + 2) * s - f(a + 3)) * s) * s + f(1)

    def far(s: PrimExpr) -> PrimExpr:
        return ((f(a) * s - f(5 * a)) * s + f(8 * a)) * s - f(4 * a)

    return [far(t + f(1)), near(t), near(f(1) - t), far(f(2) - t)]


def antialias_weights(have: int, wanted: int, method: str, scale: float | None,
                      align_corners: bool) -> np.ndarray:
    """The matrix of an antialiased resize: the filter is as wide as the result's places are far
    apart, and its weights sum to 1. The cubic one has the coefficient -0.5 here."""
    if align_corners:
        step = (have - 1) / (wanted - 1) if wanted > 1 else 0.0
    else:
        step = 1 / scale if scale else have / wanted
    reach = 1.0 if method == "linear" else 2.0
    support = reach * step if step >= 1 else reach
    inverse = 1 / step if step >= 1 else 1.0
    out = np.zeros((wanted, have))
    for i in range(wanted):
        center = step * (i + 0.5)
        first = max(int(center - support + 0.5), 0)
        count = min(int(center + support + 0.5), have) - first
        for j in range(max(count, 0)):
            out[i, first + j] = _filter(method, (j + first - center + 0.5) * inverse)
        total = out[i].sum()
        out[i] /= total if total else 1.0
    return out


def _filter(method: str, x: float) -> float:
    x = math.fabs(x)
    if method == "linear":
        return max(1 - x, 0.0)
    a = -0.5
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


__all__ = ["CUBIC", "antialias_weights", "cubic_weights", "resample"]

"""Sampling of images at computed places (spatial transformer networks).

Jaderberg et al., Spatial Transformer Networks, 2015.
"""

from __future__ import annotations

from itertools import product as combinations
from typing import TYPE_CHECKING, Any

from .. import te
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import PrimExpr
from .resampling import CUBIC, cubic_weights
from .utils import need, text

if TYPE_CHECKING:
    pass


def grid_sample(data: Tensor, grid: Tensor, method: str = "bilinear", padding: str = "zeros",
                align_corners: bool = False, alpha: float = CUBIC) -> Tensor:
    """data [N, C, H, W] (or [N, C, D, H, W]) at grid [N, h, w, 2] ([N, d, h, w, 3]).

    The last dimension of the grid holds x, y(, z) from -1 to 1: from border to border of the image,
    or with `align_corners` from the middle of the first pixel to that of the last. What lies
    outside is 0 ("zeros"), the nearest pixel ("border"), or mirrored ("reflection").
    """
    rank = data.ndim - 2
    need(grid.ndim == data.ndim and method in ("bilinear", "nearest", "bicubic")
         and padding in ("zeros", "border", "reflection"),
         f"grid_sample: data {text(data.shape)}, grid {text(grid.shape)}, {method}, {padding}")
    need(method != "bicubic" or rank == 2, "grid_sample: bicubic is of images in a plane")
    kind = "float64" if data.dtype == "float64" else "float32"
    sizes = data.shape[2:]

    def f(value: Any) -> PrimExpr:
        return O.const(value, kind) if isinstance(value, (int, float)) else O.cast(value, kind)

    def mirrored(x: PrimExpr, low: PrimExpr, high: PrimExpr) -> PrimExpr:
        """x reflected at both ends until it lies between."""
        span = high - low
        away = O.abs(x - low)
        part = away - O.floor(away / O.max_value_of(span, f(1e-9))) * span
        periods = O.floor(away / O.max_value_of(span, f(1e-9)))
        odd = O.equal(periods - O.floor(periods / f(2)) * f(2), f(1))
        return O.select(O.equal(span, f(0)), low, O.select(odd, high - part, low + part))

    def clamped(x: PrimExpr, size: PrimExpr) -> PrimExpr:
        """A coordinate clamped to the image; unchanged where the padding is "zeros"."""
        if padding == "zeros":
            return x
        if padding == "reflection":
            low, high = (f(0), f(size) - f(1)) if align_corners else (f(-0.5), f(size) - f(0.5))
            x = mirrored(x, low, high)
        return O.min_value_of(O.max_value_of(x, f(0)), f(size) - f(1))

    def place(i: Any, d: int) -> PrimExpr:
        at = O.cast(grid(i[0], *i[2:], rank - 1 - d), kind)
        size = f(sizes[d])
        if align_corners:
            return (at + f(1)) * ((size - f(1)) * f(0.5))
        return ((at + f(1)) * size - f(1)) * f(0.5)

    def read(i: Any, at: tuple[PrimExpr, ...]) -> PrimExpr:
        """A pixel; 0 where it is none, or where a place is not a number."""
        inside = O.all(*(c for p, d in zip(at, sizes) for c in (p >= f(0), p <= f(d) - f(1))))
        index = [O.cast(O.max_value_of(O.min_value_of(O.select(O.isnan(p), f(0), p), f(d) - f(1)),
                                       f(0)), d.dtype) for p, d in zip(at, sizes)]
        return O.if_then_else(inside, O.cast(data(i[0], i[1], *index), kind), f(0))

    def taps(x: PrimExpr, size: PrimExpr) -> list[tuple[PrimExpr, PrimExpr | None]]:
        if method == "nearest":
            return [(O.nearbyint(clamped(x, size)), None)]
        if method == "bilinear":
            x = clamped(x, size)
            first = O.floor(x)
            return [(first, f(1) - (x - first)), (first + f(1), x - first)]
        first = O.floor(x)
        return [(clamped(first + f(n - 1), size), w)
                for n, w in enumerate(cubic_weights(x - first, f, alpha))]

    def element(*i: PrimExpr) -> PrimExpr:
        total: Any = None
        for chosen in combinations(*(taps(place(i, d), n) for d, n in enumerate(sizes))):
            value = read(i, tuple(at for at, _ in chosen))
            for _, weight in chosen:
                value = value if weight is None else value * weight
            total = value if total is None else total + value
        return O.cast(total, data.dtype)

    shape = [*data.shape[:2], *grid.shape[1:-1]]
    return te.compute(shape, element, name="grid_sample", tag="injective")


__all__ = ["grid_sample"]

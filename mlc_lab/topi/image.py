"""Resizing images: resize1d, resize2d, resize3d.

Where an output pixel lies in the input is the coordinate transformation (as ONNX names them);
what is read there is the method: the nearest pixel, a linear or a cubic interpolation.
"""

from __future__ import annotations

from itertools import product as combinations
from typing import TYPE_CHECKING, Any

from .. import te
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import PrimExpr
from .utils import need, need_rank, number, shape_of, text

if TYPE_CHECKING:
    from collections.abc import Sequence

METHODS = ("nearest_neighbor", "linear", "cubic")
TRANSFORMS = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel",
              "tf_half_pixel_for_nn", "tf_crop_and_resize")


def _place(i: PrimExpr, size: Any, wanted: Any, transform: str, roi: tuple[Any, Any]) -> PrimExpr:
    """Where output pixel i lies in the input, as a float."""
    x = O.cast(i, "float32")
    have, want = (O.cast(O.convert(v), "float32") for v in (size, wanted))
    known = all(isinstance(number(v), int) for v in (size, wanted))
    scale = O.const(number(size) / number(wanted), "float32") if known else have / want
    half, one = O.const(0.5, "float32"), O.const(1, "float32")
    if transform == "half_pixel":
        return (x + half) * scale - half
    if transform == "align_corners":
        if number(wanted) == 1:
            return O.const(0, "float32")
        step = O.const((number(size) - 1) / (number(wanted) - 1), "float32") if known else (
            have - one) / (want - one)
        return x * step
    if transform == "asymmetric":
        return x * scale
    if transform == "pytorch_half_pixel":
        return O.const(0, "float32") if number(wanted) == 1 else (x + half) * scale - half
    if transform == "tf_half_pixel_for_nn":
        return (x + half) * scale
    low, high = (O.const(v, "float32") for v in roi)  # tf_crop_and_resize
    if number(wanted) == 1:
        return (low + high) * half * (have - one)
    return low * (have - one) + x * (high - low) * (have - one) / (want - one)


def _nearest(place: PrimExpr, rounding: str) -> PrimExpr:
    """The number of the nearest pixel. The small term keeps exact halves from falling either way
    with the rounding error of the place."""
    tiny = O.const(1e-5, "float32")
    if rounding in ("", "round", "round_prefer_floor"):
        at = O.ceil(place - O.const(0.5, "float32")) if rounding == "round_prefer_floor" else (
            O.round(place))
    elif rounding == "round_prefer_ceil":
        at = O.floor(place + O.const(0.5, "float32"))
    elif rounding == "floor":
        at = O.floor(place + tiny)
    elif rounding == "ceil":
        at = O.ceil(place - tiny)
    else:
        raise ValueError(f'resize: rounding_method "{rounding}" is none of "round", '
                         '"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"')
    return O.cast(at, "int32")


def _cubic(fraction: PrimExpr, alpha: float) -> list[PrimExpr]:
    """The weights of four neighbours (Keys, 1981)."""
    def c(value: float) -> PrimExpr:
        return O.const(value, "float32")

    t, a = fraction, alpha
    t2 = t * t
    t3 = t2 * t
    return [c(a) * (t3 - c(2) * t2 + t), c(a + 2) * t3 - c(a + 3) * t2 + c(1),
            c(-(a + 2)) * t3 + c(2 * a + 3) * t2 - c(a) * t, c(-a) * t3 + c(a) * t2]


def _resize(name: str, data: Tensor, roi: Any, size: Any, layout: str, method: str,
            transform: str, rounding: str, alpha: float, exclude: int, outside: float,
            out_dtype: str | None) -> Tensor:
    letters = [c for c in "DHW" if c in layout]
    need(sorted(layout) == sorted(["N", "C", *letters]),
         f"{name}: the layout {layout} is not made of NC{''.join(letters)}")
    need_rank(name, data, len(layout), f"the layout {layout}")
    method = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}.get(
        method, method)
    need(method in METHODS, f'{name}: method "{method}" is none of {METHODS}')
    need(transform in TRANSFORMS,
         f'{name}: coordinate_transformation_mode "{transform}" is none of {TRANSFORMS}')
    sizes = [number(s) for s in (size if isinstance(size, (list, tuple)) else [size])]
    need(len(sizes) == len(letters),
         f"{name}: {len(sizes)} sizes for {text(data.shape)} ({layout})")
    where = [layout.index(c) for c in letters]
    shape = list(data.shape)
    for d, n in zip(where, shape_of(sizes)):
        shape[d] = O.cast(n, data.shape[d].dtype)
    rois = [(float(roi[k]), float(roi[k + len(letters)])) for k in range(len(letters))] if (
        roi is not None and len(roi) >= 2 * len(letters)) else [(0.0, 1.0)] * len(letters)
    if rounding == "" and method == "nearest_neighbor":
        rounding = "round" if transform == "align_corners" else "floor"
    dtype = out_dtype or data.dtype

    def clamp(index: PrimExpr, d: int) -> PrimExpr:
        high = O.cast(data.shape[d], "int32") - 1
        return O.cast(O.max_value_of(O.min_value_of(index, high), 0), data.shape[d].dtype)

    def taps(i: PrimExpr, d: int, n: PrimExpr | int, r: tuple[float, float]
             ) -> list[tuple[PrimExpr, Any]]:
        """The pixels read along one dimension, and their weights."""
        if method == "nearest_neighbor" and transform == "asymmetric" and rounding == "floor":
            have = number(data.shape[d])
            if isinstance(have, int) and isinstance(n, int) and n % have == 0:
                return [(O.cast(clamp(O.floordiv(O.cast(i, "int32"), n // have), d),
                                data.shape[d].dtype), None)]
        place = _place(i, data.shape[d], n, transform, r)
        if method == "nearest_neighbor":
            return [(clamp(_nearest(place, rounding), d), None)]
        base = O.floor(place)
        first, fraction = O.cast(base, "int32"), place - base
        if method == "linear":
            return [(clamp(first, d), O.const(1, "float32") - fraction),
                    (clamp(first + 1, d), fraction)]
        weights = _cubic(fraction, alpha)
        if exclude:
            size_ = O.cast(data.shape[d], "int32")
            weights = [O.select(O.all(first + k >= 0, first + k < size_), w,
                                O.const(0, "float32"))
                       for k, w in zip((-1, 0, 1, 2), weights)]
            total = weights[0] + weights[1] + weights[2] + weights[3]
            weights = [w / total for w in weights]
        return [(clamp(first + k, d), w) for k, w in zip((-1, 0, 1, 2), weights)]

    def element(*i: PrimExpr) -> PrimExpr:
        each = [taps(i[d], d, n, r) for d, n, r in zip(where, sizes, rois)]
        total: Any = None
        for chosen in combinations(*each):
            at = list(i)
            weight: Any = None
            for d, (index, w) in zip(where, chosen):
                at[d] = index
                if w is not None:
                    weight = w if weight is None else weight * w
            value = data(*at)
            if weight is not None:
                value = O.cast(value, "float32") * weight
            total = value if total is None else total + value
        if transform == "tf_crop_and_resize":
            inside = [O.all(p >= 0.0, p <= O.cast(data.shape[d] - 1, "float32"))
                      for p, d in ((_place(i[d], data.shape[d], n, transform, r), d)
                                   for d, n, r in zip(where, sizes, rois))]
            total = O.if_then_else(O.all(*inside), total, O.const(outside, total.dtype))
        return O.cast(total, dtype)

    return te.compute(shape, element, name="resize", tag="injective")


def resize1d(data: Tensor, roi: object, size: Any, layout: str = "NCW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
             bicubic_alpha: float = -0.75, bicubic_exclude: int = 0,
             extrapolation_value: float = 0.0, out_dtype: str | None = None,
             output_shape: Sequence[Any] | None = None) -> Tensor:
    """W resized to `size`."""
    return _resize("resize1d", data, roi, output_shape or size, layout, method,
                   coordinate_transformation_mode, rounding_method, bicubic_alpha,
                   bicubic_exclude, extrapolation_value, out_dtype)


def resize2d(data: Tensor, roi: object, size: Any, layout: str = "NCHW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
             bicubic_alpha: float = -0.75, bicubic_exclude: int = 0,
             extrapolation_value: float = 0.0, out_dtype: str | None = None,
             output_shape: Sequence[Any] | None = None) -> Tensor:
    """(H, W) resized to `size`; `method` is nearest_neighbor, linear or cubic."""
    return _resize("resize2d", data, roi, output_shape or size, layout, method,
                   coordinate_transformation_mode, rounding_method, bicubic_alpha,
                   bicubic_exclude, extrapolation_value, out_dtype)


def resize3d(data: Tensor, roi: object, size: Any, layout: str = "NCDHW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
             bicubic_alpha: float = -0.75, bicubic_exclude: int = 0,
             extrapolation_value: float = 0.0, out_dtype: str | None = None,
             output_shape: Sequence[Any] | None = None) -> Tensor:
    """(D, H, W) resized to `size`."""
    return _resize("resize3d", data, roi, output_shape or size, layout, method,
                   coordinate_transformation_mode, rounding_method, bicubic_alpha,
                   bicubic_exclude, extrapolation_value, out_dtype)


__all__ = ["METHODS", "TRANSFORMS", "resize1d", "resize2d", "resize3d"]

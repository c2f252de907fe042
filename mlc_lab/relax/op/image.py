"""Image operators under R.image: resize2d."""

from __future__ import annotations

from typing import Any

from ..expr import Call, Expr, as_expr
from ..struct_info import StructInfo, TensorStructInfo, as_dim
from .common import (
    dtype_attr, misfit, need_at_least, number, shape_arg, shape_values, show, show_shape,
    tensor_info, tensor_of, whole,
)
from .conv import by_letter
from .registry import make_call, register_op


def resize2d(data: Any, size: Any, roi: Any = None, layout: str = "NCHW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "round",
             cubic_alpha: float = -0.75, cubic_exclude: int = 0,
             extrapolation_value: float = 0.0, out_dtype: Any = None) -> Expr:
    """Height and width resized to `size`; method is nearest_neighbor, linear or cubic."""
    if isinstance(size, int):
        size = (size, size)
    roi = (0.0,) * 4 if roi is None else (
        tuple(float(number(r)) for r in roi) if isinstance(roi, (tuple, list)) else (roi,) * 4)
    return make_call("relax.image.resize2d", (as_expr(data), shape_arg(size)), {
        "roi": roi, "layout": layout, "method": method,
        "coordinate_transformation_mode": coordinate_transformation_mode,
        "rounding_method": rounding_method, "cubic_alpha": float(number(cubic_alpha)),
        "cubic_exclude": whole("cubic_exclude", cubic_exclude),
        "extrapolation_value": float(number(extrapolation_value)),
        "out_dtype": dtype_attr(out_dtype)})


def _infer_resize2d(call: Call) -> StructInfo:
    data, size = tensor_info(call, 0, "data"), shape_values(call, 1)
    dtype = data.dtype if call.attrs.out_dtype == "void" else call.attrs.out_dtype
    if size.ndim not in (-1, 2):
        raise misfit(call, f"size must have two values, it is {show_shape(size.values)}")
    x = by_letter(call, data, call.attrs.layout, "NCHW", "data")
    if not x or size.values is None:
        return TensorStructInfo(None, dtype, ndim=4)
    for letter, wanted in zip("HW", size.values):
        for dim, what in ((x[letter], f"data is {show(data)}"), (wanted, "size is " + show_shape(
                size.values))):
            need_at_least(call, dim, as_dim(1), lambda what=what, letter=letter: (
                f"{what}: {letter} has no extent"))
        x[letter] = wanted
    return tensor_of([x[c] for c in call.attrs.layout], dtype)


register_op("relax.image.resize2d", _infer_resize2d)

__all__ = ["resize2d"]

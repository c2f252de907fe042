"""Image operators under R.image: resize2d."""

from __future__ import annotations

from typing import Annotated, Any

from ...tir.data_layout import Layout
from ..expr import Call
from ..struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, as_dim
from .common import misfit, need_at_least, real, shape_arg, show, show_shape, tensor_of
from .conv import by_letter, in_order, is_packed, unpack, unpacked
from .declare import Dtype, Float, Kind, Tensor, Text, Whole, operator, shape_info
from .later import topi

def _image_size(value: Any) -> Any:
    return shape_arg((value, value) if isinstance(value, int) else value)


def _region(value: Any) -> tuple:
    if value is None:
        return (0.0,) * 4
    values = value if isinstance(value, (tuple, list)) else (value,) * 4
    return tuple(real("roi", v) for v in values)


ImageSize = Annotated[Any, Kind(_image_size, shape_info)]
Region = Annotated[Any, Kind(_region)]


def _infer_resize2d(call: Call, data: TensorStructInfo, size: ShapeStructInfo) -> StructInfo:
    dtype = data.dtype if call.attrs.out_dtype == "void" else call.attrs.out_dtype
    if size.ndim not in (-1, 2):
        raise misfit(call, "size must have two values, it " + (
            f"has {size.ndim}" if size.values is None else f"is {show_shape(size.values)}"))
    x = by_letter(call, data, call.attrs.layout, "NCHW", "data")
    if not x or size.values is None:
        return TensorStructInfo(None, dtype, ndim=len(Layout(call.attrs.layout)))
    for letter, wanted in zip("HW", size.values):
        for dim, what in ((x[letter], f"data is {show(data)}"), (wanted, "size is " + show_shape(
                size.values))):
            need_at_least(call, dim, as_dim(1), lambda what=what, letter=letter: (
                f"{what}: {letter} has no extent"))
        x[letter] = wanted
    return tensor_of(in_order(call, x, call.attrs.layout), dtype)


@operator("relax.image.resize2d", _infer_resize2d, layout="pool", precision="follow")
def resize2d(data: Tensor, size: ImageSize, roi: Region = None, layout: Text = "NCHW",
             method: Text = "linear", coordinate_transformation_mode: Text = "half_pixel",
             rounding_method: Text = "round", cubic_alpha: Float = -0.75, cubic_exclude: Whole = 0,
             extrapolation_value: Float = 0.0, out_dtype: Dtype = None) -> Tensor:
    """Height and width resized to `size`; method is nearest_neighbor, linear or cubic."""
    plain = unpacked(layout)
    out = topi.image.resize2d(
        unpack(data, layout), roi, size, plain, method, coordinate_transformation_mode,
        rounding_method, cubic_alpha, cubic_exclude, extrapolation_value, out_dtype)
    return topi.layout_transform(out, plain, layout) if is_packed(layout) else out

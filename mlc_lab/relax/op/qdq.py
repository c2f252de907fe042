"""Quantize and dequantize along an axis."""

from __future__ import annotations

from typing import Any

from ...ir import dtype as dt
from ...tir import op as O
from ..expr import Call
from ..struct_info import StructInfo, TensorStructInfo, as_dim, same_dim
from .common import axis_of, like, misfit, need_same, show
from .declare import Tensor, Text, Whole, operator
from .later import te


def _infer(call: Call, data: TensorStructInfo, *rest: TensorStructInfo) -> StructInfo:
    for name, info in zip(("scale", "zero_point"), rest):
        if info.ndim > 1:
            raise misfit(call, f"{name} must be one number or a vector, it is {show(info)}")
        if info.ndim != 1 or data.ndim == -1:
            continue
        if info.dims is not None and same_dim(info.dims[0], as_dim(1)):
            continue  # one number for the whole tensor, whatever the axis
        axis = axis_of(call, call.attrs.axis, data.ndim)
        if info.dims is not None and data.dims is not None:
            need_same(call, data.dims[axis], info.dims[0], lambda n=name, i=info, axis=axis: (
                f"data is {show(data)} and {n} is {show(i)}: it needs one number, or one for "
                f"each index of dimension {axis}"))
    return like(data, call.attrs.out_dtype)


def _dtype_first(name: str, attrs: dict[str, Any]) -> dict[str, Any]:
    return {"out_dtype": attrs["out_dtype"], "axis": attrs["axis"]}


def _along(x: Any, i: Any, k: int) -> Any:
    """The element of a scale or zero point (one, or one for each index of axis k)."""
    if x.ndim == 0:
        return O.cast(x(), "float32")
    return O.cast(x(O.const(0, "int64") if O.is_const_int(x.shape[0], 1) else i[k]), "float32")


@operator("relax.quantize", _infer, attrs=_dtype_first)
def quantize(data: Tensor, scale: Tensor, zero_point: Tensor, axis: Whole = -1,
             out_dtype: Text = "int8") -> Tensor:
    """clamp(round(data / scale) + zero_point) in `out_dtype`."""
    k = axis % max(data.ndim, 1)
    least, most = O.min_value(out_dtype), O.max_value(out_dtype)
    low, high = (O.cast(v, "float32") for v in (least, most))

    def element(*i: Any) -> Any:
        value = O.round(O.cast(data(*i), "float32") / _along(scale, i, k))
        value = value + _along(zero_point, i, k)
        inside = O.cast(O.max_value_of(O.min_value_of(value, high), low), out_dtype)
        # the largest number of 32 bits is none of a float: `high` is one more
        return O.select(O.greater_equal(value, high), most, inside) if dt.bits_of(
            out_dtype) >= 32 else inside

    return te.compute(data.shape, element, name="quantized", tag="elemwise")


@operator("relax.dequantize", _infer, attrs=_dtype_first)
def dequantize(data: Tensor, scale: Tensor, zero_point: Tensor, axis: Whole = -1,
               out_dtype: Text = "float32") -> Tensor:
    """scale * (data - zero_point) in `out_dtype`."""
    k = axis % max(data.ndim, 1)

    def element(*i: Any) -> Any:
        away = O.cast(data(*i), "float32") - _along(zero_point, i, k)
        return O.cast(away * _along(scale, i, k), out_dtype)

    return te.compute(data.shape, element, name="dequantized", tag="elemwise")

"""Quantize and dequantize along an axis."""

from __future__ import annotations

from typing import Any

from ..expr import Call, Expr, as_expr
from ..struct_info import StructInfo, as_dim, same_dim
from .common import axis_of, like, misfit, need_same, show, tensor_info, whole
from .registry import make_call, register_op


def quantize(data: Any, scale: Any, zero_point: Any, axis: int = -1,
             out_dtype: str = "int8") -> Expr:
    """clamp(round(data / scale) + zero_point) in `out_dtype`."""
    return make_call("relax.quantize", tuple(map(as_expr, (data, scale, zero_point))), {
        "out_dtype": str(out_dtype), "axis": whole("axis", axis)})


def dequantize(data: Any, scale: Any, zero_point: Any, axis: int = -1,
               out_dtype: str = "float32") -> Expr:
    """scale * (data - zero_point) in `out_dtype`."""
    return make_call("relax.dequantize", tuple(map(as_expr, (data, scale, zero_point))), {
        "out_dtype": str(out_dtype), "axis": whole("axis", axis)})


def _infer(call: Call) -> StructInfo:
    data = tensor_info(call, 0, "data")
    for k, name in ((1, "scale"), (2, "zero_point")):
        info = tensor_info(call, k, name)
        if info.ndim > 1:
            raise misfit(call, f"{name} must be one number or a vector, it is {show(info)}")
        if info.ndim != 1 or data.ndim == -1:
            continue
        axis = axis_of(call, call.attrs.axis, data.ndim)
        if info.dims is not None and data.dims is not None and not same_dim(
                info.dims[0], as_dim(1)):
            need_same(call, data.dims[axis], info.dims[0], lambda n=name, i=info, axis=axis: (
                f"data is {show(data)} and {n} is {show(i)}: it needs one number, or one for "
                f"each index of dimension {axis}"))
    return like(data, call.attrs.out_dtype)


for _name in ("quantize", "dequantize"):
    register_op(f"relax.{_name}", _infer)

__all__ = ["dequantize", "quantize"]

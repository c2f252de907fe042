"""Quantize and dequantize along an axis."""

from __future__ import annotations

from typing import Any

from ..expr import Expr, as_expr
from .common import like, tensor_info, whole
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


for _name in ("quantize", "dequantize"):
    register_op(f"relax.{_name}", lambda call: like(tensor_info(call, 0), call.attrs.out_dtype))

__all__ = ["dequantize", "quantize"]

"""Reductions along axes, argmax and argmin, and scans (cumsum, cumprod)."""

from __future__ import annotations

from typing import Any, Callable

from ...ir.dtype import is_bool, is_integer
from ...tir import expr as E
from ..expr import Call, Expr, as_expr
from ..struct_info import StructInfo, TensorStructInfo
from .common import (
    axes_of, axis_of, ints, need_at_least, need_float, product, show, tensor_info, tensor_of, whole,
)
from .registry import make_call, register_op

_ONE = E.IntImm("int64", 1)


def reduced(call: Call, info: TensorStructInfo, axis: Any, keepdims: bool,
            dtype: str) -> StructInfo:
    """What is left of a tensor when the axes (all of them for None) are reduced."""
    if info.ndim == -1:
        if axis is None and not keepdims:
            return tensor_of((), dtype)
        return TensorStructInfo(None, dtype)
    axes = tuple(range(info.ndim)) if axis is None else axes_of(call, axis, info.ndim)
    if info.dims is None:
        ndim = info.ndim if keepdims else info.ndim - len(axes)
        return tensor_of(() if ndim == 0 else None, dtype, ndim)
    if keepdims:
        return tensor_of([_ONE if k in axes else d for k, d in enumerate(info.dims)], dtype)
    return tensor_of([d for k, d in enumerate(info.dims) if k not in axes], dtype)


def _infer(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    return reduced(call, info, call.attrs.axis, call.attrs.keepdims, info.dtype)


def _infer_mean(call: Call) -> StructInfo:
    """Of integers a mean is one too: it is cut off, and there must be something."""
    info = tensor_info(call, 0, "x")
    if info.dtype and is_bool(info.dtype):
        need_float(call, info)
    if info.dtype and is_integer(info.dtype):
        _need_elements(call, info, call.attrs.axis)
    return _infer(call)


def _statistical(name: str) -> Callable[..., Expr]:
    full = f"relax.{name}"
    register_op(full, _infer_mean if name in ("mean", "std", "variance") else _infer)

    def build(x: Any, axis: Any = None, keepdims: bool = False) -> Expr:
        return make_call(full, (as_expr(x),), {"axis": ints(axis), "keepdims": bool(keepdims)})

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{name} along `axis` (int, several, or None for all)."
    return build


STATISTICAL = ("sum", "max", "min", "mean", "prod", "std", "variance")
for _name in STATISTICAL:
    globals()[_name] = _statistical(_name)


def _need_elements(call: Call, info: TensorStructInfo, axis: Any) -> None:
    """Refuse a reduction of no elements, for which there is no value."""
    if info.dims is None:
        return
    axes = range(info.ndim) if axis is None else axes_of(call, axis, info.ndim)
    for k in axes:
        need_at_least(call, info.dims[k], _ONE, lambda k=k: (
            f"x is {show(info)}: there is nothing along dimension {k}"))


def _infer_arg(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    axis = call.attrs.axis
    _need_elements(call, info, None if axis is None else (axis,))
    return reduced(call, info, None if axis is None else (axis,), call.attrs.keepdims, "int64")


def _arg_op(name: str) -> Callable[..., Expr]:
    full = f"relax.{name}"
    register_op(full, _infer_arg)

    def build(x: Any, axis: Any = None, keepdims: bool = False) -> Expr:
        return make_call(full, (as_expr(x),), {
            "axis": None if axis is None else whole("axis", axis), "keepdims": bool(keepdims)})

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"The index (int64) of {name[3:]} along `axis`, or in all elements for None."
    return build


argmax, argmin = _arg_op("argmax"), _arg_op("argmin")


def _infer_scan(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "data")
    dtype = info.dtype if call.attrs.dtype == "void" else call.attrs.dtype
    axis = call.attrs.axis
    if axis is None:  # over all elements, flattened
        return tensor_of(None if info.dims is None else [product(info.dims)], dtype, 1)
    if info.ndim != -1:
        axis_of(call, axis, info.ndim)
    return TensorStructInfo.from_fields(info.shape, dtype, info.ndim, None)


def _scan_op(name: str) -> Callable[..., Expr]:
    full = f"relax.{name}"
    register_op(full, _infer_scan)

    def build(data: Any, axis: Any = None, dtype: Any = None, exclusive: bool = False) -> Expr:
        return make_call(full, (as_expr(data),), {
            "axis": None if axis is None else whole("axis", axis), "dtype": str(dtype or "void"),
            "exclusive": bool(exclusive)})

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{name} along `axis` (of the flattened tensor for None)."
    return build


cumsum, cumprod = _scan_op("cumsum"), _scan_op("cumprod")

__all__ = [*STATISTICAL, "argmax", "argmin", "cumprod", "cumsum"]

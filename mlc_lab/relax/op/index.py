"""Indexing by tensors: take, index_tensor, index_put."""

from __future__ import annotations

from typing import Any

from ...ir.dtype import is_integer
from ...tir import op as O
from ..expr import Call
from ..struct_info import PrimStructInfo, StructInfo, TensorStructInfo
from .common import (
    axis_of, broadcast_dims, dims_of, join_dtype, misfit, need_fill, need_float, need_integer,
    need_ndim, need_same, need_some, one_of, product, show, tensor_of,
)
from .declare import Flag, Tensor, Tensors, Text, Value, Whole, operator
from .later import topi


def _infer_take(call: Call, x: TensorStructInfo, which: StructInfo) -> StructInfo:
    axis = call.attrs.axis
    if isinstance(which, TensorStructInfo):
        dims, ndim = which.dims, which.ndim
    elif isinstance(which, PrimStructInfo):
        dims, ndim = (), 0
    else:
        raise misfit(call, f"indices must be a tensor or a scalar, it is {show(which)}")
    if which.dtype and not is_integer(which.dtype):
        raise misfit(call, f"indices must be integers, they are {show(which)}")
    mode = call.attrs.get("mode", "fast")
    one_of(call, "mode", mode, ("fast", "wrap", "clip", "nan"))
    if mode == "nan":
        need_float(call, x)
    if axis is None:
        need_ndim(call, x, 1, "x (without an axis)")
        axis = 0
    if x.ndim == -1 or ndim == -1:
        return TensorStructInfo(None, x.dtype)
    axis = axis_of(call, axis, x.ndim)
    if x.dims is None or dims is None:
        return tensor_of(None, x.dtype, x.ndim + ndim - 1)
    need_some(call, x, axis, product(dims), "x")
    return tensor_of([*x.dims[:axis], *dims, *x.dims[axis + 1:]], x.dtype)


@operator("relax.take", _infer_take)
def take(x: Tensor, indices: Value, axis: Whole | None = None, mode: Text = "fast") -> Tensor:
    """Elements of x along `axis` at `indices` (x is a vector where axis is None).

    Negative indices count from the end. Those outside are clipped; "wrap" takes them modulo the
    extent, and with "clip" the negative ones are 0.
    """
    # where TVM says nothing of indices outside ("fast"), they must not end the process
    return topi.take(x, indices, 0 if axis is None else axis,
                     mode="numpy" if mode == "fast" else mode)


def _indexed(call: Call, x: TensorStructInfo, parts: tuple[TensorStructInfo, ...]) -> list | None:
    """The dimensions of x[indices[0], indices[1], ...]; None where they cannot be told."""
    if not parts:
        raise misfit(call, "there is no index")
    if -1 < x.ndim < len(parts):
        raise misfit(call, f"data is {show(x)}, it is indexed by {len(parts)} tensors")
    dims: Any = ()
    for k, part in enumerate(parts):
        need_integer(call, part, f"index {k + 1}")
        if dims is not None and part.dims is not None:
            dims = broadcast_dims(call, dims, part.dims, ("index 1", f"index {k + 1}"))
        else:
            dims = None
    if dims is None or x.dims is None:
        return None
    for axis in range(len(parts)):
        need_some(call, x, axis, product(dims), "data")
    return [*dims, *x.dims[len(parts):]]


def _infer_index_tensor(call: Call, data: TensorStructInfo, indices: tuple) -> StructInfo:
    dims = _indexed(call, data, indices)
    return TensorStructInfo(None, data.dtype) if dims is None else tensor_of(dims, data.dtype)


@operator("relax.index_tensor", _infer_index_tensor)
def index_tensor(data: Tensor, indices: Tensors) -> Tensor:
    """data[indices[0], indices[1], ...] with integer tensors, as numpy."""
    return topi.index_tensor(data, indices)


def _infer_index_put(call: Call, data: TensorStructInfo, indices: tuple,
                     values: TensorStructInfo) -> StructInfo:
    join_dtype(call, data.dtype, values.dtype, ("data", "values"))
    dims = _indexed(call, data, indices)
    shapes = dims_of(indices)
    if dims is None and shapes is not None and data.dims is not None:
        dims = [*_common_shape(call, shapes), *data.dims[len(indices):]]
    if dims is not None and values.dims is not None:
        need_fill(call, values, dims, "values")
    return data


def _common_shape(call: Call, shapes: list[tuple]) -> list:
    """The shape of all indices together, where symbolic sizes do not tell how they are broadcast:
    none of them stands for 1, and those of an axis are compared at run time."""
    out = list(max(shapes, key=len))
    for shape in shapes:
        for k, d in enumerate(shape, len(out) - len(shape)):
            if O.is_const_int(out[k], 1):
                out[k] = d
            elif not O.is_const_int(d, 1):
                need_same(call, out[k], d, lambda: "the indices must have one shape")
    return out


@operator("relax.index_put", _infer_index_put)
def index_put(data: Tensor, indices: Tensors, values: Tensor, accumulate: Flag = False) -> Tensor:
    """data with data[indices[0], ...] set to (or, accumulating, increased by) values."""
    return topi.index_put(data, indices, values, accumulate)

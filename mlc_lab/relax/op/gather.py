"""Gathering and scattering by index tensors, and one_hot."""

from __future__ import annotations

from typing import Any

from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Expr
from ..struct_info import PrimStructInfo, StructInfo, TensorStructInfo, as_dim
from .common import (
    axis_of, dims_of, info_of, join_dtype, like, misfit, need_at_most, need_ndim, need_same,
    need_same_dims, need_some, one_of, product, show, show_shape, tensor_of,
)
from .declare import (
    Axis, IntegerTensor, Scalar, Tensor, Text, Whole, operator, prim,
)
from .later import topi, utils

REDUCTIONS = ("update", "add", "mul", "mean", "max", "min")


def _along_axis(call: Call, data: TensorStructInfo, indices: TensorStructInfo) -> None:
    """Refuse indices that have not data's number of dimensions, or reach further than it."""
    if data.ndim == -1:
        return
    axis = axis_of(call, call.attrs.axis, data.ndim)
    need_ndim(call, indices, data.ndim, "indices")
    if indices.dims is not None:
        need_some(call, data, axis, product(indices.dims), "data")
    for k, (size, most) in enumerate(zip(indices.dims or (), data.dims or ())):
        if k != axis:
            need_at_most(call, size, most, lambda k=k: (
                f"data is {show(data)} and indices is {show(indices)}: dimension {k} of indices "
                f"must be at most that of data, for only dimension {axis} is looked up"))


def _infer_gather_elements(call: Call, data: TensorStructInfo,
                           indices: TensorStructInfo) -> StructInfo:
    _along_axis(call, data, indices)
    return like(indices, data.dtype)


@operator("relax.gather_elements", _infer_gather_elements, hint="gather")
def gather_elements(data: Tensor, indices: IntegerTensor, axis: Axis = 0) -> Tensor:
    """out[i][j] = data[indices[i][j]][j] for axis 0, as numpy.take_along_axis."""
    return topi.gather(data, axis, indices, "numpy")


def _infer_gather_nd(call: Call, data: TensorStructInfo, indices: TensorStructInfo) -> StructInfo:
    batch = call.attrs.batch_dims
    if batch < 0:
        raise misfit(call, f"batch_dims is {batch}, it cannot be negative")
    if indices.ndim == 0 or -1 not in (data.ndim, indices.ndim) and batch >= min(
            data.ndim + 1, indices.ndim):
        raise misfit(call, f"data is {show(data)} and indices is {show(indices)}: indices needs "
                           f"a last dimension that holds the index vectors, after {batch} "
                           "dimension(s) of the batch")
    if data.dims is None or indices.dims is None or type(indices.dims[-1]) is not E.IntImm:
        return TensorStructInfo(None, data.dtype)
    length = indices.dims[-1].value + batch
    if length > data.ndim:
        raise misfit(call, f"indices is {show(indices)}: an index of {length} dimension(s) into "
                           f"{show(data)}")
    for a, b in zip(data.dims[:batch], indices.dims[:batch]):
        need_same(call, a, b, lambda: f"data is {show(data)} and indices is {show(indices)}: the "
                                      f"first {batch} dimension(s) must agree")
    for axis in range(batch, length):
        need_some(call, data, axis, product(indices.dims[:-1]), "data")
    return tensor_of([*indices.dims[:-1], *data.dims[length:]], data.dtype)


@operator("relax.gather_nd", _infer_gather_nd)
def gather_nd(data: Tensor, indices: IntegerTensor, batch_dims: Whole = 0) -> Tensor:
    """Slices of data at the index vectors along the last dimension of `indices`."""
    depth, count = utils.number(indices.shape[-1]), indices.ndim - 1
    shape = [*indices.shape[:-1], *data.shape[batch_dims + depth:]]

    def element(*i: Any) -> Any:
        at = [topi.indexing.kept_inside(indices(*i[:count], d), data.shape[batch_dims + d], "numpy")
              for d in range(depth)]
        return data(*i[:batch_dims], *at, *i[count:])

    return topi.transform.injective(shape, element, "T_gather_nd")


def _infer_scatter_elements(call: Call, data: TensorStructInfo, indices: TensorStructInfo,
                            updates: TensorStructInfo) -> StructInfo:
    _along_axis(call, data, indices)
    one_of(call, "reduction", call.attrs.reduction, REDUCTIONS)
    need_same_dims(call, indices, updates, ("indices", "updates"))
    join_dtype(call, data.dtype, updates.dtype, ("data", "updates"))
    return data


@operator("relax.scatter_elements", _infer_scatter_elements)
def scatter_elements(data: Tensor, indices: IntegerTensor, updates: Tensor, axis: Axis = 0,
                     reduction: Text = "update") -> Tensor:
    """data with data[indices[i][j]][j] updated by updates[i][j] (axis 0).

    `reduction` is update, add, mul, mean, max or min.
    """
    return topi.scatter_elements(data, indices, updates, axis, reduction)


def _infer_scatter_nd(call: Call, data: TensorStructInfo, indices: TensorStructInfo,
                      updates: TensorStructInfo) -> StructInfo:
    one_of(call, "reduction", call.attrs.reduction, [r for r in REDUCTIONS if r != "mean"])
    join_dtype(call, data.dtype, updates.dtype, ("data", "updates"))
    if indices.ndim == 0:
        raise misfit(call, f"indices is {show(indices)}: it needs a last dimension that holds the "
                           "index vectors")
    dims = dims_of((data, indices, updates))
    if dims is not None and type(dims[1][-1]) is E.IntImm:
        length = dims[1][-1].value
        wanted = (*dims[1][:-1], *dims[0][length:])

        def text() -> str:
            return (f"data is {show(data)} and indices is {show(indices)}: updates is "
                    f"{show(updates)}, it must have shape {show_shape(wanted)}")

        if length > data.ndim or len(wanted) != updates.ndim:
            raise misfit(call, text())
        for a, b in zip(wanted, dims[2]):
            need_same(call, a, b, text)
    return data


def _scatter_nd(bb: Any, call: Call) -> Expr:
    if O.as_int(call.args[1].struct_info.dims[-1]) is None:
        return call  # how long an index vector is must be known

    def scatter_nd(data: Any, indices: Any, updates: Any) -> Any:
        order = [indices.ndim - 1, *range(indices.ndim - 1)]
        return topi.scatter_nd(data, topi.transpose(indices, order), updates,
                               call.attrs.reduction)

    return bb.call_te(scatter_nd, *call.args)


@operator("relax.scatter_nd", _infer_scatter_nd, legalize=_scatter_nd)
def scatter_nd(data: Tensor, indices: IntegerTensor, updates: Tensor,
               reduction: Text = "update") -> Tensor:
    """data with slices at index vectors updated."""


def _infer_one_hot(call: Call, info: TensorStructInfo, on: StructInfo,
                   off: StructInfo) -> StructInfo:
    if call.attrs.depth < 1:
        raise misfit(call, f"depth is {call.attrs.depth}, it must be positive")
    dtypes = []
    for name, value in (("on_value", on), ("off_value", off)):
        if not isinstance(value, PrimStructInfo):
            raise misfit(call, f"{name} must be a scalar (R.prim_value), it is {show(value)}")
        dtypes.append(value.dtype)
    dtype, other = dtypes
    if dtype != other:
        raise misfit(call, f"on_value is {dtype} and off_value is {other}: they must agree")
    if info.ndim == -1:
        return TensorStructInfo(None, dtype)
    axis = axis_of(call, call.attrs.axis, info.ndim + 1)
    if info.dims is None:
        return tensor_of(None, dtype, info.ndim + 1)
    return tensor_of([*info.dims[:axis], as_dim(call.attrs.depth), *info.dims[axis:]], dtype)


def _one_hot(bb: Any, call: Call) -> Expr:
    indices, on, off = call.args
    return bb.call_te(topi.one_hot, indices, prim(on), prim(off), call.attrs.depth,
                      call.attrs.axis, info_of(call).dtype)


@operator("relax.one_hot", _infer_one_hot, legalize=_one_hot)
def one_hot(indices: IntegerTensor, on_value: Scalar, off_value: Scalar, depth: Whole,
            axis: Whole = -1) -> Tensor:
    """A new axis of extent `depth` that holds on_value at each index, else off_value."""

"""Gathering and scattering by index tensors, and one_hot."""

from __future__ import annotations

from typing import Any

from ...arith import Analyzer
from ...tir import expr as E
from ..expr import Call, Expr, PrimValue, as_expr
from ..struct_info import PrimStructInfo, StructInfo, TensorStructInfo, as_dim
from .common import (
    axis_of, join_dtype, like, misfit, need_at_most, need_integer, need_ndim, need_same,
    need_same_dims, need_some, one_of, product, show, show_shape, tensor_info, tensor_of, whole,
)
from .registry import make_call, register_op


def gather_elements(data: Any, indices: Any, axis: int = 0) -> Expr:
    """out[i][j] = data[indices[i][j]][j] for axis 0, as numpy.take_along_axis."""
    return make_call("relax.gather_elements", (as_expr(data), as_expr(indices)), {
        "axis": whole("axis", axis)})


REDUCTIONS = ("update", "add", "mul", "mean", "max", "min")


def _along_axis(call: Call) -> tuple[TensorStructInfo, TensorStructInfo]:
    """data and indices, which has data's number of dimensions and reaches no further than it."""
    data, indices = tensor_info(call, 0, "data"), tensor_info(call, 1, "indices")
    need_integer(call, indices, "indices")
    if data.ndim == -1:
        return data, indices
    axis = axis_of(call, call.attrs.axis, data.ndim)
    need_ndim(call, indices, data.ndim, "indices")
    if indices.dims is not None:
        need_some(call, data, axis, product(indices.dims), "data")
    for k, (size, most) in enumerate(zip(indices.dims or (), data.dims or ())):
        if k != axis:
            need_at_most(call, size, most, lambda k=k: (
                f"data is {show(data)} and indices is {show(indices)}: dimension {k} of indices "
                f"must be at most that of data, for only dimension {axis} is looked up"))
    return data, indices


def _infer_gather_elements(call: Call) -> StructInfo:
    data, indices = _along_axis(call)
    return like(indices, data.dtype)


register_op("relax.gather_elements", _infer_gather_elements)


def gather_nd(data: Any, indices: Any, batch_dims: int = 0) -> Expr:
    """Slices of data at the index vectors along the last dimension of `indices`."""
    return make_call("relax.gather_nd", (as_expr(data), as_expr(indices)), {
        "batch_dims": whole("batch_dims", batch_dims)})


def _infer_gather_nd(call: Call) -> StructInfo:
    data, indices = tensor_info(call, 0, "data"), tensor_info(call, 1, "indices")
    need_integer(call, indices, "indices")
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


register_op("relax.gather_nd", _infer_gather_nd)


def scatter_elements(data: Any, indices: Any, updates: Any, axis: int = 0,
                     reduction: str = "update") -> Expr:
    """data with data[indices[i][j]][j] updated by updates[i][j] (axis 0).

    `reduction` is update, add, mul, mean, max or min.
    """
    return make_call("relax.scatter_elements",
                     (as_expr(data), as_expr(indices), as_expr(updates)),
                     {"axis": whole("axis", axis), "reduction": str(reduction)})


def _infer_scatter_elements(call: Call) -> StructInfo:
    data, indices = _along_axis(call)
    updates = tensor_info(call, 2, "updates")
    one_of(call, "reduction", call.attrs.reduction, REDUCTIONS)
    need_same_dims(call, indices, updates, ("indices", "updates"))
    join_dtype(call, data.dtype, updates.dtype, ("data", "updates"))
    return like(data)


register_op("relax.scatter_elements", _infer_scatter_elements)


def scatter_nd(data: Any, indices: Any, updates: Any, reduction: str = "update") -> Expr:
    """data with slices at index vectors updated."""
    return make_call("relax.scatter_nd", (as_expr(data), as_expr(indices), as_expr(updates)),
                     {"reduction": str(reduction)})


def _infer_scatter_nd(call: Call) -> StructInfo:
    data, indices = tensor_info(call, 0, "data"), tensor_info(call, 1, "indices")
    updates = tensor_info(call, 2, "updates")
    need_integer(call, indices, "indices")
    one_of(call, "reduction", call.attrs.reduction, [r for r in REDUCTIONS if r != "mean"])
    join_dtype(call, data.dtype, updates.dtype, ("data", "updates"))
    if indices.ndim == 0:
        raise misfit(call, f"indices is {show(indices)}: it needs a last dimension that holds the "
                           "index vectors")
    if None not in (data.dims, indices.dims, updates.dims) and type(
            indices.dims[-1]) is E.IntImm:
        length = indices.dims[-1].value
        wanted = (*indices.dims[:-1], *data.dims[length:])

        def text() -> str:
            return (f"data is {show(data)} and indices is {show(indices)}: updates is "
                    f"{show(updates)}, it must have shape {show_shape(wanted)}")

        if length > data.ndim or len(wanted) != updates.ndim:
            raise misfit(call, text())
        for a, b in zip(wanted, updates.dims):
            need_same(call, a, b, text)
    return like(data)


register_op("relax.scatter_nd", _infer_scatter_nd)


def slice_scatter(input_tensor: Any, src: Any, start: Any, end: Any, step: Any,
                  axis: int = 0) -> Expr:
    """input_tensor with src written to start:end:step of `axis`."""
    values = tuple(v if isinstance(v, Expr) else PrimValue(as_dim(v)) for v in (start, end, step))
    return make_call("relax.slice_scatter", (as_expr(input_tensor), as_expr(src), *values),
                     {"axis": whole("axis", axis)})


def _infer_slice_scatter(call: Call) -> StructInfo:
    from .index import slice_extent

    data, src = tensor_info(call, 0, "input_tensor"), tensor_info(call, 1, "src")
    join_dtype(call, data.dtype, src.dtype, ("input_tensor", "src"))
    if data.ndim == -1:
        return like(data)
    axis = axis_of(call, call.attrs.axis, data.ndim)
    need_ndim(call, src, data.ndim, "src")
    bounds = [getattr(a, "value", None) for a in call.args[2:5]]
    step = bounds[2]
    if type(step) is E.IntImm and step.value < 1:
        raise misfit(call, f"the step is {step.value}, it must be positive")
    if data.dims is None or src.dims is None or None in bounds:
        return like(data)
    wanted = list(data.dims)
    extent = slice_extent(wanted[axis], *bounds, False, Analyzer())
    if extent is not None:
        wanted[axis] = extent
        for a, b in zip(wanted, src.dims):
            need_same(call, a, b, lambda: f"input_tensor is {show(data)} and src is {show(src)}: "
                                          f"the slice has shape {show_shape(wanted)}")
    return like(data)


register_op("relax.slice_scatter", _infer_slice_scatter)


def one_hot(indices: Any, on_value: Any, off_value: Any, depth: int, axis: int = -1) -> Expr:
    """A new axis of extent `depth` that holds on_value at each index, else off_value."""
    def prim(value: Any) -> Expr:
        if isinstance(value, Expr):
            return value
        return PrimValue(value if not isinstance(value, float) else E.FloatImm("float32", value))

    return make_call("relax.one_hot", (as_expr(indices), prim(on_value), prim(off_value)), {
        "depth": whole("depth", depth), "axis": whole("axis", axis)})


def _infer_one_hot(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "indices")
    need_integer(call, info, "indices")
    if call.attrs.depth < 1:
        raise misfit(call, f"depth is {call.attrs.depth}, it must be positive")
    for name, arg in zip(("on_value", "off_value"), call.args[1:]):
        if not isinstance(arg.struct_info_, PrimStructInfo):
            raise misfit(call, f"{name} must be a scalar (R.prim_value), it is "
                               f"{show(arg.struct_info_)}")
    dtype = call.args[1].struct_info_.dtype
    other = call.args[2].struct_info_.dtype
    if dtype != other:
        raise misfit(call, f"on_value is {dtype} and off_value is {other}: they must agree")
    if info.ndim == -1:
        return TensorStructInfo(None, dtype)
    axis = axis_of(call, call.attrs.axis, info.ndim + 1)
    if info.dims is None:
        return tensor_of(None, dtype, info.ndim + 1)
    return tensor_of([*info.dims[:axis], as_dim(call.attrs.depth), *info.dims[axis:]], dtype)


register_op("relax.one_hot", _infer_one_hot)


__all__ = ["gather_elements", "gather_nd", "one_hot", "scatter_elements", "scatter_nd",
           "slice_scatter"]

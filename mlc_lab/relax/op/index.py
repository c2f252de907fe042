"""Indexing and searching: take, strided_slice, sort, argsort, topk, nonzero, unique, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arith import Analyzer
from ...ir.dtype import is_integer
from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Expr, PrimValue, Tuple, as_expr
from ..struct_info import (
    PrimStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, as_dim,
)
from .common import (
    as_tuple_expr, axes_of, axis_of, broadcast_dims, join_dtype, like, misfit, need_at_least,
    need_fill, need_float, need_integer, need_ndim, need_same, need_some, one_of, product, show,
    tensor_info, tensor_list, tensor_of, whole,
)
from .registry import make_call, register_op


def take(x: Any, indices: Any, axis: int | None = None, mode: str = "fast") -> Expr:
    """Elements of x along `axis` at `indices` (x is a vector where axis is None).

    Negative indices count from the end. Those outside are clipped; "wrap" takes them modulo the
    extent, and with "clip" the negative ones are 0.
    """
    indices = as_expr(indices)
    return make_call("relax.take", (as_expr(x), indices), {
        "axis": None if axis is None else whole("axis", axis), "mode": str(mode)})


def _infer_take(call: Call) -> StructInfo:
    x = tensor_info(call, 0, "x")
    axis = call.attrs.axis
    which = call.args[1].struct_info_
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


register_op("relax.take", _infer_take)


def _prims(values: Any) -> Expr:
    """Integers as a Tuple of PrimValues."""
    if isinstance(values, Expr):
        return values
    return Tuple([v if isinstance(v, Expr) else PrimValue(as_dim(v)) for v in values])


def strided_slice(x: Any, axes: Any, begin: Any, end: Any, strides: Any = None,
                  assume_inbound: bool = False) -> Expr:
    """x[begin:end:stride] along each of `axes`, as numpy slices."""
    args = [as_expr(x), _prims(axes), _prims(begin), _prims(end)]
    if strides is not None:
        args.append(_prims(strides))
    return make_call("relax.strided_slice", tuple(args), {"assume_inbound": bool(assume_inbound)})


def _prim_values(arg: Expr) -> list[Any] | None:
    """The values of a tuple of PrimValues; None where one is not known."""
    info = arg.struct_info_
    if not isinstance(info, TupleStructInfo):
        return None
    values = [getattr(f, "value", None) for f in info.fields_]
    return None if None in values else values


def slice_extent(dim: Any, begin: Any, end: Any, stride: Any, assume_inbound: bool,
                 analyzer: Analyzer) -> Any:
    """The extent of numpy's begin:end:stride of a dimension."""
    fixed = [v.value if type(v) is E.IntImm else None for v in (dim, begin, end, stride)]
    if None not in fixed:
        size, low, high, by = fixed
        if assume_inbound:
            return as_dim(max(0, -((low - high) // by) if by > 0 else -((high - low) // -by)))
        return as_dim(len(range(*slice(low, high, by).indices(size))))
    zero = as_dim(0)
    if type(stride) is not E.IntImm:
        return None
    if stride.value < 0:
        if not assume_inbound:
            begin, end = (_place_backwards(v, dim) for v in (begin, end))
        count = O.ceildiv(O.sub(begin, end), -stride.value)
        return analyzer.simplify(count if assume_inbound else O.max(count, zero))
    if not assume_inbound:
        def clamp(value: Any) -> Any:
            if type(value) is E.IntImm and value.value < 0:
                value = O.add(value, dim)
            elif type(value) is not E.IntImm and not analyzer.can_prove_greater_equal(value, 0):
                value = O.if_then_else(E.LT(value, zero), O.add(value, dim), value)
            if analyzer.can_prove(E.LE(value, dim)) and analyzer.can_prove_greater_equal(value, 0):
                return value
            return O.max(O.min(value, dim), zero)

        if type(end) is E.IntImm and end.value >= 2**31 - 1:
            end = dim
        begin, end = clamp(begin), clamp(end)
    return analyzer.simplify(O.max(O.ceildiv(O.sub(end, begin), stride), zero)
                             if not assume_inbound else O.ceildiv(O.sub(end, begin), stride))


def _place_backwards(value: Any, dim: Any) -> Any:
    """A bound of a slice with a negative stride: -1 is before the first element."""
    number = O.as_int(value)
    if number is not None and number <= -2**31:
        return as_dim(-1)
    if number is not None and number >= 2**31 - 1:
        return O.sub(dim, 1)
    if number is not None:
        value = O.add(dim, number) if number < 0 else value
    else:
        value = O.if_then_else(O.less(value, 0), O.add(value, dim), value)
    return O.max_value_of(O.min_value_of(value, O.sub(dim, 1)), -1)


def slice_start(dim: Any, begin: Any, end: Any, stride: Any, assume_inbound: bool) -> Any:
    """The first place of numpy's begin:end:stride of a dimension, if it has any."""
    fixed = [O.as_int(v) for v in (dim, begin, end, stride)]
    if None not in fixed and not assume_inbound:
        size, low, high, by = fixed
        return as_dim(slice(low, high, by).indices(size)[0])
    begin = O.cast(O.convert(begin), dim.dtype)
    if O.as_int(stride) is not None and O.as_int(stride) < 0 and not assume_inbound:
        return _place_backwards(begin, dim)
    low = O.as_int(begin)
    if low is None and assume_inbound or low is not None and low >= 0:
        return begin  # beyond the dimension there is nothing to take
    if low is not None:
        begin = O.add(begin, dim)
    else:
        begin = O.if_then_else(O.less(begin, 0), O.add(begin, dim), begin)
    return O.max_value_of(begin, 0)


def _infer_strided_slice(call: Call) -> StructInfo:
    x = tensor_info(call, 0, "x")
    parts = [_prim_values(a) for a in call.args[1:]]
    unknown = TensorStructInfo(None, x.dtype, ndim=x.ndim)
    if x.dims is None or None in parts:
        return unknown
    axes, begin, end = parts[:3]
    strides = parts[3] if len(parts) > 3 else [as_dim(1)] * len(axes)
    if not len(axes) == len(begin) == len(end) == len(strides):
        raise misfit(call, f"axes, begin, end and strides have {len(axes)}, {len(begin)}, "
                           f"{len(end)} and {len(strides)} item(s)")
    analyzer, dims = Analyzer(), list(x.dims)
    if all(type(a) is E.IntImm for a in axes):
        axes_of(call, [a.value for a in axes], x.ndim)
    for d in dims:
        if isinstance(d, E.Var):
            analyzer.bind(d, E.Range(as_dim(0), as_dim(2**40)))
    for axis, low, high, by in zip(axes, begin, end, strides):
        if type(axis) is not E.IntImm:
            return unknown
        k = axis_of(call, axis.value, x.ndim)
        if type(by) is E.IntImm and by.value == 0:
            raise misfit(call, "a stride is 0")
        extent = slice_extent(x.dims[k], as_dim(low), as_dim(high), as_dim(by),
                              call.attrs.assume_inbound, analyzer)
        if extent is None:
            return unknown
        dims[k] = extent
    return tensor_of(dims, x.dtype)


register_op("relax.strided_slice", _infer_strided_slice)


def dynamic_strided_slice(x: Any, begin: Any, end: Any, strides: Any) -> Expr:
    """strided_slice of all dimensions, its bounds in tensors."""
    return make_call("relax.dynamic_strided_slice",
                     (as_expr(x), as_expr(begin), as_expr(end), as_expr(strides)))


def _infer_dynamic_slice(call: Call) -> StructInfo:
    x = tensor_info(call, 0, "x")
    for k, name in enumerate(("begin", "end", "strides"), 1):
        bound = tensor_info(call, k, name)
        need_integer(call, bound, name)
        need_ndim(call, bound, 1, name)
        if bound.dims is not None and x.ndim != -1:
            need_same(call, as_dim(x.ndim), bound.dims[0], lambda b=bound, n=name: (
                f"x is {show(x)} and {n} is {show(b)}: it needs a number for each dimension"))
    return TensorStructInfo(None, x.dtype, ndim=x.ndim)


register_op("relax.dynamic_strided_slice", _infer_dynamic_slice)


def index_tensor(data: Any, indices: Any) -> Expr:
    """data[indices[0], indices[1], ...] with integer tensors, as numpy."""
    return make_call("relax.index_tensor", (as_expr(data), as_tuple_expr(indices)))


def _infer_index_tensor(call: Call) -> StructInfo:
    x = tensor_info(call, 0, "data")
    dims = _indexed(call, x)
    return TensorStructInfo(None, x.dtype) if dims is None else tensor_of(dims, x.dtype)


def _indexed(call: Call, x: TensorStructInfo) -> list | None:
    """The dimensions of x[indices[0], indices[1], ...]; None where they cannot be told."""
    parts = tensor_list(call, 1)
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
    for axis in range(0 if dims is None or x.dims is None else len(parts)):
        need_some(call, x, axis, product(dims), "data")
    return None if dims is None or x.dims is None else [*dims, *x.dims[len(parts):]]


register_op("relax.index_tensor", _infer_index_tensor)


def index_put(data: Any, indices: Any, values: Any, accumulate: bool = False) -> Expr:
    """data with data[indices[0], ...] set to (or, accumulating, increased by) values."""
    return make_call("relax.index_put", (as_expr(data), as_tuple_expr(indices), as_expr(values)),
                     {"accumulate": bool(accumulate)})


def _infer_index_put(call: Call) -> StructInfo:
    x, values = tensor_info(call, 0, "data"), tensor_info(call, 2, "values")
    join_dtype(call, x.dtype, values.dtype, ("data", "values"))
    dims = _indexed(call, x)
    if dims is not None and values.dims is not None:
        need_fill(call, values, dims, "values")
    return like(x)


register_op("relax.index_put", _infer_index_put)


def sort(x: Any, axis: int = -1, descending: bool = False) -> Expr:
    """The elements in order along `axis`."""
    return make_call("relax.sort", (as_expr(x),), {
        "axis": whole("axis", axis), "descending": bool(descending)})


def _checked(call: Call, name: str = "x") -> TensorStructInfo:
    info = tensor_info(call, 0, name)
    if info.ndim != -1:
        axis_of(call, call.attrs.axis, info.ndim)
    return info


register_op("relax.sort", lambda call: like(_checked(call)))


def argsort(data: Any, axis: int = -1, descending: bool = False, dtype: str = "int32") -> Expr:
    """The indices that sort along `axis`."""
    return make_call("relax.argsort", (as_expr(data),), {
        "axis": whole("axis", axis), "descending": bool(descending), "dtype": str(dtype)})


def _holds_places(call: Call, info: TensorStructInfo) -> None:
    """Refuse a dtype that has no numbers for all places of a dimension."""
    dtype = call.attrs.dtype
    size = info.dims[call.attrs.axis % info.ndim] if info.dims else None
    size = size.value if type(size) is E.IntImm else 0
    if not (is_integer(dtype) or dtype in ("float32", "float64")):
        raise misfit(call, f"places are whole numbers, and dtype is {dtype}")
    if is_integer(dtype) and size > np.iinfo(dtype).max + 1:
        raise misfit(call, f"{dtype} has no numbers for the {size} places of the dimension: use "
                           "int32 or int64")


def _infer_argsort(call: Call) -> StructInfo:
    info = _checked(call, "data")
    _holds_places(call, info)
    return like(info, call.attrs.dtype)


register_op("relax.argsort", _infer_argsort)


def topk(data: Any, k: int = 1, axis: int = -1, ret_type: str = "both", largest: bool = True,
         dtype: str = "int32") -> Expr:
    """The k largest (or smallest) along `axis`; ret_type is both, values or indices."""
    return make_call("relax.topk", (as_expr(data),), {
        "k": whole("k", k), "axis": whole("axis", axis), "ret_type": str(ret_type),
        "largest": bool(largest),
        "dtype": str(dtype)})


def _infer_topk(call: Call) -> StructInfo:
    info, attrs = _checked(call, "data"), call.attrs
    if attrs.ret_type != "values":
        _holds_places(call, info)
    if info.dims is None:
        values = TensorStructInfo(None, info.dtype, ndim=info.ndim)
    else:
        dims = list(info.dims)
        axis = attrs.axis % info.ndim
        if attrs.k > 0:
            extent = dims[axis]
            dims[axis] = as_dim(attrs.k)
            if type(extent) is E.IntImm:
                dims[axis] = as_dim(min(attrs.k, extent.value))
            need_at_least(call, extent, dims[axis], lambda: "")  # at run time
        values = tensor_of(dims, info.dtype)
    indices = like(values, attrs.dtype)
    kinds = {"both": TupleStructInfo([values, indices]), "values": values, "indices": indices}
    if attrs.ret_type not in kinds:
        raise misfit(call, f"ret_type is both, values or indices, not {attrs.ret_type!r}")
    return kinds[attrs.ret_type]


register_op("relax.topk", _infer_topk)


def bucketize(input_tensor: Any, boundaries: Any, out_int32: bool = False,
              right: bool = False) -> Expr:
    """The index of the bucket each element falls into."""
    return make_call("relax.bucketize", (as_expr(input_tensor), as_expr(boundaries)), {
        "out_int32": bool(out_int32), "right": bool(right)})


def _infer_bucketize(call: Call) -> StructInfo:
    x, edges = tensor_info(call, 0, "input_tensor"), tensor_info(call, 1, "boundaries")
    need_ndim(call, edges, 1, "boundaries")
    join_dtype(call, x.dtype, edges.dtype, ("input_tensor", "boundaries"))
    return like(x, "int32" if call.attrs.out_int32 else "int64")


register_op("relax.bucketize", _infer_bucketize)


def nonzero(x: Any) -> Expr:
    """The indices of elements that are not 0: [ndim, count], count known at run time."""
    return make_call("relax.nonzero", (as_expr(x),))


register_op("relax.nonzero", lambda call: (tensor_info(call, 0, "x"), TensorStructInfo(
    None, "int64", ndim=2))[1])


def unique(x: Any, sorted: Any = True, return_index: Any = False,
           return_inverse: Any = False, return_counts: Any = False, axis: Any = None) -> Expr:
    """The distinct elements, as numpy.unique; how many is known at run time."""
    flags = tuple(v if isinstance(v, Expr) else PrimValue(E.IntImm("int64", int(v)))
                  for v in (sorted, return_index, return_inverse, return_counts))
    args = (as_expr(x), *flags)
    if axis is not None:
        args += (axis if isinstance(axis, Expr) else PrimValue(axis),)
    return make_call("relax.unique", args)


def _infer_unique(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    ndim = 1 if len(call.args) == 5 else info.ndim
    names = ("sorted", "return_index", "return_inverse", "return_counts", "axis")
    for name, arg in zip(names, call.args[1:]):
        if not isinstance(arg, PrimValue) or type(arg.value) is not E.IntImm:
            raise misfit(call, f"{name} must be a constant")
    if len(call.args) == 6 and info.ndim != -1:
        axis_of(call, call.args[5].value.value, info.ndim)
    out: list[StructInfo] = [TensorStructInfo(None, info.dtype, ndim=ndim)]
    for flag in call.args[2:5]:
        if flag.value.value:
            out.append(TensorStructInfo(None, "int64", ndim=1))
    return out[0] if len(out) == 1 else TupleStructInfo(out)


register_op("relax.unique", _infer_unique)


def multinomial_from_uniform(prob: Any, uniform_sample: Any, sample_indices: Any = None,
                             dtype: str = "int64") -> Expr:
    """Indices drawn by probability from uniform samples."""
    args = [as_expr(prob), as_expr(uniform_sample)]
    if sample_indices is not None:
        args.append(as_expr(sample_indices))
    return make_call("relax.multinomial_from_uniform", tuple(args), {"dtype": str(dtype)})


def _infer_multinomial(call: Call) -> StructInfo:
    prob, sample = tensor_info(call, 0, "prob"), tensor_info(call, 1, "uniform_sample")
    for name, info in (("prob", prob), ("uniform_sample", sample)):
        need_float(call, info, name)
        need_ndim(call, info, 2, name)
    join_dtype(call, prob.dtype, sample.dtype, ("prob", "uniform_sample"))
    rows, first = prob, "prob"
    if len(call.args) > 2:
        rows, first = tensor_info(call, 2, "sample_indices"), "sample_indices"
        need_integer(call, rows, first)
        need_ndim(call, rows, 2, first)
        if rows.dims is not None:
            need_same(call, rows.dims[1], as_dim(1), lambda: (
                f"sample_indices is {show(rows)}, it must have shape (n, 1)"))
    if rows.dims is not None and sample.dims is not None:
        need_same(call, rows.dims[0], sample.dims[0], lambda: (
            f"{first} is {show(rows)} and uniform_sample is {show(sample)}: they must have one "
            "number of rows"))
    return like(sample, call.attrs.dtype)


register_op("relax.multinomial_from_uniform", _infer_multinomial)

__all__ = ["argsort", "bucketize", "dynamic_strided_slice", "index_put", "index_tensor",
           "multinomial_from_uniform", "nonzero", "slice_extent", "sort", "strided_slice", "take",
           "topk", "unique"]

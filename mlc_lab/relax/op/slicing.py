"""Slices: strided_slice, dynamic_strided_slice, slice_scatter."""

from __future__ import annotations

from typing import Annotated, Any, Iterable

from ...arith import Analyzer
from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Expr, PrimValue, ShapeExpr, Tuple
from ..struct_info import (
    ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, as_dim,
)
from .base import tensor_to_shape
from .common import (
    axes_of, axis_of, info_of, join_dtype, misfit, need_ndim, need_same, show, show_shape,
    tensor_of,
)
from .declare import (
    Axis, Flag, IntegerTensor, Kind, Tensor, any_info, operator, prim,
)
from .later import te, topi


def slice_extent(dim: Any, begin: Any, end: Any, stride: Any, assume_inbound: bool,
                 analyzer: Analyzer) -> Any:
    """The extent of numpy's begin:end:stride of a dimension."""
    fixed = [v.value for v in (dim, begin, end, stride) if type(v) is E.IntImm]
    if len(fixed) == 4:
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
    by = O.as_int(stride)
    fixed = [n for v in (dim, begin, end) if (n := O.as_int(v)) is not None]
    if len(fixed) == 3 and by is not None and not assume_inbound:
        size, low, high = fixed
        return as_dim(slice(low, high, by).indices(size)[0])
    begin = O.cast(O.convert(begin), dim.dtype)
    if by is not None and by < 0 and not assume_inbound:
        return _place_backwards(begin, dim)
    low = O.as_int(begin)
    if low is None and assume_inbound or low is not None and low >= 0:
        return begin  # beyond the dimension there is nothing to take
    if low is not None:
        begin = O.add(begin, dim)
    else:
        begin = O.if_then_else(O.less(begin, 0), O.add(begin, dim), begin)
    return O.max_value_of(begin, 0)


def _numbers(values: Any) -> Expr:
    """Integers as a Tuple of PrimValues."""
    if isinstance(values, Expr):
        return values
    if not isinstance(values, Iterable):
        raise TypeError("axes, begin, end and strides are tuples of whole numbers, not "
                        f"{values!r}")
    return Tuple([v if isinstance(v, Expr) else PrimValue(as_dim(v)) for v in values])


def _values(info: StructInfo) -> list[Any] | None:
    """The values of a tuple of PrimValues; None where one is not known."""
    if not isinstance(info, TupleStructInfo):
        return None
    values = [getattr(f, "value", None) for f in info.fields_]
    return None if None in values else values


#: scalars of the host program: a tuple of them, and one
Numbers = Annotated[Any, Kind(_numbers, any_info)]
Number = Annotated[Any, Kind(lambda value: value if isinstance(value, Expr) else PrimValue(
    as_dim(value)), any_info, prim)]


def _infer_strided_slice(call: Call, x: TensorStructInfo, *bounds: StructInfo) -> StructInfo:
    parts = [values for b in bounds if (values := _values(b)) is not None]
    unknown = TensorStructInfo(None, x.dtype, ndim=x.ndim)
    if x.dims is None or len(parts) < len(bounds):
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


def _known(arg: Any) -> list[Any]:
    return [prim(f) for f in arg.fields_]


def _strided_slice(bb: Any, call: Call) -> Expr:
    x, axes, begin, end = call.args[:4]
    parts = [_known(a) for a in (axes, begin, end)]
    strides = _known(call.args[4]) if len(call.args) > 4 else None
    out = info_of(call)
    if out.dims is None:
        return call

    def strided_slice(x: Any, axes: Any, begin: Any, end: Any, strides: Any, shape: Any) -> Any:
        if all(O.as_int(d) is not None for d in x.shape):
            return topi.strided_slice(x, begin, end, strides, axes)
        # symbolic bounds: first elements as numpy counts them, sizes as they were inferred
        first, step = {}, {}
        for n, k in enumerate(axes):
            k = k % x.ndim
            step[k] = 1 if strides is None else strides[n]
            first[k] = slice_start(x.shape[k], begin[n], end[n], step[k],
                                   call.attrs.assume_inbound)
        return topi.transform.injective(shape, lambda *i: x(*[
            first[k] + v * step[k] if k in first else v for k, v in enumerate(i)]),
            "T_strided_slice")

    return bb.call_te(strided_slice, x, *parts, strides, out.shape)


@operator("relax.strided_slice", _infer_strided_slice, legalize=_strided_slice,
          precision="follow")
def strided_slice(x: Tensor, axes: Numbers, begin: Numbers, end: Numbers,
                  strides: Numbers | None = None, assume_inbound: Flag = False) -> Tensor:
    """x[begin:end:stride] along each of `axes`, as numpy slices."""


def _infer_dynamic_slice(call: Call, x: TensorStructInfo,
                         *bounds: TensorStructInfo) -> StructInfo:
    for bound, name in zip(bounds, ("begin", "end", "strides")):
        need_ndim(call, bound, 1, name)
        if bound.dims is not None and x.ndim != -1:
            need_same(call, as_dim(x.ndim), bound.dims[0], lambda b=bound, n=name: (
                f"x is {show(x)} and {n} is {show(b)}: it needs a number for each dimension"))
    return TensorStructInfo(None, x.dtype, ndim=x.ndim)


def _extent(size: Any, begin: Any, end: Any, strides: Any, d: int) -> Any:
    """How many elements numpy takes of a dimension."""
    size = O.cast(size, "int64")
    low, high, step = (O.cast(t(d), "int64") for t in (begin, end, strides))
    low = O.if_then_else(low < 0, low + size, low)
    high = O.if_then_else(high < 0, high + size, high)
    floor, top = O.if_then_else(step < 0, -1, 0), O.if_then_else(step < 0, size - 1, size)
    low, high = (O.max_value_of(O.min_value_of(v, top), floor) for v in (low, high))
    up = O.floordiv(high - low - 1, step)  # so that a large step does not wrap around
    down = O.floordiv(low - high - 1, O.const(0, "int64") - step)
    return O.max_value_of(O.if_then_else(step < 0, down, up) + 1, 0)


def _dynamic_strided_slice(bb: Any, call: Call) -> Expr:
    """The sizes are computed first; naming them (match_cast) makes the slice itself a kernel."""
    x, begin, end, strides = call.args
    ndim = x.struct_info.ndim

    def shape_func(x: Any, begin: Any, end: Any, strides: Any) -> Any:
        def element(k: Any) -> Any:
            total: Any = O.const(0, "int64")
            for d in reversed(range(ndim)):
                total = O.if_then_else(O.equal(k, d), _extent(x.shape[d], begin, end, strides, d),
                                       total)
            return total

        return te.compute((ndim,), element, name="T_shape_func_strided_slice_dynamic")

    sizes = bb.emit(bb.call_te(shape_func, x, begin, end, strides,
                               primfunc_name_hint="shape_func"))
    shape = bb.emit(tensor_to_shape(sizes))
    names = [E.Var(f"s{k}" if k else "s", "int64") for k in range(ndim)]
    bb.match_cast(shape, ShapeStructInfo(names))
    return bb.call_te(topi.dynamic_strided_slice, x, begin, end, strides, ShapeExpr(names),
                      primfunc_name_hint="dynamic_strided_slice")


@operator("relax.dynamic_strided_slice", _infer_dynamic_slice, legalize=_dynamic_strided_slice,
          any_shape=True)
def dynamic_strided_slice(x: Tensor, begin: IntegerTensor, end: IntegerTensor,
                          strides: IntegerTensor) -> Tensor:
    """strided_slice of all dimensions, its bounds in tensors."""


def _infer_slice_scatter(call: Call, data: TensorStructInfo, src: TensorStructInfo,
                         *bounds: StructInfo) -> StructInfo:
    join_dtype(call, data.dtype, src.dtype, ("input_tensor", "src"))
    if data.ndim == -1:
        return data
    axis = call.attrs.axis % data.ndim
    need_ndim(call, src, data.ndim, "src")
    start, end, step = (getattr(a, "value", None) for a in call.args[2:5])
    if type(step) is E.IntImm and step.value < 1:
        raise misfit(call, f"the step is {step.value}, it must be positive")
    if data.dims is None or src.dims is None or None in (start, end, step):
        return data
    wanted = list(data.dims)
    extent = slice_extent(wanted[axis], start, end, step, False, Analyzer())
    if extent is not None:
        wanted[axis] = extent
        for a, b in zip(wanted, src.dims):
            need_same(call, a, b, lambda: f"input_tensor is {show(data)} and src is {show(src)}: "
                                          f"the slice has shape {show_shape(wanted)}")
    return data


@operator("relax.slice_scatter", _infer_slice_scatter)
def slice_scatter(input_tensor: Tensor, src: Tensor, start: Number, end: Number, step: Number,
                  axis: Axis = 0) -> Tensor:
    """input_tensor with src written to start:end:step of `axis`."""
    return topi.slice_scatter(input_tensor, src, start, end, step, axis)

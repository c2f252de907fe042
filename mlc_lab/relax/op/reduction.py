"""Reductions along axes, argmax and argmin, and scans (cumsum, cumprod)."""

from __future__ import annotations

from typing import Any, Callable

from ...ir import dtype as dt
from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Expr
from ..struct_info import StructInfo, TensorStructInfo
from .common import axes_of, need_at_least, need_float, product, show, tensor_of
from .declare import Axis, Dtype, Flag, Ints, Tensor, operator
from .later import te, topi, utils

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


def _infer(call: Call, x: TensorStructInfo) -> StructInfo:
    return reduced(call, x, call.attrs.axis, call.attrs.keepdims, x.dtype)


def _infer_mean(call: Call, x: TensorStructInfo) -> StructInfo:
    """Of integers a mean is one too: it is cut off, and there must be something."""
    if x.dtype and dt.is_bool(x.dtype):
        need_float(call, x)
    if x.dtype and dt.is_integer(x.dtype):
        _need_elements(call, x, call.attrs.axis)
    return _infer(call, x)


def _need_elements(call: Call, info: TensorStructInfo, axis: Any) -> None:
    """Refuse a reduction of no elements, for which there is no value."""
    if info.dims is None:
        return
    axes = range(info.ndim) if axis is None else axes_of(call, axis, info.ndim)
    for k in axes:
        need_at_least(call, info.dims[k], _ONE, lambda k=k: (
            f"x is {show(info)}: there is nothing along dimension {k}"))


def _statistical(name: str, compute: Callable[..., Any], infer: Any = _infer
                 ) -> Callable[..., Expr]:
    """A reduction of some axes: `compute(x, axes, keepdims)`."""
    def fn(x: Tensor, axis: Ints | None = None, keepdims: Flag = False) -> Any:
        return compute(x, axis, keepdims)

    fn.__doc__ = f"{name.removeprefix('relax.')} along `axis` (int, several, or None for all)."
    return operator(name, infer, layout="reduction")(fn)


def _elements(x: Any, axis: Any) -> Any:
    """How many elements each result comes from."""
    return utils.simplify(utils.product([x.shape[k] for k in utils.axes_of(
        "mean", axis, x.ndim)]))


def _count(x: Any, axis: Any) -> Any:
    """How many, in the type in which they are summed up."""
    return O.cast(O.convert(_elements(x, axis)), utils.sum_type(x.dtype))


def _mean(x: Any, axis: Any, keepdims: bool) -> Any:
    """The sum over how many there are; of integers exact, and rounded toward zero."""
    if dt.is_integer(x.dtype):
        wide = "uint64" if x.dtype == "uint64" else "int64"
        total = topi.reduction.reduce("mean", x, axis, keepdims,
                                      lambda i, ks: te.sum(O.cast(x(*i), wide), axis=ks))
        count = O.cast(O.convert(_elements(x, axis)), wide)
        return te.compute(total.shape, lambda *i: O.cast(O.truncdiv(O.cast(
            total(*i), wide), count), x.dtype), name="T_divide", tag="elemwise")
    return utils.rounded(topi.divide(topi.reduction.wide_sum(x, axis, keepdims),
                                     _count(x, axis)), x.dtype)


def _variance(x: Any, axis: Any, keepdims: bool, then: Callable[[Any], Any] = lambda v: v) -> Any:
    """The mean square of the distance from the mean (of the whole population, as numpy)."""
    dtype, whole = x.dtype, dt.is_integer(x.dtype)
    if whole:
        x = topi.cast(x, "float64")
    count, wide = _count(x, axis), utils.sum_type(x.dtype)
    x = x if wide == x.dtype else topi.cast(x, wide)
    away = topi.subtract(x, topi.divide(topi.sum(x, axis, True), count))
    out = then(topi.divide(topi.sum(topi.multiply(away, away), axis, keepdims), count))
    return topi.cast(out, dtype) if whole else utils.rounded(out, dtype)


sum = _statistical("relax.sum", lambda *args: topi.sum(*args))
prod = _statistical("relax.prod", lambda *args: topi.prod(*args))
max = _statistical("relax.max", lambda *args: topi.reduction.exact_max(*args))
min = _statistical("relax.min", lambda *args: topi.reduction.exact_min(*args))
mean = _statistical("relax.mean", _mean, _infer_mean)
variance = _statistical("relax.variance", _variance, _infer_mean)
std = _statistical("relax.std", lambda x, axis, keepdims: _variance(
    x, axis, keepdims, lambda v: topi.sqrt(v)), _infer_mean)


def _infer_arg(call: Call, x: TensorStructInfo) -> StructInfo:
    axis = call.attrs.axis
    axes = None if axis is None else (axis,)
    _need_elements(call, x, axes)
    return reduced(call, x, axes, call.attrs.keepdims, "int64")


def _position(found: Any) -> Any:
    """Positions are int64 in Relax, as wide as an index."""
    return found if found.dtype == "int64" else te.compute(
        found.shape, lambda *i: O.cast(found(*i), "int64"), name="T_cast", tag="elemwise")


@operator("relax.argmax", _infer_arg)
def argmax(x: Tensor, axis: Axis | None = None, keepdims: Flag = False) -> Tensor:
    """The index (int64) of max along `axis`, or in all elements for None."""
    return _position(topi.reduction.exact_argmax(x, axis, keepdims))


@operator("relax.argmin", _infer_arg)
def argmin(x: Tensor, axis: Axis | None = None, keepdims: Flag = False) -> Tensor:
    """The index (int64) of min along `axis`, or in all elements for None."""
    return _position(topi.reduction.exact_argmin(x, axis, keepdims))


def _infer_scan(call: Call, data: TensorStructInfo) -> StructInfo:
    dtype = data.dtype if call.attrs.dtype == "void" else call.attrs.dtype
    if call.attrs.axis is None:  # over all elements, flattened
        return tensor_of(None if data.dims is None else [product(data.dims)], dtype, 1)
    return TensorStructInfo.from_fields(data.shape, dtype, data.ndim, None)


@operator("relax.cumsum", _infer_scan, layout="along")
def cumsum(data: Tensor, axis: Axis | None = None, dtype: Dtype = None,
           exclusive: Flag = False) -> Tensor:
    """cumsum along `axis` (of the flattened tensor for None)."""
    return topi.cumsum(data, axis, dtype, exclusive)


@operator("relax.cumprod", _infer_scan, layout="along")
def cumprod(data: Tensor, axis: Axis | None = None, dtype: Dtype = None,
            exclusive: Flag = False) -> Tensor:
    """cumprod along `axis` (of the flattened tensor for None)."""
    return topi.cumprod(data, axis, dtype, exclusive)

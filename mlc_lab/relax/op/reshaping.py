"""Operators that give the elements another shape: reshape, flatten, squeeze, broadcast_to, ..."""

from __future__ import annotations

import math
from typing import Any, Sequence

from ...arith import Analyzer
from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Expr, as_expr
from ..struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, as_dim, same_dim
from .common import (
    axes_of, dim_text, info_of, like, misfit, need_fill, need_same, need_same_count, product,
    shape_arg, shape_values, show, show_shape, tensor_info, tensor_of,
)
from .declare import Ints, Shape, Tensor, constructor, operator
from .later import topi
from .registry import make_call

_ONE = E.IntImm("int64", 1)


def _infer_permute(call: Call, info: TensorStructInfo) -> StructInfo:
    axes = call.attrs.axes
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype, ndim=-1 if axes is None else len(axes))
    if axes is None:
        axes = tuple(reversed(range(info.ndim)))
    elif len(axes) != info.ndim:
        raise misfit(call, f"x is {show(info)}, axes names {len(axes)} dimension(s): "
                           f"{list(axes)}")
    axes = axes_of(call, axes, info.ndim)
    return tensor_of(None if info.dims is None else [info.dims[a] for a in axes], info.dtype,
                     info.ndim)


@operator("relax.permute_dims", _infer_permute, hint="transpose", precision="follow")
def permute_dims(x: Tensor, axes: Ints | None = None) -> Tensor:
    """The dimensions in another order; reversed for None."""
    return topi.transpose(x, axes)


def _infer_expand(call: Call, info: TensorStructInfo) -> StructInfo:
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype)
    ndim = info.ndim + len(call.attrs.axis)
    axes = axes_of(call, call.attrs.axis, ndim)
    if info.dims is None:
        return tensor_of(None, info.dtype, ndim)
    rest = iter(info.dims)
    return tensor_of([_ONE if k in axes else next(rest) for k in range(ndim)], info.dtype)


@operator("relax.expand_dims", _infer_expand, precision="follow")
def expand_dims(x: Tensor, axis: Ints) -> Tensor:
    """New dimensions of extent 1 at `axis` of the result."""
    ndim = x.ndim + len(axis)
    new = {a % ndim for a in axis}
    one = O.const(1, x.shape[0].dtype if x.ndim else "int64")
    rest = iter(x.shape)
    shape = [one if k in new else next(rest) for k in range(ndim)]
    return topi.transform.injective(
        shape, lambda *i: x(*[v for k, v in enumerate(i) if k not in new]),
        "T_expand_dims" if len(new) == 1 else "expand_dims")


def _infer_squeeze(call: Call, info: TensorStructInfo) -> StructInfo:
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype)
    axes = call.attrs.axis
    if axes is None:
        if info.dims is None or any(type(d) is not E.IntImm for d in info.dims):
            return TensorStructInfo(None, info.dtype)
        return tensor_of([d for d in info.dims if d.value != 1], info.dtype)
    axes, dims = axes_of(call, axes, info.ndim), info.dims
    if dims is None:
        return tensor_of(None, info.dtype, info.ndim - len(axes))
    for a in axes:
        need_same(call, _ONE, dims[a], lambda a=a: (
            f"x is {show(info)}: dimension {a} has extent {dim_text(dims[a])}, only extent 1 "
            "can be squeezed"))
    return tensor_of([d for k, d in enumerate(dims) if k not in axes], info.dtype)


@operator("relax.squeeze", _infer_squeeze, precision="follow")
def squeeze(x: Tensor, axis: Ints | None = None) -> Tensor:
    """Without dimensions of extent 1: those named, or all."""
    return topi.squeeze(x, axis)


def _reshaped(bb: Any, call: Call) -> Expr:
    """The elements in the shape of the result."""
    return bb.call_te(topi.reshape, call.args[0], info_of(call).shape)


def _infer_flatten(call: Call, x: TensorStructInfo) -> StructInfo:
    return tensor_of(None if x.dims is None else [product(x.dims)], x.dtype, 1)


@operator("relax.flatten", _infer_flatten, legalize=_reshaped, precision="follow")
def flatten(x: Tensor) -> Tensor:
    """All elements as a vector."""


def _infer_batch_flatten(call: Call, data: TensorStructInfo) -> StructInfo:
    if data.ndim == 0:
        raise misfit(call, "data is a scalar, it has no first dimension")
    return tensor_of(None if data.dims is None else [data.dims[0], product(data.dims[1:])],
                     data.dtype, 2)


@operator("relax.nn.batch_flatten", _infer_batch_flatten, legalize=_reshaped)
def batch_flatten(data: Tensor) -> Tensor:
    """All dimensions but the first as one."""


def _infer_reshape(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    shape = shape_values(call, 1)
    old, new = info.dims, shape.values
    if old is not None and new is not None:
        need_same_count(call, old, new, lambda: (
            f"x has shape {show_shape(old)} with {dim_text(product(old))} elements, "
            f"the new shape {show_shape(new)} has {dim_text(product(new))}"))
    return TensorStructInfo(call.args[1], info.dtype, ndim=shape.ndim)


@constructor("relax.reshape", _infer_reshape, legalize=_reshaped, precision="follow")
def reshape(x: Any, shape: Any) -> Expr:
    """The elements in another shape; one dimension may be -1, 0 keeps the dimension of x."""
    x = as_expr(x)
    if isinstance(shape, (tuple, list)):
        shape = _fill_in(x, [as_dim(getattr(s, "value", s) if isinstance(s, Expr) else s)
                             for s in shape])
    return make_call("relax.reshape", (x, shape_arg(shape)))


def _fill_in(x: Expr, shape: list[Any]) -> Any:
    """A shape with its -1 worked out and its 0 taken from x."""
    def is_value(d: Any, value: int) -> bool:
        return type(d) is E.IntImm and d.value == value

    dims = getattr(x.struct_info_, "dims", None)
    if any(type(d) is E.IntImm and d.value < -1 for d in shape):
        raise misfit("reshape", f"{show_shape(shape)} has a negative extent; -1 stands for the one "
                                "that follows from the others, 0 keeps that of x")
    if not any(is_value(d, -1) or is_value(d, 0) for d in shape):
        return shape
    if dims is None:
        raise misfit("reshape", f"-1 and 0 in {show_shape(shape)} need the shape of x, which is "
                                "not known")
    for k, d in enumerate(shape):
        if is_value(d, 0):
            if k >= len(dims):
                raise misfit("reshape", f"dimension {k} of {show_shape(shape)} is 0, which keeps "
                                        f"that of x, but x has {len(dims)} dimension(s)")
            shape[k] = dims[k]
    unknown = [k for k, d in enumerate(shape) if is_value(d, -1)]
    if len(unknown) > 1:
        raise misfit("reshape", f"only one dimension can be -1, got {show_shape(shape)}")
    if unknown:
        rest = product([d for d in shape if not is_value(d, -1)])
        total, fixed = product(dims), rest
        if type(total) is E.IntImm and type(fixed) is E.IntImm and (
                fixed.value == 0 or total.value % fixed.value):
            raise misfit("reshape", f"x has shape {show_shape(dims)}, {total.value} elements, "
                                    f"which do not fill {show_shape(shape)}")
        shape[unknown[0]] = as_dim(quotient(dims, [d for d in shape if not is_value(d, -1)]))
    return shape


def quotient(dims: Sequence[Any], others: Sequence[Any]) -> Any:
    """The product of `dims` over that of `others`, where factors that are in both are gone:
    (1, n, 128) over (1, n, 32) is 4. An int where nothing symbolic is left.

    Raises ValueError for two numbers that do not divide.
    """
    above, below = _factors(dims), _factors(others)
    rest_below: list[Any] = []
    for e in below[1]:
        k = next((k for k, f in enumerate(above[1]) if f is e or same_dim(f, e)), None)
        if k is None:
            rest_below.append(e)
        else:
            above[1].pop(k)
    common = math.gcd(above[0], below[0]) or 1
    number, divisor = above[0] // common, below[0] // common
    if not above[1] and not rest_below:
        if divisor != 1:
            raise ValueError(f"{above[0]} elements are no multiple of {below[0]}")
        return number
    total = product([number, *above[1]])
    rest = product([divisor, *rest_below])
    return Analyzer().simplify(total if O.is_const_int(rest, 1) else O.floordiv(total, rest))


def _factors(dims: Sequence[Any]) -> tuple[int, list[Any]]:
    """A product as a number and the symbolic factors."""
    number, rest, todo = 1, [], list(dims)
    while todo:
        d = todo.pop()
        value = d if isinstance(d, int) else getattr(d, "value", None)
        if isinstance(value, int):
            number *= value
        elif type(d) is E.Mul:
            todo += [d.a, d.b]
        else:
            rest.append(d)
    return number, rest


def _infer_broadcast_to(call: Call, info: TensorStructInfo, shape: ShapeStructInfo) -> StructInfo:
    if info.dims is not None and shape.values is not None:
        need_fill(call, info, shape.values, "x")
    return TensorStructInfo(call.args[1], info.dtype, ndim=shape.ndim)


@operator("relax.broadcast_to", _infer_broadcast_to, precision="follow")
def broadcast_to(x: Tensor, shape: Shape) -> Tensor:
    """x repeated to fill `shape`."""
    return topi.broadcast_to(x, shape)


def _collapsed(call: Call, data: TensorStructInfo, dims: Sequence[Any] | None) -> None:
    """Refuse a shape that cannot be broadcast to that of data."""
    if data.dims is None or dims is None:
        return

    def text() -> str:
        return f"{show_shape(dims)} cannot be broadcast to the shape of data, {show(data)}"

    if len(dims) > len(data.dims):
        raise misfit(call, text())
    for a, b in zip(reversed(dims), reversed(data.dims)):
        if not (type(a) is E.IntImm and a.value == 1):
            need_same(call, a, b, text)


def _infer_collapse_to(call: Call, data: TensorStructInfo, shape: ShapeStructInfo) -> StructInfo:
    _collapsed(call, data, shape.values)
    return TensorStructInfo(call.args[1], data.dtype, ndim=shape.ndim)


def _infer_collapse_like(call: Call, data: TensorStructInfo,
                         target: TensorStructInfo) -> StructInfo:
    _collapsed(call, data, target.dims)
    return like(target, data.dtype)


def _collapse_like(bb: Any, call: Call) -> Expr:
    return bb.call_te(topi.collapse_sum, call.args[0], call.args[1].struct_info.shape,
                      primfunc_name_hint="collapse_sum")


@operator("relax.collapse_sum_to", _infer_collapse_to, hint="collapse_sum")
def collapse_sum_to(data: Tensor, shape: Shape) -> Tensor:
    """The sum over the dimensions that broadcasting `shape` to data's would repeat."""
    return topi.collapse_sum(data, shape)


@operator("relax.collapse_sum_like", _infer_collapse_like, legalize=_collapse_like)
def collapse_sum_like(data: Tensor, collapse_target: Tensor) -> Tensor:
    """collapse_sum_to the shape of another tensor."""

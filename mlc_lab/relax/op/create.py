"""Operators that make tensors: full, zeros, ones, arange, eye, tril, triu."""

from __future__ import annotations

import math
from typing import Any, Callable

from ...arith import Analyzer
from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Expr, as_expr, const
from ..struct_info import (
    PrimStructInfo, ShapeStructInfo, StructInfo, TensorStructInfo, as_dim,
)
from .common import (
    dtype_attr, info_of, like, misfit, need_ndim, shape_arg, shape_values, show, show_shape,
    tensor_info, tensor_of,
)
from .declare import (
    Dtype, Scalar, Shape, Size, Tensor, Text, constructor, immediate, operator, prim, prim_arg,
)
from .later import topi
from .registry import make_call


def _filled(hint: str, value: int | None = None) -> Callable[[Any, Call], Expr]:
    """A tensor of the shape and dtype of the result, filled with a number or the last argument."""
    def legalize(bb: Any, call: Call) -> Expr:
        info = info_of(call)
        fill = immediate(call.args[1]) if value is None else value
        return bb.call_te(topi.full, info.shape, info.dtype, fill, primfunc_name_hint=hint)

    return legalize


def _scalar_dtype(call: Call, index: int) -> str:
    info = tensor_info(call, index, "fill_value")
    if info.ndim not in (-1, 0):
        raise misfit(call, f"fill_value must be a scalar, it is {show(info)}")
    return info.dtype


def _infer_full(call: Call) -> StructInfo:
    shape = shape_values(call, 0)
    dtype = _scalar_dtype(call, 1) if call.attrs.dtype == "void" else call.attrs.dtype
    return TensorStructInfo(call.args[0], dtype, ndim=shape.ndim)


@constructor("relax.full", _infer_full, legalize=_filled("full"))
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Expr:
    """A tensor filled with a scalar; the scalar's dtype where none is given."""
    if not isinstance(fill_value, Expr):
        fill_value = const(fill_value, dtype)
    return make_call("relax.full", (shape_arg(shape), fill_value), {"dtype": dtype_attr(dtype)})


def _of_dtype(call: Call, info: TensorStructInfo, *rest: Any) -> TensorStructInfo:
    return like(info, None if call.attrs.dtype == "void" else call.attrs.dtype)


def _infer_full_like(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    _scalar_dtype(call, 1)
    return _of_dtype(call, info)


@constructor("relax.full_like", _infer_full_like, legalize=_filled("full"))
def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Expr:
    """A tensor of x's shape filled with a scalar."""
    x = as_expr(x)
    if not isinstance(fill_value, Expr):
        fill_value = const(fill_value, dtype or getattr(x.struct_info_, "dtype", None) or None)
    return make_call("relax.full_like", (x, fill_value), {"dtype": dtype_attr(dtype)})


def _of_shape(call: Call, shape: ShapeStructInfo) -> StructInfo:
    return TensorStructInfo(call.args[0], call.attrs.dtype, ndim=shape.ndim)


@operator("relax.zeros", _of_shape, legalize=_filled("zeros", 0))
def zeros(shape: Shape, dtype: Text) -> Tensor:
    """A tensor of zeros."""


@operator("relax.ones", _of_shape, legalize=_filled("ones", 1))
def ones(shape: Shape, dtype: Text) -> Tensor:
    """A tensor of ones."""


@operator("relax.zeros_like", _of_dtype, legalize=_filled("zeros", 0))
def zeros_like(x: Tensor, dtype: Dtype = None) -> Tensor:
    """A tensor of zeros of x's shape."""


@operator("relax.ones_like", _of_dtype, legalize=_filled("ones", 1))
def ones_like(x: Tensor, dtype: Dtype = None) -> Tensor:
    """A tensor of ones of x's shape."""


def _scalars(call: Call, *names: str) -> list[E.PrimExpr | None]:
    """The values of the first arguments, scalars; None for one that is not known."""
    values = []
    for arg, name in zip(call.args, names):
        info = arg.struct_info_
        if not isinstance(info, PrimStructInfo):
            raise misfit(call, f"{name} must be a scalar (R.prim_value), it is {show(info)}")
        values.append(info.value)
    return values


def _infer_arange(call: Call) -> StructInfo:
    values = [v for v in _scalars(call, "start", "end", "step") if v is not None]
    if len(values) < 3:
        return tensor_of(None, call.attrs.dtype, 1)
    if any(v.dtype.startswith("float") for v in values):
        numbers = [v.value for v in values if isinstance(v, (E.IntImm, E.FloatImm))]
        if len(numbers) < 3:
            return tensor_of(None, call.attrs.dtype, 1)
        low, high, by = numbers
        if by == 0:
            raise misfit(call, "the step is 0")
        return tensor_of([max(0, math.ceil((high - low) / by))], call.attrs.dtype)
    start, end, step = map(as_dim, values)
    if type(step) is E.IntImm and step.value == 0:
        raise misfit(call, "the step is 0")
    count = O.ceildiv(O.sub(end, start), step) if not (
        type(step) is E.IntImm and step.value < 0) else O.ceildiv(
        O.sub(start, end), as_dim(-step.value))
    return tensor_of([Analyzer().simplify(O.max(count, as_dim(0)) if all(
        type(v) is E.IntImm for v in values) else count)], call.attrs.dtype)


def _compute_with(name: str) -> Callable[[Any, Call], Expr]:
    """TOPI's function of scalars and a dtype."""
    return lambda bb, call: bb.call_te(getattr(topi, name), *map(prim, call.args),
                                       call.attrs.dtype)


@constructor("relax.arange", _infer_arange, legalize=_compute_with("arange"))
def arange(start: Any, end: Any = None, step: Any = 1, dtype: Any = None) -> Expr:
    """start, start + step, ... up to end (without it), as numpy.arange."""
    if end is None:
        start, end = 0, start
    args = tuple(map(prim_arg, (start, end, step)))
    if dtype is None:
        kinds = [getattr(a.struct_info_, "dtype", "") for a in args]
        dtype = "float32" if any(k.startswith("float") for k in kinds) else "int64"
    return make_call("relax.arange", args, {"dtype": str(dtype)})


def _infer_eye(call: Call) -> StructInfo:
    values = _scalars(call, "n", "m")
    if any(type(v) is E.IntImm and v.value < 0 for v in values):
        raise misfit(call, f"a matrix of {show_shape(values)} elements has a negative extent")
    return tensor_of(None if None in values else values, call.attrs.dtype, 2)


@constructor("relax.eye", _infer_eye, legalize=_compute_with("eye"))
def eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = "float32") -> Expr:
    """Ones on diagonal k of an n by m matrix (m = n where it is not given)."""
    return make_call("relax.eye", tuple(map(prim_arg, (n, n if m is None else m, k))),
                     {"dtype": str(dtype)})


def _infer_eye_like(call: Call, x: TensorStructInfo, k: Any) -> StructInfo:
    need_ndim(call, x, 2, "x")
    return _of_dtype(call, x)


def _eye_of(bb: Any, call: Call) -> Expr:
    info = info_of(call)
    return bb.call_te(topi.eye, *(info.dims or ()), prim(call.args[1]), info.dtype)


@operator("relax.eye_like", _infer_eye_like, legalize=_eye_of)
def eye_like(x: Tensor, k: Scalar = 0, dtype: Dtype = None) -> Tensor:
    """Ones on diagonal k of a matrix of x's shape."""


def _infer_triangle(call: Call, x: TensorStructInfo) -> StructInfo:
    if x.ndim in (0, 1):
        raise misfit(call, f"x must have at least two dimensions, it is {show(x)}")
    return x


@operator("relax.tril", _infer_triangle)
def tril(x: Tensor, k: Size = 0) -> Tensor:
    """x with zeros except on and below diagonal k."""
    return topi.tril(x, k)


@operator("relax.triu", _infer_triangle)
def triu(x: Tensor, k: Size = 0) -> Tensor:
    """x with zeros except on and above diagonal k."""
    return topi.triu(x, k)

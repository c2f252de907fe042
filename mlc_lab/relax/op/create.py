"""Operators that make tensors: full, zeros, ones, arange, eye, tril, triu."""

from __future__ import annotations

from typing import Any

from ...arith import Analyzer
from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Expr, PrimValue, as_expr, const
from ..struct_info import StructInfo, TensorStructInfo, as_dim
from .common import (
    dtype_attr, like, misfit, need_ndim, plain_int, shape_arg, shape_values, show, show_shape,
    tensor_info, tensor_of,
)
from .registry import make_call, register_op


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Expr:
    """A tensor filled with a scalar; the scalar's dtype where none is given."""
    if not isinstance(fill_value, Expr):
        fill_value = const(fill_value, dtype)
    return make_call("relax.full", (shape_arg(shape), fill_value), {"dtype": dtype_attr(dtype)})


def _scalar_dtype(call: Call, index: int) -> str:
    info = tensor_info(call, index, "fill_value")
    if info.ndim not in (-1, 0):
        raise misfit(call, f"fill_value must be a scalar, it is {show(info)}")
    return info.dtype


def _infer_full(call: Call) -> StructInfo:
    shape = shape_values(call, 0)
    dtype = _scalar_dtype(call, 1) if call.attrs.dtype == "void" else call.attrs.dtype
    return TensorStructInfo(call.args[0], dtype, ndim=shape.ndim)


register_op("relax.full", _infer_full)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Expr:
    """A tensor of x's shape filled with a scalar."""
    x = as_expr(x)
    if not isinstance(fill_value, Expr):
        fill_value = const(fill_value, dtype or getattr(x.struct_info_, "dtype", None) or None)
    return make_call("relax.full_like", (x, fill_value), {"dtype": dtype_attr(dtype)})


def _infer_full_like(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    _scalar_dtype(call, 1)
    return like(info, info.dtype if call.attrs.dtype == "void" else call.attrs.dtype)


register_op("relax.full_like", _infer_full_like)


def _filled(name: str) -> Any:
    register_op(f"relax.{name}", lambda call: TensorStructInfo(
        call.args[0], call.attrs.dtype, ndim=shape_values(call, 0).ndim))

    def build(shape: Any, dtype: Any) -> Expr:
        return make_call(f"relax.{name}", (shape_arg(shape),), {"dtype": str(dtype)})

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A tensor of {name}."
    return build


def _filled_like(name: str) -> Any:
    register_op(f"relax.{name}", lambda call: like(
        tensor_info(call, 0, "x"), None if call.attrs.dtype == "void" else call.attrs.dtype))

    def build(x: Any, dtype: Any = None) -> Expr:
        return make_call(f"relax.{name}", (as_expr(x),), {"dtype": dtype_attr(dtype)})

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A tensor of {name.removesuffix('_like')} of x's shape."
    return build


zeros, ones = _filled("zeros"), _filled("ones")
zeros_like, ones_like = _filled_like("zeros_like"), _filled_like("ones_like")


def _prim(value: Any) -> Expr:
    if isinstance(value, Expr):
        return value
    if isinstance(value, float):
        return PrimValue(E.FloatImm("float32", value))
    return PrimValue(value)


def arange(start: Any, end: Any = None, step: Any = 1, dtype: Any = None) -> Expr:
    """start, start + step, ... up to end (without it), as numpy.arange."""
    if end is None:
        start, end = 0, start
    args = tuple(map(_prim, (start, end, step)))
    if dtype is None:
        kinds = [a.struct_info_.dtype for a in args]
        dtype = "float32" if any(k.startswith("float") for k in kinds) else "int64"
    return make_call("relax.arange", args, {"dtype": str(dtype)})


def _infer_arange(call: Call) -> StructInfo:
    values = [a.value if isinstance(a, PrimValue) else a.struct_info_.value for a in call.args]
    if None in values:
        return tensor_of(None, call.attrs.dtype, 1)
    start, end, step = values
    if any(v.dtype.startswith("float") for v in values):
        if not all(isinstance(v, (E.IntImm, E.FloatImm)) for v in values):
            return tensor_of(None, call.attrs.dtype, 1)
        import math

        low, high, by = (v.value for v in values)
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


register_op("relax.arange", _infer_arange)


def eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = "float32") -> Expr:
    """Ones on diagonal k of an n by m matrix (m = n where it is not given)."""
    return make_call("relax.eye", (_prim(n), _prim(n if m is None else m), _prim(k)),
                     {"dtype": str(dtype)})


def _infer_eye(call: Call) -> StructInfo:
    values = [a.value if isinstance(a, PrimValue) else a.struct_info_.value
              for a in call.args[:2]]
    if any(type(v) is E.IntImm and v.value < 0 for v in values):
        raise misfit(call, f"a matrix of {show_shape(values)} elements has a negative extent")
    return tensor_of(None if None in values else values, call.attrs.dtype, 2)


register_op("relax.eye", _infer_eye)


def eye_like(x: Any, k: Any = 0, dtype: Any = None) -> Expr:
    """Ones on diagonal k of a matrix of x's shape."""
    return make_call("relax.eye_like", (as_expr(x), _prim(k)), {"dtype": dtype_attr(dtype)})


def _infer_eye_like(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    need_ndim(call, info, 2, "x")
    return like(info, None if call.attrs.dtype == "void" else call.attrs.dtype)


register_op("relax.eye_like", _infer_eye_like)


def _triangle(name: str) -> Any:
    def infer(call: Call) -> StructInfo:
        info = tensor_info(call, 0, "x")
        if info.ndim in (0, 1):
            raise misfit(call, f"x must have at least two dimensions, it is {show(info)}")
        return like(info)

    register_op(f"relax.{name}", infer)

    def build(x: Any, k: Any = 0) -> Expr:
        return make_call(f"relax.{name}", (as_expr(x),), {"k": plain_int(k)})

    side = "below" if name == "tril" else "above"
    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"x with zeros except on and {side} diagonal k."
    return build


tril, triu = _triangle("tril"), _triangle("triu")

__all__ = ["arange", "eye", "eye_like", "full", "full_like", "ones", "ones_like", "tril", "triu",
           "zeros", "zeros_like"]

"""Elementwise operators: of one tensor, of two with broadcasting, clip, where, astype, fma."""

from __future__ import annotations

from typing import Any, Callable

from ..expr import Call, Expr, PrimValue, as_expr
from ..struct_info import MAKERS, PrimStructInfo, StructInfo, TensorStructInfo
from .common import (
    broadcast_dims, join_dtype, like, misfit, need_bits, need_float, need_integer, need_number,
    operand, show, tensor_info, tensor_of, unary_op,
)
from .registry import make_call, register_op


def infer_float(call: Call) -> StructInfo:
    """A float tensor as the first argument is."""
    info = tensor_info(call, 0, "x")
    need_float(call, info)
    return like(info)


def infer_number(call: Call) -> StructInfo:
    """A tensor of numbers (no conditions) as the first argument is."""
    info = tensor_info(call, 0, "x")
    need_number(call, info)
    return like(info)


def infer_bits(call: Call) -> StructInfo:
    """A tensor of integers or conditions as the first argument is."""
    info = tensor_info(call, 0, "x")
    need_bits(call, info)
    return like(info)


def infer_bool(call: Call) -> StructInfo:
    """A bool tensor of the first argument's shape."""
    return like(tensor_info(call, 0, "x"), "bool")


_FLOAT = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "log",
          "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh")
_ANY = ("logical_not",)
_NUMBER = ("abs", "ceil", "floor", "negative", "round", "sign", "square", "trunc")
_BITS = ("bitwise_not",)
_TEST = ("isfinite", "isinf", "isnan")
for _name in _FLOAT:
    globals()[_name] = unary_op(_name, infer_float)
for _name in _ANY:
    globals()[_name] = unary_op(_name, infer_bool)
for _name in _NUMBER:
    globals()[_name] = unary_op(_name, infer_number)
for _name in _BITS:
    globals()[_name] = unary_op(_name, infer_bits)
for _name in _TEST:
    globals()[_name] = unary_op(_name, infer_bool)


def _binary_info(call: Call, result: str | None) -> StructInfo:
    """The struct info of a broadcasting operator; `result` is its dtype where it is fixed."""
    names = ("x1", "x2")
    infos = [a.struct_info_ for a in call.args]
    for name, info in zip(names, infos):
        if not isinstance(info, (TensorStructInfo, PrimStructInfo)):
            raise misfit(call, f"{name} must be a tensor or scalar, it is {show(info)}")
    a, b = infos
    dtype = join_dtype(call, a.dtype, b.dtype, names)
    if result is not None:
        dtype = result
    if isinstance(a, PrimStructInfo) and isinstance(b, PrimStructInfo):
        return PrimStructInfo(dtype)
    if isinstance(a, PrimStructInfo) or isinstance(b, PrimStructInfo):
        tensor = b if isinstance(a, PrimStructInfo) else a
        return like(tensor, dtype)
    if a.shape is not None and a.shape is b.shape:
        return like(a, dtype)
    if a.ndim == -1 or b.ndim == -1:
        return TensorStructInfo(None, dtype)
    ndim = max(a.ndim, b.ndim)
    if a.dims is None or b.dims is None:
        return TensorStructInfo(None, dtype, ndim=ndim)
    return tensor_of(broadcast_dims(call, a.dims, b.dims, names), dtype, ndim)


def infer_broadcast(call: Call) -> StructInfo:
    """Two operands of one dtype, broadcast."""
    return _binary_info(call, None)


def _infer_of(check: Callable[..., None]) -> Callable[[Call], StructInfo]:
    """Two operands of one dtype that passes a check, broadcast."""
    def infer(call: Call) -> StructInfo:
        out = _binary_info(call, None)
        for arg, name in zip(call.args, ("x1", "x2")):
            check(call, arg.struct_info_, name)
        return out

    return infer


def infer_compare(call: Call) -> StructInfo:
    """Two operands of one dtype, broadcast to a bool tensor."""
    return _binary_info(call, "bool")


def _binary_op(name: str, infer: Callable[[Call], StructInfo]) -> Callable[[Any, Any], Expr]:
    full = f"relax.{name}"
    register_op(full, infer)

    def build(x1: Any, x2: Any) -> Expr:
        a, b = operand(x1, x2), operand(x2, x1)
        return make_call(full, (a, b))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"R.{name}(x1, x2), broadcast as in numpy"
    return build


BINARY = ("add", "subtract", "multiply", "divide", "floor_divide", "power", "mod", "floor_mod",
          "maximum", "minimum", "log_add_exp", "atan2", "logical_and", "logical_or", "logical_xor",
          "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
COMPARE = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_FITTING = {**dict.fromkeys(("log_add_exp", "atan2"), need_float),
            **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), need_bits),
            **dict.fromkeys(("left_shift", "right_shift"), need_integer),
            **dict.fromkeys(("subtract", "divide", "floor_divide", "power", "mod", "floor_mod"),
                            need_number)}
for _name in BINARY:
    globals()[_name] = MAKERS[_name] = _binary_op(
        _name, _infer_of(_FITTING[_name]) if _name in _FITTING else
        infer_compare if _name.startswith("logical_") else infer_broadcast)
for _name in COMPARE:
    globals()[_name] = MAKERS[_name] = _binary_op(_name, infer_compare)
MAKERS["negative"] = globals()["negative"]


def clip(x: Any, min: Any, max: Any) -> Expr:
    """Values limited to [min, max]."""
    return make_call("relax.clip", (as_expr(x), _scalar(min), _scalar(max)))


def _scalar(value: Any) -> Expr:
    return value if isinstance(value, Expr) else PrimValue(
        value if not isinstance(value, float) else _float(value))


def _float(value: float) -> Any:
    from ...tir.expr import FloatImm

    return FloatImm("float32", value)


register_op("relax.clip", infer_number)


def astype(x: Any, dtype: Any) -> Expr:
    """The values converted to `dtype`."""
    return make_call("relax.astype", (as_expr(x),), {"dtype": str(dtype)})


register_op("relax.astype", lambda call: like(tensor_info(call, 0, "x"), call.attrs.dtype))
MAKERS["astype"] = astype


def wrap_param(data: Any, dtype: Any = "float32") -> Expr:
    """A parameter converted to `dtype` where it is lifted."""
    return make_call("relax.wrap_param", (as_expr(data),), {"dtype": str(dtype)})


register_op("relax.wrap_param", lambda call: like(tensor_info(call, 0), call.attrs.dtype))


def where(condition: Any, x1: Any, x2: Any) -> Expr:
    """x1 where the condition holds, else x2; all three broadcast."""
    return make_call("relax.where", (as_expr(condition), operand(x1, x2), operand(x2, x1)))


def _infer_where(call: Call) -> StructInfo:
    names = ("condition", "x1", "x2")
    infos = [tensor_info(call, k, n) for k, n in enumerate(names)]
    cond, a, b = infos
    if cond.dtype not in ("bool", ""):
        raise misfit(call, f"condition must be bool, it is {show(cond)}")
    dtype = join_dtype(call, a.dtype, b.dtype, names[1:])
    return _broadcast_all(call, infos, names, dtype)


def _broadcast_all(call: Call, infos: Any, names: Any, dtype: str) -> StructInfo:
    if any(i.ndim == -1 for i in infos):
        return TensorStructInfo(None, dtype)
    ndim = max(i.ndim for i in infos)
    dims: Any = infos[0].dims
    for info, name in zip(infos[1:], names[1:]):
        if dims is None or info.dims is None:
            return TensorStructInfo(None, dtype, ndim=ndim)
        dims = broadcast_dims(call, dims, info.dims, (names[0], name))
    return tensor_of(dims, dtype, ndim)


register_op("relax.where", _infer_where)


def masked_fill(x: Any, mask: Any, value: Any) -> Expr:
    """x with `value` where the mask holds: R.where."""
    from .create import full_like

    x = as_expr(x)
    return where(mask, full_like(x, value), x)


def ewise_fma(x1: Any, x2: Any, x3: Any) -> Expr:
    """x1 * x2 + x3 on tensors of one shape."""
    return make_call("relax.ewise_fma", (as_expr(x1), as_expr(x2), as_expr(x3)))


def _infer_fma(call: Call) -> StructInfo:
    names = ("x1", "x2", "x3")
    infos = [tensor_info(call, k, n) for k, n in enumerate(names)]
    dtype = join_dtype(call, infos[0].dtype, infos[1].dtype, names[:2])
    if dtype:
        dtype = join_dtype(call, dtype, infos[2].dtype, ("x1", "x3"))
    return _broadcast_all(call, infos, names, dtype)


register_op("relax.ewise_fma", _infer_fma)


__all__ = [*_FLOAT, *_ANY, *_NUMBER, *_BITS, *_TEST, *BINARY, *COMPARE, "astype", "clip",
           "ewise_fma", "masked_fill", "where", "wrap_param"]

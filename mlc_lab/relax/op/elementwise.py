"""Elementwise operators: of one tensor, of two with broadcasting, clip, where, astype, fma."""

from __future__ import annotations

from typing import Any, Callable

from ...ir import dtype as dt
from ...tir import op as O
from ..expr import Call, Expr, as_expr
from ..struct_info import MAKERS, PrimStructInfo, StructInfo, TensorStructInfo
from .common import (
    broadcast_dims, join_dtype, like, misfit, misfit_kind, need_bits, need_float, need_integer,
    need_number,
    on_vdevice, show, tensor_info, tensor_of,
)
from .create import full_like
from .declare import (
    BitsTensor, FloatTensor, NumberTensor, Operand, Scalar, Tensor, Text, constructor, like_first,
    operator,
)
from .later import topi

#: what most operators of one tensor do: they take every layout, and the precision of their tensor
ELEMENTWISE: dict[str, Any] = {"layout": "elementwise", "precision": "follow"}
_BROADCAST: dict[str, Any] = {"layout": "broadcast", "precision": "follow"}


def infer_float(call: Call) -> StructInfo:
    """A float tensor as the first argument is."""
    info = tensor_info(call, 0, "x")
    need_float(call, info)
    return info


def _test(call: Call, x: TensorStructInfo) -> StructInfo:
    return like(x, "bool")


def unary(name: str, kind: Any = FloatTensor, infer: Any = like_first,
          **facts: Any) -> Callable[[Any], Expr]:
    """An operator of one tensor that TOPI has by the same name.

    The argument is called x, or data among the operators of R.nn, as in TVM. So are kernels:
    `tir_exp` where the C library has a function of the short name.
    """
    short = name.rpartition(".")[2]

    def of_x(x: Any) -> Any:
        return getattr(topi, short)(x)

    def of_data(data: Any) -> Any:
        return getattr(topi.nn, short)(data)

    fn, argument = of_x, "x"
    if name.startswith("relax.nn."):
        fn, argument = of_data, "data"
    else:
        facts.setdefault("hint", f"tir_{short}")
    fn.__annotations__ = {argument: kind}
    fn.__doc__ = f"R.{name.removeprefix('relax.')}({argument}), element by element"
    return operator(name, infer, **facts)(fn)


acos = unary("relax.acos")
acosh = unary("relax.acosh")
asin = unary("relax.asin")
asinh = unary("relax.asinh")
atan = unary("relax.atan")
atanh = unary("relax.atanh")
cos = unary("relax.cos", **ELEMENTWISE)
cosh = unary("relax.cosh")
erf = unary("relax.erf", **ELEMENTWISE)
exp = unary("relax.exp", **ELEMENTWISE)
log = unary("relax.log", **ELEMENTWISE)
rsqrt = unary("relax.rsqrt", **ELEMENTWISE)
sigmoid = unary("relax.sigmoid", **ELEMENTWISE)
sin = unary("relax.sin", **ELEMENTWISE)
sinh = unary("relax.sinh")
sqrt = unary("relax.sqrt", **ELEMENTWISE)
tan = unary("relax.tan", **ELEMENTWISE)
tanh = unary("relax.tanh", **ELEMENTWISE)
abs = unary("relax.abs", NumberTensor, **ELEMENTWISE)
ceil = unary("relax.ceil", NumberTensor, **ELEMENTWISE)
floor = unary("relax.floor", NumberTensor, **ELEMENTWISE)
negative = unary("relax.negative", NumberTensor, **ELEMENTWISE)
round = unary("relax.round", NumberTensor, **ELEMENTWISE)
sign = unary("relax.sign", NumberTensor, **ELEMENTWISE)
square = unary("relax.square", NumberTensor, **ELEMENTWISE)
trunc = unary("relax.trunc", NumberTensor)
bitwise_not = unary("relax.bitwise_not", BitsTensor)
logical_not = unary("relax.logical_not", Tensor, _test)
isfinite = unary("relax.isfinite", Tensor, _test)
isinf = unary("relax.isinf", Tensor, _test)
isnan = unary("relax.isnan", Tensor, _test)


def _comparable(a: str, b: str) -> bool:
    """Whether numbers of two dtypes can be compared without a cast that changes a sign."""
    if not a or not b or dt.is_bool(a) or dt.is_bool(b):
        return False
    if dt.is_float(a) or dt.is_float(b):
        return dt.is_float(a) != dt.is_float(b) or dt.bits_of(a) != dt.bits_of(b)
    signed = [name for name in (a, b) if not name.startswith("u")]
    return len(signed) != 1 or dt.bits_of(signed[0]) == max(dt.bits_of(a), dt.bits_of(b)) > min(
        dt.bits_of(a), dt.bits_of(b))


def _binary_info(call: Call, a: Any, b: Any, result: str | None = None, mixed: bool = False
                 ) -> StructInfo:
    """The struct info of a broadcasting operator; `result` is its dtype where it is fixed, and
    `mixed` says that operands of two dtypes are compared as their common one."""
    names = ("x1", "x2")
    for name, info in zip(names, (a, b)):
        if not isinstance(info, (TensorStructInfo, PrimStructInfo)):
            raise misfit_kind(call, f"{name} must be a tensor or scalar, it is {show(info)}")
    if not (mixed and _comparable(a.dtype, b.dtype)):
        dtype = join_dtype(call, a.dtype, b.dtype, names)
    if result is not None:
        dtype = result
    return on_vdevice(_broadcast_info(call, a, b, dtype, names), call, (a, b), names)


def _broadcast_info(call: Call, a: Any, b: Any, dtype: str, names: tuple[str, str]) -> StructInfo:
    if isinstance(a, PrimStructInfo) and isinstance(b, PrimStructInfo):
        return PrimStructInfo(dtype)
    if isinstance(a, PrimStructInfo):
        return like(b, dtype)
    if isinstance(b, PrimStructInfo):
        return like(a, dtype)
    if a.shape is not None and a.shape is b.shape:
        return like(a, dtype)
    if a.ndim == -1 or b.ndim == -1:
        return TensorStructInfo(None, dtype)
    ndim = max(a.ndim, b.ndim)
    if a.dims is None or b.dims is None:
        return TensorStructInfo(None, dtype, ndim=ndim)
    return tensor_of(broadcast_dims(call, a.dims, b.dims, names), dtype, ndim)


def _binary(name: str, need: Callable[..., None] | None = None, result: str | None = None,
            compute: Callable[[Any, Any], Any] | None = None, mixed: bool = False, **facts: Any
            ) -> Callable[[Any, Any], Expr]:
    """An operator of two operands of one dtype (any two numbers where it is `mixed`), broadcast.

    `need` checks the dtype, `result` is that of the result where it is fixed; TOPI has it by the
    same name, unless `compute` is given.
    """
    short = name.removeprefix("relax.")

    def infer(call: Call, a: Any, b: Any) -> StructInfo:
        out = _binary_info(call, a, b, result, mixed)
        if need is not None:
            need(call, a, "x1")
            need(call, b, "x2")
        return out

    def fn(x1: Operand, x2: Operand) -> Any:
        return (compute or getattr(topi, short))(x1, x2)

    fn.__doc__ = f"R.{short}(x1, x2), broadcast as in numpy"
    return operator(name, infer, **facts)(fn)


def _compare(name: str) -> Callable[[Any, Any], Expr]:
    """A comparison: an integer against a float is compared as a float, as in torch."""
    return _binary(name, result="bool", mixed=True, layout="broadcast")


def _floor_mod(a: Any, b: Any) -> Any:
    """a % b with the sign of b, exact for floats too, as torch has it."""
    return topi.broadcast.broadcast("floor_mod", O.floormod, a, b)


add = _binary("relax.add", **_BROADCAST)
subtract = _binary("relax.subtract", need_number, **_BROADCAST)
multiply = _binary("relax.multiply", **_BROADCAST)
divide = _binary("relax.divide", need_number, **_BROADCAST)
floor_divide = _binary("relax.floor_divide", need_number, layout="broadcast")
power = _binary("relax.power", need_number, **_BROADCAST)
mod = _binary("relax.mod", need_number, layout="broadcast")
floor_mod = _binary("relax.floor_mod", need_number, compute=_floor_mod)
maximum = _binary("relax.maximum", **_BROADCAST)
minimum = _binary("relax.minimum", **_BROADCAST)
log_add_exp = _binary("relax.log_add_exp", need_float)
atan2 = _binary("relax.atan2", need_float)
logical_and = _binary("relax.logical_and", result="bool")
logical_or = _binary("relax.logical_or", result="bool")
logical_xor = _binary("relax.logical_xor", result="bool")
bitwise_and = _binary("relax.bitwise_and", need_bits)
bitwise_or = _binary("relax.bitwise_or", need_bits)
bitwise_xor = _binary("relax.bitwise_xor", need_bits)
left_shift = _binary("relax.left_shift", need_integer)
right_shift = _binary("relax.right_shift", need_integer)
equal = _compare("relax.equal")
not_equal = _compare("relax.not_equal")
less = _compare("relax.less")
less_equal = _compare("relax.less_equal")
greater = _compare("relax.greater")
greater_equal = _compare("relax.greater_equal")


@operator("relax.clip", like_first, hint="tir_clip", **ELEMENTWISE)
def clip(x: NumberTensor, min: Scalar, max: Scalar) -> Tensor:
    """Values limited to [min, max]."""
    return topi.clip(x, min, max)


def _to_dtype(call: Call, info: TensorStructInfo) -> StructInfo:
    return like(info, call.attrs.dtype)


@operator("relax.astype", _to_dtype, hint="cast", layout="elementwise")
def astype(x: Tensor, dtype: Text) -> Tensor:
    """The values converted to `dtype`."""
    return topi.cast(x, dtype)


@operator("relax.wrap_param", _to_dtype, hint="cast")
def wrap_param(data: Tensor, dtype: Text = "float32") -> Tensor:
    """A parameter converted to `dtype` where it is lifted."""
    return topi.cast(data, dtype)


def _infer_where(call: Call, cond: TensorStructInfo, *rest: Any) -> StructInfo:
    names = ("condition", "x1", "x2")
    a, b = (tensor_info(call, k, names[k]) for k in (1, 2))
    if cond.dtype not in ("bool", ""):
        raise misfit(call, f"condition must be bool, it is {show(cond)}")
    dtype = join_dtype(call, a.dtype, b.dtype, names[1:])
    return _broadcast_all(call, (cond, a, b), names, dtype)


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


@operator("relax.where", _infer_where, layout="broadcast")
def where(condition: Tensor, x1: Operand, x2: Operand) -> Tensor:
    """x1 where the condition holds, else x2; all three broadcast."""
    return topi.where(condition, x1, x2)


@constructor("relax.masked_fill")
def masked_fill(x: Any, mask: Any, value: Any) -> Expr:
    """x with `value` where the mask holds: R.where."""
    x = as_expr(x)
    return where(mask, full_like(x, value), x)


def _infer_fma(call: Call, *infos: TensorStructInfo) -> StructInfo:
    names = ("x1", "x2", "x3")
    dtype = join_dtype(call, infos[0].dtype, infos[1].dtype, names[:2])
    if dtype:
        dtype = join_dtype(call, dtype, infos[2].dtype, ("x1", "x3"))
    return _broadcast_all(call, infos, names, dtype)


@operator("relax.ewise_fma", _infer_fma)
def ewise_fma(x1: Tensor, x2: Tensor, x3: Tensor) -> Tensor:
    """x1 * x2 + x3 on tensors of one shape."""
    return topi.add(topi.multiply(x1, x2), x3)


#: what Python's operators make of expressions
MAKERS.update({
    "add": add, "subtract": subtract, "multiply": multiply, "divide": divide,
    "floor_divide": floor_divide, "power": power, "mod": mod, "less": less, "greater": greater,
    "less_equal": less_equal, "greater_equal": greater_equal, "negative": negative,
    "astype": astype})

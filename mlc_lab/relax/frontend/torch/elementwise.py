"""Rules of elementwise operators: arithmetic with torch's type promotion, activations, casts."""

from __future__ import annotations

import math
import operator
from typing import Any

from ....ir.dtype import is_float
from ....tir import op as O
from ... import op
from ...op import nn
from .importer import Importer, dtype_name, is_tensor, rule

_FLOAT = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "log",
          "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh")
_ANY = ("abs", "ceil", "floor", "round", "sign", "square", "trunc", "isfinite", "isinf", "isnan")
_ALIASES = {"abs": ("absolute",), "acos": ("arccos",), "asin": ("arcsin",), "atan": ("arctan",)}


def _as_float(im: Importer, x: Any) -> Any:
    return x if is_float(im.dtype(x)) else im.cast(x, "float32")


def _unary(name: str, floating: bool) -> None:
    build = getattr(op, name)

    @rule(name, *_ALIASES.get(name, ()))
    def translate(im: Importer, x: Any, **kwargs: Any) -> Any:
        if not is_tensor(x):
            return getattr(math, name)(x) if name != "abs" else abs(x)
        return im.emit(build(_as_float(im, x) if floating else x))


for _name in _FLOAT:
    _unary(_name, True)
for _name in _ANY:
    _unary(_name, False)


@rule("neg", "negative")
def _neg(im: Importer, x: Any) -> Any:
    return im.emit(op.negative(x)) if is_tensor(x) else -x


@rule("bitwise_not", "invert")
def _bitwise_not(im: Importer, x: Any) -> Any:
    if not is_tensor(x):
        return ~x
    return im.emit((op.logical_not if im.dtype(x) == "bool" else op.bitwise_not)(x))


@rule("logical_not")
def _logical_not(im: Importer, x: Any) -> Any:
    return im.emit(op.logical_not(im.cast(x, "bool") if im.dtype(x) != "bool" else x))


@rule("reciprocal")
def _reciprocal(im: Importer, x: Any) -> Any:
    x = _as_float(im, x)
    return im.emit(op.divide(im.const(1.0, im.dtype(x)), x))


def _through_log(scale: float, before: float = 0.0) -> Any:
    def translate(im: Importer, x: Any) -> Any:
        x = _as_float(im, x)
        if before:
            x = im.emit(op.add(x, im.const(before, im.dtype(x))))
        out = im.emit(op.log(x))
        return out if scale == 1 else im.emit(op.multiply(out, im.const(scale, im.dtype(x))))

    return translate


rule("log2")(_through_log(1 / math.log(2)))
rule("log10")(_through_log(1 / math.log(10)))
rule("log1p")(_through_log(1, 1.0))


@rule("exp2")
def _exp2(im: Importer, x: Any) -> Any:
    x = _as_float(im, x)
    return im.emit(op.exp(im.emit(op.multiply(x, im.const(math.log(2), im.dtype(x))))))


@rule("expm1")
def _expm1(im: Importer, x: Any) -> Any:
    return im.emit(op.subtract(im.emit(op.exp(_as_float(im, x))), im.const(1.0, im.dtype(x))))


# ------------------------------------------------------------------------------- two operands


def _numbers(*values: Any) -> bool:
    """Whether no operand is a tensor: the operation is on sizes or numbers."""
    return not any(map(is_tensor, values))


def _binary(names: tuple[str, ...], build: Any, plain: Any) -> None:
    @rule(*names)
    def translate(im: Importer, a: Any, b: Any, *, alpha: Any = 1, **kwargs: Any) -> Any:
        if alpha != 1:
            b = im.emit(op.multiply(b, im.operand(alpha, im.dtype(b)))) if is_tensor(
                b) else b * alpha
        if _numbers(a, b):
            return plain(a, b)
        return im.emit(build(*im.pair(a, b)))


for _names, _build, _plain in (
        (("add", "iadd"), op.add, operator.add), (("sub", "subtract", "isub"), op.subtract,
                                                  operator.sub),
        (("mul", "multiply", "imul"), op.multiply, operator.mul),
        (("maximum",), op.maximum, O.max_value_of), (("minimum",), op.minimum, O.min_value_of),
        (("eq",), op.equal, operator.eq), (("ne", "not_equal"), op.not_equal, operator.ne),
        (("lt", "less"), op.less, operator.lt), (("le", "less_equal"), op.less_equal, operator.le),
        (("gt", "greater"), op.greater, operator.gt),
        (("ge", "greater_equal"), op.greater_equal, operator.ge),
        (("remainder", "mod"), op.floor_mod, operator.mod), (("fmod",), op.mod, math.fmod),
        (("atan2", "arctan2"), op.atan2, math.atan2),
        (("bitwise_and", "and"), op.bitwise_and, operator.and_),
        (("bitwise_or", "or"), op.bitwise_or, operator.or_),
        (("bitwise_xor", "xor"), op.bitwise_xor, operator.xor),
        (("lshift", "bitwise_left_shift"), op.left_shift, operator.lshift),
        (("rshift", "bitwise_right_shift"), op.right_shift, operator.rshift),
        (("logaddexp",), op.log_add_exp, None)):
    _binary(_names, _build, _plain)


@rule("rsub")
def _rsub(im: Importer, a: Any, b: Any, *, alpha: Any = 1) -> Any:
    if alpha != 1:
        a = im.emit(op.multiply(a, im.operand(alpha, im.dtype(a))))
    x, y = im.pair(b, a)
    return im.emit(op.subtract(x, y))


@rule("div", "divide", "truediv", "true_divide", "itruediv")
def _div(im: Importer, a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    if _numbers(a, b):
        if rounding_mode is not None or not all(isinstance(v, (int, float)) for v in (a, b)):
            return a // b
        return a / b
    x, y = im.pair(a, b)
    if rounding_mode == "floor":
        return im.emit(op.floor_divide(x, y))
    whole = not is_float(im.dtype(x))
    if whole and rounding_mode == "trunc":
        return im.emit(op.divide(x, y))
    if whole:
        x, y = im.operand(a, "float32"), im.operand(b, "float32")
    out = im.emit(op.divide(x, y))
    return im.emit(op.trunc(out)) if rounding_mode == "trunc" else out


@rule("floor_divide", "floordiv", "ifloordiv")
def _floor_divide(im: Importer, a: Any, b: Any) -> Any:
    return a // b if _numbers(a, b) else im.emit(op.floor_divide(*im.pair(a, b)))


@rule("pow", "power")
def _pow(im: Importer, a: Any, b: Any) -> Any:
    if _numbers(a, b):
        return a ** b
    if is_tensor(a) and b == 2:
        return im.emit(op.multiply(a, a))
    if is_tensor(a) and b == 0.5:
        return im.emit(op.sqrt(_as_float(im, a)))
    if is_tensor(a) and isinstance(b, (int, float)) and b == 3:
        return im.emit(op.multiply(im.emit(op.multiply(a, a)), a))
    return im.emit(op.power(*im.pair(a, b)))


@rule("rpow")
def _rpow(im: Importer, a: Any, b: Any) -> Any:
    return _pow(im, b, a)


def _logical(name: str) -> None:
    build = getattr(op, name)

    @rule(name)
    def translate(im: Importer, a: Any, b: Any) -> Any:
        return im.emit(build(*(im.operand(v, "bool") for v in (a, b))))


for _name in ("logical_and", "logical_or", "logical_xor"):
    _logical(_name)


@rule("where")
def _where(im: Importer, condition: Any, a: Any, b: Any) -> Any:
    return im.emit(op.where(im.cast(condition, "bool"), *_tensors(im, a, b)))


def _tensors(im: Importer, a: Any, b: Any) -> tuple[Any, Any]:
    """Two values as tensors of one dtype."""
    dtype = im.promoted(a, b)
    return im.operand(a, dtype), im.operand(b, dtype)


@rule("masked_fill")
def _masked_fill(im: Importer, x: Any, mask: Any, value: Any) -> Any:
    filled = im.operand(value, im.dtype(x))
    return im.emit(op.where(im.cast(mask, "bool"), filled, x))


@rule("addcmul")
def _addcmul(im: Importer, x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    out = im.emit(op.multiply(*im.pair(a, b)))
    return _add(im, x, out if value == 1 else _mul(im, out, value))


@rule("addcdiv")
def _addcdiv(im: Importer, x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    out = _div(im, a, b)
    return _add(im, x, out if value == 1 else _mul(im, out, value))


@rule("lerp")
def _lerp(im: Importer, a: Any, b: Any, weight: Any) -> Any:
    away = im.emit(op.subtract(*im.pair(b, a)))
    return _add(im, a, _mul(im, away, weight))


def _add(im: Importer, a: Any, b: Any) -> Any:
    return im.emit(op.add(*im.pair(a, b)))


def _mul(im: Importer, a: Any, b: Any) -> Any:
    return im.emit(op.multiply(*im.pair(a, b)))


# ------------------------------------------------------------------------------- limits, casts


@rule("clamp", "clip")
def _clamp(im: Importer, x: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    if not any(map(is_tensor, (min, max))) and None not in (min, max):
        return im.emit(op.clip(x, min, max))
    if min is not None:
        x = im.emit(op.maximum(*im.pair(x, min)))
    if max is not None:
        x = im.emit(op.minimum(*im.pair(x, max)))
    return x


@rule("clamp_min")
def _clamp_min(im: Importer, x: Any, min: Any) -> Any:  # noqa: A002
    return im.emit(op.maximum(*im.pair(x, min)))


@rule("clamp_max")
def _clamp_max(im: Importer, x: Any, max: Any) -> Any:  # noqa: A002
    return im.emit(op.minimum(*im.pair(x, max)))


@rule("to", "_to_copy", "type", "_to_dtype")
def _to(im: Importer, x: Any, *args: Any, **kwargs: Any) -> Any:
    dtype = kwargs.get("dtype")
    for a in args:
        if is_tensor(a):
            dtype = im.dtype(a)
        elif type(a).__name__ == "dtype":
            dtype = a
    return x if dtype is None else im.cast(x, dtype_name(dtype))


@rule("type_as")
def _type_as(im: Importer, x: Any, other: Any) -> Any:
    return im.cast(x, im.dtype(other))


for _method, _dtype in (("float", "float32"), ("double", "float64"), ("half", "float16"),
                        ("long", "int64"), ("int", "int32"), ("bool", "bool"),
                        ("bfloat16", "bfloat16")):
    rule(_method)(lambda im, x, *rest, _dtype=_dtype: im.cast(x, _dtype))


@rule("clone", "contiguous", "detach", "detach_", "alias", "dropout", "feature_dropout",
      "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d",
      "native_dropout", "cpu", "lift_fresh_copy", "lift_fresh", "requires_grad_", "identity",
      "_assert_tensor_metadata", "positive")
def _same(im: Importer, x: Any, *rest: Any, **kwargs: Any) -> Any:
    """What changes nothing in inference."""
    return x


# ------------------------------------------------------------------------------- activations


def _activation(name: str, build: Any) -> None:
    @rule(name)
    def translate(im: Importer, x: Any, *rest: Any, **kwargs: Any) -> Any:
        return im.emit(build(x))


for _name, _build in (("relu", nn.relu), ("silu", nn.silu), ("selu", nn.selu)):
    _activation(_name, _build)


@rule("relu6")
def _relu6(im: Importer, x: Any, inplace: bool = False) -> Any:
    return im.emit(op.clip(x, 0, 6))


@rule("gelu")
def _gelu(im: Importer, x: Any, approximate: str = "none") -> Any:
    return im.emit((nn.gelu_tanh if approximate == "tanh" else nn.gelu)(x))


@rule("leaky_relu")
def _leaky_relu(im: Importer, x: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    return im.emit(nn.leakyrelu(x, negative_slope))


@rule("prelu")
def _prelu(im: Importer, x: Any, weight: Any) -> Any:
    return im.emit(nn.prelu(x, weight, 1 if im.ndim(x) > 1 else 0))


@rule("softplus")
def _softplus(im: Importer, x: Any, beta: float = 1, threshold: float = 20) -> Any:
    return im.emit(nn.softplus(x, beta, threshold))


@rule("elu", "celu")
def _elu(im: Importer, x: Any, alpha: float = 1.0, *rest: Any, **kwargs: Any) -> Any:
    dtype = im.dtype(x)
    low = im.emit(op.minimum(x, im.const(0.0, dtype)))
    grown = im.emit(op.subtract(im.emit(op.exp(low)), im.const(1.0, dtype)))
    scaled = im.emit(op.multiply(grown, im.const(alpha, dtype)))
    return im.emit(op.add(im.emit(nn.relu(x)), scaled))


@rule("threshold", "_threshold")
def _threshold(im: Importer, x: Any, threshold: Any, value: Any, inplace: bool = False) -> Any:
    dtype = im.dtype(x)
    over = im.emit(op.greater(x, im.operand(threshold, dtype)))
    return im.emit(op.where(over, x, im.operand(value, dtype)))


@rule("hardtanh")
def _hardtanh(im: Importer, x: Any, min_val: float = -1.0, max_val: float = 1.0,
              inplace: bool = False) -> Any:
    return im.emit(op.clip(x, min_val, max_val))


@rule("hardsigmoid")
def _hardsigmoid(im: Importer, x: Any, inplace: bool = False) -> Any:
    dtype = im.dtype(x)
    moved = im.emit(op.clip(im.emit(op.add(x, im.const(3.0, dtype))), 0, 6))
    return im.emit(op.divide(moved, im.const(6.0, dtype)))


@rule("hardswish")
def _hardswish(im: Importer, x: Any, inplace: bool = False) -> Any:
    return im.emit(op.multiply(x, _hardsigmoid(im, x)))


@rule("mish")
def _mish(im: Importer, x: Any, inplace: bool = False) -> Any:
    return im.emit(op.multiply(x, im.emit(op.tanh(im.emit(nn.softplus(x))))))


@rule("logsigmoid", "log_sigmoid")
def _logsigmoid(im: Importer, x: Any) -> Any:
    return im.emit(op.negative(im.emit(nn.softplus(im.emit(op.negative(x))))))


@rule("softsign")
def _softsign(im: Importer, x: Any) -> Any:
    one = im.const(1.0, im.dtype(x))
    return im.emit(op.divide(x, im.emit(op.add(im.emit(op.abs(x)), one))))


@rule("glu")
def _glu(im: Importer, x: Any, dim: int = -1) -> Any:
    halves = im.emit(op.split(x, 2, dim))
    return im.emit(op.multiply(im.emit(halves[0]), im.emit(op.sigmoid(im.emit(halves[1])))))

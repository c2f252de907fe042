"""Rules of elementwise operators. Shape computations are done at once, on numbers and sizes."""

from __future__ import annotations

import math
import operator
from typing import Any, Callable

import numpy as np

from ... import op
from ...op import nn
from .importer import DTYPES, Importer, Sizes, rule


def _sized(im: Importer, *values: Any) -> bool:
    """Whether values are shapes: sizes, or sizes with constants."""
    return any(isinstance(v, Sizes) for v in values) and all(
        isinstance(v, (Sizes, np.ndarray)) for v in values)


def _binary(name: str, build: Callable, plain: Callable, numpy: Callable) -> None:
    @rule(name)
    def translate(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
        a, b = inputs[:2]
        if im.known(a, b):
            return np.asarray(numpy(a, b))
        if _sized(im, a, b):
            x, y = im.numbers(a), im.numbers(b)
            count = max(len(x), len(y))
            x, y = (v * count if len(v) == 1 else v for v in (x, y))
            return Sizes(plain(p, q) for p, q in zip(x, y))
        return im.emit(build(im.tensor(a), im.tensor(b)))


def _int_div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a / b if a.dtype.kind == "f" else (a // b).astype(a.dtype)


for _name, _build, _plain, _numpy in (
        ("Add", op.add, operator.add, np.add), ("Sub", op.subtract, operator.sub, np.subtract),
        ("Mul", op.multiply, operator.mul, np.multiply),
        ("Div", op.divide, operator.floordiv, _int_div),
        ("Equal", op.equal, operator.eq, np.equal), ("Less", op.less, operator.lt, np.less),
        ("LessOrEqual", op.less_equal, operator.le, np.less_equal),
        ("Greater", op.greater, operator.gt, np.greater),
        ("GreaterOrEqual", op.greater_equal, operator.ge, np.greater_equal),
        ("And", op.logical_and, operator.and_, np.logical_and),
        ("Or", op.logical_or, operator.or_, np.logical_or),
        ("Xor", op.logical_xor, operator.xor, np.logical_xor),
        ("BitwiseAnd", op.bitwise_and, operator.and_, np.bitwise_and),
        ("BitwiseOr", op.bitwise_or, operator.or_, np.bitwise_or)):
    _binary(_name, _build, _plain, _numpy)


@rule("Pow")
def _pow(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, y = inputs
    if im.known(x, y):
        return np.asarray(x ** y, x.dtype)
    if isinstance(y, np.ndarray) and y.size == 1:
        value = y.item()
        x = im.tensor(x)
        if value == 2:
            return im.emit(op.multiply(x, x))
        if value == 0.5:
            return im.emit(op.sqrt(x))
    y = im.tensor(y)
    if im.dtype(y) != im.dtype(x):
        y = im.emit(op.astype(y, im.dtype(x)))
    return im.emit(op.power(im.tensor(x), y))


@rule("Mod")
def _mod(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    a, b = inputs
    if im.known(a, b):
        return np.fmod(a, b) if attrs.get("fmod") else np.mod(a, b)
    build = op.mod if attrs.get("fmod") else op.floor_mod
    return im.emit(build(im.tensor(a), im.tensor(b)))


def _several(name: str, build: Callable) -> None:
    @rule(name)
    def translate(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
        out = im.tensor(inputs[0])
        for x in inputs[1:]:
            out = im.emit(build(out, im.tensor(x)))
        return out


for _name, _build in (("Max", op.maximum), ("Min", op.minimum), ("Sum", op.add)):
    _several(_name, _build)


@rule("Mean")
def _mean(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    out = im.tensor(inputs[0])
    for x in inputs[1:]:
        out = im.emit(op.add(out, im.tensor(x)))
    return im.emit(op.divide(out, float(len(inputs))))


def _unary(name: str, build: Callable, numpy: Callable | None = None) -> None:
    @rule(name)
    def translate(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
        x = inputs[0]
        if numpy is not None and im.known(x):
            return np.asarray(numpy(x), x.dtype)
        if isinstance(x, Sizes) and name == "Neg":
            return Sizes(-v for v in x)
        return im.emit(build(im.tensor(x)))


for _name, _build in (
        ("Abs", op.abs), ("Exp", op.exp), ("Log", op.log), ("Erf", op.erf), ("Sin", op.sin),
        ("Cos", op.cos), ("Tan", op.tan), ("Asin", op.asin), ("Acos", op.acos), ("Atan", op.atan),
        ("Sinh", op.sinh), ("Cosh", op.cosh), ("Asinh", op.asinh), ("Acosh", op.acosh),
        ("Atanh", op.atanh), ("Tanh", op.tanh), ("Sigmoid", op.sigmoid), ("Sign", op.sign),
        ("Round", op.round), ("IsNaN", op.isnan), ("IsInf", op.isinf), ("Relu", nn.relu),
        ("Softplus", nn.softplus), ("BitwiseNot", op.bitwise_not)):
    _unary(_name, _build)
_unary("Neg", op.negative, np.negative)
_unary("Sqrt", op.sqrt, np.sqrt)
_unary("Floor", op.floor, np.floor)
_unary("Ceil", op.ceil, np.ceil)
_unary("Not", op.logical_not, np.logical_not)


@rule("Reciprocal")
def _reciprocal(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return im.emit(op.divide(1.0, im.tensor(inputs[0])))


@rule("Where")
def _where(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    c, a, b = inputs
    if im.known(c, a, b):
        return np.where(c, a, b)
    if _sized(im, a, b) and (isinstance(c, (np.ndarray, Sizes))):
        picks = [bool(v) for v in im.numbers(c)]
        x, y = im.numbers(a), im.numbers(b)
        count = max(len(picks), len(x), len(y))
        x, y, picks = (v * count if len(v) == 1 else v for v in (x, y, picks))
        return Sizes(p if pick else q for pick, p, q in zip(picks, x, y))
    return im.emit(op.where(*map(im.tensor, (c, a, b))))


@rule("Cast")
def _cast(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, dtype = inputs[0], DTYPES[attrs["to"]]
    if im.known(x):
        return x.astype(dtype)
    if isinstance(x, Sizes) and dtype.startswith("int"):
        return x
    x = im.tensor(x)
    return x if im.dtype(x) == dtype else im.emit(op.astype(x, dtype))


@rule("CastLike")
def _cast_like(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return im.emit(op.astype(im.tensor(inputs[0]), im.dtype(inputs[1])))


@rule("Identity")
def _identity(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return inputs[0]


@rule("Dropout")
def _dropout(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return [inputs[0], None]


@rule("Clip")
def _clip(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    low = inputs[1] if len(inputs) > 1 else attrs.get("min")
    high = inputs[2] if len(inputs) > 2 else attrs.get("max")
    low = -math.inf if low is None else im.number(low)
    high = math.inf if high is None else im.number(high)
    if im.dtype(x).startswith("int"):
        low, high = (int(v) if math.isfinite(v) else (
            -2**31 if v < 0 else 2**31 - 1) for v in (low, high))
    elif high == math.inf:
        return im.emit(op.maximum(x, float(low)))
    elif low == -math.inf:
        return im.emit(op.minimum(x, float(high)))
    return im.emit(op.clip(x, low, high))


# ------------------------------------------------------------------------------- activations


@rule("LeakyRelu")
def _leaky(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return im.emit(nn.leakyrelu(im.tensor(inputs[0]), attrs.get("alpha", 0.01)))


@rule("PRelu")
def _prelu(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, slope = map(im.tensor, inputs)
    low = im.emit(op.minimum(x, 0.0))
    return im.emit(op.add(im.emit(nn.relu(x)), im.emit(op.multiply(low, slope))))


def _grown(im: Importer, x: Any, alpha: float, inner: float = 1.0) -> Any:
    """alpha * (exp(min(x, 0) / inner) - 1)"""
    low = im.emit(op.minimum(x, 0.0))
    if inner != 1.0:
        low = im.emit(op.divide(low, inner))
    return im.emit(op.multiply(im.emit(op.subtract(im.emit(op.exp(low)), 1.0)), alpha))


@rule("Elu", "Celu")
def _elu(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    return im.emit(op.add(im.emit(nn.relu(x)), _grown(im, x, attrs.get("alpha", 1.0))))


@rule("Selu")
def _selu(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    grown = _grown(im, x, attrs.get("alpha", 1.6732632423543772))
    total = im.emit(op.add(im.emit(nn.relu(x)), grown))
    return im.emit(op.multiply(total, attrs.get("gamma", 1.0507009873554805)))


@rule("Gelu", "FastGelu")
def _gelu(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    build = nn.gelu_tanh if attrs.get("approximate") == "tanh" else nn.gelu
    return im.emit(build(im.tensor(inputs[0])))


@rule("HardSigmoid")
def _hard_sigmoid(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.emit(op.multiply(im.tensor(inputs[0]), attrs.get("alpha", 0.2)))
    return im.emit(op.clip(im.emit(op.add(x, attrs.get("beta", 0.5))), 0, 1))


@rule("HardSwish")
def _hard_swish(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    gate = im.emit(op.clip(im.emit(op.add(im.emit(op.divide(x, 6.0)), 0.5)), 0, 1))
    return im.emit(op.multiply(x, gate))


@rule("Mish")
def _mish(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    return im.emit(op.multiply(x, im.emit(op.tanh(im.emit(nn.softplus(x))))))


@rule("Softsign")
def _softsign(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    return im.emit(op.divide(x, im.emit(op.add(im.emit(op.abs(x)), 1.0))))


def _along(name: str, build: Callable) -> None:
    @rule(name)
    def translate(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
        x = im.tensor(inputs[0])
        if im.opset >= 13:
            return im.emit(build(x, attrs.get("axis", -1)))
        axis = attrs.get("axis", 1) % max(im.ndim(x), 1)
        if axis == im.ndim(x) - 1:
            return im.emit(build(x, -1))
        sizes = im.shape(x)  # up to version 12, all dimensions from `axis` on are one
        flat = im.emit(op.reshape(x, [*sizes[:axis], -1]))
        return im.emit(op.reshape(im.emit(build(flat, -1)), sizes))


_along("Softmax", nn.softmax)
_along("LogSoftmax", nn.log_softmax)


@rule("QuantizeLinear")
def _quantize(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    zero = inputs[2] if len(inputs) > 2 else np.zeros(np.shape(inputs[1]), "uint8")
    return im.emit(op.quantize(*map(im.tensor, (inputs[0], inputs[1], zero)),
                               attrs.get("axis", 1), im.dtype(zero)))


@rule("DequantizeLinear")
def _dequantize(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    zero = inputs[2] if len(inputs) > 2 else np.zeros(np.shape(inputs[1]), im.dtype(inputs[0]))
    return im.emit(op.dequantize(*map(im.tensor, (inputs[0], inputs[1], zero)),
                                 attrs.get("axis", 1), im.dtype(inputs[1])))

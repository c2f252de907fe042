"""Rules of elementwise operators. Shape computations are done at once, on numbers and sizes."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ....ir.dtype import is_float
from ....tir import op as O
from .... import topi
from ... import op
from ...op import nn
from ..common import analyzer_of
from .given import Sizes
from .importer import Importer, dtype_of, rule

if TYPE_CHECKING:
    from ...expr import Expr


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
            found = _of_sizes(im, name, plain, a, b)
            if found is not None:
                return found
        return im.emit(build(im.tensor(a), im.tensor(b)))


def _of_sizes(im: Importer, name: str, plain: Callable, a: Any, b: Any) -> Any:
    """An operator on sizes; None where only the run knows what it gives."""
    x, y = _together(im.numbers(a), im.numbers(b))
    out = [plain(p, q) for p, q in zip(x, y)]
    rank = max(len(im.shape(v)) for v in (a, b))
    if rank > 1:
        return None
    if name in _RELATIONS:
        known = [im.proven(v) for v in out]
        return None if None in known else np.array(known if rank else known[0], "bool")
    return Sizes(out, rank, im.dtype(a)) if name not in ("And", "Or", "Xor") else None


def _together(x: list[Any], y: list[Any]) -> tuple[list[Any], list[Any]]:
    """Two lists of values, of which one may be of a single one."""
    count = max(len(x), len(y))
    return x * count if len(x) == 1 else x, y * count if len(y) == 1 else y


#: operators that compare
_RELATIONS = frozenset({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})


def _divided(a: Any, b: Any) -> Any:
    """A quotient of sizes, rounded toward zero."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b) if (a < 0) != (b < 0) else a // b
    if analyzer_of([a, b]).can_prove(O.logical_and(O.convert(a) >= 0, O.convert(b) > 0)):
        return a // b
    return O.truncdiv(*(O.cast(O.convert(v), "int64") for v in (a, b)))


def _int_div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return a / b
    down = a // b
    return (down + ((down < 0) & (down * b != a))).astype(a.dtype)


for _name, _build, _plain, _numpy in (
        ("Add", op.add, operator.add, np.add), ("Sub", op.subtract, operator.sub, np.subtract),
        ("Mul", op.multiply, operator.mul, np.multiply),
        ("Div", op.divide, _divided, _int_div),
        ("Equal", op.equal, operator.eq, np.equal), ("Less", op.less, operator.lt, np.less),
        ("LessOrEqual", op.less_equal, operator.le, np.less_equal),
        ("Greater", op.greater, operator.gt, np.greater),
        ("GreaterOrEqual", op.greater_equal, operator.ge, np.greater_equal),
        ("And", op.logical_and, operator.and_, np.logical_and),
        ("Or", op.logical_or, operator.or_, np.logical_or),
        ("Xor", op.logical_xor, operator.xor, np.logical_xor),
        ("BitwiseAnd", op.bitwise_and, operator.and_, np.bitwise_and),
        ("BitwiseOr", op.bitwise_or, operator.or_, np.bitwise_or),
        ("BitwiseXor", op.bitwise_xor, operator.xor, np.bitwise_xor)):
    _binary(_name, _build, _plain, _numpy)


@rule("Pow")
def _pow(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, y = inputs
    if im.known(x, y):
        return np.asarray(np.power(x, y).astype(x.dtype))
    if isinstance(y, np.ndarray) and y.size == 1 and y.ndim <= im.ndim(x) and y.item() == 2:
        x = im.tensor(x)
        return im.emit(op.multiply(x, x))
    x, y = im.tensor(x), im.tensor(y)
    dtype = im.dtype(x)
    if is_float(dtype) or not is_float(im.dtype(y)):
        if not is_float(dtype) and dtype != im.dtype(y):
            return im.builder.emit_te(topi.special.integer_power, x, im.emit(op.astype(y, dtype)),
                                      primfunc_name_hint="power")
        y = y if im.dtype(y) == dtype else im.emit(op.astype(y, dtype))
        if is_float(dtype):
            return im.emit(op.power(x, y))
        return im.builder.emit_te(topi.special.integer_power, x, y, primfunc_name_hint="power")
    out = im.emit(op.power(im.emit(op.astype(x, im.dtype(y))), y))
    return im.emit(op.astype(out, dtype))


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
        if len(inputs) == 2 and _sized(im, *inputs) and name != "Sum":
            plain = O.max_value_of if name == "Max" else O.min_value_of
            found = _of_sizes(im, name, lambda p, q: plain(*(O.cast(O.convert(v), "int64")
                                                             for v in (p, q))), *inputs)
            if found is not None:
                return found
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
            return Sizes((-v for v in x), x.rank, x.dtype)
        return im.emit(build(im.tensor(x)))


for _name, _build in (
        ("Abs", op.abs), ("Exp", op.exp), ("Log", op.log), ("Erf", op.erf), ("Sin", op.sin),
        ("Cos", op.cos), ("Tan", op.tan), ("Asin", op.asin), ("Acos", op.acos), ("Atan", op.atan),
        ("Sinh", op.sinh), ("Cosh", op.cosh), ("Asinh", op.asinh), ("Acosh", op.acosh),
        ("Atanh", op.atanh), ("Tanh", op.tanh), ("Sigmoid", op.sigmoid), ("Sign", op.sign),
        ("Round", op.round), ("IsNaN", op.isnan), ("Relu", nn.relu),
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
    if _sized(im, a, b) and isinstance(c, np.ndarray) and max(len(im.shape(v)) for v in inputs) < 2:
        picks, x = _together([bool(v) for v in im.numbers(c)], im.numbers(a))
        x, y = _together(x, im.numbers(b))
        picks, y = _together(picks, y)
        x, y = _together(x, y)
        return Sizes((p if pick else q for pick, p, q in zip(picks, x, y)),
                     max(len(im.shape(v)) for v in inputs))
    return im.emit(op.where(*map(im.tensor, (c, a, b))))


@rule("Cast")
def _cast(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, dtype = inputs[0], dtype_of(attrs["to"])
    if im.known(x):
        return x.astype(dtype)
    if isinstance(x, Sizes) and dtype in ("int32", "int64"):
        return Sizes(x, x.rank, dtype)
    x = im.tensor(x)
    return x if im.dtype(x) == dtype else im.emit(op.astype(x, dtype))


@rule("CastLike")
def _cast_like(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    if im.known(inputs[0]):
        return inputs[0].astype(im.dtype(inputs[1]))
    return im.emit(op.astype(im.tensor(inputs[0]), im.dtype(inputs[1])))


@rule("Identity")
def _identity(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return inputs[0]


@rule("Dropout")
def _dropout(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, _, training = [*inputs, None, None][:3]
    if training is not None and not (im.known(training) and not training.any()):
        raise ValueError("dropout in training is not translated: export the model for inference")
    attrs.get("ratio")
    if im.outputs < 2:
        return x
    return [x, im.emit(op.full(im.shape(x), im.tensor(np.asarray(True)), "bool"))]


@rule("Clip")
def _clip(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    low = inputs[1] if len(inputs) > 1 else attrs.get("min")
    high = inputs[2] if len(inputs) > 2 else attrs.get("max")
    if all(isinstance(v, float) or v is not None and im.known(v) for v in (low, high)) and (
            is_float(im.dtype(x)) and im.number(low) <= im.number(high)):
        return im.emit(op.clip(x, im.number(low), im.number(high)))
    for limit, build in ((low, op.maximum), (high, op.minimum)):
        if limit is None:
            continue
        if isinstance(limit, float) or im.known(limit):
            limit = im.tensor(np.asarray(im.number(limit), im.dtype(x)))
        else:
            limit = im.emit(op.reshape(im.tensor(limit), []))
        x = im.emit(build(x, limit))
    return x


@rule("IsInf")
def _is_inf(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    above, below = attrs.get("detect_positive", 1), attrs.get("detect_negative", 1)
    if above and below:
        return im.emit(op.isinf(x))
    if not (above or below):
        return im.emit(op.zeros(im.shape(x), "bool"))
    limit = im.tensor(np.asarray(math.inf if above else -math.inf, im.dtype(x)))
    return im.emit(op.equal(x, limit))


# ------------------------------------------------------------------------------- activations


@rule("LeakyRelu")
def _leaky(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return im.emit(nn.leakyrelu(im.tensor(inputs[0]), attrs.get("alpha", 0.01)))


@rule("PRelu")
def _prelu(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, slope = map(im.tensor, inputs)
    low = im.emit(op.minimum(x, 0.0))
    return im.emit(op.add(im.emit(nn.relu(x)), im.emit(op.multiply(low, slope))))


def _grown(im: Importer, x: Expr, alpha: float, inner: float = 1.0) -> Any:
    """alpha * (exp(min(x, 0) / inner) - 1)"""
    low = im.emit(op.minimum(x, 0.0))
    if inner != 1.0:
        low = im.emit(op.divide(low, inner))
    return im.emit(op.multiply(im.emit(op.subtract(im.emit(op.exp(low)), 1.0)), alpha))


@rule("Elu")
def _elu(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    return im.emit(op.add(im.emit(nn.relu(x)), _grown(im, x, attrs.get("alpha", 1.0))))


@rule("Celu")
def _celu(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, alpha = im.tensor(inputs[0]), attrs.get("alpha", 1.0)
    return im.emit(op.add(im.emit(nn.relu(x)), _grown(im, x, alpha, alpha)))


@rule("Selu")
def _selu(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    grown = _grown(im, x, attrs.get("alpha", 1.6732632423543772))
    total = im.emit(op.add(im.emit(nn.relu(x)), grown))
    return im.emit(op.multiply(total, attrs.get("gamma", 1.0507009873554805)))


@rule("Gelu")
def _gelu(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    build = nn.gelu_tanh if attrs.get("approximate") == "tanh" else nn.gelu
    return im.emit(build(im.tensor(inputs[0])))


@rule("FastGelu")
def _fast_gelu(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    if len(inputs) > 1 and inputs[1] is not None:
        x = im.emit(op.add(x, im.tensor(inputs[1])))
    return im.emit(nn.gelu_tanh(x))


@rule("ThresholdedRelu")
def _thresholded(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    kept = im.emit(op.greater(x, im.tensor(np.asarray(attrs.get("alpha", 1.0), im.dtype(x)))))
    return im.emit(op.where(kept, x, im.tensor(np.zeros((), im.dtype(x)))))


@rule("Shrink")
def _shrink(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    lambd, bias, zero = (im.tensor(np.asarray(v, im.dtype(x))) for v in (
        attrs.get("lambd", 0.5), attrs.get("bias", 0.0), 0.0))
    above = im.emit(op.where(im.emit(op.greater(x, lambd)), im.emit(op.subtract(x, bias)), zero))
    below = im.emit(op.less(x, im.emit(op.negative(lambd))))
    return im.emit(op.where(below, im.emit(op.add(x, bias)), above))


@rule("BitShift")
def _bit_shift(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    build = op.left_shift if attrs["direction"] == "LEFT" else op.right_shift
    return im.emit(build(*map(im.tensor, inputs)))


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
    x, scale, zero = [*inputs, None][:3]
    _not_by_blocks(attrs)
    if zero is None:
        wanted = attrs.get("output_dtype", 0)
        zero = np.zeros(im.shape(scale), dtype_of(wanted) if wanted else "uint8")
    attrs.get("output_dtype")  # that of the zero point
    x, scale, zero = map(im.tensor, (x, scale, zero))
    return im.emit(op.quantize(x, scale, zero, attrs.get("axis", 1), im.dtype(zero)))


@rule("DequantizeLinear")
def _dequantize(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, scale, zero = [*inputs, None][:3]
    _not_by_blocks(attrs)
    if zero is None:
        zero = np.zeros(im.shape(scale), im.dtype(x))
    x, scale, zero = map(im.tensor, (x, scale, zero))
    return im.emit(op.dequantize(x, scale, zero, attrs.get("axis", 1), im.dtype(scale)))


def _not_by_blocks(attrs: dict[str, Any]) -> None:
    if attrs.get("block_size", 0):
        raise ValueError("scales of blocks (block_size) are not translated: give a scale for the "
                         "tensor, or one for each slice of an axis")


@rule("Hardmax")
def _hardmax(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """1 at the first of the largest elements, else 0."""
    x = im.tensor(inputs[0])
    axis = attrs.get("axis", -1 if im.opset >= 13 else 1) % im.ndim(x)
    sizes = im.shape(x)
    if im.opset < 13:  # all dimensions from `axis` on are one
        x, axis = im.emit(op.reshape(x, [*sizes[:axis], -1])), axis
    place = im.emit(op.argmax(x, axis, True))
    each = im.emit(op.arange(0, im.shape(x)[axis], 1, "int64"))
    each = im.emit(op.reshape(each, [-1, *[1] * (im.ndim(x) - 1 - axis)]))
    out = im.emit(op.astype(im.emit(op.equal(each, place)), im.dtype(x)))
    return out if im.opset >= 13 else im.emit(op.reshape(out, sizes))

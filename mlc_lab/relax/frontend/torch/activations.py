"""Rules of activations, of dropout, and of what else changes nothing in inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....ir.dtype import is_float
from ... import op
from ...op import nn
from .calling import ADVICE_EVAL
from .importer import Importer, rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from ...expr import Expr
    from .importer import Dims


@rule("dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout", "alpha_dropout",
      "feature_alpha_dropout")
def _dropout(im: Importer, x: Expr, p: float = 0.5, training: bool = True, *,
             train: bool | None = None) -> Any:
    """Nothing in inference; in training every result is drawn by chance."""
    if (training if train is None else train) and p:
        raise ValueError(f"dropout in training draws numbers by chance: {ADVICE_EVAL}")
    return x


@rule("native_dropout")
def _native_dropout(im: Importer, x: Expr, p: float = 0.5, training: bool | None = True, *,
                    train: bool | None = None) -> Any:
    ones = im.full(im.shape(x), True, "bool")
    return _dropout(im, x, p, bool(training), train=train), ones


@rule("stochastic_depth")
def _stochastic_depth(im: Importer, x: Expr, p: float, mode: str, training: bool = True) -> Any:
    """torchvision's: whole samples or batches left out in training."""
    return _dropout(im, x, p, training)


# ------------------------------------------------------------------------------- of one tensor


def _activation(name: str, build: Callable[..., Expr], *others: str) -> None:
    @rule(name, *others)
    def translate(im: Importer, x: Expr) -> Any:
        return im.emit(build(x))


for _name, _build in (("relu", nn.relu), ("silu", nn.silu), ("selu", nn.selu)):
    _activation(_name, _build)


@rule("relu6")
def _relu6(im: Importer, x: Expr) -> Any:
    return _between(im, x, 0, 6)


def _between(im: Importer, x: Expr, low: float, high: float) -> Any:
    dtype = im.dtype(x)
    if dtype == "float32":
        return im.emit(op.clip(x, low, high))
    x = im.emit(op.maximum(x, im.const(low, dtype)))
    return im.emit(op.minimum(x, im.const(high, dtype)))


@rule("gelu")
def _gelu(im: Importer, x: Expr, approximate: str = "none") -> Any:
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu with approximate={approximate!r}: it is 'none' or 'tanh'")
    return im.emit((nn.gelu_tanh if approximate == "tanh" else nn.gelu)(x))


@rule("leaky_relu")
def _leaky_relu(im: Importer, x: Expr, negative_slope: float = 0.01) -> Any:
    return im.emit(nn.leakyrelu(x, negative_slope))


@rule("rrelu")
def _rrelu(im: Importer, x: Expr, lower: float = 1 / 8, upper: float = 1 / 3,
           training: bool = False) -> Any:
    if training:
        raise ValueError(f"rrelu in training draws numbers by chance: {ADVICE_EVAL}")
    return _leaky_relu(im, x, (lower + upper) / 2)


@rule("prelu", "_prelu_kernel")
def _prelu(im: Importer, x: Expr, weight: Expr) -> Any:
    if im.ndim(weight) == 0 or im.ndim(weight) > 1 or im.ndim(x) == 0 or im.same_size(
            im.shape(weight)[0], 1):
        slope = weight
        while im.ndim(slope) > im.ndim(x):
            slope = im.emit(op.squeeze(slope, [0]))
        zero = im.const(0, im.dtype(x))
        return im.emit(op.where(im.emit(op.greater(x, zero)), x,
                                im.emit(op.multiply(slope, x))))
    return im.emit(nn.prelu(x, weight, 1 if im.ndim(x) > 1 else 0))


@rule("softplus")
def _softplus(im: Importer, x: Expr, beta: float = 1, threshold: float = 20) -> Any:
    return im.emit(nn.softplus(x, beta, threshold))


@rule("elu")
def _elu(im: Importer, x: Expr, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
         ) -> Any:
    """scale x above 0, scale alpha (exp(input_scale x) - 1) below."""
    return _grown(im, x, scale, scale * alpha, input_scale)


@rule("celu")
def _celu(im: Importer, x: Expr, alpha: float = 1.0) -> Any:
    return _grown(im, x, 1.0, alpha, 1.0 / alpha)


def _grown(im: Importer, x: Expr, above: float, below: float, inner: float) -> Any:
    dtype = im.dtype(x)
    low = im.emit(op.minimum(x, im.const(0.0, dtype)))
    if inner != 1:
        low = im.emit(op.multiply(low, im.const(inner, dtype)))
    grown = im.emit(op.subtract(im.emit(op.exp(low)), im.const(1.0, dtype)))
    if below != 1:
        grown = im.emit(op.multiply(grown, im.const(below, dtype)))
    straight = x if above == 1 else im.emit(op.multiply(x, im.const(above, dtype)))
    return im.emit(op.where(im.emit(op.greater(x, im.const(0.0, dtype))), straight, grown))


@rule("threshold", "_threshold")
def _threshold(im: Importer, x: Expr, threshold: float, value: float) -> Any:
    dtype = im.dtype(x)
    under = im.emit(op.less_equal(x, im.operand(threshold, dtype)))
    return im.emit(op.where(under, im.operand(value, dtype), x))


@rule("hardtanh")
def _hardtanh(im: Importer, x: Expr, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    return _between(im, x, min_val, max_val)


@rule("hardsigmoid")
def _hardsigmoid(im: Importer, x: Expr) -> Any:
    dtype = im.dtype(x)
    moved = _between(im, im.emit(op.add(x, im.const(3.0, dtype))), 0, 6)
    return im.emit(op.divide(moved, im.const(6.0, dtype)))


@rule("hardswish")
def _hardswish(im: Importer, x: Expr) -> Any:
    return im.emit(op.multiply(x, _hardsigmoid(im, x)))


@rule("hardshrink")
def _hardshrink(im: Importer, x: Expr, lambd: float = 0.5) -> Any:
    dtype = im.dtype(x)
    inside = im.emit(op.less_equal(im.emit(op.abs(x)), im.const(lambd, dtype)))
    return im.emit(op.where(inside, im.const(0, dtype), x))


@rule("softshrink")
def _softshrink(im: Importer, x: Expr, lambd: float = 0.5) -> Any:
    dtype = im.dtype(x)
    by, zero = im.const(lambd, dtype), im.const(0, dtype)
    away = im.emit(op.where(im.emit(op.greater(x, zero)), im.emit(op.subtract(x, by)),
                            im.emit(op.add(x, by))))
    inside = im.emit(op.less_equal(im.emit(op.abs(x)), by))
    return im.emit(op.where(inside, im.emit(op.multiply(x, zero)), away))


@rule("tanhshrink")
def _tanhshrink(im: Importer, x: Expr) -> Any:
    return im.emit(op.subtract(x, im.emit(op.tanh(x))))


@rule("mish")
def _mish(im: Importer, x: Expr) -> Any:
    return im.emit(op.multiply(x, im.emit(op.tanh(im.emit(nn.softplus(x))))))


@rule("logsigmoid", "log_sigmoid")
def _logsigmoid(im: Importer, x: Expr) -> Any:
    """min(x, 0) - log1p(exp(-|x|))"""
    from .importer import RULES

    dtype = im.dtype(x)
    small = im.emit(op.exp(im.emit(op.negative(im.emit(op.abs(x))))))
    return im.emit(op.subtract(im.emit(op.minimum(x, im.const(0, dtype))),
                               RULES["log1p"](im, small)))


@rule("softsign")
def _softsign(im: Importer, x: Expr) -> Any:
    if not is_float(im.dtype(x)):
        x = im.cast(x, "float32")
    one = im.const(1.0, im.dtype(x))
    return im.emit(op.divide(x, im.emit(op.add(im.emit(op.abs(x)), one))))


@rule("glu")
def _glu(im: Importer, x: Expr, dim: int = -1) -> Any:
    dim = im.axis(dim, im.ndim(x))
    size = im.shape(x)[dim]
    if isinstance(size, int) and size % 2:
        raise ValueError(f"glu halves a dimension of {size}: it must be even")
    half = size // 2  # of a symbolic size torch counts on it that it is even
    value, gate = (im.emit(op.strided_slice(x, [dim], [k * half], [(k + 1) * half],
                                            assume_inbound=True)) for k in range(2))
    return im.emit(op.multiply(value, im.emit(op.sigmoid(gate))))


@rule("logit", "special_logit")
def _logit(im: Importer, x: Expr, eps: float | None = None) -> Any:
    from .casting import clamped

    x = x if is_float(im.dtype(x)) else im.cast(x, "float32")
    if eps is not None and eps >= 0:
        x = clamped(im, x, eps, 1 - eps)
    one = im.const(1.0, im.dtype(x))
    return im.emit(op.log(im.emit(op.divide(x, im.emit(op.subtract(one, x))))))


def _along(name: str, build: Callable[..., Expr], largest: bool) -> None:
    """softmax and the like, which may compute in another dtype."""
    from .importer import dtype_name

    @rule(name, f"special_{name}")
    def translate(im: Importer, x: Any, dim: Any = None, dtype: Any = None) -> Any:
        if dim is None:  # torch's choice of old
            dim = 0 if im.ndim(x) in (0, 1, 3) else 1
        return _normalised(im, x, dim, dtype_name(dtype, im.dtype(x)))

    @rule(f"_{name}")
    def inner(im: Importer, x: Expr, dim: int, half_to_float: bool) -> Any:
        return _normalised(im, x, dim, "float32" if half_to_float else im.dtype(x))

    def _normalised(im: Importer, x: Expr, dim: int, dtype: str) -> Any:
        x = im.cast(x, dtype if is_float(dtype) else "float32")
        if im.ndim(x) == 0:
            return im.emit(op.full_like(x, im.const(1.0 if largest else 0.0, im.dtype(x))))
        return im.emit(build(x, im.axis(dim, im.ndim(x))))


_along("softmax", nn.softmax, True)
_along("log_softmax", nn.log_softmax, False)


@rule("softmin")
def _softmin(im: Importer, x: Expr, dim: Dims = None, *, dtype: object = None) -> Any:
    from .importer import RULES

    return RULES["softmax"](im, im.emit(op.negative(x)), dim, dtype=dtype)



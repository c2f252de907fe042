"""Rules of products and convolutions of quantized numbers, exact in int32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ... import op
from ...op import nn
from .importer import RULES, Importer, rule

if TYPE_CHECKING:
    from ...expr import Expr


def _column(im: Importer, x: Expr, after: int, before: int = 0) -> Any:
    """A scale or a zero point of each row or channel, with dimensions of 1 around it."""
    x = im.tensor(x)
    if im.ndim(x) == 0 or im.shape(x) == [1]:
        return im.emit(op.reshape(x, []))
    return im.emit(op.reshape(x, [*[1] * before, -1, *[1] * after])) if im.ndim(x) == 1 else x


def _whole(im: Importer, x: Expr, zero: Expr | None, after: int = 0, before: int = 0) -> Any:
    """x - zero in int32."""
    x = im.emit(op.astype(im.tensor(x), "int32"))
    if zero is None:
        return x
    zero = im.emit(op.astype(_column(im, zero, after, before), "int32"))
    return im.emit(op.subtract(x, zero))


def _scaled(im: Importer, sums: Expr, scales: list[Any], scale: Expr, zero: Expr | None) -> Any:
    """Whole sums times the scales of their factors, in the scale of the result."""
    factor = im.emit(op.multiply(*scales))
    dtype = im.dtype(factor)
    if scale is None:  # of QGemm: the sums are not quantized again
        return im.emit(op.multiply(im.emit(op.astype(sums, dtype)), factor))
    factor = im.emit(op.divide(factor, im.tensor(scale)))
    out = im.emit(op.round(im.emit(op.multiply(im.emit(op.astype(sums, dtype)), factor))))
    kind = im.dtype(zero) if zero is not None else "uint8"
    if zero is not None:
        out = im.emit(op.add(out, im.emit(op.astype(_column(im, zero, 0), dtype))))
    limits = np.iinfo(kind)
    return im.emit(op.astype(im.emit(op.clip(out, int(limits.min), int(limits.max))), kind))


@rule("MatMulInteger")
def _matmul_integer(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    a, b, a_zero, b_zero = [*inputs, None, None][:4]
    return im.emit(op.matmul(_whole(im, a, a_zero, 1), _whole(im, b, b_zero)))


@rule("QLinearMatMul")
def _qlinear_matmul(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = inputs
    sums = im.emit(op.matmul(_whole(im, a, a_zero, 1), _whole(im, b, b_zero)))
    return _scaled(im, sums, [_column(im, a_scale, 1), _column(im, b_scale, 0)], scale, zero)


@rule("QGemm")
def _qgemm(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    a, a_scale, a_zero, b, b_scale, b_zero, c, scale, zero = [*inputs, None, None, None][:9]
    turned = bool(attrs.get("transB", 0))
    x, y = _whole(im, a, a_zero), _whole(im, b, b_zero, int(turned))
    x = im.emit(op.permute_dims(x)) if attrs.get("transA", 0) else x
    y = im.emit(op.permute_dims(y)) if turned else y
    sums = im.emit(op.matmul(x, y))
    if c is not None:
        sums = im.emit(op.add(sums, im.tensor(c)))
    alpha = np.asarray(attrs.get("alpha", 1.0), im.dtype(a_scale))
    first = im.emit(op.multiply(_column(im, a_scale, 0), im.tensor(alpha)))
    return _scaled(im, sums, [first, _column(im, b_scale, 0)], scale, zero)


def _sums(im: Importer, x: Expr, x_zero: Expr | None, w: Expr, w_zero: Expr | None,
          attrs: dict[str, Any]) -> Any:
    """A convolution in int32; what is around the image is the zero point."""
    rank = im.ndim(w) - 2
    return RULES["Conv"](im, [_whole(im, x, x_zero), _whole(im, w, w_zero, rank + 1)], attrs)


@rule("ConvInteger")
def _conv_integer(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, w, x_zero, w_zero = [*inputs, None, None][:4]
    return _sums(im, x, x_zero, w, w_zero, attrs)


@rule("QLinearConv")
def _qlinear_conv(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero, bias = [*inputs, None][:9]
    rank = im.ndim(w) - 2
    sums = _sums(im, x, x_zero, w, w_zero, attrs)
    if bias is not None:
        sums = im.emit(op.add(sums, _column(im, bias, rank, 1)))
    return _scaled(im, sums, [_column(im, x_scale, 0), _column(im, w_scale, rank, 1)], scale, zero)


def _through(name: str, count: int, build: Callable[..., Any]) -> None:
    """An operator of real numbers on quantized ones: inputs, then the result's scale and zero."""
    @rule(name)
    def translate(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
        real = [RULES["DequantizeLinear"](im, inputs[3 * k:3 * k + 3], {}) for k in range(count)]
        out = im.emit(build(attrs, *real))
        return RULES["QuantizeLinear"](im, [out, *inputs[3 * count:]], {})


_through("QLinearAdd", 2, lambda attrs, a, b: op.add(a, b))
_through("QLinearMul", 2, lambda attrs, a, b: op.multiply(a, b))
_through("QLinearSigmoid", 1, lambda attrs, x: op.sigmoid(x))
_through("QLinearLeakyRelu", 1, lambda attrs, x: nn.leakyrelu(x, attrs.get("alpha", 0.01)))

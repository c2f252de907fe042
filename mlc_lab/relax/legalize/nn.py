"""Rows of products, activations, norms, padding, losses, quantisation."""

from __future__ import annotations

from typing import Any

from ... import te, topi
from ...ir import dtype as dt
from ...tir import op as O
from ...tir.expr import IntImm
from ...topi.broadcast import broadcast_shape
from ...topi.reduction import wide_sum
from ...topi.utils import rounded, sum_type
from ..expr import Call, Expr, ExternFunc, PrimValue, Tuple
from .common import attr_row, known, legalize, te_row, widened


@legalize("matmul")
def _matmul(bb: Any, call: Call) -> Expr:
    def matmul(a: Any, b: Any) -> Any:
        dtype = known(call.attrs.out_dtype) or a.dtype
        wide = sum_type(dtype)
        row, column = a.ndim == 1, b.ndim == 1
        left, right = list(a.shape[:-2]), list(b.shape[:-2])
        batch = broadcast_shape(left, right)
        k = te.reduce_axis((0, a.shape[-1]), name="k")
        shape = [*batch, *([] if row else [a.shape[-2]]), *([] if column else [b.shape[-1]])]

        def lead(dims: list, i: Any) -> list:
            at = i[len(batch) - len(dims):len(batch)]
            return [IntImm(d.dtype, 0) if O.is_const_int(d, 1) and not O.is_const_int(s, 1) else x
                    for d, s, x in zip(dims, batch[len(batch) - len(dims):], at)]

        def element(*i: Any) -> Any:
            inner = i[len(batch):]
            x = a(*lead(left, i), *([] if row else [inner[0]]), k)
            y = b(*lead(right, i), k, *([] if column else [inner[-1]]))
            return te.sum(O.cast(x, wide) * O.cast(y, wide), axis=k)

        return rounded(te.compute(shape, lambda *i: element(*i), name="matmul", tag="matmul"),
                       dtype)

    return bb.call_te(matmul, *call.args)


@legalize("outer")
def _outer(bb: Any, call: Call) -> Expr:
    def outer(a: Any, b: Any) -> Any:
        return te.compute((a.shape[0], b.shape[0]), lambda i, j: a(i) * b(j), name="outer",
                          tag="injective")

    return bb.call_te(outer, *call.args)


attr_row("einsum", lambda xs, attrs: topi.einsum(attrs.subscripts, *xs))

for _name in ("relu", "gelu", "gelu_tanh", "silu", "selu"):
    te_row(f"nn.{_name}", getattr(topi.nn, _name))
attr_row("nn.leakyrelu", lambda x, attrs: topi.nn.leaky_relu(x, attrs.alpha), "leaky_relu")
attr_row("nn.softplus", lambda x, attrs: topi.nn.softplus(x, attrs.beta, attrs.threshold))
attr_row("nn.prelu", lambda x, slope, attrs: topi.nn.prelu(x, slope, attrs.axis))
attr_row("nn.softmax", lambda x, attrs: topi.nn.softmax(x, attrs.axis))
attr_row("nn.log_softmax", lambda x, attrs: topi.nn.log_softmax(x, attrs.axis))


def _pad(x: Any, attrs: Any) -> Any:
    before, after = attrs.pad_width[0::2], attrs.pad_width[1::2]
    if attrs.pad_mode == "constant":
        return topi.nn.pad(x, before, after, attrs.pad_value)
    modes = {"reflect": topi.nn.reflect_pad, "replicate": topi.nn.replicate_pad,
             "edge": topi.nn.replicate_pad, "circular": topi.nn.circular_pad}
    if attrs.pad_mode not in modes:
        raise ValueError(f'nn.pad: mode "{attrs.pad_mode}" is none of "constant", '
                         + ", ".join(f'"{m}"' for m in modes))
    return modes[attrs.pad_mode](x, before, after)


attr_row("nn.pad", _pad)


@legalize("nn.pixel_shuffle")
def _pixel_shuffle(bb: Any, call: Call) -> Expr:
    by = call.attrs.upscale_factor

    def pixel_shuffle(x: Any) -> Any:
        lead = x.ndim - 3

        def element(*i: Any) -> Any:
            c, y, z = i[lead:]
            channel = c * (by * by) + O.floormod(y, by) * by + O.floormod(z, by)
            return x(*i[:lead], channel, O.floordiv(y, by), O.floordiv(z, by))

        return te.compute(_shuffled(x, by), element,
                          name="pixel_shuffle", tag="injective")

    return bb.call_te(pixel_shuffle, call.args[0])


def _shuffled(x: Any, by: int) -> list[Any]:
    *rest, c, h, w = x.shape
    return [*rest, O.floordiv(c, by * by), h * by, w * by]


def _batch_norm(x: Any, gamma: Any, beta: Any, mean: Any, var: Any, attrs: Any) -> Any:
    return topi.nn.batch_norm(x, gamma, beta, mean, var, attrs.axis, attrs.epsilon, attrs.center,
                              attrs.scale, attrs.training, attrs.momentum)


attr_row("nn.batch_norm", _batch_norm)


def _scales(gamma: Any, beta: Any, attrs: Any) -> tuple[Any, Any]:
    return (gamma if attrs.scale else None), (beta if attrs.center else None)


attr_row("nn.layer_norm", lambda x, g, b, attrs: topi.nn.layer_norm(
    x, *_scales(g, b, attrs), list(attrs.axes), attrs.epsilon))
attr_row("nn.rms_norm", lambda x, w, attrs: topi.nn.rms_norm(
    x, w, list(attrs.axes), attrs.epsilon))
attr_row("nn.group_norm", lambda x, g, b, attrs: topi.nn.group_norm(
    x, *_scales(g, b, attrs), attrs.num_groups, attrs.channel_axis, list(attrs.axes),
    attrs.epsilon))
attr_row("nn.instance_norm", lambda x, g, b, attrs: topi.nn.instance_norm(
    x, *_scales(g, b, attrs), attrs.channel_axis, list(attrs.axes), attrs.epsilon))


@legalize("nn.dropout")
def _dropout(bb: Any, call: Call) -> Expr:
    """In inference nothing is dropped: the data, and a mask of ones."""
    from ..op.create import ones_like

    return Tuple([call.args[0], bb.emit(ones_like(call.args[0]))])


@legalize("nn.cross_entropy_with_logits")
def _cross_entropy(bb: Any, call: Call) -> Expr:
    def cross_entropy_with_logits(predictions: Any, labels: Any) -> Any:
        dtype, wide = predictions.dtype, sum_type(predictions.dtype)
        total = wide_sum(topi.multiply(widened(predictions), widened(labels)))
        batch = predictions.shape[0] if predictions.ndim > 1 else IntImm("int64", 1)
        by = O.const(0, wide) - O.cast(batch, wide)
        return rounded(topi.divide(total, by), dtype)

    return bb.call_te(cross_entropy_with_logits, *call.args)


@legalize("nn.nll_loss")
def _nll_loss(bb: Any, call: Call) -> Expr:
    def nll_loss(predictions: Any, targets: Any, weights: Any = None) -> Any:
        if weights is None:
            classes = predictions.shape[0 if predictions.ndim == 1 else 1]
            weights = topi.full((classes,), predictions.dtype, 1.0)
        return topi.nn.nll_loss(predictions, targets, weights, call.attrs.reduction,
                                call.attrs.ignore_index)

    predictions, targets, *rest = call.args
    classes = predictions.struct_info.dims[0 if predictions.struct_info.ndim == 1 else 1]
    checked = Call(ExternFunc("relax.run.checked_targets"), (
        targets, PrimValue(classes), PrimValue(IntImm("int64", call.attrs.ignore_index))), None,
        [targets.struct_info])
    return bb.call_te(nll_loss, predictions, bb.emit(checked), *rest)


def _along(x: Any, i: Any, k: int) -> Any:
    """The element of a scale or zero point (one, or one for each index of axis k)."""
    return x(*([] if x.ndim == 0 else [O.const(0, i[k].dtype) if O.is_const_int(
        x.shape[0], 1) else i[k]]))


@legalize("quantize")
def _quantize(bb: Any, call: Call) -> Expr:
    def quantize(x: Any, scale: Any, zero: Any) -> Any:
        dtype, k = call.attrs.out_dtype, call.attrs.axis % max(x.ndim, 1)
        least, most = O.min_value(dtype), O.max_value(dtype)
        low, high = (O.cast(v, "float32") for v in (least, most))

        def element(*i: Any) -> Any:
            value = O.round(O.cast(x(*i), "float32") / O.cast(_along(scale, i, k), "float32"))
            value = value + O.cast(_along(zero, i, k), "float32")
            inside = O.cast(O.max_value_of(O.min_value_of(value, high), low), dtype)
            # the largest number of 32 bits is none of a float: `high` is one more
            return O.select(O.greater_equal(value, high), most, inside) if dt.bits_of(
                dtype) >= 32 else inside

        return te.compute(x.shape, element, name="quantized", tag="elemwise")

    return bb.call_te(quantize, *call.args)


@legalize("dequantize")
def _dequantize(bb: Any, call: Call) -> Expr:
    def dequantize(x: Any, scale: Any, zero: Any) -> Any:
        dtype, k = call.attrs.out_dtype, call.attrs.axis % max(x.ndim, 1)

        def element(*i: Any) -> Any:
            away = O.cast(x(*i), "float32") - O.cast(_along(zero, i, k), "float32")
            return O.cast(away * O.cast(_along(scale, i, k), "float32"), dtype)

        return te.compute(x.shape, element, name="dequantized", tag="elemwise")

    return bb.call_te(dequantize, *call.args)

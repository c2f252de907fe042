"""Rules of layers: products, convolutions, pooling, norms, resizing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .... import topi
from ... import op
from ...op import nn
from ...op.conv import CONVS, CONVS_TRANSPOSED
from ...op.pool import ADAPTIVE_AVG_POOLS, AVG_POOLS
from ..common import ceil_pool
from .importer import Importer, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...expr import Expr


@rule("MatMul")
def _matmul(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return im.emit(op.matmul(*map(im.tensor, inputs)))


@rule("Gemm")
def _gemm(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    a, b = map(im.tensor, inputs[:2])
    if attrs.get("transA"):
        a = im.emit(op.permute_dims(a))
    if attrs.get("transB"):
        b = im.emit(op.permute_dims(b))
    out = im.emit(op.matmul(a, b))
    alpha, beta = attrs.get("alpha", 1.0), attrs.get("beta", 1.0)
    if alpha != 1.0:
        out = im.emit(op.multiply(out, alpha))
    if len(inputs) < 3 or inputs[2] is None:
        return out
    c = im.tensor(inputs[2])
    if beta != 1.0:
        c = im.emit(op.multiply(c, beta))
    return im.emit(op.add(out, c))


@rule("Einsum")
def _einsum(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return im.emit(op.einsum([im.tensor(x) for x in inputs], attrs["equation"]))


def widths_around(im: Importer, x: Expr, attrs: dict[str, Any], kernel: list[int],
                  strides: list[int], dilations: list[int]) -> list[int]:
    """Padding before all dimensions, then after."""
    auto = attrs.get("auto_pad", "NOTSET")
    rank = len(kernel)
    pads = attrs.get("pads", [0] * (2 * rank))  # auto_pad goes before them
    if auto in ("NOTSET", ""):
        return list(pads)
    if auto == "VALID":
        return [0] * (2 * rank)
    before, after = [], []
    for size, k, s, d in zip(im.shape(x)[2:], kernel, strides, dilations):
        if s == 1:  # whatever the size is
            whole = (k - 1) * d
        elif isinstance(size, int):
            whole = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        else:
            raise ValueError(f"auto_pad {auto} with stride {s} along a dimension of size {size}, "
                             "which is not known: give pads, or its size in shape_dict")
        small, large = whole // 2, whole - whole // 2
        before.append(small if auto == "SAME_UPPER" else large)
        after.append(large if auto == "SAME_UPPER" else small)
    return before + after


def _bias(im: Importer, out: Expr, inputs: list[Any], rank: int) -> Any:
    if len(inputs) < 3 or inputs[2] is None:
        return out
    bias = inputs[2]
    if isinstance(bias, np.ndarray) and not im.keep:
        shaped = im.tensor(bias.reshape([1, -1, *[1] * rank]))
    else:
        shaped = im.emit(op.reshape(im.tensor(bias), [1, -1, *[1] * rank]))
    return im.emit(op.add(out, shaped))


@rule("Conv")
def _conv(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, w = map(im.tensor, inputs[:2])
    rank = im.ndim(w) - 2
    kernel = attrs.get("kernel_shape") or im.shape(w)[2:]
    strides, dilations = (attrs.get(n, [1] * rank) for n in ("strides", "dilations"))
    pads = widths_around(im, x, attrs, kernel, strides, dilations)
    out = im.emit(CONVS[rank](x, w, strides, pads, dilations, attrs.get("group", 1)))
    return _bias(im, out, inputs, rank)


@rule("ConvTranspose")
def _conv_transpose(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, w = map(im.tensor, inputs[:2])
    rank = im.ndim(w) - 2
    strides, dilations = (attrs.get(n, [1] * rank) for n in ("strides", "dilations"))
    groups, extra = attrs.get("group", 1), list(attrs.get("output_padding", [0] * rank))
    pads = _transposed_widths(im, x, attrs, im.shape(w)[2:], strides, dilations, extra)
    out = im.emit(CONVS_TRANSPOSED[rank](
        x, w, strides, [max(p, 0) for p in pads], extra, dilations, groups))
    if min(pads) < 0:  # the result is to be larger than what the kernel reaches: zeros around it
        around = [0, 0, 0, 0]
        for k in range(rank):
            around += [max(-pads[k], 0), max(-pads[k + rank], 0)]
        out = im.emit(nn.pad(out, around, "constant", 0.0))
    return _bias(im, out, inputs, rank)


def _transposed_widths(im: Importer, x: Expr, attrs: dict[str, Any], kernel: list[int],
                       strides: list[int], dilations: list[int], extra: list[int]) -> list[int]:
    """What is cut off before all dimensions of a transposed convolution, then after.

    An output_shape, or auto_pad SAME (the size of x times the stride), says how much in all; the
    odd one is cut off behind with SAME_UPPER, else before. Negative widths add.
    """
    auto, rank = attrs.get("auto_pad", "NOTSET"), len(strides)
    same = auto in ("SAME_UPPER", "SAME_LOWER")
    pads = attrs.get("pads", [0] * (2 * rank))
    if "output_shape" not in attrs and not same:
        return [0] * (2 * rank) if auto == "VALID" else list(pads)
    before, after = [], []
    sizes = im.shape(x)[2:]
    for k, (size, s) in enumerate(zip(sizes, strides)):
        whole = (kernel[k] - 1) * dilations[k] + 1 + extra[k] - s
        if "output_shape" in attrs:
            wanted = attrs["output_shape"][k - rank]  # some exporters give N and C too
            if not isinstance(size, int):
                raise ValueError(f"output_shape {wanted} along a dimension of size {size}, which "
                                 "is not known: give pads, or its size in shape_dict")
            whole += size * s - wanted
        half = whole // 2
        before.append(half if auto == "SAME_UPPER" else whole - half)
        after.append(whole - half if auto == "SAME_UPPER" else half)
    return before + after


def pooled(im: Importer, inputs: list[Any], attrs: dict[str, Any],
           pools: dict[int, Callable[..., Expr]]) -> Any:
    x = im.tensor(inputs[0])
    kernel = attrs["kernel_shape"]
    rank = len(kernel)
    strides, dilations = (attrs.get(n, [1] * rank) for n in ("strides", "dilations"))
    pads = widths_around(im, x, attrs, kernel, strides, dilations)
    build = pools[rank]
    include = bool(attrs.get("count_include_pad", 0))
    if not attrs.get("ceil_mode", 0):
        return im.emit(build(x, kernel, strides, pads, dilations, False, include))
    if include and any(d != 1 for d in dilations):
        raise ValueError("ceil_mode with count_include_pad and dilations is not translated: give "
                         "pads for which the windows fit, and no ceil_mode")
    return ceil_pool(im, build, x, kernel, strides, pads, dilations, include)


@rule("AveragePool")
def _average_pool(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return pooled(im, inputs, attrs, AVG_POOLS)


@rule("GlobalAveragePool")
def _global_average(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    rank = im.ndim(x) - 2
    return im.emit(ADAPTIVE_AVG_POOLS[rank](x, [1] * rank))


@rule("GlobalMaxPool")
def _global_max(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    return im.emit(op.max(x, list(range(2, im.ndim(x))), True))


@rule("BatchNormalization")
def _batch_norm(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    if attrs.get("training_mode", 0):
        raise ValueError("BatchNormalization in training changes its running statistics, which is "
                         "not translated: export the model for inference")
    x, scale, bias, mean, var = map(im.tensor, inputs[:5])
    out = im.emit(nn.batch_norm(x, scale, bias, mean, var, 1, attrs.get("epsilon", 1e-5),
                                training=False))
    return [im.emit(out[0])]


@rule("InstanceNormalization")
def _instance_norm(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, scale, bias = map(im.tensor, inputs)
    return im.emit(nn.instance_norm(x, scale, bias, 1, list(range(2, im.ndim(x))),
                                    attrs.get("epsilon", 1e-5)))


@rule("GroupNormalization")
def _group_norm(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, scale, bias = map(im.tensor, inputs)
    groups = attrs["num_groups"]
    channels = im.shape(x)[1]
    if im.shape(scale)[0] != channels:  # before version 21: one for each group
        scale, bias = (im.emit(op.repeat(t, channels // groups, 0)) for t in (scale, bias))
    return im.emit(nn.group_norm(x, scale, bias, groups, 1, list(range(2, im.ndim(x))),
                                 attrs.get("epsilon", 1e-5)))


def _filled(im: Importer, sizes: list[Any], dtype: str, value: float) -> Any:
    return im.emit(op.full(sizes, im.tensor(np.asarray(value, dtype)), dtype))


@rule("LayerNormalization")
def _layer_norm(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, scale = map(im.tensor, inputs[:2])
    axis = attrs.get("axis", -1) % im.ndim(x)
    axes = list(range(axis, im.ndim(x)))
    sizes = im.shape(x)[axis:]
    if im.shape(scale) != sizes:
        scale = im.emit(op.broadcast_to(scale, sizes))
    bias = im.tensor(inputs[2]) if len(inputs) > 2 and inputs[2] is not None else _filled(
        im, sizes, im.dtype(x), 0.0)
    if im.shape(bias) != sizes:
        bias = im.emit(op.broadcast_to(bias, sizes))
    epsilon = attrs.get("epsilon", 1e-5)
    out = [im.emit(nn.layer_norm(x, scale, bias, axes, epsilon))]
    if im.outputs < 2:
        return out
    wide = x if im.dtype(x) == "float32" else im.emit(op.astype(x, "float32"))
    mean = im.emit(op.mean(wide, axes, True))
    apart = im.emit(op.subtract(wide, mean))
    spread = im.emit(op.mean(im.emit(op.multiply(apart, apart)), axes, True))
    return [*out, mean, im.emit(op.rsqrt(im.emit(op.add(spread, epsilon))))]


@rule("RMSNormalization", "SimplifiedLayerNormalization")
def _rms_norm(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, scale = map(im.tensor, inputs[:2])
    axis = attrs.get("axis", -1) % im.ndim(x)
    return im.emit(nn.rms_norm(x, scale, list(range(axis, im.ndim(x))),
                               attrs.get("epsilon", 1e-5)))


@rule("LpNormalization")
def _lp_norm(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, axis = im.tensor(inputs[0]), attrs.get("axis", -1)
    if attrs.get("p", 2) == 1:
        size = im.emit(op.sum(im.emit(op.abs(x)), axis, True))
    else:
        size = im.emit(op.sqrt(im.emit(op.sum(im.emit(op.multiply(x, x)), axis, True))))
    zero = im.tensor(np.zeros((), im.dtype(x)))  # what is all zeros stays
    return im.emit(op.where(im.emit(op.equal(size, zero)), zero, im.emit(op.divide(x, size))))


_SAMPLING = {"linear": "bilinear", "cubic": "bicubic"}


@rule("GridSample")
def _grid_sample(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    given = str(attrs.get("mode", "linear"))
    mode, around = _SAMPLING.get(given, given), attrs.get("padding_mode", "zeros")
    align = bool(attrs.get("align_corners", 0))
    x, grid = map(im.tensor, inputs)
    if mode == "bicubic" and around == "border":
        grid = _at_border(im, x, grid, align)
    return im.builder.emit_te(
        lambda x, grid: topi.sampling.grid_sample(x, grid, mode, around, align),
        x, grid, primfunc_name_hint="grid_sample")


def _at_border(im: Importer, x: Expr, grid: Expr, align: bool) -> Any:
    """Places outside of the image moved to the middle of the pixel at its border, as ONNX says,
    and torch does not, of cubic interpolation."""
    sizes = im.shape(x)[:1:-1]
    if not all(isinstance(s, int) for s in sizes):
        raise ValueError(f"cubic GridSample with padding_mode border of an image of size {sizes}: "
                         "give its sizes in shape_dict")
    last = np.array([1 if align else 1 - 1 / s for s in sizes], im.dtype(grid))
    inner = im.emit(op.minimum(im.emit(op.maximum(grid, im.tensor(-last))), im.tensor(last)))
    outside = im.emit(op.greater(im.emit(op.abs(grid)), im.tensor(np.ones(1, last.dtype))))
    return im.emit(op.where(outside, inner, grid))

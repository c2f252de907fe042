"""References in numpy: convolutions, poolings, norms and losses, in any number of dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...topi.nn.conv import pad_widths
from .arrays import dilate_python

#: one size for each dimension, or one for all
Sizes = int | Sequence[int]
#: a dimension or several; None: all
Axes = int | Sequence[int] | None


def _each(value: Sizes, count: int) -> list[int]:
    return [value] * count if isinstance(value, int) else list(value)


def _convolved(a: np.ndarray, w: np.ndarray, stride: Sizes, padding: Sizes, dilation: Sizes = 1,
               groups: int = 1) -> np.ndarray:
    """a (N, C, ...) and w (O, C / groups, ...), as sums over the places of the kernel."""
    count = a.ndim - 2
    stride, dilation = _each(stride, count), _each(dilation, count)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    a = np.pad(a, [(0, 0), (0, 0), *zip(*pad_widths("convolution", padding, reach))])
    size = [(n - r) // s + 1 for n, r, s in zip(a.shape[2:], reach, stride)]
    parts = []
    for part, kernel in zip(np.split(a, groups, 1), np.split(w, groups, 0)):
        out = np.zeros((a.shape[0], kernel.shape[0], *size), np.result_type(a, w))
        for at in np.ndindex(*kernel.shape[2:]):
            seen = part[(..., *(slice(i * d, i * d + (n - 1) * s + 1, s)
                                for i, d, n, s in zip(at, dilation, size, stride)))]
            out += np.einsum("nc...,oc->no...", seen, kernel[(..., *at)])
        parts.append(out)
    return np.concatenate(parts, 1)


def _transposed(a: np.ndarray, w: np.ndarray, stride: Sizes, padding: Sizes, output_padding: Sizes,
                groups: int = 1) -> np.ndarray:
    """a (N, C, ...) and w (C, O / groups, ...): a convolution of the input, set apart."""
    count = a.ndim - 2
    before, after = pad_widths("convolution", padding, w.shape[2:])
    extra = _each(output_padding, count)
    apart = dilate_python(a, [1, 1, *_each(stride, count)])
    wide = [(0, 0), (0, 0)]
    cut: list[Any] = [slice(None), slice(None)]
    for axis in range(count):
        reach = w.shape[2 + axis] - 1
        ends = reach - before[axis], reach - after[axis] + extra[axis]
        wide.append((max(ends[0], 0), max(ends[1], 0)))
        cut.append(slice(max(-ends[0], 0), apart.shape[2 + axis] - max(-ends[1], 0)))
    apart = np.pad(apart[tuple(cut)], wide)
    flipped = np.flip(w, tuple(range(2, w.ndim)))
    kernels = [k.swapaxes(0, 1) for k in np.split(flipped, groups, 0)]
    return _convolved(apart, np.concatenate(kernels, 0), 1, 0, groups=groups)


def conv1d_ncw_python(a_np: np.ndarray, w_np: np.ndarray, stride: Sizes, padding: Sizes,
                      dilation: Sizes) -> np.ndarray:
    """A convolution of (N, C, W) and (O, I, W)."""
    return _convolved(a_np, w_np, stride, padding, dilation)


def group_conv1d_ncw_python(a_np: np.ndarray, w_np: np.ndarray, stride: Sizes, padding: Sizes,
                            dilation: Sizes, groups: int) -> np.ndarray:
    """conv1d_ncw in groups of channels."""
    return _convolved(a_np, w_np, stride, padding, dilation, groups)


def conv2d_nchw_python(a_np: np.ndarray, w_np: np.ndarray, stride: Sizes, padding: Sizes,
                       groups: int = 1) -> np.ndarray:
    """A convolution of (N, C, H, W) and (O, I, H, W)."""
    return _convolved(a_np, w_np, stride, padding, 1, groups)


def conv2d_nhwc_python(a_np: np.ndarray, w_np: np.ndarray, stride: Sizes, padding: Sizes,
                       groups: int = 1) -> np.ndarray:
    """A convolution of (N, H, W, C) and (H, W, I, O)."""
    return _convolved(a_np.transpose(0, 3, 1, 2), w_np.transpose(3, 2, 0, 1), stride, padding, 1,
                      groups).transpose(0, 2, 3, 1)


def conv2d_hwcn_python(a_np: np.ndarray, w_np: np.ndarray, stride: Sizes, padding: Sizes
                       ) -> np.ndarray:
    """A convolution of (H, W, C, N) and (H, W, I, O)."""
    return _convolved(a_np.transpose(3, 2, 0, 1), w_np.transpose(3, 2, 0, 1), stride,
                      padding).transpose(2, 3, 1, 0)


def conv3d_ncdhw_python(a_np: np.ndarray, w_np: np.ndarray, stride: Sizes, padding: Sizes,
                        groups: int = 1) -> np.ndarray:
    """A convolution of (N, C, D, H, W) and (O, I, D, H, W)."""
    return _convolved(a_np, w_np, stride, padding, 1, groups)


def conv3d_ndhwc_python(a_np: np.ndarray, w_np: np.ndarray, stride: Sizes, padding: Sizes,
                        groups: int = 1) -> np.ndarray:
    """A convolution of (N, D, H, W, C) and (D, H, W, I, O)."""
    return _convolved(a_np.transpose(0, 4, 1, 2, 3), w_np.transpose(4, 3, 0, 1, 2), stride, padding,
                      1, groups).transpose(0, 2, 3, 4, 1)


def depthwise_conv2d_python_nchw(input_np: np.ndarray, filter_np: np.ndarray, stride: Sizes,
                                 padding: Sizes) -> np.ndarray:
    """Each channel of (N, C, H, W) by its own kernels, (C, multiplier, H, W)."""
    c, m, h, w = filter_np.shape
    return _convolved(input_np, filter_np.reshape(c * m, 1, h, w), stride, padding, 1, c)


def depthwise_conv2d_python_nhwc(input_np: np.ndarray, filter_np: np.ndarray, stride: Sizes,
                                 padding: Sizes) -> np.ndarray:
    """Each channel of (N, H, W, C) by its own kernels, (H, W, C, multiplier)."""
    return depthwise_conv2d_python_nchw(
        input_np.transpose(0, 3, 1, 2), filter_np.transpose(2, 3, 0, 1), stride,
        padding).transpose(0, 2, 3, 1)


def conv1d_transpose_ncw_python(a_np: np.ndarray, w_np: np.ndarray, stride: Sizes, padding: Sizes,
                                output_padding: Sizes) -> np.ndarray:
    """A transposed convolution of (N, C, W) and (I, O, W)."""
    return _transposed(a_np, w_np, stride, padding, output_padding)


def group_conv1d_transpose_ncw_python(a_np: np.ndarray, w_np: np.ndarray, stride: Sizes,
                                      padding: Sizes, output_padding: Sizes, groups: int = 1
                                      ) -> np.ndarray:
    """conv1d_transpose_ncw in groups of channels."""
    return _transposed(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nchw_python(a_np: np.ndarray, w_np: np.ndarray, stride: Sizes, padding: Sizes,
                                 output_padding: Sizes, groups: int = 1) -> np.ndarray:
    """A transposed convolution of (N, C, H, W) and (I, O, H, W)."""
    return _transposed(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nhwc_python(a_nhwc: np.ndarray, weight: np.ndarray, weight_format: str,
                                 stride: Sizes, padding: Sizes, output_padding: Sizes = (0, 0)
                                 ) -> np.ndarray:
    """A transposed convolution of (N, H, W, C); `weight_format` is HWIO, HWOI, OIHW or IOHW."""
    if sorted(weight_format) != sorted("IOHW"):
        raise ValueError(f"weight_format is HWIO, HWOI, OIHW or IOHW, not {weight_format!r}")
    kernel = weight.transpose([weight_format.index(axis) for axis in "IOHW"])
    return _transposed(a_nhwc.transpose(0, 3, 1, 2), kernel, stride, padding,
                       output_padding).transpose(0, 2, 3, 1)


def conv3d_transpose_ncdhw_python(a_np: np.ndarray, w_np: np.ndarray, stride: Sizes, padding: Sizes,
                                  output_padding: Sizes = 0) -> np.ndarray:
    """A transposed convolution of (N, C, D, H, W) and (I, O, D, H, W)."""
    return _transposed(a_np, w_np, stride, padding, output_padding)


def dense(x: np.ndarray, y: np.ndarray, bias: np.ndarray | None, use_bias: bool = False,
          use_relu: bool = False, out_dtype: str | None = None) -> np.ndarray:
    """x (M, K) times y (N, K) transposed."""
    dtype = out_dtype or x.dtype
    out = x.astype(dtype) @ y.T.astype(dtype)
    out = out + bias if use_bias else out
    return np.maximum(out, 0) if use_relu else out


def batch_matmul(x: np.ndarray, y: np.ndarray, out_dtype: str | None = None, trans_x: bool = False,
                 trans_y: bool = True) -> np.ndarray:
    """A product for each of the batch; a batch of one is for all."""
    dtype = out_dtype or x.dtype
    x, y = x.astype(dtype), y.astype(dtype)
    return (x.swapaxes(1, 2) if trans_x else x) @ (y.swapaxes(1, 2) if trans_y else y)


def _channels_first(layout: str | None, ndim: int) -> tuple[list[int], list[int]]:
    """How to put the channels of a layout second, and back."""
    last = layout is not None and layout.endswith("C")
    order = [0, ndim - 1, *range(1, ndim - 1)] if last else list(range(ndim))
    return order, [int(i) for i in np.argsort(order)]


def poolnd_python(np_data: np.ndarray, kernel: Sequence[int], strides: Sequence[int],
                  dilation: Sequence[int], padding_before: Sequence[int],
                  padding_after: Sequence[int], pool_type: str, count_include_pad: bool = True,
                  ceil_mode: bool = False, dtype: str = "float32", layout: str | None = None
                  ) -> np.ndarray:
    """Windows of the space of (N, C, ...), or of `layout`: "avg" or "max" of each."""
    order, back = _channels_first(layout, np_data.ndim)
    data = np_data.transpose(order)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    rounded = math.ceil if ceil_mode else math.floor
    size = [rounded((n + b + e - r) / s) + 1 for n, b, e, r, s in zip(
        data.shape[2:], padding_before, padding_after, reach, strides)]
    # the last window may reach beyond the padding, where there is nothing
    wide = [(b, max(e, (n - 1) * s + r - b - given)) for b, e, n, s, r, given in zip(
        padding_before, padding_after, size, strides, reach, data.shape[2:])]
    low = (np.iinfo if np.dtype(dtype).kind in "iu" else np.finfo)(dtype).min
    values = np.pad(data.astype(dtype), [(0, 0), (0, 0), *wide],
                    constant_values=low if pool_type == "max" else 0)
    inside = np.pad(np.ones(data.shape[2:]), wide)
    if count_include_pad:
        padded = [(b, e) for b, e in zip(padding_before, padding_after)]
        inside = np.pad(np.pad(np.ones(data.shape[2:]), padded, constant_values=1),
                        [(0, w[1] - e) for w, e in zip(wide, padding_after)])
    out = np.zeros((*data.shape[:2], *size), dtype)
    for at in np.ndindex(*size):
        window = tuple(slice(i * s, i * s + r, d) for i, s, r, d in zip(
            at, strides, reach, dilation))
        seen = values[(..., *window)].reshape(*data.shape[:2], -1)
        if pool_type == "max":
            out[(..., *at)] = seen.max(-1)
        elif pool_type == "avg":
            out[(..., *at)] = seen.sum(-1) / max(inside[window].sum(), 1)
        else:
            raise ValueError(f'pool_type is "avg" or "max", not {pool_type!r}')
    return out.transpose(back)


def adaptive_pool(np_data: np.ndarray, out_size: Sizes, pool_type: str, layout: str) -> np.ndarray:
    """As many windows as the result has elements, of about the same size."""
    order, back = _channels_first(layout, np_data.ndim)
    data = np_data.transpose(order)
    size = _each(out_size, 1)
    out = np.zeros((*data.shape[:2], *size), data.dtype)
    for at in np.ndindex(*size):
        window = tuple(slice(i * n // s, -(-(i + 1) * n // s)) for i, n, s in zip(
            at, data.shape[2:], size))
        seen = data[(..., *window)].reshape(*data.shape[:2], -1)
        out[(..., *at)] = seen.mean(-1) if pool_type == "avg" else seen.max(-1)
    return out.transpose(back)


def softmax_python(a_np: np.ndarray, axis: int = 1) -> np.ndarray:
    """exp(a) over its sum along an axis."""
    power = np.exp(a_np - a_np.max(axis, keepdims=True))
    return power / power.sum(axis, keepdims=True)


def log_softmax_python(a_np: np.ndarray, axis: int = 1) -> np.ndarray:
    """The logarithm of softmax."""
    below = a_np - a_np.max(axis, keepdims=True)
    return below - np.log(np.exp(below).sum(axis, keepdims=True))


def lrn_python(a_np: np.ndarray, size: int, axis: int, bias: float, alpha: float, beta: float
               ) -> np.ndarray:
    """a over (bias + alpha / size * squares of its neighbours along an axis) ** beta."""
    squares, radius = np.square(np.moveaxis(a_np, axis, 0)), size // 2
    near = np.stack([squares[max(i - radius, 0):i + radius + 1].sum(0)
                     for i in range(len(squares))])
    return (a_np / np.power(bias + alpha / size * np.moveaxis(near, 0, axis), beta)).astype(
        a_np.dtype)


def l2_normalize_python(a_np: np.ndarray, eps: float, axis: Axes = None) -> np.ndarray:
    """a over the root of the sum of its squares, of eps at least."""
    axis = tuple(axis) if isinstance(axis, list) else axis
    return a_np / np.sqrt(np.maximum(np.square(a_np).sum(axis, keepdims=True), eps))


def _normal(data: np.ndarray, axis: Axes, epsilon: float) -> np.ndarray:
    axis = tuple(axis) if isinstance(axis, list) else axis
    wide = data.astype(np.promote_types(data.dtype, "float32"))
    mean, var = wide.mean(axis, keepdims=True), wide.var(axis, keepdims=True)
    return ((wide - mean) / np.sqrt(var + epsilon)).astype(data.dtype)


def layer_norm_python(data: np.ndarray, gamma: np.ndarray, beta: np.ndarray | None, axis: Axes,
                      epsilon: float = 1e-5) -> np.ndarray:
    """Mean 0 and variance 1 over axes, then gamma and beta."""
    out = _normal(data, axis, epsilon) * gamma
    return out if beta is None else out + beta


#: the same over the axes of space: gamma and beta are given in a shape that fits
instance_norm_python = layer_norm_python


def group_norm_python(data: np.ndarray, gamma: np.ndarray, beta: np.ndarray | None, num_groups: int,
                      channel_axis: int, axes: Sequence[int], epsilon: float = 1e-5) -> np.ndarray:
    """Mean 0 and variance 1 over each group of channels, then gamma and beta of each channel."""
    shape = list(data.shape)
    shape[channel_axis:channel_axis + 1] = [num_groups, data.shape[channel_axis] // num_groups]
    over = (channel_axis + 1, *(a if a < channel_axis else a + 1 for a in axes))
    out = _normal(data.reshape(shape), over, epsilon).reshape(data.shape)
    row = [-1 if a == channel_axis else 1 for a in range(data.ndim)]
    out = out * gamma.reshape(row)
    return out if beta is None else out + beta.reshape(row)


def rms_norm_python(data: np.ndarray, weight: np.ndarray, axis: Axes, epsilon: float = 1e-5
                    ) -> np.ndarray:
    """data times weight over the root of its mean square."""
    axis = tuple(axis) if isinstance(axis, list) else axis
    wide = data.astype(np.promote_types(data.dtype, "float32"))
    mean = np.square(wide).mean(axis, keepdims=True)
    return (wide * weight / np.sqrt(mean + epsilon)).astype(data.dtype)


def batch_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, moving_mean: np.ndarray,
               moving_var: np.ndarray, axis: int, epsilon: float, center: bool, scale: bool,
               training: bool, momentum: float) -> list[np.ndarray]:
    """The result, and the moving mean and variance after it."""
    row = [-1 if a == axis % x.ndim else 1 for a in range(x.ndim)]
    mean, var = moving_mean, moving_var
    if training:
        others = tuple(a for a in range(x.ndim) if a != axis % x.ndim)
        mean, var = x.mean(others), x.var(others)
        moving_mean = (1 - momentum) * moving_mean + momentum * mean
        moving_var = (1 - momentum) * moving_var + momentum * var
    out = (x - mean.reshape(row)) / np.sqrt(var.reshape(row) + epsilon)
    out = out * gamma.reshape(row) if scale else out
    return [out + beta.reshape(row) if center else out, moving_mean, moving_var]


def nll_loss(predictions: np.ndarray, targets: np.ndarray, weights: np.ndarray,
             reduction: str = "mean", ignore_index: int = -100) -> Any:
    """Minus the prediction of each target times its weight; the mean is over the weights."""
    used = targets != ignore_index
    known = np.where(used, targets, 0)
    weight = np.where(used, weights[known], 0)
    loss = -np.take_along_axis(predictions, np.expand_dims(known, 1), 1).squeeze(1) * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return loss.sum() if reduction == "sum" else loss


__all__ = [
    "adaptive_pool", "batch_matmul", "batch_norm", "conv1d_ncw_python",
    "conv1d_transpose_ncw_python", "conv2d_hwcn_python", "conv2d_nchw_python", "conv2d_nhwc_python",
    "conv2d_transpose_nchw_python", "conv2d_transpose_nhwc_python", "conv3d_ncdhw_python",
    "conv3d_ndhwc_python", "conv3d_transpose_ncdhw_python", "dense", "depthwise_conv2d_python_nchw",
    "depthwise_conv2d_python_nhwc", "group_conv1d_ncw_python", "group_conv1d_transpose_ncw_python",
    "group_norm_python", "instance_norm_python", "l2_normalize_python", "layer_norm_python",
    "log_softmax_python", "lrn_python", "nll_loss", "poolnd_python", "rms_norm_python",
    "softmax_python",
]

"""Operators of networks for random graphs, as rows of `graph_ops`: products, norms, convolutions.

Weights are constants of small whole numbers, so that sums are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc_lab import relax
from mlc_lab.relax import op as R

from .graph_ops import Pool, Value, any_axis, as_int, row
from .harness import Draw


def weights(draw: Draw, shape: tuple[int, ...], dtype: Any) -> Any:
    """A constant's array."""
    rng = np.random.default_rng(draw.integer(0, 99))
    return rng.integers(-2, 3, shape).astype(dtype)


@row("matmul", exact=True, often=4)
def _matmul(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.ndim < 1 or not (x.floats or x.array.dtype in ("int32", "int64")) or x.ndim > 3:
        return None
    inner = x.var.struct_info.dims[-1]
    n = as_int(inner)
    if n is None or n == 0:
        return None
    found = [v for v in pool if v.array.dtype == x.array.dtype and v.ndim == 2
             and as_int(v.var.struct_info.dims[0]) == n]
    if found and draw.chance(60):
        y = draw.choice(found)
        return R.matmul(x.var, y.var), np.matmul(x.array, y.array), y.exact
    width = draw.integer(1, 5)
    weight = weights(draw, (n, width), x.array.dtype)
    if draw.chance(40):
        other = relax.const(np.ascontiguousarray(weight.T))
        return R.matmul(x.var, R.permute_dims(other)), np.matmul(x.array, weight)
    return R.matmul(x.var, relax.const(weight)), np.matmul(x.array, weight)


@row("softmax", often=2)
def _softmax(draw: Draw, x: Value, pool: Pool) -> Any:
    if not x.floats or x.ndim == 0 or x.array.size == 0:
        return None
    axis = any_axis(draw, x)
    shifted = x.array - x.array.max(axis, keepdims=True)
    e = np.exp(shifted)
    total = e.sum(axis, keepdims=True)
    if draw.chance(30):
        return R.nn.log_softmax(x.var, axis), shifted - np.log(total)
    return R.nn.softmax(x.var, axis), e / total


@row("layer_norm", often=2)
def _layer_norm(draw: Draw, x: Value, pool: Pool) -> Any:
    if not x.floats or x.ndim == 0 or not x.fixed[-1] or x.array.size == 0:
        return None
    n, dtype = x.array.shape[-1], str(x.array.dtype)
    gamma = relax.const(np.full(n, 2, dtype))
    beta = relax.const(np.arange(n).astype(dtype))
    wide = x.array.astype("float64")
    centred = wide - wide.mean(-1, keepdims=True)
    scale = np.sqrt((centred ** 2).mean(-1, keepdims=True) + 0.5)
    return (R.nn.layer_norm(x.var, gamma, beta, axes=[-1], epsilon=0.5),
            (centred / scale * 2 + np.arange(n)).astype(dtype))


@row("conv2d", exact=True, often=4)
def _conv2d(draw: Draw, x: Value, pool: Pool) -> Any:
    if not x.floats or x.ndim != 4 or not all(x.fixed[1:]) or x.array.size == 0:
        return None
    last = draw.chance(30)  # channels last
    channels, height, width = x.array.shape[3], *x.array.shape[1:3]
    if not last:
        channels, height, width = x.array.shape[1:]
    kernel = draw.choice([1, 3, 2])
    padding, stride, dilation = draw.integer(0, 1), draw.integer(1, 2), draw.choice([1, 1, 2])
    reach = (kernel - 1) * dilation + 1
    if min(height, width) + 2 * padding < reach:
        return None
    groups = draw.choice([1, 1, channels])
    out = groups * draw.integer(1, 3)
    weight = weights(draw, (out, channels // groups, kernel, kernel), x.array.dtype)
    image = np.moveaxis(x.array, 3, 1) if last else x.array
    padded = np.pad(image, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (reach, reach), (2, 3))
    windows = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
    windows = windows.reshape(windows.shape[0], groups, -1, *windows.shape[2:])
    result = np.einsum("ngchwij,gocij->ngohw", windows,
                       weight.reshape(groups, out // groups, *weight.shape[1:]))
    result = result.reshape(len(result), out, *result.shape[3:]).astype(x.array.dtype)
    given = {"data_layout": "NHWC", "kernel_layout": "OIHW"} if last else {}
    e = R.nn.conv2d(x.var, relax.const(weight), strides=stride, padding=padding, groups=groups,
                    dilation=dilation, **given)
    if draw.chance(50):
        bias = weights(draw, (1, out, 1, 1), x.array.dtype)
        result = result + bias
        e = R.add(e, relax.const(np.moveaxis(bias, 1, 3) if last else bias))
    if draw.chance(50):
        e, result = R.nn.relu(e), np.maximum(result, 0)
    return e, np.moveaxis(result, 1, 3) if last else result


@row("pool2d", exact=True, often=3)
def _pool2d(draw: Draw, x: Value, pool: Pool) -> Any:
    if not x.floats or x.ndim != 4 or not all(x.fixed[1:]) or x.array.size == 0:
        return None
    size, stride = draw.integer(1, 2), draw.integer(1, 2)
    if min(x.array.shape[2:]) < size:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(x.array, (size, size), (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    if draw.chance(50):
        return R.nn.max_pool2d(x.var, size, stride), windows.max((4, 5))
    return R.nn.avg_pool2d(x.var, size, stride), windows.mean((4, 5), dtype="float64").astype(
        x.array.dtype), size in (1, 2)


@row("batch_norm", often=3)
def _batch_norm(draw: Draw, x: Value, pool: Pool) -> Any:
    if not x.floats or x.ndim < 2 or not x.fixed[1] or x.array.size == 0:
        return None
    channels, dtype = x.array.shape[1], x.array.dtype
    gamma, beta, mean = (weights(draw, (channels,), dtype) for _ in range(3))
    variance = np.abs(weights(draw, (channels,), dtype))
    wide = [v.astype("float64").reshape(-1, *[1] * (x.ndim - 2))
            for v in (gamma, beta, mean, variance)]
    result = (x.array - wide[2]) / np.sqrt(wide[3] + 0.25) * wide[0] + wide[1]
    norm = R.nn.batch_norm(x.var, *map(relax.const, (gamma, beta, mean, variance)), axis=1,
                           epsilon=0.25, training=False)
    return relax.TupleGetItem(norm, 0), result.astype(dtype)


@row("group_norm")
def _group_norm(draw: Draw, x: Value, pool: Pool) -> Any:
    if not x.floats or x.ndim < 3 or not all(x.fixed) or x.array.size == 0:
        return None
    channels, dtype = x.array.shape[1], x.array.dtype
    groups = draw.choice([g for g in range(1, channels + 1) if channels % g == 0])
    gamma, beta = (weights(draw, (channels,), dtype) for _ in range(2))
    wide = x.array.astype("float64").reshape(len(x.array), groups, -1)
    wide = wide - wide.mean(2, keepdims=True)
    wide /= np.sqrt((wide ** 2).mean(2, keepdims=True) + 0.5)
    to = (-1, *[1] * (x.ndim - 2))
    result = wide.reshape(x.array.shape) * gamma.reshape(to) + beta.reshape(to)
    norm = R.nn.group_norm(x.var, relax.const(gamma), relax.const(beta), groups, 1,
                           list(range(2, x.ndim)), epsilon=0.5)
    return norm, result.astype(dtype)


@row("rms_norm")
def _rms_norm(draw: Draw, x: Value, pool: Pool) -> Any:
    if not x.floats or x.ndim == 0 or not x.fixed[-1] or x.array.size == 0:
        return None
    weight = weights(draw, x.array.shape[-1:], x.array.dtype)
    wide = x.array.astype("float64")
    result = wide / np.sqrt((wide ** 2).mean(-1, keepdims=True) + 0.5) * weight
    return R.nn.rms_norm(x.var, relax.const(weight), [-1], 0.5), result.astype(x.array.dtype)


@row("attention", often=2)
def _attention(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.array.dtype != "float32" or x.ndim != 4 or not all(x.fixed) or x.array.size == 0:
        return None
    batch, length, heads, size = x.array.shape
    others = draw.integer(1, 4)
    key, value = (weights(draw, (batch, others, heads, size), "float32") for _ in range(2))
    causal = draw.choice([None, "TopLeft", "BottomRight"]) if others >= length else None
    scores = np.einsum("blhd,bkhd->bhlk", x.array.astype("float64"), key) / np.sqrt(size)
    if causal:
        shift = others - length if causal == "BottomRight" else 0
        scores = np.where(np.tri(length, others, shift, bool), scores, -np.inf)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    scores /= scores.sum(-1, keepdims=True)
    result = np.einsum("bhlk,bkhd->blhd", scores, value).astype("float32")
    return R.nn.attention(x.var, relax.const(key), relax.const(value),
                          causal_mask=causal), result


@row("einsum", exact=True)
def _einsum(draw: Draw, x: Value, pool: Pool) -> Any:
    if not x.floats or x.ndim not in (2, 3) or not all(x.fixed):
        return None
    names = "abc"[:x.ndim]
    other = weights(draw, (x.array.shape[-1], 3), x.array.dtype)
    out = "".join(draw.permutation(draw.sample([*names, "z"], draw.integer(1, x.ndim))))
    text = f"{names},{names[-1]}z->{out}"
    return R.einsum([x.var, relax.const(other)], text), np.einsum(
        text, x.array.astype("float64"), other).astype(x.array.dtype)

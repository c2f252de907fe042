"""Rules of layers: products, convolutions, norms, pooling, attention, resizing, losses."""

from __future__ import annotations

import math
from typing import Any, Sequence

from .... import topi
from ... import op
from ...op import image, nn
from ..common import ceil_pool
from .importer import Importer, rule


# ------------------------------------------------------------------------------- products


@rule("matmul", "mm", "bmm", "mv", "dot", "imatmul")
def _matmul(im: Importer, a: Any, b: Any) -> Any:
    return im.emit(op.matmul(*im.pair(a, b)))


@rule("linear")
def _linear(im: Importer, x: Any, weight: Any, bias: Any = None) -> Any:
    turned = im.emit(op.permute_dims(weight))
    out = im.emit(op.matmul(x, turned))
    return out if bias is None else im.emit(op.add(out, bias))


@rule("addmm", "baddbmm", "addmv", "addbmm")
def _addmm(im: Importer, c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    out = im.emit(op.matmul(a, b))
    if alpha != 1:
        out = im.emit(op.multiply(out, im.const(alpha, im.dtype(out))))
    if beta == 0:
        return out
    if beta != 1:
        c = im.emit(op.multiply(c, im.const(beta, im.dtype(c))))
    return im.emit(op.add(out, c))


@rule("einsum")
def _einsum(im: Importer, equation: str, *operands: Any, path: Any = None) -> Any:
    given = list(operands[0]) if operands and isinstance(operands[0], (list, tuple)) else list(
        operands)
    return im.emit(op.einsum(given, equation))


@rule("outer", "ger")
def _outer(im: Importer, a: Any, b: Any) -> Any:
    return im.emit(op.outer(a, b))


@rule("tensordot")
def _tensordot(im: Importer, a: Any, b: Any, dims: Any = 2, dims_b: Any = None, **kwargs: Any
               ) -> Any:
    """Products summed over dimensions of both, as one product of matrices.

    torch.tensordot names them by a number (the last of a, the first of b) or by two lists, ATen
    by two lists.
    """
    a, b = im.pair(a, b)
    if isinstance(dims, int):
        first, last = list(range(im.ndim(a) - dims, im.ndim(a))), list(range(dims))
    else:
        first, last = dims if dims_b is None else (dims, dims_b)
        first, last = [d % im.ndim(a) for d in first], [d % im.ndim(b) for d in last]

    def total(sizes: list[Any]) -> Any:
        out: Any = 1
        for s in sizes:
            out = out * s
        return out

    kept = [[d for d in range(im.ndim(t)) if d not in gone] for t, gone in ((a, first), (b, last))]
    sizes = [[im.shape(t)[d] for d in keep] for t, keep in zip((a, b), kept)]
    inner = total([im.shape(a)[d] for d in first])
    left = im.emit(op.reshape(im.emit(op.permute_dims(a, [*kept[0], *first])),
                              [total(sizes[0]), inner]))
    right = im.emit(op.reshape(im.emit(op.permute_dims(b, [*last, *kept[1]])),
                               [inner, total(sizes[1])]))
    return im.emit(op.reshape(im.emit(op.matmul(left, right)), [*sizes[0], *sizes[1]]))


@rule("scaled_dot_product_attention")
def _attention(im: Importer, q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0,
               is_causal: bool = False, *, scale: Any = None, enable_gqa: bool = False) -> Any:
    """softmax(q k^T scale + mask) v over the last two dimensions."""
    dtype = im.dtype(q)
    if enable_gqa:
        times = im.shape(q)[-3] // im.shape(k)[-3]
        if times != 1:
            k, v = (im.emit(op.repeat(t, times, im.ndim(t) - 3)) for t in (k, v))
    width = im.shape(q)[-1]
    scale = 1 / math.sqrt(width) if scale is None else scale
    scaled = im.emit(op.multiply(q, im.const(scale, dtype)))
    order = list(range(im.ndim(k)))
    order[-1], order[-2] = order[-2], order[-1]
    scores = im.emit(op.matmul(scaled, im.emit(op.permute_dims(k, order))))
    if is_causal:
        scores = im.emit(op.add(scores, _causal(im, im.shape(q)[-2], im.shape(k)[-2], dtype)))
    if attn_mask is not None:
        if im.dtype(attn_mask) == "bool":
            hidden = im.const(-math.inf if dtype != "float16" else -65504.0, dtype)
            scores = im.emit(op.where(attn_mask, scores, hidden))
        else:
            scores = im.emit(op.add(scores, im.cast(attn_mask, dtype)))
    return im.emit(op.matmul(im.emit(nn.softmax(scores, -1)), v))


def _causal(im: Importer, queries: Any, keys: Any, dtype: str) -> Any:
    """Minus infinity above the diagonal, made once for each pair of lengths."""
    low = -math.inf if dtype != "float16" else -65504.0

    def make() -> Any:
        filled = im.emit(op.full([queries, keys], im.const(low, dtype), dtype))
        return im.emit(op.triu(filled, 1))

    return im.once(("causal", str(queries), str(keys), dtype), make)


# ------------------------------------------------------------------------------- convolutions


def _padding(padding: Any, dilation: Sequence[int], kernel: Sequence[Any], rank: int) -> list[int]:
    """Padding before and after all dimensions, from numbers, "same" or "valid"."""
    if padding == "valid":
        return [0] * (2 * rank)
    if padding == "same":
        reach = [d * (k - 1) for d, k in zip(dilation, kernel)]
        return [r // 2 for r in reach] + [r - r // 2 for r in reach]
    several = _each(padding, rank)
    return [*several, *several]


def _each(value: Any, rank: int) -> list[Any]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * rank if len(values) == 1 else values


def _with_bias(im: Importer, out: Any, bias: Any, rank: int) -> Any:
    if bias is None:
        return out
    return im.emit(op.add(out, im.emit(op.reshape(bias, [1, im.shape(bias)[0], *[1] * rank]))))


def _conv(rank: int) -> None:
    build, turned = getattr(nn, f"conv{rank}d"), getattr(nn, f"conv{rank}d_transpose")

    def unbatched(im: Importer, x: Any) -> tuple[Any, bool]:
        if im.ndim(x) == rank + 1:
            return im.emit(op.expand_dims(x, 0)), True
        return x, False

    @rule(f"conv{rank}d")
    def translate(im: Importer, x: Any, weight: Any, bias: Any = None, stride: Any = 1,
                  padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
        x, alone = unbatched(im, x)
        spread = _each(dilation, rank)
        widths = _padding(padding, spread, im.shape(weight)[2:], rank)
        out = im.emit(build(x, weight, _each(stride, rank), widths, spread, groups))
        out = _with_bias(im, out, bias, rank)
        return im.emit(op.squeeze(out, [0])) if alone else out

    @rule(f"conv_transpose{rank}d")
    def back(im: Importer, x: Any, weight: Any, bias: Any = None, stride: Any = 1,
             padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Any:
        x, alone = unbatched(im, x)
        out = im.emit(turned(x, weight, _each(stride, rank), _each(padding, rank),
                             _each(output_padding, rank), _each(dilation, rank), groups))
        out = _with_bias(im, out, bias, rank)
        return im.emit(op.squeeze(out, [0])) if alone else out


for _rank in (1, 2, 3):
    _conv(_rank)


@rule("convolution")
def _convolution(im: Importer, x: Any, weight: Any, bias: Any, stride: Any, padding: Any,
                 dilation: Any, transposed: bool, output_padding: Any, groups: int) -> Any:
    from .importer import RULES

    rank = im.ndim(weight) - 2
    if transposed:
        return RULES[f"conv_transpose{rank}d"](im, x, weight, bias, stride, padding,
                                               output_padding, groups, dilation)
    return RULES[f"conv{rank}d"](im, x, weight, bias, stride, padding, dilation, groups)


# ------------------------------------------------------------------------------- norms


def _ones(im: Importer, size: Any, dtype: str, value: float) -> Any:
    if isinstance(size, (list, tuple)):
        import numpy as np

        return im.const(np.full(tuple(size), value), dtype)
    return im.emit(op.full([size], im.const(value, dtype), dtype))


def _affine(im: Importer, weight: Any, bias: Any, size: Any, dtype: str) -> tuple[Any, Any]:
    """Scale and offset; ones and zeros where there are none."""
    return (_ones(im, size, dtype, 1.0) if weight is None else weight,
            _ones(im, size, dtype, 0.0) if bias is None else bias)


@rule("batch_norm", "_native_batch_norm_legit_no_training", "native_batch_norm")
def _batch_norm(im: Importer, x: Any, *args: Any, **kwargs: Any) -> Any:
    """ATen's order is (weight, bias, mean, var), that of torch.nn.functional (mean, var, ...)."""
    weight, bias, mean, var, *rest = args
    eps = kwargs.get("eps", next((r for r in reversed(rest) if isinstance(r, float)), 1e-5))
    return _normalised(im, x, weight, bias, mean, var, eps)


def _normalised(im: Importer, x: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float
                ) -> Any:
    channels = [im.shape(x)[1]]
    weight, bias = _affine(im, weight, bias, channels, im.dtype(x))
    if mean is None or var is None:  # no running statistics: those of the batch
        over = [d for d in range(im.ndim(x)) if d != 1]
        mean = im.emit(op.mean(x, over))
        var = im.emit(op.variance(x, over))
    out = im.emit(nn.batch_norm(x, weight, bias, mean, var, 1, eps, training=False))
    return im.emit(out[0])


@rule("layer_norm")
def _layer_norm(im: Importer, x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None,
                eps: float = 1e-5, *rest: Any) -> Any:
    sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    weight, bias = _affine(im, weight, bias, sizes, im.dtype(x))
    return im.emit(nn.layer_norm(x, weight, bias, list(range(-len(sizes), 0)), eps))


@rule("native_layer_norm")
def _native_layer_norm(im: Importer, x: Any, normalized_shape: Any, weight: Any, bias: Any,
                       eps: float) -> Any:
    return (_layer_norm(im, x, normalized_shape, weight, bias, eps),)


@rule("rms_norm")
def _rms_norm(im: Importer, x: Any, normalized_shape: Any, weight: Any = None, eps: Any = None
              ) -> Any:
    import numpy as np

    sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    dtype = im.dtype(x)
    weight = _ones(im, sizes, dtype, 1.0) if weight is None else weight
    eps = float(np.finfo(dtype).eps) if eps is None else eps
    return im.emit(nn.rms_norm(x, weight, list(range(-len(sizes), 0)), eps))


@rule("group_norm")
def _group_norm(im: Importer, x: Any, num_groups: int, weight: Any = None, bias: Any = None,
                eps: float = 1e-5, *rest: Any) -> Any:
    weight, bias = _affine(im, weight, bias, [im.shape(x)[1]], im.dtype(x))
    return im.emit(nn.group_norm(x, weight, bias, num_groups, 1, list(range(2, im.ndim(x))), eps))


@rule("native_group_norm")
def _native_group_norm(im: Importer, x: Any, weight: Any, bias: Any, n: Any, c: Any, hw: Any,
                       group: int, eps: float) -> Any:
    return (_group_norm(im, x, group, weight, bias, eps),)


@rule("instance_norm")
def _instance_norm(im: Importer, x: Any, weight: Any = None, bias: Any = None, mean: Any = None,
                   var: Any = None, use_input_stats: bool = True, momentum: float = 0.1,
                   eps: float = 1e-5, *rest: Any, **kwargs: Any) -> Any:
    if not use_input_stats:
        return _normalised(im, x, weight, bias, mean, var, eps)
    weight, bias = _affine(im, weight, bias, [im.shape(x)[1]], im.dtype(x))
    return im.emit(nn.instance_norm(x, weight, bias, 1, list(range(2, im.ndim(x))), eps))


# ------------------------------------------------------------------------------- pooling


def _pool(rank: int) -> None:
    largest, mean = getattr(nn, f"max_pool{rank}d"), getattr(nn, f"avg_pool{rank}d")
    adaptive = getattr(nn, f"adaptive_avg_pool{rank}d")

    def pooled(im: Importer, build: Any, x: Any, kernel: Any, stride: Any, padding: Any,
               dilation: Any, ceil_mode: bool, include: bool) -> Any:
        kernel, spread = _each(kernel, rank), _each(dilation, rank)
        steps = kernel if stride in (None, [], ()) else _each(stride, rank)
        widths = _each(padding, rank) * 2
        alone = im.ndim(x) == rank + 1  # channels without a batch
        if alone:
            x = im.emit(op.expand_dims(x, 0))
        if ceil_mode:
            out = ceil_pool(im, build, x, kernel, steps, widths, spread, include)
        else:
            out = im.emit(build(x, kernel, steps, widths, spread, False, include))
        return im.emit(op.squeeze(out, [0])) if alone else out

    @rule(f"max_pool{rank}d")
    def maximum(im: Importer, x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
        if return_indices:
            raise ValueError(f"max_pool{rank}d with return_indices is not translated")
        return pooled(im, largest, x, kernel_size, stride, padding, dilation, ceil_mode, False)

    @rule(f"max_pool{rank}d_with_indices")
    def with_indices(im: Importer, x: Any, *args: Any, **kwargs: Any) -> Any:
        return (maximum(im, x, *args, **kwargs),)  # the places are not computed

    @rule(f"avg_pool{rank}d")
    def average(im: Importer, x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                ceil_mode: bool = False, count_include_pad: bool = True,
                divisor_override: Any = None) -> Any:
        if divisor_override is None:
            return pooled(im, mean, x, kernel_size, stride, padding, 1, ceil_mode,
                          count_include_pad)
        # a sum over a number: the mean of whole windows, padded with zeros by hand
        sizes = _each(kernel_size, rank)
        steps = _each(stride if stride not in (None, [], ()) else kernel_size, rank)
        around = _each(padding, rank)
        behind = [min(k - 1, p + s - 1) if ceil_mode else p
                  for k, p, s in zip(sizes, around, steps)]
        out = im.emit(mean(x, sizes, steps, [*around, *behind], 1, False, True))
        count = math.prod(sizes)
        return im.emit(op.multiply(out, im.const(count / divisor_override, im.dtype(x))))

    @rule(f"adaptive_avg_pool{rank}d", f"_adaptive_avg_pool{rank}d")
    def fitted(im: Importer, x: Any, output_size: Any) -> Any:
        have = im.shape(x)[-rank:]
        sizes = [h if s is None else s for s, h in zip(_each(output_size, rank), have)]
        return im.emit(adaptive(x, sizes))


for _rank in (1, 2, 3):
    _pool(_rank)


def _adaptive_max(rank: int) -> None:
    compiled = getattr(topi.nn, "adaptive_pool" + {1: "1d", 2: "", 3: "3d"}[rank])

    @rule(f"adaptive_max_pool{rank}d")
    def fitted(im: Importer, x: Any, output_size: Any, return_indices: bool = False) -> Any:
        """Windows of one size where the sizes divide, else TOPI's, which Relax has no name for."""
        if return_indices:
            raise ValueError(f"adaptive_max_pool{rank}d with return_indices is not translated")
        alone = im.ndim(x) == rank + 1  # channels without a batch
        if alone:
            x = im.emit(op.expand_dims(x, 0))
        have = im.shape(x)[2:]
        sizes = [h if s is None else s for s, h in zip(_each(output_size, rank), have)]
        if all(isinstance(h, int) and isinstance(s, int) and h % s == 0
               for h, s in zip(have, sizes)):
            steps = [h // s for h, s in zip(have, sizes)]
            out = im.emit(getattr(nn, f"max_pool{rank}d")(x, steps, steps))
        else:
            out = im.builder.emit_te(lambda data, sizes: compiled(data, sizes, "max"), x, sizes,
                                     primfunc_name_hint=f"adaptive_max_pool{rank}d")
        return im.emit(op.squeeze(out, [0])) if alone else out

    @rule(f"adaptive_max_pool{rank}d.default")
    def with_indices(im: Importer, x: Any, output_size: Any) -> Any:
        return (fitted(im, x, output_size),)  # the places are not computed


for _rank in (1, 2, 3):
    _adaptive_max(_rank)


# ------------------------------------------------------------------------------- images


@rule("interpolate", "upsample")
def _interpolate(im: Importer, x: Any, size: Any = None, scale_factor: Any = None,
                 mode: str = "nearest", align_corners: Any = None, *rest: Any, **kwargs: Any
                 ) -> Any:
    spatial = im.shape(x)[2:]
    if size is None:
        factors = _each(scale_factor, len(spatial))
        size = [math.floor(d * f) if isinstance(d, int) else d * int(f)
                for d, f in zip(spatial, factors)]
    size = _each(size, len(spatial))
    if mode == "nearest":
        how, method, rounding = "asymmetric", "nearest_neighbor", "floor"
    elif mode == "nearest-exact":
        how, method, rounding = "half_pixel", "nearest_neighbor", "round_prefer_ceil"
    else:
        how = "align_corners" if align_corners else "half_pixel"
        method, rounding = {"bilinear": "linear", "bicubic": "cubic", "linear": "linear"}[mode], ""
    if len(spatial) == 1:  # as an image of one row
        flat = im.emit(op.expand_dims(x, 2))
        out = im.emit(image.resize2d(flat, [1, size[0]], None, "NCHW", method, how, rounding))
        return im.emit(op.squeeze(out, [2]))
    if len(spatial) != 2:
        raise ValueError(f"interpolate of {len(spatial)} dimensions is not translated")
    return im.emit(image.resize2d(x, size, None, "NCHW", method, how, rounding))


def _scaled(scales: Any) -> Any:
    return None if scales is None or all(s is None for s in scales) else list(scales)


@rule("upsample_nearest2d", "upsample_nearest1d")
def _nearest(im: Importer, x: Any, size: Any, *scales: Any, **kwargs: Any) -> Any:
    factors = scales[0] if scales and isinstance(scales[0], (list, tuple)) else scales
    return _interpolate(im, x, size, _scaled(factors), "nearest")


@rule("upsample_bilinear2d")
def _bilinear(im: Importer, x: Any, size: Any, align: bool, *scales: Any, **kwargs: Any) -> Any:
    factors = scales[0] if scales and isinstance(scales[0], (list, tuple)) else scales
    return _interpolate(im, x, size, _scaled(factors), "bilinear", align)


@rule("upsample_bicubic2d")
def _bicubic(im: Importer, x: Any, size: Any, align: bool, *scales: Any, **kwargs: Any) -> Any:
    factors = scales[0] if scales and isinstance(scales[0], (list, tuple)) else scales
    return _interpolate(im, x, size, _scaled(factors), "bicubic", align)


# ------------------------------------------------------------------------------- losses


@rule("cross_entropy", "cross_entropy_loss")
def _cross_entropy(im: Importer, x: Any, target: Any, weight: Any = None, *args: Any,
                   **kwargs: Any) -> Any:
    reduction = kwargs.get("reduction", args[0] if args else 1)
    name = {0: "none", 1: "mean", 2: "sum"}.get(reduction, reduction)
    log = im.emit(nn.log_softmax(x, 1 if im.ndim(x) > 1 else 0))
    ignore = kwargs.get("ignore_index", -100)
    return im.emit(nn.nll_loss(log, target, weight, name, ignore))

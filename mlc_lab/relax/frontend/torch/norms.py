"""Rules of normalisation: batch, layer, group, instance, root mean square."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import op
from ...op import nn
from ...op.reshaping import quotient
from .calling import ADVICE_EVAL
from .importer import Importer, rule
from .views import reshaped

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Size, Sizes


def _filled(im: Importer, size: Any, dtype: str, value: float) -> Any:
    if all(isinstance(s, int) for s in size):
        return im.const(np.full(tuple(size), value), dtype)
    return im.full(size, value, dtype)


def _affine(im: Importer, weight: Expr | None, bias: Expr | None, size: Any, dtype: str
            ) -> tuple[Any, Any]:
    """Scale and offset; ones and zeros where there are none."""
    return (_filled(im, size, dtype, 1.0) if weight is None else weight,
            _filled(im, size, dtype, 0.0) if bias is None else bias)


def normalised(im: Importer, x: Expr, weight: Expr | None, bias: Expr | None,
               mean: Expr | None, var: Expr | None, training: bool, eps: float) -> Any:
    """batch_norm: by running statistics, or by those of the batch where there are none."""
    if training and mean is not None:
        raise ValueError("batch_norm in training changes its running statistics, which is not "
                         f"translated: {ADVICE_EVAL}")
    weight, bias = _affine(im, weight, bias, [im.shape(x)[1]], im.dtype(x))
    if mean is None or var is None:
        over = [d for d in range(im.ndim(x)) if d != 1]
        mean, var = im.emit(op.mean(x, over)), im.emit(op.variance(x, over))
    out = im.emit(nn.batch_norm(x, weight, bias, mean, var, 1, eps, training=False))
    return im.emit(out[0])


@rule("batch_norm")
def _batch_norm(im: Importer, x: Expr, weight: Expr | None = None, bias: Expr | None = None,
                running_mean: Expr | None = None, running_var: Expr | None = None,
                training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
                cudnn_enabled: bool = True) -> Any:
    return normalised(im, x, weight, bias, running_mean, running_var, training, eps)


@rule("_native_batch_norm_legit_no_training")
def _batch_norm_inference(im: Importer, x: Expr, weight: Expr | None, bias: Expr | None,
                          running_mean: Expr | None, running_var: Expr | None, momentum: float,
                          eps: float) -> Any:
    return (normalised(im, x, weight, bias, running_mean, running_var, False, eps),)


@rule("native_batch_norm", "_native_batch_norm_legit")
def _native_batch_norm(im: Importer, x: Expr, weight: Expr | None, bias: Expr | None,
                       running_mean: Expr | None = None, running_var: Expr | None = None,
                       training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Any:
    return (normalised(im, x, weight, bias, running_mean, running_var, training, eps),)


@rule("_native_batch_norm_legit.no_stats")
def _batch_norm_no_stats(im: Importer, x: Expr, weight: Expr | None, bias: Expr | None,
                         training: bool, momentum: float, eps: float) -> Any:
    return (normalised(im, x, weight, bias, None, None, training, eps),)


def _statistics(im: Importer, x: Expr, over: list[int], eps: float) -> tuple[Any, Any]:
    """The mean and 1 / sqrt(variance + eps), where the program asks for them."""
    if im.node is not None and all(
            getattr(u.target, "__name__", "") == "getitem" and u.args[1] == 0
            for u in im.node.users):
        return None, None
    var = im.emit(op.add(im.emit(op.variance(x, over, True)), im.const(eps, im.dtype(x))))
    return im.emit(op.mean(x, over, True)), im.emit(op.rsqrt(var))


@rule("layer_norm")
def layer_norm(im: Importer, x: Expr, normalized_shape: Sizes, weight: Expr | None = None,
               bias: Expr | None = None, eps: float = 1e-5, cudnn_enable: bool = True) -> Any:
    """(x - mean) / sqrt(variance + eps) weight + bias over the last dimensions."""
    sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    weight, bias = _affine(im, weight, bias, sizes, im.dtype(x))
    return im.emit(nn.layer_norm(x, weight, bias, list(range(-len(sizes), 0)), eps))


@rule("native_layer_norm")
def _native_layer_norm(im: Importer, x: Any, normalized_shape: Any, weight: Expr | None,
                       bias: Expr | None, eps: float) -> Any:
    out = layer_norm(im, x, normalized_shape, weight, bias, eps)
    count = im.ndim(x) - len(normalized_shape)
    return (out, *_statistics(im, x, list(range(count, im.ndim(x))), eps))


@rule("rms_norm")
def _rms_norm(im: Importer, x: Expr, normalized_shape: Sizes, weight: Expr | None = None,
              eps: float | None = None) -> Any:
    sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    dtype = im.dtype(x)
    weight = _filled(im, sizes, dtype, 1.0) if weight is None else weight
    eps = {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}.get(
        dtype, 2.0**-23) if eps is None else eps
    return im.emit(nn.rms_norm(x, weight, list(range(-len(sizes), 0)), eps))


@rule("group_norm")
def group_norm(im: Importer, x: Expr, num_groups: int, weight: Expr | None = None,
               bias: Expr | None = None, eps: float = 1e-5, cudnn_enabled: bool = True) -> Any:
    """Each group of channels of a sample by its own mean and variance."""
    weight, bias = _affine(im, weight, bias, [im.shape(x)[1]], im.dtype(x))
    return im.emit(nn.group_norm(x, weight, bias, num_groups, 1, list(range(2, im.ndim(x))), eps))


@rule("native_group_norm")
def _native_group_norm(im: Importer, x: Expr, weight: Expr | None, bias: Expr | None, n: Size,
                       c: Size, hw: Size, group: int, eps: float) -> Any:
    out = group_norm(im, x, group, weight, bias, eps)
    sizes = im.shape(x)
    rest: Any = 1
    for d in sizes[1:]:
        rest = rest * d
    grouped = reshaped(im, x, [sizes[0], group, quotient([rest], [group])])
    mean, rstd = _statistics(im, grouped, [2], eps)
    return (out, mean, rstd) if mean is None else (
        out, *(reshaped(im, t, [sizes[0], group]) for t in (mean, rstd)))


@rule("instance_norm")
def instance_norm(im: Importer, x: Expr, weight: Expr | None = None, bias: Expr | None = None,
                  running_mean: Expr | None = None, running_var: Expr | None = None,
                  use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
                  cudnn_enabled: bool = True) -> Any:
    """Each channel of a sample by its own mean and variance, or by running statistics."""
    if not use_input_stats:
        return normalised(im, x, weight, bias, running_mean, running_var, False, eps)
    if running_mean is not None:
        raise ValueError("instance_norm in training changes its running statistics, which is not "
                         f"translated: {ADVICE_EVAL}")
    weight, bias = _affine(im, weight, bias, [im.shape(x)[1]], im.dtype(x))
    return im.emit(nn.instance_norm(x, weight, bias, 1, list(range(2, im.ndim(x))), eps))


@rule("local_response_norm")
def _local_response(im: Importer, x: Expr, size: int, alpha: float = 1e-4, beta: float = 0.75,
                    k: float = 1.0) -> Any:
    """x / (k + alpha mean of the squares of neighbouring channels)^beta"""
    sizes, dtype = im.shape(x), im.dtype(x)
    square = im.emit(op.multiply(x, x))
    rest: Any = 1
    for d in sizes[2:]:
        rest = rest * d
    flat = reshaped(im, square, [sizes[0], 1, sizes[1], rest])
    around = [size // 2, 0, (size - 1) // 2, 0]
    mean = im.emit(nn.avg_pool2d(flat, [size, 1], [1, 1], around, [1, 1], False, True))
    mean = reshaped(im, mean, sizes)
    below = im.emit(op.add(im.emit(op.multiply(mean, im.const(alpha, dtype))),
                           im.const(k, dtype)))
    return im.emit(op.divide(x, im.emit(op.power(below, im.const(beta, dtype)))))


__all__ = ["group_norm", "instance_norm", "layer_norm", "normalised"]

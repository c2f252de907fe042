"""Normalisations. Mean and variance are taken in two passes, which loses no digits.

Statistics of float16 and bfloat16 are kept in float32.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ...tir.expr import PrimExpr
from ..utils import axes, axes_of, axis_of, differ, need, product, simplify, sum_type, text


def _moments(data: Tensor, spatial: Sequence[Any], element: Callable[..., Any], ks: Sequence[Any]
             ) -> tuple[Tensor, Tensor]:
    """Mean and variance (the sum of squares over the count) of `element(spatial index, ks)`."""
    name, dtype = data.op.name, sum_type(data.dtype)
    count = O.cast(O.convert(simplify(product([k.dom.extent for k in ks]))), dtype)
    names = axes(len(spatial))

    def value(i: Sequence[Any], k: Sequence[Any]) -> PrimExpr:
        return O.cast(element(i, k), dtype)

    total = te.compute(spatial, lambda *i: te.sum(value(i, ks), axis=list(ks)), name=f"{name}_sum",
                       tag="comm_reduce", varargs_names=names)
    mean = te.compute(spatial, lambda *i: total(*i) / count, name=f"{name}_mean", tag="elemwise",
                      varargs_names=names)
    again = [te.reduce_axis(k.dom, k.var.name) for k in ks]
    squares = te.compute(spatial, lambda *i: te.sum(
        (value(i, again) - mean(*i)) * (value(i, again) - mean(*i)), axis=again),
        name=f"{name}_var_sum", tag="comm_reduce", varargs_names=names)
    return mean, squares


def _check(name: str, what: str, data: Tensor, param: Any, shape: Sequence[Any]) -> None:
    if param is not None:
        need(param.ndim == len(shape) and not any(map(differ, param.shape, shape)),
             f"{name}: {what} has the shape {text(param.shape)}, and data {text(data.shape)} needs "
             f"{text(shape)}")


def _over_axes(data: Tensor, over: Sequence[int], affine: Callable[..., PrimExpr], epsilon: float,
               name: str) -> Tensor:
    """(data - mean) / sqrt(variance + epsilon) with the statistics over the axes `over`, then
    `affine(value, indices)`."""
    ks = [te.reduce_axis((0, data.shape[k]), f"k{k}") for k in over]
    rest = [d for d in range(data.ndim) if d not in over]

    def element(i: Sequence[Any], k: Sequence[Any]) -> PrimExpr:
        at = {**dict(zip(rest, i)), **dict(zip(over, k))}
        return data(*[at[d] for d in range(data.ndim)])

    return _normal(data, _moments(data, [data.shape[d] for d in rest], element, ks),
                   [data.shape[k] for k in over], lambda i: [i[d] for d in rest], affine, epsilon,
                   name)


def _normal(data: Tensor, moments: tuple[Tensor, Tensor], sizes: Sequence[Any],
            group: Callable[[Sequence[Any]], list[Any]], affine: Callable[..., PrimExpr],
            epsilon: float, name: str) -> Tensor:
    """Data normalised by the moments of the group of `indices`, which has `sizes` elements."""
    mean, squares = moments
    dtype = mean.dtype
    count = O.cast(O.convert(simplify(product(sizes))), dtype)

    def normal(*i: PrimExpr) -> PrimExpr:
        outer = group(i)
        value = (O.cast(data(*i), dtype) - mean(*outer)) * O.rsqrt(
            squares(*outer) / count + O.const(epsilon, dtype))
        return affine(value, i)

    return te.compute(data.shape, normal, name=name, tag="injective",
                      varargs_names=axes(data.ndim))


def layer_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None,
               axis: int | Sequence[int] | None, epsilon: float = 1e-5) -> Tensor:
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta, with the statistics over `axis`.

    gamma and beta have the sizes of those axes; either may be None.
    """
    over = axes_of("layer_norm", axis, data.ndim)
    for what, param in (("gamma", gamma), ("beta", beta)):
        _check("layer_norm", what, data, param, [data.shape[k] for k in over])
    return _over_axes(data, over, lambda value, i: _affine(
        value, gamma, beta, [i[d] for d in over], data.dtype), epsilon, "T_layer_norm")


def _affine(value: PrimExpr, gamma: Tensor | None, beta: Tensor | None, at: Sequence[Any],
            dtype: str) -> PrimExpr:
    if gamma is not None:
        value = value * O.cast(gamma(*at), value.dtype)
    if beta is not None:
        value = value + O.cast(beta(*at), value.dtype)
    return O.cast(value, dtype)


def instance_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None,
                  channel_axis: int | Sequence[int], axis: Any = None, epsilon: float = 1e-5
                  ) -> Tensor:
    """As layer_norm, with gamma and beta for each index of `channel_axis`.

    TVM 0.18 has no channel axis: `instance_norm(data, gamma, beta, axis, epsilon)`, where axis is a
    list, is layer_norm.
    """
    if isinstance(channel_axis, (list, tuple)):
        return layer_norm(data, gamma, beta, channel_axis, epsilon if axis is None else axis)
    over = axes_of("instance_norm", axis, data.ndim)
    channel = axis_of("instance_norm", channel_axis, data.ndim)
    for what, param in (("gamma", gamma), ("beta", beta)):
        _check("instance_norm", what, data, param, [data.shape[channel]])
    return _over_axes(data, over, lambda value, i: _affine(
        value, gamma, beta, [i[channel]], data.dtype), epsilon, "T_instance_norm")


def group_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None, num_groups: int,
               channel_axis: int, axes: int | Sequence[int] | None, epsilon: float = 1e-5
               ) -> Tensor:
    """As layer_norm, over groups of channels and `axes`; gamma and beta are for each channel.

    The channel of a group is read as `group * (C / num_groups) + k`, so that data keeps its shape.
    """
    channel = axis_of("group_norm", channel_axis, data.ndim)
    over = axes_of("group_norm", axes, data.ndim)
    size = data.shape[channel]
    known = O.as_int(size)
    need(channel not in over, "group_norm: the channel axis is not among axes")
    need(known is None or known % num_groups == 0,
         f"group_norm: {num_groups} groups do not divide the {known} channels of "
         f"{text(data.shape)}")
    for what, param in (("gamma", gamma), ("beta", beta)):
        _check("group_norm", what, data, param, [size])
    each = simplify(O.floordiv(size, num_groups))
    inner = te.reduce_axis((0, each), f"k{channel}")
    reduced = {channel: inner, **{k: te.reduce_axis((0, data.shape[k]), f"k{k}") for k in over}}
    ks = [reduced[d] for d in sorted(reduced)]
    rest = [d for d in range(data.ndim) if d not in over]
    spatial = [O.const(num_groups, size.dtype) if d == channel else data.shape[d] for d in rest]

    def element(i: Sequence[Any], k: Sequence[Any]) -> PrimExpr:
        at, put = dict(zip(rest, i)), dict(zip(sorted(reduced), k))
        return data(*[at[d] * each + put[d] if d == channel else put.get(d, at.get(d))
                      for d in range(data.ndim)])

    return _normal(
        data, _moments(data, spatial, element, ks), [each, *(data.shape[k] for k in over)],
        lambda i: [O.floordiv(i[d], each) if d == channel else i[d] for d in rest],
        lambda value, i: _affine(value, gamma, beta, [i[channel]], data.dtype), epsilon,
        "T_group_norm")


def rms_norm(data: Tensor, weight: Tensor | None, axis: int | Sequence[int] | None,
             epsilon: float = 1e-5) -> Tensor:
    """data / sqrt(mean of squares + epsilon) * weight, with the mean over `axis`."""
    over = axes_of("rms_norm", axis, data.ndim)
    sizes = [data.shape[k] for k in over]
    _check("rms_norm", "weight", data, weight, sizes)
    dtype = sum_type(data.dtype)
    ks = {k: te.reduce_axis((0, data.shape[k]), f"k{k}") for k in over}
    rest = [d for d in range(data.ndim) if d not in over]
    count = O.cast(O.convert(simplify(product(sizes))), dtype)

    def square(*i: PrimExpr) -> PrimExpr:
        at = {**dict(zip(rest, i)), **ks}
        e = O.cast(data(*[at[d] for d in range(data.ndim)]), dtype)
        return te.sum(e * e, axis=list(ks.values()))

    shape = [data.shape[d] for d in rest]
    total = te.compute(shape, square, name="T_multiply_red", tag="comm_reduce",
                       varargs_names=axes(len(shape)))
    scale = te.compute(shape, lambda *i: O.rsqrt(total(*i) / count + O.const(epsilon, dtype)),
                       name="rsqrt", tag="elemwise", varargs_names=axes(len(shape)))

    def normal(*i: PrimExpr) -> PrimExpr:
        value = scale(*[i[d] for d in rest]) * O.cast(data(*i), dtype)
        return _affine(value, weight, None, [i[d] for d in over], data.dtype)

    return te.compute(data.shape, normal, name="T_rms_norm", tag="injective",
                      varargs_names=axes(data.ndim))


def batch_norm(data: Tensor, gamma: Tensor, beta: Tensor, moving_mean: Tensor, moving_var: Tensor,
               axis: int | None = None, epsilon: float | None = None, center: bool | None = None,
               scale: bool | None = None, training: bool | None = None,
               momentum: float | None = None) -> list[Tensor]:
    """[normalised data, new moving mean, new moving variance], per channel `axis` (1 by default).

    In training the statistics are those of the batch, and the moving ones go towards them by
    `momentum` (the variance over n, as TVM has it; torch has n - 1); else the moving ones are used
    and kept. The normalised data is one elementwise block: what depends on the channel alone is
    hoisted out of the inner loops by the backend.
    """
    k = axis_of("batch_norm", 1 if axis is None else axis, data.ndim)
    epsilon = 1e-5 if epsilon is None else epsilon
    momentum = 0.1 if momentum is None else momentum
    size = data.shape[k]
    for what, param in (("gamma", gamma), ("beta", beta), ("moving_mean", moving_mean),
                        ("moving_var", moving_var)):
        _check("batch_norm", what, data, param, [size])
    mean, var = moving_mean, moving_var
    new_mean, new_var = (te.compute(t.shape, lambda *i, t=t: t(*i), name="T_identity",
                                    tag="elemwise", varargs_names=["ax0"])
                         for t in (moving_mean, moving_var))
    if training:
        over = [d for d in range(data.ndim) if d != k]
        ks = [te.reduce_axis((0, data.shape[d]), f"k{d}") for d in over]

        def element(i: Sequence[Any], r: Sequence[Any]) -> PrimExpr:
            at = {k: i[0], **dict(zip(over, r))}
            return data(*[at[d] for d in range(data.ndim)])

        mean, squares = _moments(data, [size], element, ks)
        count = O.cast(O.convert(simplify(product([data.shape[d] for d in over]))), mean.dtype)
        var = te.compute([size], lambda c: squares(c) / count, name=f"{data.op.name}_var",
                         tag="elemwise", varargs_names=None)
        keep, take = O.const(1 - momentum, mean.dtype), O.const(momentum, mean.dtype)

        def moved(old: Tensor, c: Any, new: PrimExpr) -> PrimExpr:
            return O.cast(O.cast(old(c), mean.dtype) * keep + new * take, old.dtype)

        new_mean = te.compute([size], lambda c: moved(moving_mean, c, mean(c)),
                              name="T_moving_mean", tag="elemwise")
        new_var = te.compute([size], lambda c: moved(moving_var, c, squares(c) / count),
                             name="T_moving_var", tag="elemwise")
    dtype = sum_type(data.dtype)

    def normal(*i: PrimExpr) -> PrimExpr:
        c = i[k]
        value = (O.cast(data(*i), dtype) - O.cast(mean(c), dtype)) * (O.const(1, dtype) / O.sqrt(
            O.cast(var(c), dtype) + O.const(epsilon, dtype)))
        return _affine(value, gamma if scale is not False else None,
                       beta if center is not False else None, [c], data.dtype)

    out = te.compute(data.shape, normal, name="T_batch_norm", tag="broadcast",
                     varargs_names=axes(data.ndim))
    return [out, new_mean, new_var]


def lrn(data: Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75,
        bias: float = 2) -> Tensor:
    """data over (bias + alpha / size * squares summed over `size` neighbours along axis) ** beta.

    Local response normalisation (Krizhevsky et al., 2012). `size` is odd.
    """
    from .pad import pad

    need(size % 2 == 1, f"lrn: size {size} is not odd")
    k = axis_of("lrn", axis, data.ndim)
    widths = [size // 2 if d == k else 0 for d in range(data.ndim)]
    framed = pad(data, widths, widths, name="pad_data")
    r = te.reduce_axis((0, size), name="rxs")

    def square(*i: PrimExpr) -> PrimExpr:
        e = O.cast(framed(*[x + r if d == k else x for d, x in enumerate(i)]), dtype)
        return te.sum(e * e, axis=r)

    dtype = sum_type(data.dtype)
    squares = te.compute(data.shape, square, name="sqr_sum")
    return te.compute(data.shape, lambda *i: O.cast(O.cast(data(*i), dtype) / O.power(
        O.const(bias, dtype) + O.const(alpha / size, dtype) * squares(*i), O.const(beta, dtype)),
        data.dtype), name="T_lrn", tag="broadcast", varargs_names=axes(data.ndim))


__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "lrn", "rms_norm"]

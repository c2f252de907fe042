"""Neural network operators under R.nn: activations, softmax, norms, attention, losses, pad.

Convolutions are in `conv.py`, pooling in `pool.py`; `R.nn` has them all.
"""

from __future__ import annotations

from typing import Any, Callable

from ...tir import op as O
from ..expr import Call, Expr, as_expr
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo, as_dim
from .common import (
    axes_of, axis_of, dim_text, ints, join_dtype, like, misfit, need_at_least, need_fill,
    need_float, need_integer, need_multiple, need_ndim, need_numbers, need_same, need_same_dims,
    number, one_of, product, show, tensor_info, tensor_of, unary_op, whole,
)
from .conv import *  # noqa: F403
from .conv import __all__ as _CONV
from .elementwise import infer_float, infer_number
from .pool import *  # noqa: F403
from .pool import __all__ as _POOL
from .registry import make_call, register_op

relu = unary_op("nn.relu", infer_number)
gelu, gelu_tanh, silu = (unary_op(f"nn.{n}", infer_float) for n in ("gelu", "gelu_tanh", "silu"))
selu = unary_op("nn.selu", infer_float)


def relu6(data: Any) -> Expr:
    """Values limited to [0, 6]: R.clip."""
    from .elementwise import clip

    return clip(data, 0, 6)


def leakyrelu(data: Any, alpha: float = 0.01) -> Expr:
    """data where positive, else alpha * data."""
    return make_call("relax.nn.leakyrelu", (as_expr(data),), {"alpha": float(number(alpha))})


register_op("relax.nn.leakyrelu", infer_float)


def softplus(data: Any, beta: float = 1.0, threshold: float = 20.0) -> Expr:
    """log(1 + exp(beta * data)) / beta; data itself above the threshold."""
    return make_call("relax.nn.softplus", (as_expr(data),), {
        "beta": float(beta), "threshold": float(threshold)})


register_op("relax.nn.softplus", infer_float)


def prelu(data: Any, alpha: Any, axis: int = 1) -> Expr:
    """data where positive, else alpha (one a channel) * data."""
    return make_call("relax.nn.prelu", (as_expr(data), as_expr(alpha)),
                     {"axis": whole("axis", axis)})


def _infer_prelu(call: Call) -> StructInfo:
    info, alpha = infer_float(call), tensor_info(call, 1, "alpha")
    join_dtype(call, info.dtype, alpha.dtype, ("data", "alpha"))
    need_ndim(call, alpha, 1, "alpha")
    if info.ndim != -1:
        axis = axis_of(call, call.attrs.axis, info.ndim)
        if info.dims is not None and alpha.dims is not None:
            need_same(call, info.dims[axis], alpha.dims[0], lambda: (
                f"data is {show(info)} and alpha is {show(alpha)}: dimension {axis} of data must "
                "have alpha's extent"))
    return info


register_op("relax.nn.prelu", _infer_prelu)


def _along_axis(name: str) -> Callable[..., Expr]:
    def infer(call: Call) -> StructInfo:
        info = tensor_info(call, 0, "data")
        need_float(call, info, "data")
        if info.ndim != -1:
            axis_of(call, call.attrs.axis, info.ndim)
        return like(info)

    register_op(f"relax.nn.{name}", infer)

    def build(data: Any, axis: int = -1) -> Expr:
        return make_call(f"relax.nn.{name}", (as_expr(data),), {"axis": whole("axis", axis)})

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{name} along `axis`."
    return build


softmax, log_softmax = _along_axis("softmax"), _along_axis("log_softmax")


def pad(data: Any, pad_width: Any, pad_mode: str | None = "constant",
        pad_value: float | None = 0.0) -> Expr:
    """data with `pad_width` (before, after of each dimension, flat) elements around it."""
    if pad_width and isinstance(pad_width[0], (tuple, list)):
        pad_width = [p for pair in pad_width for p in pair]
    if isinstance(pad_mode, (int, float)):  # older order: pad_width, pad_value, pad_mode
        pad_mode, pad_value = "constant", pad_mode
    return make_call("relax.nn.pad", (as_expr(data),), {
        "pad_width": ints(pad_width), "pad_value": float(number(pad_value or 0.0)),
        "pad_mode": str(pad_mode)})


def _infer_pad(call: Call) -> StructInfo:
    info, widths = tensor_info(call, 0, "data"), call.attrs.pad_width
    if info.ndim != -1 and len(widths) != 2 * info.ndim:
        raise misfit(call, f"data is {show(info)}; pad_width must have {2 * info.ndim} numbers, "
                           f"it has {len(widths)}")
    mode = call.attrs.pad_mode
    one_of(call, "pad_mode", mode, ("constant", "reflect", "replicate", "edge", "circular"))
    if info.dims is None:
        return TensorStructInfo(None, info.dtype, ndim=info.ndim)
    for k, d in enumerate(info.dims):
        around = widths[2 * k:2 * k + 2]
        most_around = max((w for w in around if isinstance(w, int)), default=0)
        if mode == "constant":
            if sum(w for w in around if isinstance(w, int)) < 0:
                need_at_least(call, d, as_dim(-sum(around)), lambda k=k, around=around: (
                    f"data is {show(info)}: {list(around)} takes more from dimension {k} than it "
                    "has"))
        elif most_around > 0:
            least = {"reflect": most_around + 1, "circular": most_around}.get(mode, 1)
            most = getattr(d, "value", 0) - least + most_around if least > 1 else 0
            need_at_least(call, d, as_dim(least), lambda k=k, around=around, most=most: (
                f"data is {show(info)}: pad_mode {mode!r} adds at most {most} element(s) along "
                f"dimension {k}, not {list(around)}"))
    return tensor_of([O.add(d, as_dim(widths[2 * k] + widths[2 * k + 1]))
                      for k, d in enumerate(info.dims)], info.dtype)


register_op("relax.nn.pad", _infer_pad)


def pixel_shuffle(data: Any, upscale_factor: int) -> Expr:
    """Channels moved into height and width, as torch's PixelShuffle."""
    return make_call("relax.nn.pixel_shuffle", (as_expr(data),), {
        "upscale_factor": whole("upscale_factor", upscale_factor)})


def _infer_pixel_shuffle(call: Call) -> StructInfo:
    info, r = tensor_info(call, 0, "data"), call.attrs.upscale_factor
    if r < 1 or -1 < info.ndim < 3:
        raise misfit(call, f"data is {show(info)} and upscale_factor {r}: three dimensions at the "
                           "least and a positive factor are needed")
    if info.dims is None:
        return TensorStructInfo(None, info.dtype, ndim=info.ndim)
    *lead, c, h, w = info.dims
    need_multiple(call, c, r * r, lambda: (
        f"data is {show(info)}: its channels are no multiple of {r}²"))
    return tensor_of([*lead, O.floordiv(c, as_dim(r * r)), O.mul(h, as_dim(r)),
                      O.mul(w, as_dim(r))], info.dtype)


register_op("relax.nn.pixel_shuffle", _infer_pixel_shuffle)


def batch_flatten(data: Any) -> Expr:
    """All dimensions but the first as one."""
    return make_call("relax.nn.batch_flatten", (as_expr(data),))


def _infer_batch_flatten(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "data")
    if info.ndim == 0:
        raise misfit(call, "data is a scalar, it has no first dimension")
    return tensor_of(None if info.dims is None else [info.dims[0], product(info.dims[1:])],
                     info.dtype, 2)


register_op("relax.nn.batch_flatten", _infer_batch_flatten)


# ------------------------------------------------------------------------------- norms


def _check_affine(call: Call, data: TensorStructInfo, axes: tuple[int, ...],
                  names: tuple[str, ...]) -> None:
    """Scales and offsets must have the extents of the axes they apply to."""
    for index, name in enumerate(names, 1):
        info = tensor_info(call, index, name)
        need_ndim(call, info, len(axes), name)
        join_dtype(call, data.dtype, info.dtype, ("data", name))
        if data.dims is None or info.dims is None:
            continue
        for axis, extent in zip(axes, info.dims):
            need_same(call, data.dims[axis], extent, lambda axis=axis, name=name, info=info: (
                f"data is {show(data)} and {name} is {show(info)}: dimension {axis} of data must "
                f"have {name}'s extent"))


def batch_norm(data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, axis: int,
               epsilon: float = 1e-5, center: bool = True, scale: bool = True,
               momentum: float = 0.1, training: bool = True) -> Expr:
    """Normalized over all axes but `axis`: (result, new moving mean, new moving variance)."""
    return make_call("relax.nn.batch_norm", tuple(map(as_expr, (
        data, gamma, beta, moving_mean, moving_var))), {
        "axis": whole("axis", axis), "epsilon": float(number(epsilon)), "center": bool(center),
        "scale": bool(scale), "momentum": float(number(momentum)), "training": bool(training)})


def _infer_batch_norm(call: Call) -> StructInfo:
    data = tensor_info(call, 0, "data")
    need_float(call, data, "data")
    if data.ndim != -1:
        axis = axis_of(call, call.attrs.axis, data.ndim)
        _check_affine(call, data, (axis,), ("gamma", "beta", "moving_mean", "moving_var"))
    return TupleStructInfo([like(data), like(tensor_info(call, 3)), like(tensor_info(call, 4))])


register_op("relax.nn.batch_norm", _infer_batch_norm)


def layer_norm(data: Any, gamma: Any, beta: Any, axes: Any, epsilon: float = 1e-5,
               center: bool = True, scale: bool = True) -> Expr:
    """Normalized over `axes`, then scaled by gamma and moved by beta."""
    return make_call("relax.nn.layer_norm", (as_expr(data), as_expr(gamma), as_expr(beta)), {
        "axes": ints(axes), "epsilon": float(number(epsilon)), "center": bool(center),
        "scale": bool(scale)})


def _infer_layer_norm(call: Call) -> StructInfo:
    data = tensor_info(call, 0, "data")
    need_float(call, data, "data")
    if data.ndim != -1:
        axes = axes_of(call, call.attrs.axes, data.ndim)
        names = ("gamma", "beta") if "center" in call.attrs else ("weight",)
        _check_affine(call, data, tuple(sorted(axes)), names)
    return like(data)


register_op("relax.nn.layer_norm", _infer_layer_norm)


def rms_norm(data: Any, weight: Any, axes: Any = -1, epsilon: float = 1e-5) -> Expr:
    """data / sqrt(mean(data**2) + epsilon) * weight over `axes`."""
    return make_call("relax.nn.rms_norm", (as_expr(data), as_expr(weight)), {
        "axes": ints(axes), "epsilon": float(number(epsilon))})


register_op("relax.nn.rms_norm", _infer_layer_norm)


def group_norm(data: Any, gamma: Any, beta: Any, num_groups: int, channel_axis: int, axes: Any,
               epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Expr:
    """Normalized over `axes` and each of the groups of channels."""
    return make_call("relax.nn.group_norm", (as_expr(data), as_expr(gamma), as_expr(beta)), {
        "num_groups": whole("num_groups", num_groups),
        "channel_axis": whole("channel_axis", channel_axis), "axes": ints(axes),
        "epsilon": float(number(epsilon)), "center": bool(center), "scale": bool(scale)})


def instance_norm(data: Any, gamma: Any, beta: Any, channel_axis: int, axes: Any,
                  epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Expr:
    """Normalized over `axes` for each channel of each instance."""
    return make_call("relax.nn.instance_norm", (as_expr(data), as_expr(gamma), as_expr(beta)), {
        "channel_axis": whole("channel_axis", channel_axis), "axes": ints(axes),
        "epsilon": float(number(epsilon)),
        "center": bool(center), "scale": bool(scale)})


def _infer_channel_norm(call: Call) -> StructInfo:
    data = tensor_info(call, 0, "data")
    need_float(call, data, "data")
    if data.ndim != -1:
        channel = axis_of(call, call.attrs.channel_axis, data.ndim, "channel_axis")
        if channel in axes_of(call, call.attrs.axes, data.ndim):
            raise misfit(call, f"axes are {list(call.attrs.axes)}: the channels, axis {channel}, "
                               "cannot be among them")
        _check_affine(call, data, (channel,), ("gamma", "beta"))
        if "num_groups" in call.attrs:
            need_numbers(call, 1, "num_groups")
            if data.dims is not None:
                extent, groups = data.dims[channel], call.attrs.num_groups
                need_multiple(call, extent, groups, lambda: (
                    f"data is {show(data)}: its {dim_text(extent)} channels do not make {groups} "
                    "groups"))
    return like(data)


register_op("relax.nn.group_norm", _infer_channel_norm)
register_op("relax.nn.instance_norm", _infer_channel_norm)


def dropout(data: Any, rate: float = 0.5) -> Expr:
    """(data with a share `rate` of it zeroed, the mask): the identity in inference."""
    return make_call("relax.nn.dropout", (as_expr(data),), {"rate": float(rate)})


def _infer_dropout(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "data")
    return TupleStructInfo([like(info), like(info)])


register_op("relax.nn.dropout", _infer_dropout)


# ------------------------------------------------------------------------------- losses


def cross_entropy_with_logits(predictions: Any, labels: Any) -> Expr:
    """-sum(labels * predictions), divided by the batch where there is one."""
    return make_call("relax.nn.cross_entropy_with_logits", (as_expr(predictions),
                                                            as_expr(labels)))


def _infer_cross_entropy(call: Call) -> StructInfo:
    a, b = tensor_info(call, 0, "predictions"), tensor_info(call, 1, "labels")
    dtype = join_dtype(call, a.dtype, b.dtype, ("predictions", "labels"))
    need_float(call, a, "predictions")
    need_same_dims(call, a, b, ("predictions", "labels"))
    return tensor_of((), dtype)


register_op("relax.nn.cross_entropy_with_logits", _infer_cross_entropy)


def nll_loss(predictions: Any, targets: Any, weights: Any = None, reduction: str = "mean",
             ignore_index: int = -100) -> Expr:
    """-weights[t] * predictions[n, t] for each target t, reduced by mean, sum or none."""
    args = [as_expr(predictions), as_expr(targets)]
    if weights is not None:
        args.append(as_expr(weights))
    return make_call("relax.nn.nll_loss", tuple(args), {
        "reduction": str(reduction), "ignore_index": whole("ignore_index", ignore_index)})


def _infer_nll(call: Call) -> StructInfo:
    pred, target = tensor_info(call, 0, "predictions"), tensor_info(call, 1, "targets")
    if call.attrs.reduction not in ("mean", "sum", "none"):
        raise misfit(call, f"reduction is mean, sum or none, not {call.attrs.reduction!r}")
    if -1 not in (pred.ndim, target.ndim) and pred.ndim != target.ndim + 1:
        raise misfit(call, f"predictions is {show(pred)} and targets is {show(target)}: targets "
                           "have one dimension, the classes, less")
    need_float(call, pred, "predictions")
    need_integer(call, target, "targets")
    if pred.dims is not None:
        where = 0 if pred.ndim == 1 else 1
        rest = [d for k, d in enumerate(pred.dims) if k != where]
        for a, b in zip(rest, target.dims or ()):
            need_same(call, a, b, lambda: (
                f"predictions is {show(pred)} and targets is {show(target)}: targets must have "
                "the shape of predictions without the classes"))
        if len(call.args) > 2:
            weights = tensor_info(call, 2, "weights")
            need_ndim(call, weights, 1, "weights")
            join_dtype(call, pred.dtype, weights.dtype, ("predictions", "weights"))
            if weights.dims is not None:
                need_same(call, pred.dims[where], weights.dims[0], lambda: (
                    f"predictions is {show(pred)} and weights is {show(weights)}: there must be a "
                    "weight for each class"))
    return like(target, pred.dtype) if call.attrs.reduction == "none" else tensor_of(
        (), pred.dtype)


register_op("relax.nn.nll_loss", _infer_nll)


# ------------------------------------------------------------------------------- attention


def attention(query: Any, key: Any, value: Any, bias: Any = None, scale: Any = None,
              causal_mask: str | None = None, window_size: int | None = None) -> Expr:
    """softmax(query @ key.T * scale + bias) @ value on [batch, length, heads, head size].

    `scale` is 1/sqrt(head size) where it is not given; `causal_mask` is "TopLeft", "BottomRight"
    or None.
    """
    args = tuple(map(as_expr, (query, key, value)))
    attrs = {"scale": None if scale is None else float(number(scale)),
             "causal_mask": causal_mask,
             "window_size": None if window_size is None else whole("window_size", window_size)}
    if bias is not None:
        return make_call("relax.nn.attention_bias", (*args, as_expr(bias)), attrs)
    return make_call("relax.nn.attention", args, attrs)


def _infer_attention(call: Call) -> StructInfo:
    names = ("query", "key", "value")
    infos = [tensor_info(call, k, n) for k, n in enumerate(names)]
    q, k, v = infos
    one_of(call, "causal_mask", call.attrs.causal_mask, (None, "TopLeft", "BottomRight"))
    need_float(call, q, "query")
    for info, name in zip(infos, names):
        need_ndim(call, info, 4, name)
        join_dtype(call, q.dtype, info.dtype, ("query", name))
    if any(i.dims is None for i in infos):
        return TensorStructInfo(None, q.dtype, ndim=4)
    for dim, other, what in ((0, k, "key"), (2, k, "key"), (3, k, "key"), (0, v, "value"),
                             (2, v, "value")):
        need_same(call, q.dims[dim], other.dims[dim], lambda dim=dim, other=other, what=what: (
            f"query is {show(q)} and {what} is {show(other)}: dimension {dim} must agree"))
    need_same(call, k.dims[1], v.dims[1], lambda: (
        f"key is {show(k)} and value is {show(v)}: dimension 1 must agree"))
    if len(call.args) > 3:
        bias = tensor_info(call, 3, "bias")
        need_ndim(call, bias, 4, "bias")
        if bias.dims is not None:
            wanted = (q.dims[0], q.dims[2], q.dims[1], k.dims[1])
            need_fill(call, bias, wanted, "bias")
    return tensor_of([*q.dims[:3], v.dims[3]], q.dtype)


register_op("relax.nn.attention", _infer_attention)
register_op("relax.nn.attention_bias", _infer_attention)
attention_bias = attention

__all__ = [*_CONV, *_POOL, "attention", "attention_bias", "batch_flatten", "batch_norm",
           "cross_entropy_with_logits", "dropout", "gelu", "gelu_tanh", "group_norm",
           "instance_norm", "layer_norm", "leakyrelu", "log_softmax", "nll_loss", "pad",
           "pixel_shuffle", "prelu", "relu", "relu6", "rms_norm", "selu", "silu", "softmax",
           "softplus"]

"""Samples of the operators of R.nn and R.image, and of quantisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlc_lab.relax import op
from mlc_lab.relax.op import image, nn

from .harness import Draw
from .operator_samples import (
    FLOATS, SAMPLES, Sample, _exactly, _same_type, axis_in, by_torch, data, sample, shape_of,
    torch,
)

F = torch.nn.functional if torch is not None else None


def _reference(fn: Any) -> Any:
    """A reference in torch for tensors of one dtype."""
    run = by_torch(fn)
    return run and (lambda *arrays: run(*_same_type(arrays)))


def _conv(rank: int, transposed: bool) -> None:
    name = f"conv{rank}d" + "_transpose" * transposed

    def make(draw: Draw) -> Sample:
        groups = draw.choice((1, 1, 2))
        ins, outs = (groups * draw.integer(1, 2) for _ in range(2))
        stride, pad, dilation = draw.integer(1, 2), draw.integer(0, 1), draw.integer(1, 2)
        kernel = [draw.integer(1, 2) for _ in range(rank)]
        x = data(draw, (draw.integer(1, 2), ins, *(draw.integer(3, 5) for _ in range(rank))))
        w = data(draw, (ins, outs // groups, *kernel) if transposed
                 else (outs, ins // groups, *kernel))
        kind = {"strides": stride, "padding": pad, "dilation": dilation, "groups": groups}
        function = F and getattr(F, f"conv_transpose{rank}d" if transposed else f"conv{rank}d")

        def want(x: Any, w: Any) -> Any:
            if x.dim() != rank + 2:
                raise ValueError("without a batch")
            return function(x, w, None, stride, pad, dilation=dilation, groups=groups)

        return Sample([x, w], lambda x, w: getattr(nn, name)(x, w, **kind), _reference(want),
                      str(kind))

    SAMPLES[f"relax.nn.{name}"] = make


def _pool(kind: str, rank: int) -> None:
    name = f"{kind}_pool{rank}d"

    def make(draw: Draw) -> Sample:
        size, stride = draw.integer(1, 3), draw.integer(1, 2)
        pad, ceil = draw.integer(0, size // 2), draw.chance(30)
        x = data(draw, (draw.integer(1, 2), 2, *(draw.integer(2, 5) for _ in range(rank))))
        function = F and getattr(F, name)
        more = {"count_include_pad": True} if kind == "avg" else {}

        def want(x: Any) -> Any:
            if x.dim() != rank + 2:
                raise ValueError("without a batch")
            return function(x, size, stride, pad, ceil_mode=ceil, **more)

        def some(x: Any) -> None:
            if x.ndim != rank + 2 or any(d + 2 * pad < size - ceil * (stride - 1)
                                         for d in x.shape[2:]):
                raise ValueError("no window fits")

        # TVM's last window may begin in the padding, torch's may not
        reference = some if ceil or kind == "avg" and pad else _reference(want)
        return Sample([x], lambda x: getattr(nn, name)(x, size, stride, pad, ceil_mode=ceil,
                                                       **more), reference, f"{size=} {stride=}")

    SAMPLES[f"relax.nn.{name}"] = make


def _adaptive(rank: int, kind: str = "avg") -> None:
    name = f"adaptive_{kind}_pool{rank}d"

    def make(draw: Draw) -> Sample:
        size = [draw.integer(1, 4) for _ in range(rank)]
        x = data(draw, (1, 2, *(draw.integer(1, 5) for _ in range(rank))))
        function = F and getattr(F, name)
        return Sample([x], lambda x: getattr(nn, name)(x, size), _reference(
            lambda x: function(x, size) if x.dim() == rank + 2 else 1 / 0), f"{size=}")

    SAMPLES[f"relax.nn.{name}"] = make


for _rank in (1, 2, 3):
    for _kind in (False, True):
        _conv(_rank, _kind)
    _pool("max", _rank)
    _pool("avg", _rank)
    _adaptive(_rank)
_adaptive(2, "max")


@sample("nn.softmax", "nn.log_softmax")
def _softmax(draw: Draw) -> Sample:
    name, shape = draw.choice(("softmax", "log_softmax")), shape_of(draw, 1)
    axis = axis_in(draw, len(shape))
    function = F and getattr(F, name)
    return Sample([data(draw, shape, draw.choice(FLOATS))], lambda x: getattr(nn, name)(x, axis),
                  _reference(lambda x: function(x, axis)), f"{axis=}")


@sample("nn.prelu")
def _prelu(draw: Draw) -> Sample:
    shape = shape_of(draw, 2)

    def want(x: Any, a: Any) -> Any:
        if a.shape != (x.shape[1],) or a.dtype != x.dtype:
            raise ValueError("alpha")
        return np.where(x > 0, x, x * a.reshape(1, -1, *[1] * (x.ndim - 2)))

    return Sample([data(draw, shape), data(draw, shape[1:2])], nn.prelu, want)


@sample("nn.pad")
def _pad(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]
    widths = [draw.integer(0, 2) for _ in range(2 * len(shape))]
    mode = draw.choice(("constant", "constant", "reflect", "replicate", "edge", "nonsense"))
    if mode == "reflect":
        widths = [min(w, shape[k // 2] - 1) for k, w in enumerate(widths)]
    kinds = {"constant": {}, "reflect": {"mode": "reflect"}, "replicate": {"mode": "edge"},
             "edge": {"mode": "edge"}}

    def want(x: Any) -> Any:
        return np.pad(x, np.reshape(widths, (x.ndim, 2)), **kinds[mode])

    return Sample([data(draw, shape)], lambda x: nn.pad(x, widths, mode), want, f"{widths} {mode}")


@sample("nn.pixel_shuffle")
def _pixel_shuffle(draw: Draw) -> Sample:
    r = draw.integer(1, 2)
    x = data(draw, (*shape_of(draw, 0, 1), r * r * draw.integer(1, 2), draw.integer(1, 3), 2))
    return Sample([x], lambda x: nn.pixel_shuffle(x, r), _reference(
        lambda x: F.pixel_shuffle(x, r)))


@sample("nn.batch_flatten")
def _batch_flatten(draw: Draw) -> Sample:
    return Sample([data(draw, tuple(max(d, 1) for d in shape_of(draw, 1)))], nn.batch_flatten,
                  lambda x: x.reshape(x.shape[0], -1))


@sample("nn.batch_norm")
def _batch_norm(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 2)]
    vectors = [data(draw, (shape[1],), "float32", 0.5, 2) for _ in range(4)]

    def want(x: Any, *rest: Any) -> Any:
        g, b, m, v = (_exactly(r, 1).reshape(-1, *[1] * (x.ndim - 2)) for r in rest)
        if {r.shape for r in rest} != {(x.shape[1],)} or len({x.dtype, *(
                r.dtype for r in rest)}) > 1:
            raise ValueError("does not fit")
        return (x - m) / np.sqrt(v + 1e-5) * g + b

    return Sample([data(draw, shape), *vectors], lambda *xs: op_first(
        nn.batch_norm(*xs, axis=1, training=False)), want)


def op_first(value: Any) -> Any:
    from mlc_lab.relax import TupleGetItem

    return TupleGetItem(value, 0)


@sample("nn.layer_norm", "nn.rms_norm")
def _layer_norm(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]
    count = draw.integer(1, len(shape))
    axes, tail = [k - count for k in range(count)], shape[len(shape) - count:]
    x, g, b = data(draw, shape), data(draw, tail), data(draw, tail)
    if draw.chance(50):
        return Sample([x, g, b], lambda x, g, b: nn.layer_norm(x, g, b, axes), _reference(
            lambda x, g, b: F.layer_norm(x, x.shape[x.dim() - count:], g, b)
            if x.dim() >= count else 1 / 0))
    return Sample([x, g], lambda x, g: nn.rms_norm(x, g, axes), _reference(
        lambda x, g: F.rms_norm(x, x.shape[x.dim() - count:], g, 1e-5)
        if x.dim() >= count else 1 / 0))


@sample("nn.group_norm", "nn.instance_norm")
def _group_norm(draw: Draw) -> Sample:
    groups = draw.integer(1, 3)
    channels = groups * draw.integer(1, 2)
    x = data(draw, (draw.integer(1, 2), channels, draw.integer(2, 3), 2))
    g, b = data(draw, (channels,)), data(draw, (channels,))
    def of_images(x: Any) -> Any:
        if x.dim() != 4:  # other axes are left, of which torch says nothing
            raise NotImplementedError
        return x

    if draw.chance(50):
        return Sample([x, g, b], lambda x, g, b: nn.group_norm(x, g, b, groups, 1, [2, 3]),
                      _reference(lambda x, g, b: F.group_norm(of_images(x), groups, g, b)))
    return Sample([x, g, b], lambda x, g, b: nn.instance_norm(x, g, b, 1, [2, 3]), _reference(
        lambda x, g, b: F.instance_norm(of_images(x), weight=g, bias=b)))


@sample("nn.dropout")
def _dropout(draw: Draw) -> Sample:
    return Sample([data(draw, shape_of(draw))], lambda x: op_first(nn.dropout(x, 0.5)),
                  lambda x: x)


@sample("nn.cross_entropy_with_logits")
def _cross_entropy(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]

    def want(p: Any, y: Any) -> Any:
        if p.shape != y.shape or p.dtype != y.dtype:
            raise ValueError("does not fit")
        return np.asarray(-(p * y).sum() / (p.shape[0] if p.ndim > 1 else 1), p.dtype)

    return Sample([data(draw, shape), data(draw, shape)], nn.cross_entropy_with_logits, want)


@sample("nn.nll_loss")
def _nll_loss(draw: Draw) -> Sample:
    rest, classes = tuple(max(d, 1) for d in shape_of(draw, 0, 2)), draw.integer(1, 4)
    shape = (*rest[:1], classes, *rest[1:])
    targets = data(draw, rest, "int64", 0, classes + draw.chance(8))
    kind = draw.choice(("mean", "sum", "none"))
    weights = [data(draw, (classes,), "float32", 0.5, 2)] if draw.chance(50) else []

    def want(p: Any, t: Any, *w: Any) -> Any:
        if t.dtype.is_floating_point or t.dtype == torch.bool:
            raise TypeError("targets")
        return F.nll_loss(p, t.long(), *w, reduction=kind)

    return Sample([data(draw, shape), targets, *weights],
                  lambda p, t, *w: nn.nll_loss(p, t, *w, reduction=kind), by_torch(want), kind)


@sample("nn.attention", "nn.attention_bias")
def _attention(draw: Draw) -> Sample:
    batch, heads, size, width = (draw.integer(1, 3) for _ in range(4))
    queries, keys = draw.integer(1, 4), draw.integer(1, 4)
    q = data(draw, (batch, queries, heads, size))
    k, v = (data(draw, (batch, keys, heads, d)) for d in (size, width))
    bias = [data(draw, (draw.choice((1, batch)), draw.choice((1, heads)), queries, keys))] if (
        draw.chance(50)) else []
    if bias and draw.chance(50):  # a query may be left with nothing to look at
        bias[0][data(draw, bias[0].shape, "bool")] = -np.inf
    causal = draw.choice((None, None, "TopLeft", "BottomRight")) if not bias else None

    def want(q: Any, k: Any, v: Any, *bias: Any) -> Any:
        if causal:
            seen = torch.ones(q.shape[1], k.shape[1]).tril(
                0 if causal == "TopLeft" else k.shape[1] - q.shape[1]).bool()
            bias = (torch.where(seen, 0.0, -math.inf)[None, None],)
        if {x.dim() for x in (q, k, v, *bias)} != {4} or not q.shape[::2] == k.shape[
                ::2] == v.shape[::2] or k.shape[1] != v.shape[1]:
            raise ValueError("does not fit")
        return F.scaled_dot_product_attention(
            *(x.transpose(1, 2) for x in (q, k, v)), *bias).transpose(1, 2)

    return Sample([q, k, v, *bias], lambda q, k, v, *b: nn.attention(
        q, k, v, *b, causal_mask=causal), _reference(want))


@sample("image.resize2d")
def _resize(draw: Draw) -> Sample:
    size = (draw.integer(1, 6), draw.integer(1, 6))
    method = draw.choice(("nearest_neighbor", "linear", "cubic"))
    mode = "asymmetric" if method == "nearest_neighbor" else "half_pixel"
    kinds = {"linear": "bilinear", "cubic": "bicubic", "nearest_neighbor": "nearest"}
    more = {} if method == "nearest_neighbor" else {"align_corners": False}
    x = data(draw, (1, 2, draw.integer(1, 5), draw.integer(1, 5)))
    return Sample([x], lambda x: image.resize2d(
        x, size, None, "NCHW", method, mode, "floor"), _reference(
        lambda x: F.interpolate(x, size, mode=kinds[method], **more)) if method != "cubic"
        else None, f"{size=} {method}")


@sample("quantize", "dequantize")
def _quantize(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]
    axis = draw.integer(-len(shape), len(shape) - 1)
    extent = (shape[axis],) if draw.chance(60) else ()
    scale, zero = data(draw, extent, "float32", 0.05, 1), data(draw, extent, "int8", -5, 5)
    if draw.chance(50):
        return Sample([data(draw, shape), scale, zero], lambda x, s, z: op.quantize(
            x, s, z, axis, "int8"), None, f"{axis=}")
    return Sample([data(draw, shape, "int8", -9, 9), scale, zero],
                  lambda x, s, z: op.dequantize(x, s, z, axis), None, f"{axis=}")


@sample("nn.cross_entropy", "nn.softmax_cross_entropy")
def _cross_entropy_of_2022(draw: Draw) -> Sample:
    name, shape = draw.choice(("cross_entropy", "softmax_cross_entropy")), (3, draw.integer(1, 4))

    def want(p: Any, y: Any) -> Any:
        if p.shape != y.shape or p.dtype != y.dtype:
            raise ValueError("does not fit")
        if name == "softmax_cross_entropy":
            p = np.exp(p - p.max(-1, keepdims=True))
            p = p / p.sum(-1, keepdims=True)
        return np.asarray(-(np.log(p) * y).sum(), p.dtype)

    positive = np.abs(data(draw, shape, "float32")) + np.float32(0.5)
    return Sample([positive, data(draw, shape, "float32")], getattr(nn, name), want)

"""Other numbers for the counts, indices, axes and sizes of a call, and what numpy or torch say.

`changed` takes a call of an operator and chooses one whole number of it, or how many there are, to
be another. `FITS` says by numpy or torch what comes of it: a function of the numbers by
the names of their parameters, and of the arrays. It raises for what does not fit, and gives the
result, or None where only the shape is checked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from mlc_lab import tir
from mlc_lab.relax import Call, PrimValue, ShapeExpr, Tuple
from mlc_lab.relax.op.declare import CONSTRUCTORS

from .harness import Draw
from .operator_samples import torch

F = torch.nn.functional if torch is not None else None
Fit = Callable[..., Any]
FITS: dict[str, Fit] = {}
#: numbers that are no counts, indices, axes or sizes: any will do
ANY = {"ignore_index", "min", "max", "on_value", "off_value", "k of tril", "k of triu",
       "k of trilu", "k of eye_like", "cubic_exclude", "sorted", "return_index", "return_inverse",
       "return_counts"}


def fits(*names: str) -> Callable[[Fit], Fit]:
    """Decorator: what numpy or torch make of the numbers of operators."""
    def add(fit: Fit) -> Fit:
        FITS.update((f"relax.{name}", fit) for name in names)
        return fit

    return add


# ------------------------------------------------------------------------------- changing


def _plain(value: Any) -> Any:
    """A number, or numbers, of an argument or attribute as Python has them; else None."""
    if isinstance(value, PrimValue):
        value = value.value
    if isinstance(value, tir.IntImm):
        return value.value
    if isinstance(value, (Tuple, ShapeExpr)):
        value = tuple(value.fields_ if isinstance(value, Tuple) else value.values)
    if isinstance(value, tuple):
        parts = tuple(map(_plain, value))
        return None if None in parts else parts
    return value if type(value) is int else None


def parameters(name: str) -> list[str]:
    """The parameters of the constructor of an operator."""
    built = CONSTRUCTORS[name]
    return list(inspect.signature(getattr(built, "__wrapped__", built)).parameters)


def given_to(name: str, call: Call) -> dict[str, Any]:
    """What a call holds, by the parameters of its constructor."""
    args = iter(call.args)
    attrs = call.attrs or {}
    return {p: attrs[p] if p in attrs else next(args, None) for p in parameters(name)}


def changed(draw: Draw, name: str, call: Call) -> dict[str, Any]:
    """Another value for one parameter that is a number, or numbers; none if there is no such."""
    given = given_to(name, call)
    short = name.rpartition(".")[2]
    numbers = {p: n for p, v in given.items() if (n := _plain(v)) is not None
               and not {p, f"{p} of {short}"} & ANY}
    if not numbers:
        return {}
    which = draw.choice(sorted(numbers))
    value = numbers[which]
    if type(value) is int:
        return {which: _other(draw, value)}
    kind, parts = draw.integer(0, 5), list(value)
    at = draw.integer(0, max(0, len(parts) - 1))
    if kind == 4 and len(parts) > 1:
        parts.pop(at)
    elif kind == 5 or not parts:
        parts.insert(at, draw.choice((1, 0, *parts)))
    else:
        parts[at] = _other(draw, parts[at])
    return {which: tuple(parts)}


def _other(draw: Draw, value: int) -> int:
    return draw.choice((value + 1, value - 1, -value, 0, 1, 2, 9, -9, 5, -2))


def numbers_of(given: dict[str, Any]) -> SimpleNamespace:
    """The numbers as Python has them, by name; None where there is none."""
    return SimpleNamespace(**{p: v if isinstance(v, (bool, str, float)) else _plain(v)
                              for p, v in given.items()})


# ------------------------------------------------------------------------------- what fits


def _need(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


def _axis(axis: Any, ndim: int) -> int:
    _need(-ndim <= axis < ndim, f"axis {axis} of {ndim}")
    return axis % ndim


def _axes(axes: Any, ndim: int) -> list[int]:
    found = [_axis(a, ndim) for a in axes]
    _need(len(set(found)) == len(found), "an axis twice")
    return found


def _torch(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(n: Any, *arrays: np.ndarray) -> Any:
        out = fn(n, *(torch.from_numpy(np.array(a)) for a in arrays))
        return out if out is None else out.numpy()

    return run


@fits("sum", "prod", "max", "min", "mean", "std", "variance", "argmax", "argmin")
def _reduction(n: Any, x: Any) -> None:
    if n.axis is not None:
        np.sum(x, n.axis)


@fits("cumsum", "cumprod")
def _scan(n: Any, x: Any) -> None:
    if n.axis is not None:
        _axis(n.axis, x.ndim)


@fits("sort", "argsort", "flip", "nn.softmax", "nn.log_softmax")
def _along(n: Any, x: Any) -> None:
    _axis(n.axis, x.ndim)


@fits("unique")
def _unique(n: Any, x: Any) -> Any:
    return np.unique(x, axis=n.axis)


@fits("topk")
def _topk(n: Any, x: Any) -> Any:
    extent = x.shape[_axis(n.axis, x.ndim)]
    _need(n.k <= extent, "more than there are")
    values = np.sort(x, n.axis)
    values = np.flip(values, n.axis) if n.largest else values
    return np.take(values, range(n.k if n.k > 0 else extent), n.axis)  # as TVM: all for k < 1


@fits("concat")
def _concat(n: Any, *xs: Any) -> Any:
    return np.concatenate(xs, n.axis)


@fits("stack")
def _stack(n: Any, *xs: Any) -> Any:
    return np.stack(xs, n.axis or 0)


@fits("split")
def _split(n: Any, x: Any) -> None:
    extent, by = x.shape[_axis(n.axis, x.ndim)], n.indices_or_sections
    if isinstance(by, tuple):  # cuts rise
        _need(list(by) == sorted(by) and min(by, default=0) >= 0 and max(by, default=0) <= extent,
              "cuts")
    else:  # pieces of one size but the last
        _need(by >= 1 and -(-extent // by) * (by - 1) <= extent, "pieces")


@fits("expand_dims")
def _expand(n: Any, x: Any) -> Any:
    return np.expand_dims(x, n.axis)


@fits("squeeze")
def _squeeze(n: Any, x: Any) -> Any:
    return np.squeeze(x, n.axis)


@fits("permute_dims")
def _permute(n: Any, x: Any) -> Any:
    return np.transpose(x, n.axes)


@fits("repeat")
def _repeat(n: Any, x: Any) -> Any:
    return np.repeat(x, n.repeats, n.axis)


@fits("tile")
def _tile(n: Any, x: Any) -> Any:
    _need(min(n.repeats, default=0) >= 0, "negative")
    return np.tile(x, n.repeats)


@fits("take")
def _take(n: Any, x: Any, i: Any) -> Any:
    _need(n.axis is not None or x.ndim == 1, "axis of several")
    count = x.shape[_axis(n.axis or 0, x.ndim)]
    _need(count > 0 or not i.size, "nothing there")
    i = i.astype("int64")
    return np.take(x, np.clip(np.where(i < 0, i + count, i), 0, count - 1), n.axis or 0)


@fits("gather_elements", "scatter_elements")
def _elements(n: Any, x: Any, i: Any, *rest: Any) -> None:
    axis = _axis(n.axis, x.ndim)
    _need(all(b <= a for k, (a, b) in enumerate(zip(x.shape, i.shape)) if k != axis), "too many")


@fits("gather_nd")
def _gather_nd(n: Any, x: Any, i: Any) -> None:
    batch = n.batch_dims
    _need(0 <= batch < i.ndim and i.shape[-1] + batch <= x.ndim, "batch")
    _need(x.shape[:batch] == i.shape[:batch], "batch")


@fits("slice_scatter")
def _slice_scatter(n: Any, x: Any, src: Any) -> Any:
    at = (slice(None),) * _axis(n.axis, x.ndim) + (slice(n.start, n.end, n.step),)
    _need(n.step > 0 and x[at].shape == src.shape, "does not fit")
    out = x.copy()
    out[at] = src
    return out


@fits("strided_slice")
def _strided_slice(n: Any, x: Any) -> Any:
    by = n.strides or (1,) * len(n.axes)
    _need(len(n.axes) == len(n.begin) == len(n.end) == len(by), "lengths")
    at = [slice(None)] * x.ndim
    for k, low, high, step in zip(_axes(n.axes, x.ndim), n.begin, n.end, by):
        at[k] = slice(low, high, step)
    return x[tuple(at)]


@fits("one_hot")
def _one_hot(n: Any, i: Any) -> None:
    _need(n.depth > 0, "depth")
    _axis(n.axis, i.ndim + 1)


@fits("broadcast_to")
def _broadcast_to(n: Any, x: Any) -> Any:
    return np.broadcast_to(x, n.shape)


@fits("collapse_sum_to")
def _collapse(n: Any, x: Any) -> None:
    np.broadcast_to(np.zeros(n.shape), x.shape)


@fits("zeros", "ones")
def _full(n: Any) -> Any:
    np.zeros(n.shape)


@fits("quantize", "dequantize")
def _quantize(n: Any, x: Any, *scales: Any) -> None:
    extent = x.shape[_axis(n.axis, x.ndim)]
    _need(all(not s.ndim or s.shape == (extent,) for s in scales), "scales")


@fits("nn.prelu")
def _prelu(n: Any, x: Any, alpha: Any) -> None:
    _need(alpha.shape == (x.shape[_axis(n.axis, x.ndim)],), "alpha")


@fits("nn.pad")
def _pad(n: Any, x: Any) -> Any:
    widths = n.pad_width
    _need(len(widths) == 2 * x.ndim, "widths")
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "edge": "edge"}
    if n.pad_mode == "constant":
        _need(all(d + sum(w for w in widths[2 * k:2 * k + 2] if w < 0) >= 0
                  for k, d in enumerate(x.shape)), "takes more than there is")
        cut = x[tuple(slice(-min(widths[2 * k], 0), d + min(widths[2 * k + 1], 0))
                      for k, d in enumerate(x.shape))]
        return np.pad(cut, [(max(a, 0), max(b, 0)) for a, b in zip(widths[::2], widths[1::2])])
    _need(min(widths, default=0) >= 0, "negative")
    _need(n.pad_mode != "reflect" or all(w < x.shape[k // 2] or not w
                                         for k, w in enumerate(widths)), "reflect")
    return np.pad(x, np.reshape(widths, (x.ndim, 2)), mode=modes[n.pad_mode])


@fits("nn.pixel_shuffle")
@_torch
def _pixel_shuffle(n: Any, x: Any) -> Any:
    return F.pixel_shuffle(x, n.upscale_factor)


@fits("nn.batch_norm")
def _batch_norm(n: Any, x: Any, *rest: Any) -> None:
    _need({r.shape for r in rest} == {(x.shape[_axis(n.axis, x.ndim)],)}, "channels")


@fits("nn.layer_norm", "nn.rms_norm")
def _layer_norm(n: Any, x: Any, *rest: Any) -> None:
    axes = sorted(_axes((n.axes,) if isinstance(n.axes, int) else n.axes, x.ndim))
    _need({r.shape for r in rest} == {tuple(x.shape[a] for a in axes)}, "weights")


@fits("nn.group_norm", "nn.instance_norm")
def _group_norm(n: Any, x: Any, *rest: Any) -> None:
    channel = _axis(n.channel_axis, x.ndim)
    groups = getattr(n, "num_groups", 1)
    _need(channel not in _axes(n.axes, x.ndim), "channels are averaged")
    _need({r.shape for r in rest} == {(x.shape[channel],)}, "weights")
    _need(groups > 0 and x.shape[channel] % groups == 0, "groups")


def _rows(values: tuple, rank: int) -> list[int]:
    """One number for each axis, or one for all."""
    _need(len(values) in (1, rank), "how many numbers")
    return list(values) * (rank // len(values))


def _around(values: tuple, rank: int) -> list[int]:
    """Padding before each axis, then after."""
    _need(len(values) in (1, rank, 2 * rank) and min(values) >= 0, "padding")
    return list(values) * (2 * rank // len(values))


def _conv(rank: int, transposed: bool) -> None:
    name = f"conv{rank}d"

    @fits(f"nn.{name}")
    @_torch
    def conv(n: Any, x: Any, w: Any) -> Any:
        around = _around(n.padding, rank)
        pairs = [p for k in reversed(range(rank)) for p in (around[k], around[k + rank])]
        return getattr(F, name)(F.pad(x, pairs), w, None, _rows(n.strides, rank), 0,
                                _rows(n.dilation, rank), n.groups)

    @fits(f"nn.{name}_transpose")
    @_torch
    def conv_transpose(n: Any, x: Any, w: Any) -> Any:
        around = _around(n.padding, rank)
        by, far = _rows(n.strides, rank), _rows(n.dilation, rank)
        more = _rows(n.output_padding, rank)
        _need(min(far) > 0 and n.groups > 0, "dilation, groups")  # the process dies of it in torch
        out = getattr(F, f"conv_transpose{rank}d")(x, w, None, by, 0, more, n.groups, far)
        for k in range(rank):
            left = out.shape[2 + k] - around[k] - around[k + rank]
            _need(left > 0, "nothing is left")
            out = out.narrow(2 + k, around[k], left)
        return out


def _pool(kind: str, rank: int) -> None:
    @fits(f"nn.{kind}_pool{rank}d")
    def pool(n: Any, x: Any) -> None:
        around = _around(n.padding, rank)
        size, by, far = (_rows(v, rank) for v in (n.pool_size, n.strides, n.dilation))
        _need(min(*size, *by, *far, 1) > 0, "positive")
        for k in range(rank):
            reach = far[k] * (size[k] - 1) + 1
            _need(x.shape[2 + k] + around[k] + around[k + rank]
                  + n.ceil_mode * (by[k] - 1) >= reach, "window")

    @fits(f"nn.adaptive_avg_pool{rank}d", f"nn.adaptive_max_pool{rank}d")
    def adaptive(n: Any, x: Any) -> None:
        _need(n.output_size is None or min(_rows(n.output_size, rank)) > 0, "sizes")


for _rank in (1, 2, 3):
    _conv(_rank, False)
    for _kind in ("max", "avg"):
        _pool(_kind, _rank)


@fits("nn.nll_loss", "layout_transform", "nn.attention", "nn.attention_bias")
def _any(n: Any, *arrays: Any) -> None:
    if getattr(n, "window_size", None) is not None:
        _need(n.window_size > 0, "window_size")


@fits("image.resize2d")
def _resize(n: Any, x: Any) -> None:
    _need(len(n.size) == 2 and min(n.size) > 0, "size")

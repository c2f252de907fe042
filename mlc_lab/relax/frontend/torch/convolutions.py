"""Rules of convolutions, and of windows as columns of a matrix (unfold, fold)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from ... import op
from ...expr import Constant
from ...op.conv import CONVS, CONVS_TRANSPOSED
from .importer import RULES, Importer, rule
from .joining import padded
from .placing import strided_places
from .views import _slice, reshaped

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Steps


def each(value: Any, rank: int) -> list[Any]:
    """One number for each of `rank` dimensions, from one or as many."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * rank if len(values) == 1 else values


def _widths(padding: Steps | str, dilation: Sequence[int], kernel: Sequence[Any],
            stride: Sequence[int], rank: int) -> list[int]:
    """Padding before and after all dimensions, from numbers, "same" or "valid"."""
    if padding == "valid":
        return [0] * (2 * rank)
    if padding == "same":
        if any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        reach = [d * (k - 1) for d, k in zip(dilation, kernel)]
        return [r // 2 for r in reach] + [r - r // 2 for r in reach]
    several = each(padding, rank)
    return [*several, *several]


def _with_bias(im: Importer, out: Expr, bias: Expr | None, rank: int) -> Any:
    """A bias for each channel; a constant one in its form already, so that passes see it."""
    if bias is None:
        return out
    shape = [1, im.shape(bias)[0], *[1] * rank]
    if isinstance(bias, Constant) and im.dtype(bias) != "bfloat16":
        return im.emit(op.add(out, im.const(bias.data.numpy().reshape(shape), im.dtype(bias))))
    return im.emit(op.add(out, reshaped(im, bias, shape)))


#: torch's names by the number of spatial dimensions
CONV = {1: "conv1d", 2: "conv2d", 3: "conv3d"}
CONV_TRANSPOSE = {1: "conv_transpose1d", 2: "conv_transpose2d", 3: "conv_transpose3d"}


def _conv(rank: int) -> None:
    build, turned = CONVS[rank], CONVS_TRANSPOSED[rank]

    def unbatched(im: Importer, x: Expr) -> tuple[Any, bool]:
        if im.ndim(x) == rank + 1:
            return im.emit(op.expand_dims(x, 0)), True
        return x, False

    @rule(CONV[rank])
    def translate(im: Importer, x: Expr, weight: Expr, bias: Expr | None = None, stride: Steps = 1,
                  padding: Steps | str = 0, dilation: Steps = 1, groups: int = 1) -> Any:
        x, alone = unbatched(im, x)
        spread, steps = each(dilation, rank), each(stride, rank)
        widths = _widths(padding, spread, im.shape(weight)[2:], steps, rank)
        out = im.emit(build(x, weight, steps, widths, spread, groups, out_dtype=im.dtype(x)))
        out = _with_bias(im, out, bias, rank)
        return im.emit(op.squeeze(out, [0])) if alone else out

    @rule(CONV_TRANSPOSE[rank])
    def back(im: Importer, x: Expr, weight: Expr, bias: Expr | None = None, stride: Steps = 1,
             padding: Steps | str = 0, output_padding: Steps = 0, groups: int = 1,
             dilation: Steps = 1) -> Any:
        x, alone = unbatched(im, x)
        steps, widths, extra = (each(v, rank) for v in (stride, padding, output_padding))
        if all(e < s for e, s in zip(extra, steps)):
            out = im.emit(turned(x, weight, steps, widths, extra, each(dilation, rank), groups,
                                 out_dtype=im.dtype(x)))
        else:  # more behind: less is cut off there, and beyond the kernel's reach there are zeros
            behind = [p - e for p, e in zip(widths, extra)]
            out = im.emit(turned(x, weight, steps, [*widths, *(max(b, 0) for b in behind)],
                                 [0] * rank, each(dilation, rank), groups,
                                 out_dtype=im.dtype(x)))
            out = padded(im, out, [w for b in reversed(behind) for w in (0, max(-b, 0))])
        out = _with_bias(im, out, bias, rank)
        return im.emit(op.squeeze(out, [0])) if alone else out


for _rank in (1, 2, 3):
    _conv(_rank)


@rule("convolution", "_convolution")
def _convolution(im: Importer, x: Expr, weight: Expr, bias: Expr | None, stride: Steps,
                 padding: Steps | str, dilation: Steps, transposed: bool, output_padding: Steps,
                 groups: int) -> Any:
    rank = im.ndim(weight) - 2
    if transposed:
        return RULES[CONV_TRANSPOSE[rank]](im, x, weight, bias, stride, padding, output_padding,
                                           groups, dilation)
    return RULES[CONV[rank]](im, x, weight, bias, stride, padding, dilation, groups)


# ------------------------------------------------------------------------------- windows


def _places(sizes: Sequence[int], kernel: Sequence[int], dilation: Sequence[int],
            stride: Sequence[int]) -> np.ndarray:
    """For each element of a window and each window, its place in an image: [elements, windows]."""
    lines = []
    for n, k, d, s in zip(sizes, kernel, dilation, stride):
        starts = np.arange(0, n - d * (k - 1), s)
        lines.append(np.arange(k)[:, None] * d + starts[None, :])
    (rows, columns) = lines
    at = rows[:, None, :, None] * sizes[1] + columns[None, :, None, :]
    return at.reshape(rows.shape[0] * columns.shape[0], -1)


@rule("im2col")
def _im2col(im: Importer, x: Expr, kernel_size: Steps, dilation: Steps = 1,
            padding: Steps | str = 0, stride: Steps = 1) -> Any:
    """Windows as columns: [N, C * elements, windows]."""
    kernel, spread, steps, around = (each(v, 2) for v in (kernel_size, dilation, stride, padding))
    x = padded(im, x, [around[1], around[1], around[0], around[0]])
    sizes, lead = im.shape(x)[-2:], im.shape(x)[:-2]
    flat = reshaped(im, x, [*lead, sizes[0] * sizes[1]])
    if all(isinstance(s, int) for s in sizes):
        if any(n < d * (k - 1) + 1 for n, k, d in zip(sizes, kernel, spread)):
            raise ValueError(f"unfold: windows of {kernel} with dilation {spread} are larger than "
                             f"the padded image, {sizes}")
        at = _places(sizes, kernel, spread, steps)
        columns, places = at.shape[1], im.const(at, "int64")
    else:
        counts = [(n - d * (k - 1) - 1) // s + 1
                  for n, k, d, s in zip(sizes, kernel, spread, steps)]
        columns, wide = counts[0] * counts[1], sizes[1]
        places = strided_places(im, [*kernel, *counts],
                                [spread[0] * wide, spread[1], steps[0] * wide, steps[1]], 0)
        places = reshaped(im, places, [kernel[0] * kernel[1], columns])
    picked = im.emit(op.take(flat, places, len(lead)))
    return reshaped(im, picked, [*lead[:-1], lead[-1] * kernel[0] * kernel[1], columns])


@rule("col2im", "fold")
def _col2im(im: Importer, x: Expr, output_size: Steps, kernel_size: Steps, dilation: Steps = 1,
            padding: Steps | str = 0, stride: Steps = 1) -> Any:
    """The sum of windows, each put at its place in an image."""
    kernel, spread, steps, around = (each(v, 2) for v in (kernel_size, dilation, stride, padding))
    sizes = [n + 2 * p for n, p in zip(each(output_size, 2), around)]
    at = _places(sizes, kernel, spread, steps)
    lead, channels = im.shape(x)[:-2], im.shape(x)[-2] // at.shape[0]
    rows: Any = channels
    for d in lead:
        rows = rows * d
    flat = reshaped(im, x, [rows, at.size])
    places = im.broadcast(im.const(at.reshape(1, -1), "int64"), [rows, at.size])
    out = im.emit(op.scatter_elements(im.zeros([rows, sizes[0] * sizes[1]], im.dtype(x)), places,
                                      flat, 1, "add"))
    out = reshaped(im, out, [*lead, channels, *sizes])
    for k, p in enumerate(around):
        dim = len(lead) + 1 + k
        out = _slice(im, out, dim, p, sizes[k] - p) if p else out
    return out


__all__ = ["each"]

"""Rules of windows: maxima and their places, powers, neighbouring channels, and windows put back
into an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .... import topi
from ... import op
from ...op import nn
from ...op.pool import AVG_POOLS, MAX_POOLS
from .importer import Importer, rule
from .layers import pooled, widths_around

if TYPE_CHECKING:
    from ...expr import Expr


def _powers(im: Importer, x: Expr, p: int) -> Any:
    if p == 2:
        return im.emit(op.multiply(x, x))
    x = im.emit(op.abs(x))
    return x if p == 1 else im.emit(op.power(x, im.tensor(np.asarray(p, im.dtype(x)))))


def _root(im: Importer, x: Expr, p: int) -> Any:
    if p == 2:
        return im.emit(op.sqrt(x))
    return x if p == 1 else im.emit(op.power(x, im.tensor(np.asarray(1 / p, im.dtype(x)))))


@rule("LpPool")
def _lp_pool(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """The root of the sum of powers: the mean of windows, padding counted, times their size. Where
    ceil_mode lets a window reach further, the mean is that of the rest, as torch has it."""
    p = attrs.get("p", 2)
    attrs["count_include_pad"] = 1
    means = pooled(im, [_powers(im, im.tensor(inputs[0]), p)], attrs, AVG_POOLS)
    return _root(im, im.emit(op.multiply(means, float(np.prod(attrs["kernel_shape"])))), p)


@rule("GlobalLpPool")
def _global_lp_pool(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, p = im.tensor(inputs[0]), attrs.get("p", 2)
    return _root(im, im.emit(op.sum(_powers(im, x, p), list(range(2, im.ndim(x))), True)), p)


@rule("LRN")
def _lrn(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """x / (bias + alpha / size * the sum of squares of `size` channels around) ** beta"""
    x, size = im.tensor(inputs[0]), attrs["size"]
    rank, channels = im.ndim(x), im.shape(x)[1]
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    wide = [0] * (2 * rank)
    wide[2], wide[3] = before, after
    squares = im.emit(nn.pad(im.emit(op.multiply(x, x)), wide, "constant", 0.0))
    total = None
    for k in range(size):
        part = im.emit(op.strided_slice(squares, [1], [k], [channels + k], assume_inbound=True))
        total = part if total is None else im.emit(op.add(total, part))
    scaled = im.emit(op.multiply(total, attrs.get("alpha", 1e-4) / size))
    base = im.emit(op.add(scaled, attrs.get("bias", 1.0)))
    power = im.tensor(np.asarray(attrs.get("beta", 0.75), im.dtype(x)))
    return im.emit(op.divide(x, im.emit(op.power(base, power))))


@rule("Col2Im")
def _col2im(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """The sum of windows, each put at its place in an image of any number of dimensions."""
    x = im.tensor(inputs[0])
    image, block = (im.numbers(v, "the sizes") for v in inputs[1:3])
    rank = len(image)
    strides, dilations = (attrs.get(n, [1] * rank) for n in ("strides", "dilations"))
    pads = attrs.get("pads", [0] * (2 * rank))
    batch, rows = im.shape(x)[:2]
    if not all(isinstance(v, int) for v in (*image, *block, batch, rows)):
        raise ValueError("Col2Im needs sizes that are known: give them in shape_dict")
    sizes = [n + pads[k] + pads[k + rank] for k, n in enumerate(image)]
    at = np.zeros([1] * (2 * rank), "int64")  # elements of a block, then blocks
    for k, (n, b, s, d) in enumerate(zip(sizes, block, strides, dilations)):
        starts = np.arange(0, n - d * (b - 1), s)
        line = np.arange(b)[:, None] * d + starts
        shape = [1] * (2 * rank)
        shape[k], shape[rank + k] = line.shape
        at = at * n + line.reshape(shape)
    lines = batch * (rows // int(np.prod(block)))
    flat = im.emit(op.reshape(x, [lines, at.size]))
    places = im.tensor(np.broadcast_to(at.reshape(1, -1), (lines, at.size)))
    empty = im.emit(op.zeros([lines, int(np.prod(sizes))], im.dtype(x)))
    out = im.emit(op.scatter_elements(empty, places, flat, 1, "add"))
    out = im.emit(op.reshape(out, [batch, lines // batch, *sizes]))
    if not any(pads):
        return out
    axes = list(range(2, 2 + rank))
    return im.emit(op.strided_slice(out, axes, pads[:rank],
                                    [p + n for p, n in zip(pads, image)]))


@rule("MaxPool")
def _max_pool(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    out = pooled(im, inputs, attrs, MAX_POOLS)
    return [out, _places(im, im.tensor(inputs[0]), out, attrs)] if im.outputs > 1 else out


def _places(im: Importer, x: Expr, values: Any, attrs: dict[str, Any]) -> Any:
    """Where in the whole tensor the maxima lie that MaxPool gives, counted in the order of its
    elements (or with storage_order of columns)."""
    kernel = attrs["kernel_shape"]
    rank, sizes = len(kernel), im.shape(x)
    strides, dilations = (attrs.get(n, [1] * rank) for n in ("strides", "dilations"))
    pads = widths_around(im, x, attrs, kernel, strides, dilations)
    counts = im.shape(values)[2:]
    lead = sizes[:2]
    if not all(isinstance(s, int) for s in sizes):
        raise ValueError(f"the places of MaxPool in a tensor of {sizes} need its sizes: give them "
                         "in shape_dict")
    if rank > 2 and attrs.get("storage_order", 0):
        raise ValueError("MaxPool with storage_order 1 of three dimensions is not translated")
    found = im.builder.emit_te(topi.windows.max_pool_places, x, counts, kernel, strides,
                               pads[:rank], dilations, primfunc_name_hint="max_pool_places")
    at = im.emit(found[1])
    if attrs.get("storage_order", 0) and rank == 2:
        height, width = sizes[2:]
        by = im.tensor(np.asarray(width, "int64"))
        row, column = im.emit(op.floor_divide(at, by)), im.emit(op.floor_mod(at, by))
        at = im.emit(op.add(im.emit(op.multiply(column, im.tensor(np.asarray(height, "int64")))),
                            row))
    area = int(np.prod(sizes[2:]))
    first = np.arange(lead[0] * lead[1], dtype="int64").reshape([*lead, *[1] * rank]) * area
    return im.emit(op.add(at, im.tensor(first)))

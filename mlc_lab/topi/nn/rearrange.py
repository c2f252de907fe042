"""Channels to pixels and back: depth_to_space, space_to_depth, and batches of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ..utils import need, number, simplify, text
from .pad import pad

if TYPE_CHECKING:
    from ...tir.expr import PrimExpr


def _nchw(layout: str, i: Sequence[Any]) -> list[Any]:
    return [i[layout.index(c)] for c in "NCHW"]


def _in_layout(layout: str, at: Sequence[Any]) -> list[Any]:
    return [at["NCHW".index(c)] for c in layout]


def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR"
                   ) -> Tensor:
    """Blocks of channels as blocks of pixels; "DCR" takes the channel of the result as the last
    factor of the channel, "CRD" as the first (torch's pixel_shuffle)."""
    n, c, h, w = _nchw(layout, data.shape)
    by = block_size
    out = simplify(O.floordiv(c, by * by))
    known = O.as_int(c)
    need(known is None or known % (by * by) == 0,
         f"depth_to_space: {by * by} does not divide the {known} channels of {text(data.shape)}")

    def element(*i: PrimExpr) -> Any:
        b, k, y, x = _nchw(layout, i)
        row, column = O.floormod(y, by), O.floormod(x, by)
        channel = (row * by + column) * out + k if mode == "DCR" else k * (by * by) + (
            row * by + column)
        return data(*_in_layout(layout, [b, channel, O.floordiv(y, by), O.floordiv(x, by)]))

    return te.compute(_in_layout(layout, [n, out, simplify(h * by), simplify(w * by)]), element,
                      name="depth_to_space", tag="injective")


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Blocks of pixels as channels."""
    n, c, h, w = _nchw(layout, data.shape)
    by = block_size
    for size in (h, w):
        known = O.as_int(size)
        need(known is None or known % by == 0,
             f"space_to_depth: {by} does not divide {known} of {text(data.shape)}")

    def element(*i: PrimExpr) -> Any:
        b, k, y, x = _nchw(layout, i)
        block, channel = O.floordiv(k, c), O.floormod(k, c)
        return data(*_in_layout(layout, [b, channel, y * by + O.floordiv(block, by),
                                         x * by + O.floormod(block, by)]))

    shape = [n, simplify(c * (by * by)), simplify(O.floordiv(h, by)), simplify(O.floordiv(w, by))]
    return te.compute(_in_layout(layout, shape), element, name="space_to_depth", tag="injective")


def space_to_batch_nd(data: Tensor, block_shape: Sequence[int], pad_before: Sequence[int],
                      pad_after: Sequence[int], pad_value: float = 0.0) -> Tensor:
    """Spatial blocks moved into the batch, after padding."""
    count = len(block_shape)
    tail = [0] * (data.ndim - 1 - count)
    framed = pad(data, [0, *pad_before, *tail], [0, *pad_after, *tail], pad_value)
    batch = data.shape[0]
    times = 1
    shape = [batch]
    for d, by in zip(framed.shape[1:1 + count], block_shape):
        known = number(d)
        need(not isinstance(known, int) or known % by == 0,
             f"space_to_batch_nd: {by} does not divide the padded size {known}")
        shape.append(simplify(O.floordiv(d, by)))
        times *= by
    shape = [simplify(batch * times), *shape[1:], *framed.shape[1 + count:]]

    def element(*i: PrimExpr) -> Any:
        block = O.floordiv(i[0], batch)
        at = []
        for x, by in reversed(list(zip(i[1:1 + count], block_shape))):
            at.append(x * by + O.floormod(block, by))
            block = O.floordiv(block, by)
        return framed(O.floormod(i[0], batch), *reversed(at), *i[1 + count:])

    return te.compute(shape, element, name="space_to_batch_nd", tag="injective")


def batch_to_space_nd(data: Tensor, block_shape: Sequence[int], crop_begin_list: Sequence[int],
                      crop_end_list: Sequence[int]) -> Tensor:
    """Blocks of the batch moved into space, then cropped: the inverse of space_to_batch_nd."""
    count = len(block_shape)
    times = 1
    for by in block_shape:
        times *= by
    batch = simplify(O.floordiv(data.shape[0], times))
    shape = [batch, *(simplify(d * by - (b + e)) for d, by, b, e in zip(
        data.shape[1:], block_shape, crop_begin_list, crop_end_list)), *data.shape[1 + count:]]

    def element(*i: PrimExpr) -> Any:
        block: Any = None
        at = []
        for x, by, crop in zip(i[1:1 + count], block_shape, crop_begin_list):
            place = x + crop
            inner = O.floormod(place, by)
            block = inner if block is None else block * by + inner
            at.append(O.floordiv(place, by))
        return data(block * batch + i[0], *at, *i[1 + count:])

    return te.compute(shape, element, name="batch_to_space_nd", tag="injective")


__all__ = ["batch_to_space_nd", "depth_to_space", "space_to_batch_nd", "space_to_depth"]

"""Rules of views that repeat elements or pick them by places: expand, diagonal, as_strided, unfold;
and of what writes to such parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ....tir import op as O
from ... import op
from ...expr import PrimValue
from .importer import Importer, rule
from .views import (
    _select_back, _slice_back, given_sizes, reshaped, way_back,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ...expr import Expr
    from .importer import Operand, Size, Sizes

# ------------------------------------------------------------------------------- broadcasting


@rule("expand", "broadcast_to", "expand_copy")
def _expand(im: Importer, x: Expr, *sizes: Size, size: Sizes | None = None, implicit: bool = False
            ) -> Any:
    wanted = given_sizes(sizes[0] if sizes else size, sizes[1:])
    have = im.shape(x)
    lead = len(wanted) - len(have)
    full = [have[k - lead] if isinstance(s, int) and s == -1 else s for k, s in enumerate(wanted)]
    return im.broadcast(x, full)


@rule("expand_as")
def _expand_as(im: Importer, x: Expr, other: Expr) -> Any:
    return im.broadcast(x, im.shape(other))


@rule("broadcast_tensors")
def _broadcast_tensors(im: Importer, *tensors: Expr) -> Any:
    given = list(tensors[0]) if isinstance(tensors[0], (list, tuple)) else list(tensors)
    shape: list[Any] = []
    for t in given:
        shape = im.common_shape(shape, im.shape(t))
    return tuple(im.broadcast(t, shape) for t in given)


@way_back("expand", "broadcast_to", "expand_as")
def _expand_back(im: Importer, whole: Expr, part: Expr, *args: Any, **kwargs: Any) -> Any:
    have, now = im.shape(whole), im.shape(part)
    lead = len(now) - len(have)
    if any(not im.same_size(d, 1) for d in now[:lead]) or any(
            not im.same_size(a, b) for a, b in zip(have, now[lead:])):
        raise ValueError("a write to a part of an expanded tensor changes several elements at "
                         "once, which is not translated: clone() it before")
    return reshaped(im, part, have)


# ------------------------------------------------------------------------------- by places


@rule("diagonal", "diagonal_copy", "linalg_diagonal")
def _diagonal(im: Importer, x: Expr, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """x[.., k, .., k + offset, ..] as a new last dimension."""
    sizes = im.shape(x)
    a, b = im.axis(dim1, len(sizes)), im.axis(dim2, len(sizes))
    rest = [k for k in range(len(sizes)) if k not in (a, b)]
    rows, columns = sizes[a], sizes[b]
    first = max(-offset, 0) * columns + max(offset, 0)
    moved = im.emit(op.permute_dims(x, [*rest, a, b]))
    flat = reshaped(im, moved, [*(sizes[k] for k in rest), rows * columns])
    if not all(isinstance(s, int) for s in (rows, columns)):
        ends = (O.cast(O.convert(v), "int64")
                for v in (rows + min(offset, 0), columns - max(offset, 0)))
        length = im.simplified(O.max_value_of(O.min_value_of(*ends), 0))
        return im.emit(op.take(flat, strided_places(im, [length], [columns + 1], first),
                               len(rest)))
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    if not length:
        return im.emit(op.strided_slice(flat, [len(rest)], [0], [0], [1], assume_inbound=True))
    return im.emit(op.strided_slice(flat, [len(rest)], [first],
                                    [first + (length - 1) * (columns + 1) + 1], [columns + 1],
                                    assume_inbound=True))


@rule("diag")
def _diag(im: Importer, x: Expr, diagonal: int = 0) -> Any:
    return _diagonal(im, x, diagonal) if im.ndim(x) == 2 else _diag_embed(im, x, diagonal)


@rule("diag_embed")
def _diag_embed(im: Importer, x: Expr, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Zeros with the last dimension of x on a diagonal of two new ones."""
    sizes = im.shape(x)
    wide = sizes[-1] + abs(offset)
    count = len(sizes) + 1
    zeros = im.zeros([*sizes[:-1], wide, wide], im.dtype(x))
    filled = _diagonal_back(im, zeros, x, offset, -2, -1)
    a, b = im.axis(dim1, count), im.axis(dim2, count)
    rest = iter(range(count - 2))
    order = [count - 2 if k == a else count - 1 if k == b else next(rest) for k in range(count)]
    return im.emit(op.permute_dims(filled, order))


@way_back("diagonal", "linalg_diagonal", "diag")
def _diagonal_back(im: Importer, whole: Expr, part: Expr, offset: int = 0, dim1: int = 0,
                   dim2: int = 1) -> Any:
    sizes = im.shape(whole)
    a, b = im.axis(dim1, len(sizes)), im.axis(dim2, len(sizes))
    rest = [k for k in range(len(sizes)) if k not in (a, b)]
    order = [*rest, a, b]
    moved = im.emit(op.permute_dims(whole, order))
    length, lead = im.shape(part)[-1], im.shape(part)[:-1]
    if im.same_size(length, 0):
        return whole
    flat = reshaped(im, moved, [*lead, sizes[a] * sizes[b]])
    first = max(-offset, 0) * sizes[b] + max(offset, 0)
    if all(isinstance(v, int) for v in (length, first, sizes[b])):
        flat = im.emit(op.slice_scatter(flat, part, first,
                                        first + (length - 1) * (sizes[b] + 1) + 1, sizes[b] + 1,
                                        len(rest)))
    else:
        places = im.broadcast(strided_places(im, [length], [sizes[b] + 1], first), im.shape(part))
        flat = im.emit(op.scatter_elements(flat, places, part, len(rest)))
    full = reshaped(im, flat, [sizes[k] for k in order])
    return im.emit(op.permute_dims(full, [order.index(k) for k in range(len(order))]))


@rule("diagonal_scatter")
def _diagonal_scatter(im: Importer, x: Expr, src: Expr, offset: int = 0, dim1: int = 0,
                      dim2: int = 1) -> Any:
    return _diagonal_back(im, x, im.cast(src, im.dtype(x)), offset, dim1, dim2)


@rule("fill_diagonal")
def _fill_diagonal(im: Importer, x: Expr, fill_value: Operand, wrap: bool = False) -> Any:
    """A number where all indices are equal; with `wrap`, the diagonal of a tall matrix begins again
    behind an empty row."""
    sizes = im.shape(x)
    places = []
    for k, d in enumerate(sizes):
        line = im.emit(op.arange(0, d, 1, "int64"))
        places.append(im.emit(op.reshape(line, [*[1] * k, -1, *[1] * (len(sizes) - 1 - k)])))
    if wrap and len(sizes) == 2:
        period = sizes[1] + 1
        by = im.const(period, "int64") if isinstance(period, int) else PrimValue(period)
        places[0] = im.emit(op.floor_mod(places[0], by))
    here = im.emit(op.equal(places[0], places[1]))
    for other in places[2:]:
        here = im.emit(op.logical_and(here, im.emit(op.equal(places[0], other))))
    return im.emit(op.where(here, im.tensor(fill_value, im.dtype(x)), x))


@rule("slice_scatter")
def _slice_scatter(im: Importer, x: Expr, src: Expr, dim: int = 0, start: Size | None = None,
                   end: Size | None = None, step: int = 1) -> Any:
    return _slice_back(im, x, im.cast(src, im.dtype(x)), dim, start, end, step)


@rule("select_scatter")
def _select_scatter(im: Importer, x: Expr, src: Expr, dim: int, index: Size) -> Any:
    return _select_back(im, x, im.cast(src, im.dtype(x)), dim, index)


@rule("as_strided", "as_strided_copy")
def _as_strided(im: Importer, x: Expr, size: Sequence[Size], stride: Sequence[Size],
                storage_offset: Size | None = None) -> Any:
    """Elements of the memory of x, which lies in it as its shape says."""
    im.need_dense(x, "as_strided")
    places = strided_places(im, size, stride, storage_offset or 0)
    flat = reshaped(im, x, [-1])
    return reshaped(im, im.emit(op.take(flat, reshaped(im, places, [-1]), 0)), list(size))


def strided_places(im: Importer, size: Any, stride: Sequence[Size], offset: Any) -> Any:
    """offset + sum of i_k stride_k as a tensor of `size`."""
    if all(isinstance(v, int) for v in (*size, *stride, offset)):
        out = np.full(tuple(size), offset, "int64")
        for k, (n, s) in enumerate(zip(size, stride)):
            out += (np.arange(n) * s).reshape([-1] + [1] * (len(size) - k - 1))
        return im.const(out, "int64")
    out = im.operand(offset, "int64")
    for k, (n, s) in enumerate(zip(size, stride)):
        line = im.emit(op.multiply(im.emit(op.arange(0, n, 1, "int64")), im.operand(s, "int64")))
        out = im.emit(op.add(reshaped(im, line, [n] + [1] * (len(size) - k - 1)), out))
    return im.broadcast(out, list(size))


@rule("as_strided_scatter")
def _as_strided_scatter(im: Importer, x: Expr, src: Expr, size: Sequence[Size],
                        stride: Sequence[Size], storage_offset: Size | None = None) -> Any:
    im.need_dense(x, "as_strided_scatter")
    places = reshaped(im, strided_places(im, size, stride, storage_offset or 0), [-1])
    flat = im.emit(op.scatter_elements(reshaped(im, x, [-1]), places, reshaped(
        im, im.cast(src, im.dtype(x)), [-1]), 0))
    return reshaped(im, flat, im.shape(x))


@rule("resize", "resize_as", "set")
def _resize(im: Importer, x: Expr, *args: Any) -> Any:
    raise ValueError("memory of another size is not translated: make a tensor of the new size")


@rule("unfold", "unfold_copy")
def _unfold(im: Importer, x: Expr, dimension: int, size: Size, step: Size) -> Any:
    """Windows of `size` along a dimension, every `step`, as a new last dimension."""
    if im.ndim(x) == 0:
        return reshaped(im, x, [1])
    dim = im.axis(dimension, im.ndim(x))
    whole = im.shape(x)[dim]
    if isinstance(step, int) and step < 1 or isinstance(size, int) and (
            size < 0 or isinstance(whole, int) and size > whole):
        raise ValueError(f"unfold: windows of {size} every {step} of a dimension of {whole}")
    windows = (whole - size) // step + 1 if all(
        isinstance(v, int) for v in (whole, size, step)) else O.floordiv(whole - size, step) + 1
    places = strided_places(im, [windows, size], [step, 1], 0)
    out = im.emit(op.take(x, places, dim))
    order = [k for k in range(im.ndim(out)) if k != dim + 1]
    return im.emit(op.permute_dims(out, [*order, dim + 1]))


def back_by_places(im: Importer, whole: Expr, part: Expr, again: Callable[[Any], Any]) -> Any:
    """The way back of any operator that only moves elements: `again` applied to a tensor of places
    says where each element of the part lies in the whole."""
    sizes = im.shape(whole)
    count: Any = 1
    for d in sizes:
        count = count * d
    places = again(reshaped(im, im.emit(op.arange(0, count, 1, "int64")), sizes))
    flat = reshaped(im, whole, [count])
    out = im.emit(op.scatter_elements(flat, reshaped(im, places, [-1]),
                                      reshaped(im, part, [-1]), 0))
    return reshaped(im, out, sizes)


__all__ = ["back_by_places", "strided_places"]

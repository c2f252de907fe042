"""Rules of operators that join and repeat tensors, move elements about, and pad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ... import op
from ...expr import Constant
from ...op import nn
from .importer import RULES, Importer, is_tensor, rule
from .indexing import taken
from .views import _slice, given_sizes, reshaped

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Dims, Operand, Size, Sizes, Steps

# ------------------------------------------------------------------------------- joining


@rule("cat", "concat", "concatenate", "_cat")
def _cat(im: Importer, tensors: Sequence[Expr], dim: int = 0, *, axis: int | None = None) -> Any:
    tensors = list(tensors)
    dtype = im.dtype(tensors[0])
    for t in tensors[1:]:
        dtype = im.promoted_dtypes(dtype, im.dtype(t))
    some = [t for t in tensors if im.ndim(t) != 1 or im.shape(t) != [0]]  # torch's empty ones
    given = [im.cast(t, dtype) for t in some or tensors[:1]]
    where = im.axis(dim if axis is None else axis, im.ndim(given[0]))
    return im.emit(op.concat(given, where)) if len(given) > 1 else given[0]


@rule("stack", "_stack")
def _stack(im: Importer, tensors: Sequence[Expr], dim: int = 0) -> Any:
    dim = im.axis(dim, im.ndim(tensors[0]) + 1)
    return _cat(im, [im.emit(op.expand_dims(t, dim)) for t in tensors], dim)


def _raised(im: Importer, x: Expr, count: int) -> Any:
    """At least `count` dimensions, as numpy's atleast_nd adds them."""
    have = im.shape(x)
    if len(have) >= count:
        return x
    if count == 3:
        return reshaped(im, x, {0: [1, 1, 1], 1: [1, *have, 1], 2: [*have, 1]}[len(have)])
    return reshaped(im, x, [1] * (count - len(have)) + have)


def _at_least(count: int) -> None:
    @rule(f"atleast_{count}d")
    def translate(im: Importer, *tensors: Any) -> Any:
        if len(tensors) == 1 and is_tensor(tensors[0]):
            return _raised(im, tensors[0], count)
        given = tensors[0] if len(tensors) == 1 else tensors
        return tuple(_raised(im, t, count) for t in given)


for _count in (1, 2, 3):
    _at_least(_count)


@rule("hstack")
def _hstack(im: Importer, tensors: Sequence[Expr]) -> Any:
    given = [_raised(im, t, 1) for t in tensors]
    return _cat(im, given, 0 if im.ndim(given[0]) == 1 else 1)


@rule("vstack", "row_stack")
def _vstack(im: Importer, tensors: Sequence[Expr]) -> Any:
    return _cat(im, [_raised(im, t, 2) for t in tensors], 0)


@rule("dstack")
def _dstack(im: Importer, tensors: Sequence[Expr]) -> Any:
    return _cat(im, [_raised(im, t, 3) for t in tensors], 2)


@rule("column_stack")
def _column_stack(im: Importer, tensors: Sequence[Expr]) -> Any:
    return _cat(im, [reshaped(im, t, [-1, 1]) if im.ndim(t) < 2 else t for t in tensors], 1)


@rule("meshgrid")
def _meshgrid(im: Importer, *tensors: Any, indexing: str = "ij") -> Any:
    given = list(tensors[0]) if isinstance(tensors[0], (list, tuple)) else list(tensors)
    given = [reshaped(im, t, [-1]) for t in given]
    sizes = [im.shape(t)[0] for t in given]
    out = []
    for k, t in enumerate(given):
        row = reshaped(im, t, [s if n == k else 1 for n, s in enumerate(sizes)])
        wide = im.broadcast(row, sizes)
        if indexing == "xy" and len(sizes) > 1:
            order = [1, 0, *range(2, len(sizes))]
            wide = im.emit(op.permute_dims(wide, order))
        out.append(wide)
    return tuple(out)


# ------------------------------------------------------------------------------- repeating


@rule("repeat")
def _repeat(im: Importer, x: Expr, *times: Size, repeats: Sizes | Expr | None = None) -> Any:
    return _tiled(im, x, given_sizes(times[0] if times else repeats, times[1:]))


@rule("tile")
def _tile(im: Importer, x: Expr, *dims: Size, reps: Sizes | None = None) -> Any:
    return _tiled(im, x, given_sizes(dims[0] if dims else reps, dims[1:]))


def _tiled(im: Importer, x: Expr, times: list[Any]) -> Any:
    times = [1] * (im.ndim(x) - len(times)) + times
    if all(isinstance(t, int) and t == 1 for t in times):
        return x if len(times) == im.ndim(x) else reshaped(
            im, x, [1] * (len(times) - im.ndim(x)) + im.shape(x))
    if all(isinstance(t, int) for t in times):
        return im.emit(op.tile(x, times))
    sizes = [1] * (len(times) - im.ndim(x)) + im.shape(x)  # (n, s) a pair, n of them copies
    paired = [d for t, s in zip(times, sizes) for d in (t, s)]
    x = reshaped(im, x, [d for s in sizes for d in (1, s)])
    return reshaped(im, im.broadcast(x, paired), [t * s for t, s in zip(times, sizes)])


@rule("repeat_interleave")
def _repeat_interleave(im: Importer, x: Expr, repeats: Any = None, dim: Dims = None,
                       *, output_size: Size | None = None) -> Any:
    if repeats is None:  # of counts alone: how often each of their places
        x, repeats = im.emit(op.arange(0, im.shape(x)[0], 1, "int64")), x
    if dim is None:
        x, dim = reshaped(im, x, [-1]), 0
    dim = im.axis(dim, im.ndim(x))
    if isinstance(repeats, Constant):
        counts = repeats.data.numpy().reshape(-1)
        if len(counts) == 1:
            repeats = int(counts[0])
        else:
            import numpy as np

            places = np.repeat(np.arange(len(counts)), counts)
            return taken(im, x, im.const(places, "int64"), dim)
    if is_tensor(repeats):
        ends = im.emit(op.cumsum(im.cast(reshaped(im, repeats, [-1]), "int64"), 0))
        if output_size is None:
            output_size = im.size_from(_slice(im, ends, 0, -1, None))
        places = im.emit(op.bucketize(im.emit(op.arange(0, output_size, 1, "int64")), ends,
                                      right=True))
        return taken(im, x, places, dim)
    if isinstance(repeats, int):
        return im.emit(op.repeat(x, repeats, dim))
    sizes = im.shape(x)
    x = im.emit(op.expand_dims(x, dim + 1))
    x = im.broadcast(x, [*sizes[:dim + 1], repeats, *sizes[dim + 1:]])
    return reshaped(im, x, [*sizes[:dim], sizes[dim] * repeats, *sizes[dim + 1:]])


# ------------------------------------------------------------------------------- moving


@rule("flip")
def _flip(im: Importer, x: Expr, *dims: Steps) -> Any:
    axes = [im.axis(d, max(im.ndim(x), 1)) for d in given_sizes(dims[0], dims[1:])]
    if len(set(axes)) < len(axes):
        raise ValueError(f"flip names a dimension twice in {list(axes)}")
    for axis in axes:
        x = im.emit(op.flip(x, axis)) if im.ndim(x) else x
    return x


@rule("fliplr")
def _fliplr(im: Importer, x: Expr) -> Any:
    return _flip(im, x, 1)


@rule("flipud")
def _flipud(im: Importer, x: Expr) -> Any:
    return _flip(im, x, 0)


@rule("rot90")
def _rot90(im: Importer, x: Expr, k: int = 1, dims: Sequence[int] = (0, 1)) -> Any:
    a, b = dims
    if k % 4 == 1:
        return RULES["transpose"](im, _flip(im, x, b), a, b)
    if k % 4 == 2:
        return _flip(im, x, [a, b])
    return _flip(im, RULES["transpose"](im, x, a, b), b) if k % 4 == 3 else x


@rule("roll")
def _roll(im: Importer, x: Expr, shifts: Any, dims: Any = None) -> Any:
    shifts = list(shifts) if isinstance(shifts, (list, tuple)) else [shifts]
    if dims is None or dims in ([], ()):
        flat = reshaped(im, x, [-1])
        return reshaped(im, _roll(im, flat, shifts, [0]), im.shape(x))
    for shift, d in zip(shifts, [dims] if isinstance(dims, int) else dims):
        d = im.axis(d, im.ndim(x))
        size = im.shape(x)[d]
        if isinstance(size, int) and size == 0:
            continue
        cut = (size - shift) % size
        if isinstance(cut, int) and cut == 0:
            continue
        x = im.emit(op.concat([_slice(im, x, d, cut, size), _slice(im, x, d, 0, cut)], d))
    return x


@rule("tril")
def _tril(im: Importer, x: Expr, diagonal: Size = 0) -> Any:
    return im.emit(op.tril(x, diagonal))


@rule("triu")
def _triu(im: Importer, x: Expr, diagonal: Size = 0) -> Any:
    return im.emit(op.triu(x, diagonal))


@rule("pixel_shuffle")
def _pixel_shuffle(im: Importer, x: Expr, upscale_factor: int) -> Any:
    """(.., c r r, h, w) to (.., c, h r, w r)."""
    *lead, c, h, w = im.shape(x)
    r = upscale_factor
    count = len(lead)
    parts = reshaped(im, x, [*lead, c // r // r, r, r, h, w])
    order = [*range(count), count, count + 3, count + 1, count + 4, count + 2]
    return reshaped(im, im.emit(op.permute_dims(parts, order)), [*lead, c // r // r, h * r, w * r])


@rule("pixel_unshuffle")
def _pixel_unshuffle(im: Importer, x: Expr, downscale_factor: int) -> Any:
    """(.., c, h r, w r) to (.., c r r, h, w)."""
    *lead, c, h, w = im.shape(x)
    r = downscale_factor
    count = len(lead)
    parts = reshaped(im, x, [*lead, c, h // r, r, w // r, r])
    order = [*range(count + 1), count + 2, count + 4, count + 1, count + 3]
    return reshaped(im, im.emit(op.permute_dims(parts, order)), [*lead, c * r * r, h // r, w // r])


@rule("channel_shuffle", "native_channel_shuffle")
def _channel_shuffle(im: Importer, x: Expr, groups: int) -> Any:
    sizes = im.shape(x)
    parts = reshaped(im, x, [sizes[0], groups, sizes[1] // groups, *sizes[2:]])
    order = [0, 2, 1, *range(3, len(sizes) + 1)]
    return reshaped(im, im.emit(op.permute_dims(parts, order)), sizes)


# ------------------------------------------------------------------------------- padding


@rule("pad", "constant_pad_nd")
def padded(im: Importer, x: Any, pad: Sequence[Any], mode: Any = "constant",
           value: Any = None) -> Any:
    """Widths from the last dimension on, before and after each; negative ones cut."""
    if isinstance(mode, (int, float)):  # constant_pad_nd(x, pad, value)
        mode, value = "constant", mode
    count = im.ndim(x)
    around = [(0, 0)] * (count - len(pad) // 2)
    around += [(pad[2 * k], pad[2 * k + 1]) for k in reversed(range(len(pad) // 2))]
    for size, pair in zip(im.shape(x), around):
        if all(isinstance(n, int) for n in (size, *pair)) and size + sum(pair) < 0:
            raise ValueError(f"pad by {list(pair)} takes more from a dimension of {size} than it "
                             "has")

    def least_zero(width: Any) -> Any:
        return max(0, width) if isinstance(width, int) else width

    more = [(least_zero(before), least_zero(after)) for before, after in around]
    if mode == "circular":
        x = _narrowed(im, x, around)
    if any(not isinstance(w, int) or w for pair in more for w in pair):
        x = _widened(im, x, more, mode, value)
    return x if mode == "circular" else _narrowed(im, x, around)


def _narrowed(im: Importer, x: Expr, around: list[tuple[Any, Any]]) -> Any:
    """What widths below zero leave."""
    for k, pair in enumerate(around):
        cut = [max(0, -w) if isinstance(w, int) else 0 for w in pair]
        if any(cut):
            x = _slice(im, x, k, cut[0], im.shape(x)[k] - cut[1])
    return x


def _widened(im: Importer, x: Expr, around: list[tuple[Any, Any]], mode: str, value: Operand | None
             ) -> Any:
    """Padding by widths that are not negative."""
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise ValueError(f"pad with mode={mode!r}: it is constant, reflect, replicate or circular")
    if mode == "constant":
        return _with_constant(im, x, around, 0 if value is None else value)
    widths = [w for pair in around for w in pair]
    if all(isinstance(w, int) for w in widths):
        return im.emit(nn.pad(x, widths, mode, 0.0))
    raise ValueError(f"pad with mode={mode!r} by widths that are symbolic is not translated")


def _with_constant(im: Importer, x: Any, around: list[tuple[Any, Any]], value: Any
                   ) -> Any:
    dtype = im.dtype(x)
    widths = [w for pair in around for w in pair]
    if all(isinstance(w, int) for w in widths) and dtype in ("float32", "float64", "float16"):
        return im.emit(nn.pad(x, widths, "constant", float(value)))
    for k, pair in enumerate(around):  # joined with what is around it
        parts = [x]
        for at, width in enumerate(pair):
            if isinstance(width, int) and width == 0:
                continue
            sizes = im.shape(x)
            sizes[k] = width
            parts.insert(len(parts) if at else 0, im.full(sizes, value, dtype))
        x = im.emit(op.concat(parts, k)) if len(parts) > 1 else x
    return x


def _padding(name: str, mode: str) -> None:
    @rule(name)
    def translate(im: Importer, x: Expr, padding: Sequence[Size]) -> Any:
        return padded(im, x, padding, mode)


for _rank in ("1d", "2d", "3d"):
    _padding(f"reflection_pad{_rank}", "reflect")
    _padding(f"replication_pad{_rank}", "replicate")

__all__ = ["padded"]

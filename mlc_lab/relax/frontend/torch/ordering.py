"""Rules of sorting, choosing by order, running totals, and searching."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ....ir.dtype import is_float
from .... import topi
from ... import op
from .arithmetic import as_float
from .importer import Importer, dtype_name, is_tensor, rule
from .views import _select, _slice, reshaped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ...expr import Expr
    from .importer import Operand

# ------------------------------------------------------------------------------- order


def _dim(im: Importer, x: Expr, dim: int | None) -> int:
    return im.axis(dim, im.ndim(x))


def _line(im: Importer, x: Expr) -> Any:
    """A tensor of no dimensions as one of one."""
    return reshaped(im, x, [1]) if im.ndim(x) == 0 else x


def _ordered(im: Importer, x: Expr) -> Any:
    """Booleans as numbers, which have an order."""
    return im.cast(x, "int8") if im.dtype(x) == "bool" else x


@rule("topk")
def _topk(im: Importer, x: Expr, k: int, dim: int = -1, largest: bool = True,
          sorted: bool = True) -> Any:
    if im.ndim(x) == 0:
        return x, im.zeros([], "int64")
    if not isinstance(k, int):
        raise ValueError("topk of a number that is a symbolic size is not translated")
    if k < 0:
        raise ValueError(f"topk of k={k}: it cannot be negative")
    dim = _dim(im, x, dim)
    if k == 0:
        none = _slice(im, x, dim, 0, 0)
        return none, im.cast(none, "int64")
    out = im.emit(op.topk(_ordered(im, x), k, dim, "both", largest, "int64"))
    return im.cast(im.emit(out[0]), im.dtype(x)), im.emit(out[1])


@rule("sort", "msort")
def _sort(im: Importer, x: Expr, dim: int = -1, descending: bool = False, *,
          stable: bool | None = None) -> Any:
    """Stable in any case."""
    if im.node is not None and "msort" in str(im.node.target):
        return _sort_values(im, x, 0)
    if im.ndim(x) == 0:
        return x, im.zeros([], "int64")
    order = _argsort(im, x, dim, descending)
    return im.emit(op.gather_elements(x, order, _dim(im, x, dim))), order


def _sort_values(im: Importer, x: Expr, dim: int, descending: bool = False) -> Any:
    out = im.emit(op.sort(_ordered(im, x), _dim(im, x, dim), descending))
    return im.cast(out, im.dtype(x))


@rule("argsort")
def _argsort(im: Importer, x: Expr, dim: int = -1, descending: bool = False, *,
             stable: bool | None = None) -> Any:
    if im.ndim(x) == 0:
        return im.zeros([], "int64")
    return im.emit(op.argsort(_ordered(im, x), _dim(im, x, dim), descending, "int64"))


def _kth(im: Importer, x: Expr, k: int, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """The k-th smallest, counted from 0, along a dimension, and its place."""
    values, order = _sort(im, x, dim)
    pick = [_slice(im, t, dim, k, k + 1) if keepdim else _select(im, t, dim, k)
            for t in (values, order)]
    return pick[0], pick[1]


@rule("kthvalue")
def _kthvalue(im: Importer, x: Expr, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if im.ndim(x) == 0:
        return x, im.zeros([], "int64")
    size = im.shape(x)[_dim(im, x, dim)]
    if isinstance(k, int) and isinstance(size, int) and not 1 <= k <= size:
        raise ValueError(f"kthvalue of k={k} in a dimension of {size}")
    return _kth(im, x, k - 1, _dim(im, x, dim), keepdim)


@rule("median")
def _median(im: Importer, x: Expr, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower of two medians; not a number where anything is none."""
    if dim is None:
        return _median_of(im, reshaped(im, x, [-1]), 0, False, False)[0]
    if im.ndim(x) == 0:
        return x, im.zeros([], "int64")
    return _median_of(im, x, _dim(im, x, dim), keepdim, False)


@rule("nanmedian")
def _nanmedian(im: Importer, x: Expr, dim: int | None = None, keepdim: bool = False) -> Any:
    if dim is None:
        return _median_of(im, reshaped(im, x, [-1]), 0, False, True)[0]
    if im.ndim(x) == 0:
        return x, im.zeros([], "int64")
    return _median_of(im, x, _dim(im, x, dim), keepdim, True)


def _median_of(im: Importer, x: Expr, dim: int, keepdim: bool, skip: bool) -> tuple[Any, Any]:
    """Of the sorted elements, not-a-numbers last, that in the middle; the first not-a-number if
    there is one, or the middle of the others (`skip`)."""
    size = im.shape(x)[dim]
    if not is_float(im.dtype(x)):
        return _kth(im, x, (size - 1) // 2, dim, keepdim)
    values, order = _sort(im, x, dim)
    nan = im.cast(im.emit(op.isnan(x)), "int64")
    count = im.emit(op.sum(nan, [dim], True))
    total = im.tensor(size, "int64")
    good = im.emit(op.subtract(total, count))
    middle = im.emit(op.floor_divide(im.emit(op.subtract(good if skip else total,
                                                         im.const(1, "int64"))),
                                     im.const(2, "int64")))
    zero = im.const(0, "int64")
    if skip:
        place = im.emit(op.maximum(middle, zero))
    else:
        place = im.emit(op.where(im.emit(op.greater(count, zero)), good, middle))
    out = []
    for t in (values, order):
        picked = im.emit(op.gather_elements(t, im.broadcast(place, im.shape(count)), dim))
        out.append(picked if keepdim else im.emit(op.squeeze(picked, [dim])))
    return out[0], out[1]


@rule("mode")
def _mode(im: Importer, x: Expr, dim: int = -1, keepdim: bool = False) -> Any:
    """The smallest of the most frequent values, and the last place where it stands."""
    if im.ndim(x) == 0:
        return x, im.zeros([], "int64")
    dim = _dim(im, x, dim)
    values, order = _sort(im, x, dim)
    rows, columns = (im.emit(op.expand_dims(values, [d])) for d in (dim + 1, dim))
    often = im.emit(op.sum(im.cast(im.emit(op.equal(rows, columns)), "int64"), [dim + 1]))
    first = im.emit(op.argmax(often, dim, True))
    value = im.emit(op.gather_elements(values, im.cast(first, "int64"), dim))
    times = im.emit(op.gather_elements(often, im.cast(first, "int64"), dim))
    last = im.emit(op.subtract(im.emit(op.add(im.cast(first, "int64"), times)),
                               im.const(1, "int64")))
    place = im.emit(op.gather_elements(order, last, dim))
    if keepdim:
        return value, place
    return im.emit(op.squeeze(value, [dim])), im.emit(op.squeeze(place, [dim]))


@rule("quantile")
def _quantile(im: Importer, x: Expr, q: Operand | Sequence[float], dim: int | None = None,
              keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    """Between the sorted elements at the places floor and ceil of q (n - 1)."""
    return _quantiles(im, x, q, dim, keepdim, interpolation, False)


@rule("nanquantile")
def _nanquantile(im: Importer, x: Expr, q: Operand | Sequence[float], dim: int | None = None,
                 keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    return _quantiles(im, x, q, dim, keepdim, interpolation, True)


def _quantiles(im: Importer, x: Expr, q: Operand | Sequence[float], dim: int | None, keepdim: bool,
               how: str, skip: bool) -> Any:
    count, dtype = im.ndim(x), im.dtype(x)
    if dim is None:
        x, axis = reshaped(im, x, [-1]), 0
    else:
        x, axis = _line(im, x), im.axis(dim, max(count, 1))
    if how not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise ValueError(f"quantile with interpolation={how!r} is not known")
    given = q if isinstance(q, (list, tuple)) else [q]
    if any(isinstance(one, (int, float)) and not 0 <= one <= 1 for one in given):
        raise ValueError(f"quantile of q={q}: it lies between 0 and 1")
    size = im.shape(x)[axis]
    values = _sort_values(im, x, axis)
    at = im.tensor(q, dtype)
    single = im.ndim(at) == 0
    at = reshaped(im, at, [-1, *[1] * im.ndim(x)])
    nan = im.cast(im.emit(op.isnan(x)), dtype)
    bad = im.emit(op.sum(nan, [axis], True))
    good = im.emit(op.subtract(im.tensor(size, dtype), bad)) if skip else im.tensor(size, dtype)
    place = im.emit(op.multiply(at, im.emit(op.subtract(good, im.const(1, dtype)))))
    shape = im.common_shape(im.shape(place), [1, *im.shape(bad)])
    place = im.broadcast(im.emit(op.maximum(place, im.const(0, dtype))), shape)
    if how == "nearest":
        place = im.emit(op.round(place))
    low, high = im.emit(op.floor(place)), im.emit(op.ceil(place))
    values = im.broadcast(im.emit(op.expand_dims(values, [0])),
                          [shape[0], *im.shape(values)])
    a, b = (im.emit(op.gather_elements(values, im.cast(p, "int64"), axis + 1))
            for p in (low, high))
    if how in ("linear", "midpoint"):
        weight = im.const(0.5, dtype) if how == "midpoint" else im.emit(op.subtract(place, low))
        out = im.emit(op.add(a, im.emit(op.multiply(im.emit(op.subtract(b, a)), weight))))
        out = im.emit(op.where(im.emit(op.equal(low, high)), a, out))
    else:
        out = b if how == "higher" else a
    if not skip:
        some = im.emit(op.greater(bad, im.const(0, dtype)))
        out = im.emit(op.where(some, im.const(math.nan, dtype), out))
    lead = [] if single else [im.shape(out)[0]]
    kept = im.shape(out)[1:]
    if dim is None:
        kept = [1] * count if keepdim else []
    elif not keepdim:
        kept = kept[:axis] + kept[axis + 1:]
    return reshaped(im, out, [*lead, *kept])


# ------------------------------------------------------------------------------- running totals


def _running(name: str, build: Callable[..., Expr]) -> None:
    @rule(name)
    def translate(im: Importer, x: Expr, dim: int, *, dtype: object = None) -> Any:
        have = im.dtype(x)
        wanted = dtype_name(dtype, have if is_float(have) else "int64")
        if im.ndim(x) == 0:
            return im.cast(x, wanted)
        return im.emit(build(im.cast(x, wanted), im.axis(dim, im.ndim(x)), wanted))


_running("cumsum", op.cumsum)
_running("cumprod", op.cumprod)


@rule("logcumsumexp")
def _logcumsumexp(im: Importer, x: Expr, dim: int) -> Any:
    x = as_float(im, x)
    if im.ndim(x) == 0:
        return x
    return im.kernel(topi.running.logcumsumexp, x, im.axis(dim, im.ndim(x)), name="logcumsumexp")


def _running_best(name: str) -> None:
    compiled = getattr(topi.running, name)

    @rule(name)
    def translate(im: Importer, x: Expr, dim: int) -> Any:
        if im.ndim(x) == 0:
            return x, im.zeros([], "int64")
        out = im.kernel(compiled, _ordered(im, x), im.axis(dim, im.ndim(x)), name=name)
        return im.cast(im.emit(out[0]), im.dtype(x)), im.emit(out[1])


_running_best("cummax")
_running_best("cummin")


# ------------------------------------------------------------------------------- searching


@rule("searchsorted")
def _searchsorted(im: Importer, sorted_sequence: Expr, values: Operand, *, out_int32: bool = False,
                  right: bool = False, side: str | None = None, sorter: Expr | None = None) -> Any:
    right = right if side is None else side == "right"
    if sorter is not None:
        sorted_sequence = im.emit(op.gather_elements(sorted_sequence, sorter,
                                                     im.ndim(sorter) - 1))
    dtype = "int32" if out_int32 else "int64"
    single = not is_tensor(values) or im.ndim(values) == 0
    wanted = im.promoted(sorted_sequence, values)
    sought = im.tensor(values, wanted)
    if single:
        sought = reshaped(im, sought, [1])
    out = im.kernel(topi.searchsorted, im.cast(sorted_sequence, wanted), sought, right, dtype,
                    name="searchsorted")
    return reshaped(im, out, []) if single else out


@rule("bucketize")
def _bucketize(im: Importer, x: Expr, boundaries: Expr, *, out_int32: bool = False,
               right: bool = False) -> Any:
    return _searchsorted(im, boundaries, x, out_int32=out_int32, right=right)


@rule("isin")
def _isin(im: Importer, elements: Operand, test_elements: Operand, *, assume_unique: bool = False,
          invert: bool = False) -> Any:
    dtype = im.promoted(elements, test_elements)
    x = im.tensor(elements, dtype)
    tests = reshaped(im, im.tensor(test_elements, dtype), [-1])
    rows = im.emit(op.expand_dims(x, [im.ndim(x)]))
    hits = im.cast(im.emit(op.equal(rows, tests)), "int8")
    out = im.cast(im.emit(op.max(hits, [im.ndim(x)])), "bool")
    return im.emit(op.logical_not(out)) if invert else out


# ------------------------------------------------------------------------------- what is there


@rule("nonzero", "argwhere")
def _nonzero(im: Importer, x: Expr, *, as_tuple: bool = False) -> Any:
    """The places of what is not 0; how many there are only the run knows."""
    from .indexing import true_places

    if im.ndim(x) == 0:
        raise ValueError("nonzero of a tensor of no dimensions is not translated")
    places = true_places(im, x)
    if as_tuple:
        return tuple(_select(im, places, 0, k) for k in range(im.ndim(x)))
    return im.emit(op.permute_dims(places, [1, 0]))


@rule("nonzero_static")
def _nonzero_static(im: Importer, x: Expr, *, size: int, fill_value: int = -1) -> Any:
    """The first `size` places, and `fill_value` where there are fewer."""
    if not size or any(im.same_size(d, 0) for d in im.shape(x)) or im.ndim(x) == 0:
        return im.full([size, im.ndim(x)], fill_value, "int64")
    flat = im.cast(im.cast(reshaped(im, x, [-1]), "bool"), "int64")
    count = im.emit(op.sum(flat))
    order = im.emit(op.argsort(flat, 0, True, "int64"))  # stable: what is not 0 first, in order
    total = im.shape(flat)[0]
    have = min(size, total) if isinstance(total, int) else size
    places = _slice(im, order, 0, 0, have)
    if isinstance(total, int) and have < size:
        places = im.emit(op.concat([places, im.zeros([size - have], "int64")], 0))
    there = im.emit(op.less(im.emit(op.arange(0, size, 1, "int64")), count))
    columns = []
    for d in reversed(im.shape(x)):
        by = im.tensor(d, "int64")
        columns.insert(0, im.emit(op.floor_mod(places, by)))
        places = im.emit(op.floor_divide(places, by))
    out = [im.emit(op.where(there, c, im.const(fill_value, "int64"))) for c in columns]
    return im.emit(op.concat([reshaped(im, c, [size, 1]) for c in out], 1))


@rule("unique", "_unique", "_unique2", "unique_dim", "unique_consecutive")
def _unique(im: Importer, x: Expr, sorted: bool = True, return_inverse: bool = False,
            return_counts: bool = False, dim: int | None = None) -> Any:
    """The distinct elements, in order; how many there are only the run knows."""
    name = str(im.node.target) if im.node is not None else ""
    if "consecutive" in name or "unique_dim" in name or dim is not None:
        raise ValueError("unique of neighbours, or of slices, is not translated: use unique of a "
                         "flattened tensor")
    found = im.emit(op.unique(x, True, False, return_inverse, return_counts))
    parts = [im.emit(found[k]) for k in range(1 + return_inverse + return_counts)] if (
        return_inverse or return_counts) else [found]
    values = im.with_unknown_size(parts[0], [None], im.dtype(x))
    rest = parts[1:]
    inverse = counts = None
    if return_inverse:
        inverse = reshaped(im, im.builder.match_cast(rest.pop(0), im.vector(im.size_of(x))),
                           im.shape(x))
    if return_counts:
        counts = im.builder.match_cast(rest.pop(0), im.vector(im.shape(values)[0]))
    if "._unique" in name:  # ATen's own give all their results always
        inverse = im.zeros([0], "int64") if inverse is None else inverse
        counts = im.zeros([0], "int64") if counts is None and "._unique2" in name else counts
    out = [t for t in (values, inverse, counts) if t is not None]
    return out[0] if len(out) == 1 else tuple(out)


@rule("bincount")
def _bincount(im: Importer, x: Expr, weights: Expr | None = None, minlength: int = 0) -> Any:
    raise ValueError("bincount has a result of a size that only the run knows: use scatter_add "
                     "into zeros of a known size")


@rule("histc")
def _histc(im: Importer, x: Expr, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many elements fall into each of `bins` equal parts of [min, max]."""
    dtype = im.dtype(x)
    if min == max == 0:
        raise ValueError("histc between the least and the largest element is not translated: give "
                         "min and max")
    if min == max:
        min, max = min - 1, max + 1
    x = reshaped(im, x, [-1])
    low, wide = im.const(min, dtype), im.const(float(max - min), dtype)
    at = im.emit(op.multiply(im.emit(op.divide(im.emit(op.subtract(x, low)), wide)),
                             im.const(float(bins), dtype)))
    at = im.emit(op.minimum(im.cast(im.emit(op.floor(at)), "int64"), im.const(bins - 1, "int64")))
    inside = im.emit(op.logical_and(im.emit(op.greater_equal(x, low)),
                                    im.emit(op.less_equal(x, im.const(max, dtype)))))
    at = im.emit(op.where(inside, at, im.const(bins, "int64")))
    counts = im.emit(op.scatter_elements(im.zeros([bins + 1], dtype), at,
                                         im.cast(inside, dtype), 0, "add"))
    return _slice(im, counts, 0, 0, bins)

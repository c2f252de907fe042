"""Reading and writing at computed places: take, gather, scatter, one_hot.

Nothing is written at indices outside of a tensor. Reads at such indices are undefined in the mode
"fast", as in TVM; Relax uses other modes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

from .. import te
from ..ir import dtype as dt
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir import ir_builder
from ..tir.expr import PrimExpr
from .broadcast import broadcast_shape, read
from .transform import injective
from .utils import (
    axis_of, differ, need, number, product, rounded, simplify, sum_type, text, unravel,
)

if TYPE_CHECKING:
    from ..tir.expr import ExprLike
    from ..tir.ir_builder import IRBuilder


def kept_inside(index: PrimExpr, size: PrimExpr, mode: str) -> PrimExpr:
    """An index of a dimension of `size`: clipped, wrapped, or as it is ("fast").

    "numpy" counts negative ones from the end and clips the others.
    """
    if mode == "fast":
        return index
    if mode == "numpy":
        index, mode = _wrapped(index, size), "clip"
    index = _wide(index)
    size = O.cast(size, index.dtype)
    if mode == "clip":
        return O.min_value_of(O.max_value_of(O.const(0, index.dtype), index), size - 1)
    if mode == "wrap":
        return O.truncmod(O.truncmod(index, size) + size, size)
    raise ValueError(f'take: mode "{mode}" is none of "fast", "clip", "wrap"')


def _wide(index: PrimExpr) -> PrimExpr:
    """An index in a type that holds every size, and negative numbers."""
    code, bits, _ = dt.parse(index.dtype)
    if code == "int" and bits >= 32:
        return index
    return O.cast(index, "int64" if bits >= 32 else "int32")


def take(a: Tensor, indices: Any, axis: int | None = None, batch_dims: int = 0,
         mode: str = "fast") -> Tensor:
    """The slices of `a` along `axis` at `indices`, or elements of `a` flattened without `axis`.

    `indices` is a tensor or an index. Indices outside are undefined with mode "fast", they are
    clipped or wrapped with "clip" and "wrap", and give NaN with "nan", which counts negative ones
    from the end. The first `batch_dims` dimensions are common to both.
    """
    def value(index: PrimExpr, size: Any, element: Callable[[PrimExpr], PrimExpr]) -> PrimExpr:
        if mode != "nan":
            return element(kept_inside(index, size, mode))
        index = _wide(index)
        size = O.cast(size, index.dtype)
        inside = O.logical_and(O.greater_equal(index, -size), O.less(index, size))
        return O.if_then_else(inside, element(kept_inside(index, size, "numpy")),
                              O.const(math.nan, a.dtype))

    def at(*i: PrimExpr) -> PrimExpr:
        return indices(*i) if isinstance(indices, Tensor) else O.convert(indices)

    shape = tuple(indices.shape) if isinstance(indices, Tensor) else ()
    if axis is None:
        size = simplify(product(a.shape))

        def flat(*i: PrimExpr) -> PrimExpr:
            return value(at(*i), O.convert(size), lambda k: a(*unravel(k, a.shape)))

        return injective(shape, flat, "T_take")
    k = axis_of("take", axis, a.ndim)
    b = int(batch_dims) % (len(shape) + 1) if batch_dims < 0 else int(batch_dims)
    need(b <= k, f"take: batch_dims {b} goes beyond axis {k}")
    for x, y in zip(a.shape[:b], shape[:b]):
        need(not differ(x, y), f"take: the batch sizes of {text(a.shape)} and {text(shape)} differ")
    out = [*a.shape[:k], *shape[b:], *a.shape[k + 1:]]
    count = len(shape) - b

    def element(*i: PrimExpr) -> PrimExpr:
        return value(at(*i[:b], *i[k:k + count]), a.shape[k],
                     lambda index: a(*i[:k], index, *i[k + count:]))

    return injective(out, element, "T_take")


def gather(data: Tensor, axis: int, indices: Tensor, mode: str = "fast") -> Tensor:
    """out[i, j, ...] = data[.., indices[i, j, ...], ..] with the index along `axis`; `mode` as in
    `take`."""
    k = axis_of("gather", axis, data.ndim)
    need(data.ndim == indices.ndim, f"gather: data {text(data.shape)} and indices "
                                    f"{text(indices.shape)} have as many dimensions")
    return injective(indices.shape, lambda *i: data(
        *i[:k], kept_inside(indices(*i), data.shape[k], mode), *i[k + 1:]), "T_gather")


def gather_nd(a: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """The slices a[indices[0, ...], indices[1, ...], ...]; the first dimension numbers the axes.

    Indices that are floats are cut to whole numbers, as TVM does it.
    """
    depth = number(indices.shape[0])
    b = int(batch_dims)
    need(isinstance(depth, int) and depth + b <= a.ndim,
         f"gather_nd: indices {text(indices.shape)} name {depth} axes of {text(a.shape)}")
    count = indices.ndim - 1
    shape = [*indices.shape[1:], *a.shape[depth + b:]]

    def element(*i: PrimExpr) -> PrimExpr:
        at = [indices(d, *i[:count]) for d in range(depth)]
        if dt.is_float(indices.dtype):
            at = [O.cast(x, "int32") for x in at]
        return a(*i[:b], *at, *i[count:])

    return injective(shape, element, "T_gather_nd")


def strided_set(a: Tensor, v: Tensor, begin: Tensor, end: Tensor, strides: Tensor | None = None
                ) -> Tensor:
    """`a` with a[begin[0]:end[0]:strides[0], ...] = v, as in numpy; the bounds are tensors.

    An axis that a vector of bounds does not reach is taken whole, with the step 1. Elements for
    which `v` has no value stay as they are.
    """
    need(v.ndim == a.ndim, f"strided_set: v {text(v.shape)} does not have the {a.ndim} dimensions "
                           f"of {text(a.shape)}")
    for name, given in (("begin", begin), ("end", end), ("strides", strides)):
        need(given is None or given.ndim == 1 and dt.is_int(given.dtype)
             and isinstance(number(given.shape[0]), int),
             f"strided_set: {name} is a vector of integers, of a size that is known")

    def at(values: Tensor | None, k: int, otherwise: Any) -> PrimExpr:
        if values is not None and k < number(values.shape[0]):
            return O.cast(values(k), "int64")
        return O.cast(O.convert(otherwise), "int64")

    def place(k: int, i: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """Which value of axis k of `v` goes to index i, and whether there is one."""
        size, zero, one = O.cast(a.shape[k], "int64"), O.const(0, "int64"), O.const(1, "int64")
        step = at(strides, k, 1)
        up = O.greater(step, zero)
        low, high = O.select(up, zero, -one), O.select(up, size, size - one)

        def bound(values: Tensor, otherwise: Any) -> PrimExpr:
            if k >= number(values.shape[0]):
                return otherwise
            x = at(values, k, 0)
            return O.max_value_of(low, O.min_value_of(high, O.if_then_else(
                O.less(x, zero), x + size, x)))

        first, last = bound(begin, O.select(up, low, high)), bound(end, O.select(up, high, low))
        far = O.select(up, O.cast(i, "int64") - first, first - O.cast(i, "int64"))
        width, length = O.abs(step), O.select(up, last - first, first - last)
        some = O.max_value_of(width, one)
        index = O.floordiv(far, some)
        inside = O.logical_and(O.logical_and(O.greater_equal(far, zero), O.less(far, length)),
                               O.logical_and(O.equal(O.floormod(far, some), zero),
                                             O.logical_and(O.greater(width, zero), O.less(
                                                 index, O.cast(v.shape[k], "int64")))))
        return index, inside

    def element(*i: PrimExpr) -> PrimExpr:
        found = [place(k, x) for k, x in enumerate(i)]
        inside = found[0][1]
        for _, more in found[1:]:
            inside = O.logical_and(inside, more)
        return O.if_then_else(inside, v(*[index for index, _ in found]), a(*i))

    return injective(a.shape, element, "T_strided_set")


def index_tensor(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """data[indices[0], indices[1], ...] with the indices broadcast together, as numpy does."""
    indices = list(indices)
    need(0 < len(indices) <= data.ndim,
         f"index_tensor: {len(indices)} indices for {text(data.shape)}")
    common = list(indices[0].shape)
    for x in indices[1:]:
        common = broadcast_shape(common, x.shape)
    shape = [*common, *data.shape[len(indices):]]
    n = len(common)

    def element(*i: PrimExpr) -> PrimExpr:
        at = []
        for x, d in zip(indices, data.shape):
            at.append(kept_inside(read(x, i[:n], common), d, "numpy"))
        return data(*at, *i[n:])

    return injective(shape, element, "advanced_index")


adv_index = index_tensor


def one_hot(indices: Tensor, on_value: ExprLike, off_value: ExprLike, depth: ExprLike, axis: int,
            dtype: str) -> Tensor:
    """on_value at the index along a new dimension `axis` of `depth`, off_value elsewhere."""
    k = axis_of("one_hot", axis, indices.ndim + 1)
    on, off = (O.cast(O.convert(v), dtype) for v in (on_value, off_value))
    shape = [*indices.shape[:k], depth, *indices.shape[k:]]

    def element(*i: PrimExpr) -> PrimExpr:
        return O.select(O.equal(indices(*i[:k], *i[k + 1:]), i[k]), on, off)

    return injective(shape, element, "T_one_hot")


#: how a scattered value is combined with the one that is there
_UPDATES: dict[str, Callable[[PrimExpr, PrimExpr], PrimExpr]] = {
    "update": lambda old, new: new, "add": O.add, "mul": O.mul, "max": O.max_value_of,
    "min": O.min_value_of, "mean": O.add,  # divided by how many there were, afterwards
}


def _update(name: str, reduction: str) -> Callable:
    if reduction not in _UPDATES:
        raise ValueError(f'{name}: "{reduction}" is none of {", ".join(_UPDATES)}')
    return _UPDATES[reduction]


def _wrapped(index: PrimExpr, size: PrimExpr) -> PrimExpr:
    """A negative index counted from the end."""
    index = _wide(index)
    size = O.cast(size, index.dtype)
    return O.if_then_else(index < 0, index + size, index)


def _widened(scatter: Callable, data: Tensor, new: Tensor, reduction: str) -> Tensor:
    """scatter(data, new), where updates of 16-bit floats that are added up or multiplied are so in
    float32: 3000 times 0.5 would end at 1024."""
    wide = sum_type(data.dtype)
    if wide == data.dtype or reduction not in ("add", "mul", "mean"):
        return scatter(data, new)
    return rounded(scatter(rounded(data, wide), rounded(new, wide)), data.dtype)


def _is_inside(indices: Sequence[PrimExpr], shape: Sequence[Any]) -> PrimExpr:
    """Whether each index is one of its dimension."""
    return O.all(*(c for i, d in zip(map(_wide, indices), shape)
                   for c in (i >= 0, i < O.cast(d, i.dtype))))


def _mean(total: PrimExpr, count: PrimExpr) -> PrimExpr:
    """A total by a number; of integers rounded down, as torch does it."""
    return total / count if dt.is_float(total.dtype) else O.floordiv(total, count)


def _copy(ib: IRBuilder, source: Any, target: Any, shape: Sequence[Any]) -> None:
    with ib.for_range(0, simplify(O.convert(product(shape))), name="i", kind="parallel") as i:
        at = tuple(unravel(i, shape))
        target[at] = source[at]


def scatter_elements(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0,
                     reduction: str = "update") -> Tensor:
    """data, in which updates[i, ..] was put at indices[i, ..] along `axis`.

    `reduction` ("update", "add", "mul", "max", "min", "mean") says how the two are combined.
    Updates are applied in order along `axis`; the rest runs in parallel.
    """
    k = axis_of("scatter_elements", axis, data.ndim)
    need(indices.ndim == updates.ndim == data.ndim and not any(
        map(differ, indices.shape, updates.shape)),
        f"scatter_elements: indices {text(indices.shape)} and updates {text(updates.shape)} must "
        f"be one shape, with the {data.ndim} dimensions of data {text(data.shape)}")
    return _widened(lambda *both: _scatter_elements(both[0], indices, both[1], k, reduction), data,
                    updates, reduction)


def _scatter_elements(data: Tensor, indices: Tensor, updates: Tensor, k: int, reduction: str
                      ) -> Tensor:
    combine = _update("scatter_elements", reduction)
    others = [d for i, d in enumerate(indices.shape) if i != k]

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        source, index, new, out = map(ib.buffer_ptr, (*ins, *outs))
        _copy(ib, source, out, data.shape)
        with ib.for_range(0, simplify(O.convert(product(others))), name="j",
                          kind="parallel") as j:
            at = unravel(j, others)
            if reduction == "mean":
                count = ib.allocate("int32", (data.shape[k],), "count")
                with ib.for_range(0, data.shape[k], name="k") as n:
                    count[n] = 1
            with ib.for_range(0, indices.shape[k], name="k") as n:
                here = (*at[:k], n, *at[k:])
                place = _wrapped(index[here], data.shape[k])
                there = (*at[:k], place, *at[k:])
                with ib.if_scope(_is_inside([place], [data.shape[k]])):
                    out[there] = combine(out[there], new[here])
                    if reduction == "mean":
                        count[place] = count[place] + 1
            if reduction == "mean":
                with ib.for_range(0, data.shape[k], name="k") as n:
                    there = (*at[:k], n, *at[k:])
                    out[there] = _mean(out[there], O.cast(count[n], data.dtype))
        return ib.get()

    return te.extern([data.shape], [data, indices, updates], body, dtype=data.dtype,
                     name="scatter_elements", tag="scatter_elements")


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str = "update") -> Tensor:
    """data, in which the slices `updates` were put at indices[0, ..], indices[1, ..], ..."""
    depth = number(indices.shape[0])
    need(isinstance(depth, int) and depth <= data.ndim,
         f"scatter_nd: indices {text(indices.shape)} name {depth} axes of {text(data.shape)}")
    places, rest = list(indices.shape[1:]), list(data.shape[depth:])
    need(updates.ndim == len(places) + len(rest) and not any(
        map(differ, updates.shape, [*places, *rest])),
        f"scatter_nd: updates have the shape {text(updates.shape)} and would have to have "
        f"{text([*places, *rest])}")
    return _widened(lambda *both: _scatter_nd(both[0], indices, both[1], mode), data, updates, mode)


def _scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str) -> Tensor:
    combine = _update("scatter_nd", mode)
    depth = number(indices.shape[0])
    places, rest = list(indices.shape[1:]), list(data.shape[depth:])

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        source, index, new, out = map(ib.buffer_ptr, (*ins, *outs))
        _copy(ib, source, out, data.shape)
        with ib.for_range(0, O.convert(simplify(O.convert(product(places)))), name="j") as j:
            at = unravel(j, places)
            with ib.for_range(0, simplify(O.convert(product(rest))), name="k") as n:
                inner = unravel(n, rest)
                first = [_wrapped(index[(d, *at)], data.shape[d]) for d in range(depth)]
                there = (*first, *inner)
                with ib.if_scope(_is_inside(first, data.shape)):
                    out[there] = combine(out[there], new[(*at, *inner)])
        return ib.get()

    return te.extern([data.shape], [data, indices, updates], body, dtype=data.dtype,
                     name="scatter_nd", tag="scatter_nd")


def index_put(data: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False
              ) -> Tensor:
    """data, in which `values` were put at data[indices[0], indices[1], ...]."""
    return _widened(lambda *both: _index_put(both[0], list(indices), both[1], accumulate), data,
                    values, "add" if accumulate else "update")


def _index_put(data: Tensor, indices: list[Tensor], values: Tensor, accumulate: bool) -> Tensor:
    common = list(indices[0].shape)
    for x in indices[1:]:
        common = broadcast_shape(common, x.shape)
    rest = list(data.shape[len(indices):])
    whole = [*common, *rest]

    def body(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        ib = ir_builder.create()
        source, new, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[-1]), ib.buffer_ptr(outs[0])
        places = [ib.buffer_ptr(b) for b in ins[1:-1]]
        _copy(ib, source, out, data.shape)
        with ib.for_range(0, simplify(O.convert(product(whole))), name="j") as j:
            i = unravel(j, whole)
            at = []
            for t, b, d in zip(indices, places, data.shape):
                index = b[_broadcast_at(t, i[:len(common)], common)]
                at.append(_wrapped(index, d))
            there = (*at, *i[len(common):])
            value = new[_broadcast_at(values, i, whole)]
            with ib.if_scope(_is_inside(at, data.shape)):
                out[there] = out[there] + value if accumulate else value
        return ib.get()

    return te.extern([data.shape], [data, *indices, values], body, dtype=data.dtype,
                     name="index_put", tag="index_put")


def _broadcast_at(tensor: Tensor, i: Sequence[Any], shape: Sequence[Any]) -> tuple:
    """Where an element of a broadcast shape is in a tensor."""
    skip = len(shape) - tensor.ndim
    return tuple(O.const(0, x.dtype) if O.is_const_int(d, 1) else x
                 for d, x in zip(tensor.shape, i[skip:]))


def slice_scatter(input_tensor: Tensor, src: Tensor, start: Any, end: Any, step: Any,
                  axis: int) -> Tensor:
    """input_tensor with src in place of its slice [start:end:step] along `axis`."""
    from .transform import slice_bounds

    k = axis_of("slice_scatter", axis, input_tensor.ndim)
    step = number(step)
    low, count = slice_bounds("slice_scatter", input_tensor.shape[k], start, end, step)
    need(not differ(count, src.shape[k]), f"slice_scatter: the slice holds {number(count)} and "
                                          f"src {text(src.shape)} has {number(src.shape[k])}")

    def element(*i: PrimExpr) -> PrimExpr:
        away = i[k] - low
        inside = O.all(away >= 0, away < count * step, O.equal(O.floormod(away, step), 0))
        at = [O.floordiv(away, step) if d == k else x for d, x in enumerate(i)]
        return O.if_then_else(inside, src(*at), input_tensor(*i))

    return injective(input_tensor.shape, element, "slice_scatter")


def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0
                  ) -> Tensor:
    """mask_value beyond valid_length[batch] along `axis` (0 or 1; the batch is the other one)."""
    need(axis in (0, 1), "sequence_mask: axis is 0 or 1")

    def element(*i: PrimExpr) -> PrimExpr:
        length = O.cast(valid_length(i[1 - axis]), i[axis].dtype)
        return O.if_then_else(i[axis] >= length, O.const(mask_value, data.dtype), data(*i))

    return injective(data.shape, element, "sequence_mask")


__all__ = ["adv_index", "gather", "gather_nd", "index_put", "index_tensor", "one_hot",
           "scatter_elements", "scatter_nd", "sequence_mask", "slice_scatter", "strided_set",
           "take"]

"""Sorting along one dimension: sort, argsort, topk.

A stable merge sort of indices, bottom up: runs of 1, 2, 4, ... are merged from one half of a
buffer into the other until one run is left. It is TensorIR as everything else here: rows run in
parallel, and any backend can compile it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from .. import te
from ..ir import dtype as dt
from ..te.tensor import Tensor
from ..tir import ir_builder
from ..tir import op as O
from ..tir.expr import PrimExpr
from .utils import axis_of, need, number, product, simplify, text, unravel

if TYPE_CHECKING:
    from ..tir.ir_builder import IRBuilder


def _before(a: PrimExpr, b: PrimExpr, ascending: bool) -> PrimExpr:
    """Whether b must come before a; not a number comes last ascending, first descending."""
    less = O.less(b, a) if ascending else O.less(a, b)
    if not dt.is_float(a.dtype):
        return less
    nan, other = (a, b) if ascending else (b, a)
    return O.logical_or(less, O.logical_and(O.isnan(nan), O.logical_not(O.isnan(other))))


def _sorted_rows(ib: IRBuilder, source: Any, shape: Sequence[Any], k: int, ascending: bool,
                 valid: Any, write: Any) -> None:
    """Emit loops that call `write(row, i, index)` for the i-th smallest of each row."""
    length = shape[k]
    it = length.dtype
    rows = [*shape[:k], *shape[k + 1:]]
    with ib.for_range(0, simplify(O.convert(product(rows))), "row", kind="parallel") as row:
        at = unravel(row, rows)

        def value(index: PrimExpr) -> PrimExpr:
            return source[(*at[:k], index, *at[k:])]

        order = ib.allocate(it, (2, length), "order")
        state = ib.allocate(it, (6,), "state", scope="local")
        width, left, right, low, half, size = range(6)
        state[size] = length if valid is None else O.min_value_of(
            O.cast(valid[row], it), length)
        with ib.for_range(0, length, "i") as i:
            order[0, i] = i
        state[width] = O.const(1, it)
        state[half] = O.const(0, it)
        with ib.while_loop(state[width] < state[size]):
            state[low] = O.const(0, it)
            with ib.while_loop(state[low] < state[size]):
                middle = O.min_value_of(state[low] + state[width], state[size])
                end = O.min_value_of(state[low] + state[width] * 2, state[size])
                state[left] = state[low]
                state[right] = middle
                with ib.for_range(0, end - state[low], "j") as j:
                    a, b = order[state[half], state[left]], order[state[half], state[right]]
                    take_right = O.if_then_else(
                        state[left] >= middle, True, O.if_then_else(
                            state[right] >= end, False, _before(value(a), value(b), ascending)))
                    with ib.if_scope(take_right):
                        order[1 - state[half], state[low] + j] = b
                        state[right] = state[right] + 1
                    with ib.else_scope():
                        order[1 - state[half], state[low] + j] = a
                        state[left] = state[left] + 1
                state[low] = end
            # what is beyond the valid part keeps its place
            with ib.for_range(0, length - state[size], "j") as j:
                order[1 - state[half], state[size] + j] = order[state[half], state[size] + j]
            state[half] = 1 - state[half]
            state[width] = state[width] * 2
        write(ib, at, lambda i: order[state[half], i], value)


def _ascending(flag: object) -> bool:
    return bool(number(flag))


def sort(data: Tensor, axis: int = -1, is_ascend: object = 1) -> Tensor:
    """The elements in order along `axis`."""
    k = axis_of("sort", axis, data.ndim)

    def body(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        ib = ir_builder.create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])

        def write(ib: IRBuilder, at: list, index: Any, value: Any) -> None:
            with ib.for_range(0, data.shape[k], "i") as i:
                out[(*at[:k], i, *at[k:])] = value(index(i))

        _sorted_rows(ib, source, data.shape, k, _ascending(is_ascend), None, write)
        return ib.get()

    return te.extern([data.shape], [data], body, dtype=data.dtype, name="sort_cpu", tag="sort_cpu")


def argsort(data: Tensor, valid_count: Tensor | None = None, axis: int = -1, is_ascend: object = 1,
            dtype: str = "float32") -> Tensor:
    """The indices that put the elements in order along `axis`; equal ones stay in order.

    With `valid_count` only so many elements of each row are sorted.
    """
    k = axis_of("argsort", axis, data.ndim)

    def body(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        ib = ir_builder.create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        valid = ib.buffer_ptr(ins[1]) if valid_count is not None else None

        def write(ib: IRBuilder, at: list, index: Any, value: Any) -> None:
            with ib.for_range(0, data.shape[k], "i") as i:
                out[(*at[:k], i, *at[k:])] = O.cast(index(i), dtype)

        _sorted_rows(ib, source, data.shape, k, _ascending(is_ascend), valid, write)
        return ib.get()

    inputs = [data] if valid_count is None else [data, valid_count]
    return te.extern([data.shape], inputs, body, dtype=dtype, name="argsort_cpu",
                     tag="argsort_cpu")


def topk(data: Tensor, k: Any = 1, axis: int = -1, ret_type: str = "both",
         is_ascend: object = False, dtype: str = "int64") -> Any:
    """The first k elements in order along `axis` and where they were: [values, indices].

    `ret_type` is "both", "values" or "indices"; k below 1 means all. Descending by default.
    """
    need(ret_type in ("both", "values", "indices"),
         f'topk: ret_type "{ret_type}" is none of "both", "values", "indices"')
    axis = axis_of("topk", axis, data.ndim)
    count = number(k)
    length = data.shape[axis]
    if isinstance(count, int):
        known = O.as_int(length)
        need(known is None or count <= known,
             f"topk: {count} of the {known} elements along axis {axis} of {text(data.shape)}")
        count = length if count < 1 else O.const(count, length.dtype)
    shape = [count if d == axis else n for d, n in enumerate(data.shape)]

    def body(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        ib = ir_builder.create()
        source = ib.buffer_ptr(ins[0])
        values = ib.buffer_ptr(outs[0]) if ret_type != "indices" else None
        indices = ib.buffer_ptr(outs[-1]) if ret_type != "values" else None

        def write(ib: IRBuilder, at: list, index: Any, value: Any) -> None:
            with ib.for_range(0, count, "i") as i:
                place = (*at[:axis], i, *at[axis:])
                if values is not None:
                    values[place] = value(index(i))
                if indices is not None:
                    indices[place] = O.cast(index(i), dtype)

        _sorted_rows(ib, source, data.shape, axis, _ascending(is_ascend), None, write)
        return ib.get()

    dtypes = {"both": [data.dtype, dtype], "values": [data.dtype], "indices": [dtype]}[ret_type]
    return te.extern([shape] * len(dtypes), [data], body, dtype=dtypes, name="topk_cpu",
                     tag="topk_cpu")


def searchsorted(sorted_sequence: Tensor, values: Tensor, right: bool = False,
                 out_dtype: str = "int64") -> Tensor:
    """Where values go into a sorted sequence: by binary search, before equal ones or after."""
    length = sorted_sequence.shape[-1]
    it = length.dtype

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        sequence, wanted, out = map(ib.buffer_ptr, (*ins, *outs))
        total = simplify(O.convert(product(values.shape)))
        with ib.for_range(0, total, "i", kind="parallel") as i:
            at = unravel(i, values.shape)
            state = ib.allocate(it, (2,), "state", scope="local")
            state[0] = O.const(0, it)
            state[1] = length
            with ib.while_loop(state[0] < state[1]):
                middle = O.floordiv(state[0] + state[1], 2)
                place = (*at[:sorted_sequence.ndim - 1], middle)
                here, value = sequence[place], wanted[tuple(at)]
                # as torch: what is no number goes behind all numbers
                here = O.greater(here, value) if right else O.greater_equal(here, value)
                with ib.if_scope(O.logical_not(here)):
                    state[0] = middle + 1
                with ib.else_scope():
                    state[1] = middle
            out[tuple(at)] = O.cast(state[0], out_dtype)
        return ib.get()

    need(sorted_sequence.ndim in (1, values.ndim),
         f"searchsorted: the sequence {text(sorted_sequence.shape)} has one dimension, or those "
         f"of the values {text(values.shape)}")
    return te.extern([values.shape], [sorted_sequence, values], body, dtype=out_dtype,
                     name="searchsorted", tag="searchsorted")


__all__ = ["argsort", "searchsorted", "sort", "topk"]

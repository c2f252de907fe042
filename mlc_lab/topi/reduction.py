"""Reductions over some or all dimensions, with numpy's `axis` and `keepdims`."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

from .. import te
from ..ir import dtype as dt
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import IntImm, PrimExpr
from .utils import axes, axes_of, ravel, rounded, sum_type


def reduce(name: str, data: Tensor, axis: int | Sequence[int] | None, keepdims: bool,
           element: Callable, block: str | None = None) -> Any:
    """A reduction of `data`; `element(indices, axes)` makes the reduced value.

    `indices` are those of the element of `data`, `axes` the reduction axes in order.
    """
    real = axes_of(name, axis, data.ndim)
    if not real:
        return te.compute(data.shape, lambda *i: data(*i), name=f"{data.op.name}_red",
                          tag="comm_reduce", varargs_names=axes(data.ndim))
    ks = {a: te.reduce_axis((0, data.shape[a]), f"k{a}") for a in real}
    shape = [IntImm(d.dtype, 1) if i in ks else d for i, d in enumerate(data.shape)
             if keepdims or i not in ks]

    def at(*i: PrimExpr) -> Any:
        rest = iter(i)
        index: list[Any] = []
        for d in range(data.ndim):
            spatial = next(rest) if d not in ks or keepdims else None
            index.append(ks[d] if d in ks else spatial)
        return element(index, list(ks.values()))

    return te.compute(shape, at, name=block or f"{data.op.name}_red", tag="comm_reduce",
                      varargs_names=axes(len(shape)))


def _reduction(name: str, reducer: Callable, doc: str = "") -> Callable:
    def operator(data: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False
                 ) -> Tensor:
        return reduce(name, data, axis, keepdims,
                      lambda i, ks: reducer(data(*i), axis=ks))

    operator.__name__ = name
    operator.__doc__ = doc or f"The {name} over `axis` (an int, several, or None for all)."
    return operator


def wide_sum(data: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False, *,
             reducer: Callable = te.sum, name: str = "sum") -> Tensor:
    """The sum over `axis`, still in the type in which it is kept (see `sum_type`)."""
    wide = sum_type(data.dtype)
    return reduce(name, data, axis, keepdims,
                  lambda i, ks: reducer(O.cast(data(*i), wide), axis=ks))


def _accumulation(name: str, reducer: Callable, of_bools: Callable, doc: str) -> Callable:
    def operator(data: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False
                 ) -> Tensor:
        if dt.is_bool(data.dtype):
            return of_bools(data, axis, keepdims)
        return rounded(wide_sum(data, axis, keepdims, reducer=reducer, name=name),
                       data.dtype)

    operator.__name__, operator.__doc__ = name, doc
    return operator


def _truth(e: PrimExpr) -> PrimExpr:
    return e if dt.is_bool(e.dtype) else O.not_equal(e, 0)


_all = te.comm_reducer(O.logical_and, lambda t: O.const(True, "bool"), "all")
_any = te.comm_reducer(O.logical_or, lambda t: O.const(False, "bool"), "any")

max, min = _reduction("max", te.max), _reduction("min", te.min)
all = _reduction("all", lambda e, axis: _all(_truth(e), axis=axis),
                 "Whether all elements over `axis` are true.")
any = _reduction("any", lambda e, axis: _any(_truth(e), axis=axis),
                 "Whether an element over `axis` is true.")
sum = _accumulation("sum", te.sum, any, "The sum over `axis`, of conditions whether one is true.")
prod = _accumulation("prod", te.prod, all,
                     "The product over `axis`, of conditions whether all are true.")


def _arg(name: str, better: Callable, worst: Callable, exact: bool = False) -> Callable:
    """argmax or argmin. TVM's form ignores NaN, and gives -1 where no element is better than the
    finite number that it starts from; `exact` gives what numpy and torch give in these cases.
    """
    def operator(data: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False,
                 select_last_index: bool = False) -> Tensor:
        earlier = O.greater if select_last_index else O.less
        wins, ties = (_nan_wins(better), _nan_ties) if exact and dt.is_float(data.dtype) else (
            better, O.equal)

        def combine(lhs: Sequence[PrimExpr], rhs: Sequence[PrimExpr]) -> tuple:
            first = O.logical_or(wins(lhs[1], rhs[1]), O.logical_and(
                ties(lhs[1], rhs[1]), earlier(lhs[0], rhs[0])))
            return (O.select(first, lhs[0], rhs[0]),
                    O.select(wins(lhs[1], rhs[1]), lhs[1], rhs[1]))

        def identity(index: str, value: str) -> tuple:
            none = O.max_value(index) if exact and not select_last_index else O.const(-1, index)
            return none, worst(value)

        reducer = te.comm_reducer(combine, identity, name)
        real = axes_of(name, axis, data.ndim)
        if not real:  # a scalar: its one element is the first
            return te.compute(data.shape, lambda *i: O.const(0, "int64"),
                              name=f"{data.op.name}_red", tag="injective")

        def element(i: list, ks: list) -> Any:
            position = ravel([k.var for k in ks], [data.shape[a] for a in real])
            return reducer((position, data(*i)), axis=ks)

        block = f"{data.op.name}_red"
        index, _ = reduce(name, data, real, keepdims, element, f"{block}_temp")
        return te.compute(index.shape, lambda *i: index(*i), name=block,
                          tag="comm_reduce_idx", varargs_names=axes(index.ndim))

    operator.__name__ = name
    operator.__doc__ = (f"Where the {name[3:]} over `axis` is: the first such place, or the last; "
                        "counted in row-major order where there are several axes.")
    return operator


def _nan_wins(better: Callable) -> Callable:
    return lambda a, b: O.logical_or(better(a, b), O.logical_and(
        O.isnan(a), O.logical_not(O.isnan(b))))


def _nan_ties(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return O.logical_or(O.equal(a, b), O.logical_and(O.isnan(a), O.isnan(b)))


def lowest(dtype: str) -> PrimExpr:
    """What is below every number of a type or equal to it: of floats minus infinity."""
    return O.const(-math.inf, dtype) if dt.is_float(dtype) else O.min_value(dtype)


def highest(dtype: str) -> PrimExpr:
    """What is above every number of a type or equal to it."""
    return O.infinity(dtype) if dt.is_float(dtype) else O.max_value(dtype)


argmax = _arg("argmax", O.greater, O.min_value)
argmin = _arg("argmin", O.less, O.max_value)

#: as in numpy and torch for infinities and NaN too; those above have TVM's form, which starts from
#: a finite number
max_from_lowest = te.comm_reducer(O.max_value_of, lowest, "max")
exact_max = _reduction("max", max_from_lowest)
exact_min = _reduction("min", te.comm_reducer(O.min_value_of, highest, "min"))
exact_argmax = _arg("argmax", O.greater, lowest, exact=True)
exact_argmin = _arg("argmin", O.less, highest, exact=True)

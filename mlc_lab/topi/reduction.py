"""Reductions over some or all dimensions, with numpy's `axis` and `keepdims`."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from .. import te
from ..ir import dtype as dt
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import IntImm, PrimExpr
from .utils import axes, axes_of, ravel


def reduce(name: str, data: Tensor, axis: Any, keepdims: bool, element: Callable,
           block: str | None = None) -> Any:
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

    def at(*i: Any) -> Any:
        rest = iter(i)
        index: list[Any] = []
        for d in range(data.ndim):
            spatial = next(rest) if d not in ks or keepdims else None
            index.append(ks[d] if d in ks else spatial)
        return element(index, list(ks.values()))

    return te.compute(shape, at, name=block or f"{data.op.name}_red", tag="comm_reduce",
                      varargs_names=axes(len(shape)))


def _reduction(name: str, reducer: Callable, doc: str = "") -> Callable:
    def operator(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        return reduce(name, data, axis, keepdims,
                      lambda i, ks: reducer(data(*i), axis=ks))

    operator.__name__ = name
    operator.__doc__ = doc or f"The {name} over `axis` (an int, several, or None for all)."
    return operator


def _truth(e: PrimExpr) -> PrimExpr:
    return e if dt.is_bool(e.dtype) else O.not_equal(e, 0)


_all = te.comm_reducer(O.logical_and, lambda t: O.const(True, "bool"), "all")
_any = te.comm_reducer(O.logical_or, lambda t: O.const(False, "bool"), "any")

sum, prod = _reduction("sum", te.sum), _reduction("prod", te.prod)  # noqa: A001
max, min = _reduction("max", te.max), _reduction("min", te.min)  # noqa: A001
all = _reduction("all", lambda e, axis: _all(_truth(e), axis=axis),  # noqa: A001
                 "Whether all elements over `axis` are true.")
any = _reduction("any", lambda e, axis: _any(_truth(e), axis=axis),  # noqa: A001
                 "Whether an element over `axis` is true.")


def _arg(name: str, better: Callable, worst: Callable) -> Callable:
    def operator(data: Tensor, axis: Any = None, keepdims: bool = False,
                 select_last_index: bool = False) -> Tensor:
        earlier = O.greater if select_last_index else O.less

        def combine(lhs: Sequence[PrimExpr], rhs: Sequence[PrimExpr]) -> tuple:
            wins = O.logical_or(better(lhs[1], rhs[1]), O.logical_and(
                O.equal(lhs[1], rhs[1]), earlier(lhs[0], rhs[0])))
            return (O.select(wins, lhs[0], rhs[0]),
                    O.select(better(lhs[1], rhs[1]), lhs[1], rhs[1]))

        def identity(index: str, value: str) -> tuple:
            return O.const(-1, index), worst(value)

        reducer = te.comm_reducer(combine, identity, name)
        real = axes_of(name, axis, data.ndim)

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


argmax = _arg("argmax", O.greater, O.min_value)
argmin = _arg("argmin", O.less, O.max_value)

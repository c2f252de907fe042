"""Reductions over some or all dimensions, with numpy's `axis` and `keepdims`."""

from __future__ import annotations

from typing import Any, Callable

from .. import te
from ..te.tensor import Tensor
from ..tir.expr import IntImm


def _reduction(name: str, reducer: Callable) -> Callable:
    def operator(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        over = range(data.ndim) if axis is None else (
            axis if isinstance(axis, (list, tuple)) else [axis])
        for a in over:
            if not -data.ndim <= a < data.ndim:
                raise ValueError(f"{name}: axis {a} is not one of the {data.ndim} dimensions of "
                                 f"{data.name}")
        real = sorted({a % data.ndim for a in over})
        ks = {a: te.reduce_axis((0, data.shape[a]), f"k{a}") for a in real}
        shape = [IntImm(d.dtype, 1) if i in ks else d for i, d in enumerate(data.shape)
                 if keepdims or i not in ks]

        def element(*i: Any) -> Any:
            rest = iter(i)
            at = []
            for d in range(data.ndim):
                if d not in ks or keepdims:
                    index = next(rest)
                at.append(ks[d] if d in ks else index)
            return reducer(data(*at), axis=list(ks.values()))

        return te.compute(shape, element, name=f"{data.op.name}_red", tag="comm_reduce",
                          varargs_names=[f"ax{i}" for i in range(len(shape))])

    operator.__name__ = name
    operator.__doc__ = f"The {name} over `axis` (an int, several, or None for all)."
    return operator


sum, prod = _reduction("sum", te.sum), _reduction("prod", te.prod)  # noqa: A001
max, min = _reduction("max", te.max), _reduction("min", te.min)  # noqa: A001

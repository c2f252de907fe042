"""softmax and log_softmax, each row shifted by its largest element so that exp cannot overflow.

Those of float16 and bfloat16 are computed in float32 and rounded at the end.
"""

from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ...tir.expr import IterVar, PrimExpr
from ..utils import axis_of, sum_type


def _rows(x: Tensor, axis: int) -> tuple[list[Any], Any, Any]:
    """The shape without `axis`, and how to put an index of it in, or take it out."""
    shape = [d for i, d in enumerate(x.shape) if i != axis]

    def put(i: Sequence[Any], k: PrimExpr | IterVar) -> list[Any]:
        return [*i[:axis], k, *i[axis:]]

    def out(i: Sequence[Any]) -> list[Any]:
        return [*i[:axis], *i[axis + 1:]]

    return shape, put, out


def _largest(x: Tensor, axis: int) -> Tensor:
    shape, put, _ = _rows(x, axis)
    k = te.reduce_axis((0, x.shape[axis]), name="k")
    return te.compute(shape, lambda *i: te.max(x(*put(i, k)), axis=k), name="T_softmax_maxelem")


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) over the sum of exp(x) along `axis`."""
    axis = axis_of("softmax", axis, x.ndim)
    shape, put, out = _rows(x, axis)
    top, dtype = _largest(x, axis), sum_type(x.dtype)
    power = te.compute(x.shape, lambda *i: O.exp(O.cast(x(*i), dtype) - O.cast(
        top(*out(i)), dtype)), name="T_softmax_exp")
    k = te.reduce_axis((0, x.shape[axis]), name="k")
    total = te.compute(shape, lambda *i: te.sum(power(*put(i, k)), axis=k),
                       name="T_softmax_expsum")
    return te.compute(x.shape, lambda *i: O.cast(power(*i) / total(*out(i)), x.dtype),
                      name="T_softmax_norm", tag="softmax_output", attrs={"axis": axis})


def fast_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """softmax; the backend's own exp is already a polynomial."""
    return softmax(x, axis)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """x minus the logarithm of the sum of exp(x) along `axis`."""
    axis = axis_of("log_softmax", axis, x.ndim)
    shape, put, out = _rows(x, axis)
    top, dtype = _largest(x, axis), sum_type(x.dtype)
    k = te.reduce_axis((0, x.shape[axis]), name="k")

    def below(i: Sequence[Any], o: Sequence[Any]) -> PrimExpr:
        return O.cast(x(*i), dtype) - O.cast(top(*o), dtype)

    total = te.compute(shape, lambda *i: te.sum(O.exp(below(put(i, k), i)), axis=k))
    return te.compute(x.shape, lambda *i: O.cast(below(i, out(i)) - O.log(total(*out(i))),
                                                 x.dtype),
                      tag="log_softmax_output", attrs={"axis": axis})


__all__ = ["fast_softmax", "log_softmax", "softmax"]

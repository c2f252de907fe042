"""softmax and log_softmax, each row shifted by its largest element so that exp cannot overflow."""

from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ..utils import axis_of


def _rows(x: Tensor, axis: int) -> tuple[list[Any], Any, Any]:
    """The shape without `axis`, and how to put an index of it in, or take it out."""
    shape = [d for i, d in enumerate(x.shape) if i != axis]

    def put(i: Sequence[Any], k: Any) -> list[Any]:
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
    top = _largest(x, axis)
    power = te.compute(x.shape, lambda *i: O.exp(x(*i) - top(*out(i))), name="T_softmax_exp")
    k = te.reduce_axis((0, x.shape[axis]), name="k")
    total = te.compute(shape, lambda *i: te.sum(power(*put(i, k)), axis=k),
                       name="T_softmax_expsum")
    return te.compute(x.shape, lambda *i: power(*i) / total(*out(i)), name="T_softmax_norm",
                      tag="softmax_output", attrs={"axis": axis})


def fast_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """softmax; the backend's own exp is already a polynomial."""
    return softmax(x, axis)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """x minus the logarithm of the sum of exp(x) along `axis`."""
    axis = axis_of("log_softmax", axis, x.ndim)
    shape, put, out = _rows(x, axis)
    top = _largest(x, axis)
    k = te.reduce_axis((0, x.shape[axis]), name="k")
    total = te.compute(shape, lambda *i: te.sum(O.exp(x(*put(i, k)) - top(*i)), axis=k))
    return te.compute(x.shape, lambda *i: x(*i) - top(*out(i)) - O.log(total(*out(i))),
                      tag="log_softmax_output", attrs={"axis": axis})


__all__ = ["fast_softmax", "log_softmax", "softmax"]

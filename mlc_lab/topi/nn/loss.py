"""Losses."""

from __future__ import annotations

from typing import Any

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ..reduction import sum as reduce_sum
from ..utils import need


def nll_loss(predictions: Tensor, targets: Tensor, weights: Tensor, reduction: str,
             ignore_index: int) -> Tensor:
    """-weights[t] * predictions[.., t, ..] at the target class t, which is axis 1 (0 of a vector).

    `reduction` is "none", "sum", or "mean" (over the sum of the weights used).
    """
    need(reduction in ("none", "sum", "mean"),
         f'nll_loss: reduction "{reduction}" is none of "none", "sum", "mean"')
    zero = O.const(0, predictions.dtype)

    def chosen(value: Any) -> Any:
        def element(*i: Any) -> Any:
            t = targets(*i)
            return O.if_then_else(O.not_equal(t, ignore_index), value(t, i), zero)

        return element

    def loss(t: Any, i: Any) -> Any:
        at = (*i[:1], t, *i[1:]) if predictions.ndim > 1 else (t,)
        return O.const(-1, predictions.dtype) * predictions(*at) * weights(t)

    out = te.compute(targets.shape, chosen(loss), name="nll_loss", tag="nll_loss")
    if reduction == "none":
        return out
    total = reduce_sum(out)
    if reduction == "sum":
        return total
    used = reduce_sum(te.compute(targets.shape, chosen(lambda t, i: weights(t)),
                                 name="targets_weight", tag="nll_loss"))
    return te.compute((), lambda: total() / used(), name="T_divide", tag="broadcast")


__all__ = ["nll_loss"]

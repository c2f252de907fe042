"""Losses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ..reduction import sum as reduce_sum
from ..utils import need, rounded, sum_type

if TYPE_CHECKING:
    pass


def nll_loss(predictions: Tensor, targets: Tensor, weights: Tensor, reduction: str,
             ignore_index: int) -> Tensor:
    """-weights[t] * predictions[.., t, ..] at the target class t, which is axis 1 (0 of a vector).

    `reduction` is "none", "sum", or "mean" (over the sum of the weights used). The loss of a target
    that is no class, nor `ignore_index`, is NaN.
    """
    need(reduction in ("none", "sum", "mean"),
         f'nll_loss: reduction "{reduction}" is none of "none", "sum", "mean"')
    dtype = sum_type(predictions.dtype)
    zero, nan = O.const(0, dtype), O.const(math.nan, dtype)

    def chosen(value: Any) -> Any:
        def element(*i: Any) -> Any:
            t = targets(*i)
            inside = O.all(t >= O.const(0, t.dtype), t < O.cast(weights.shape[0], t.dtype))
            return O.if_then_else(O.equal(t, ignore_index), zero,
                                  O.if_then_else(inside, value(t, i), nan))

        return element

    def loss(t: Any, i: Any) -> Any:
        at = (*i[:1], t, *i[1:]) if predictions.ndim > 1 else (t,)
        return O.const(-1, dtype) * O.cast(predictions(*at), dtype) * O.cast(weights(t), dtype)

    out = te.compute(targets.shape, chosen(loss), name="nll_loss", tag="nll_loss")
    if reduction == "none":
        return rounded(out, predictions.dtype)
    total = reduce_sum(out)
    if reduction == "sum":
        return rounded(total, predictions.dtype)
    used = reduce_sum(te.compute(targets.shape, chosen(lambda t, i: O.cast(weights(t), dtype)),
                                 name="targets_weight", tag="nll_loss"))
    return rounded(te.compute((), lambda: total() / used(), name="T_divide", tag="broadcast"),
                   predictions.dtype)


__all__ = ["nll_loss"]

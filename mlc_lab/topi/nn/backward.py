"""Gradients that are no tensor expression of other operators: of pooling and of a loss."""

from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ...tir.expr import PrimExpr
from ..reduction import sum as reduce_sum
from ..utils import axes, need, number, product, rounded, sum_type
from .pool import Windows, pool


def pool_grad(grads: Tensor, data: Tensor, kernel: int | Sequence[int],
              stride: int | Sequence[int], padding: int | str | Sequence[Any], pool_type: str,
              ceil_mode: bool = False, count_include_pad: bool = True, layout: str = "NCHW", *,
              dilation: int | Sequence[int] = 1) -> Tensor:
    """The gradient of pool2d (or pool1d, pool3d, by the layout): `grads` is that of its result.

    Each element collects from the windows that it lies in: its share of a mean, or all of a maximum
    that it is the first to reach.
    """
    dim = len(layout) - 2
    name = f"pool{dim}d"
    need(pool_type in ("max", "avg"), f'{name}: pool_type "{pool_type}" is none of "max", "avg"')
    windows = Windows(name, data, kernel, stride, dilation, padding, ceil_mode, layout, dim)
    names, wide = axes(data.ndim), sum_type(data.dtype)
    ks = windows.over()

    def flat(at: Sequence[Any]) -> PrimExpr:
        """A place of a window as one number."""
        out: Any = 0
        for k, size in zip(at, windows.sizes):
            out = out * size + k
        return O.cast(O.convert(number(out)), "int32")

    if pool_type == "max":
        best = pool(data, kernel, stride, dilation, padding, "max", ceil_mode, layout, False, dim,
                    True)
        inner = windows.over()

        def winner(*i: PrimExpr) -> PrimExpr:
            at = windows.place(i, inner)
            inside = []
            for d, b in zip(windows.where, windows.before):
                at[d] = at[d] - b
                inside += [at[d] >= 0, at[d] < data.shape[d]]
            nowhere = O.const(product(windows.sizes), "int32")
            return te.min(O.if_then_else(
                O.all(*inside), O.select(O.equal(data(*at), best(*i)), flat(inner), nowhere),
                nowhere), axis=inner)

        first = te.compute(windows.shape, winner, name="pool_first", varargs_names=names)

    def collected(*i: PrimExpr) -> PrimExpr:
        window, inside = list(i), []
        for d, s, b, k, r in zip(windows.where, windows.steps, windows.before, ks, windows.spread):
            ahead = i[d] + b - k * r
            window[d] = O.floordiv(ahead, s)
            inside += [ahead >= 0, window[d] < windows.shape[d]]
            if s != 1:
                inside.append(O.equal(O.floormod(ahead, s), 0))
        if pool_type == "max":
            value = O.select(O.equal(first(*window), flat(ks)), O.cast(grads(*window), wide),
                             O.const(0, wide))
        else:
            value = O.cast(grads(*window), wide) / windows.elements(window, wide,
                                                                    count_include_pad)
        return te.sum(O.if_then_else(O.all(*inside), value, O.const(0, wide)), axis=ks)

    return rounded(te.compute(data.shape, collected, name=f"pool_grad_{pool_type}",
                              tag=f"pool_grad_{pool_type}", varargs_names=names), data.dtype)


def nll_loss_grad(grads: Tensor, predictions: Tensor, targets: Tensor, weights: Tensor,
                  reduction: str, ignore_index: int) -> Tensor:
    """The gradient of nll_loss for its predictions: `grads` is that of the loss."""
    need(reduction in ("none", "sum", "mean"),
         f'nll_loss: reduction "{reduction}" is none of "none", "sum", "mean"')
    dtype = sum_type(predictions.dtype)
    zero = O.const(0, dtype)
    where = 0 if predictions.ndim == 1 else 1

    def weight(*i: Any) -> PrimExpr:
        t = targets(*i)
        used = O.all(O.not_equal(t, ignore_index), t >= O.const(0, t.dtype),
                     t < O.cast(weights.shape[0], t.dtype))
        return O.if_then_else(used, O.cast(weights(t), dtype), zero)

    of_target = te.compute(targets.shape, weight, name="targets_weight", tag="nll_loss")
    total = reduce_sum(of_target) if reduction == "mean" else None

    def element(*i: Any) -> PrimExpr:
        at = [*i[:where], *i[where + 1:]]
        grad = O.cast(grads(*at) if reduction == "none" else grads(), dtype)
        share = -grad * of_target(*at)
        if total is not None:
            share = share / total()
        t = targets(*at)
        return O.cast(O.select(O.equal(t, O.cast(i[where], t.dtype)), share, zero),
                      predictions.dtype)

    return te.compute(predictions.shape, element, name="nll_loss_grad", tag="nll_loss")


__all__ = ["nll_loss_grad", "pool_grad"]

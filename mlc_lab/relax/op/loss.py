"""Losses under R.nn: cross_entropy_with_logits, nll_loss."""

from __future__ import annotations

from typing import Any

from ...tir import op as O
from ...tir.expr import IntImm
from ..expr import Call, Expr, ExternFunc, PrimValue
from ..struct_info import StructInfo, TensorStructInfo
from .common import (
    join_dtype, like, misfit, need_ndim, need_same, need_same_dims, show, tensor_of,
)
from .declare import FloatTensor, IntegerTensor, Tensor, Text, Whole, operator
from .later import topi, utils


def infer_cross_entropy(call: Call, a: TensorStructInfo, b: TensorStructInfo) -> StructInfo:
    """One number, of two tensors that are alike."""
    dtype = join_dtype(call, a.dtype, b.dtype, ("predictions", "labels"))
    need_same_dims(call, a, b, ("predictions", "labels"))
    return tensor_of((), dtype)


@operator("relax.nn.cross_entropy_with_logits", infer_cross_entropy)
def cross_entropy_with_logits(predictions: FloatTensor, labels: Tensor) -> Tensor:
    """-sum(labels * predictions), divided by the batch where there is one."""
    dtype, wide = predictions.dtype, utils.sum_type(predictions.dtype)
    a, b = (x if wide == x.dtype else topi.cast(x, wide) for x in (predictions, labels))
    total = topi.reduction.wide_sum(topi.multiply(a, b))
    batch = predictions.shape[0] if predictions.ndim > 1 else IntImm("int64", 1)
    by = O.const(0, wide) - O.cast(batch, wide)
    return utils.rounded(topi.divide(total, by), dtype)


def _infer_nll(call: Call, pred: TensorStructInfo, target: TensorStructInfo,
               weights: TensorStructInfo | None = None) -> StructInfo:
    if call.attrs.reduction not in ("mean", "sum", "none"):
        raise misfit(call, f"reduction is mean, sum or none, not {call.attrs.reduction!r}")
    if -1 not in (pred.ndim, target.ndim) and pred.ndim != target.ndim + 1:
        raise misfit(call, f"predictions is {show(pred)} and targets is {show(target)}: targets "
                           "have one dimension, the classes, less")
    if pred.dims is not None:
        where = 0 if pred.ndim == 1 else 1
        rest = [d for k, d in enumerate(pred.dims) if k != where]
        for a, b in zip(rest, target.dims or ()):
            need_same(call, a, b, lambda: (
                f"predictions is {show(pred)} and targets is {show(target)}: targets must have "
                "the shape of predictions without the classes"))
        if weights is not None:
            need_ndim(call, weights, 1, "weights")
            join_dtype(call, pred.dtype, weights.dtype, ("predictions", "weights"))
            if weights.dims is not None:
                need_same(call, pred.dims[where], weights.dims[0], lambda: (
                    f"predictions is {show(pred)} and weights is {show(weights)}: there must be a "
                    "weight for each class"))
    return like(target, pred.dtype) if call.attrs.reduction == "none" else tensor_of(
        (), pred.dtype)


def _nll_loss(bb: Any, call: Call) -> Expr:
    def nll_loss(predictions: Any, targets: Any, weights: Any = None) -> Any:
        if weights is None:
            classes = predictions.shape[0 if predictions.ndim == 1 else 1]
            weights = topi.full((classes,), predictions.dtype, 1.0)
        return topi.nn.nll_loss(predictions, targets, weights, call.attrs.reduction,
                                call.attrs.ignore_index)

    predictions, targets, *rest = call.args
    classes = predictions.struct_info.dims[0 if predictions.struct_info.ndim == 1 else 1]
    checked = Call(ExternFunc("relax.run.checked_targets"), (
        targets, PrimValue(classes), PrimValue(IntImm("int64", call.attrs.ignore_index))), None,
        [targets.struct_info])
    return bb.call_te(nll_loss, predictions, bb.emit(checked), *rest)


@operator("relax.nn.nll_loss", _infer_nll, legalize=_nll_loss)
def nll_loss(predictions: FloatTensor, targets: IntegerTensor, weights: Tensor | None = None,
             reduction: Text = "mean", ignore_index: Whole = -100) -> Tensor:
    """-weights[t] * predictions[n, t] for each target t, reduced by mean, sum or none."""

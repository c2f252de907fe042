"""Losses: what is called with the predictions and the targets gives the Relax function of the loss.

    MSELoss()(pred_info, target_info)    # a Function of predictions and targets
"""

from __future__ import annotations

from typing import Any

from .. import op as R
from ..block_builder import BlockBuilder
from ..expr import Expr, Function, Var
from ..struct_info import StructInfo, TensorStructInfo

REDUCTIONS = ("mean", "sum", "none")


class Loss:
    """A loss of one's own gives its name, how many results of the model it takes, how the losses of
    the elements are put together ("mean", "sum", "none"), and overrides `compute`."""

    def __init__(self, loss_name: str, num_backbone_outputs: int, reduction: str = "mean") -> None:
        if reduction not in REDUCTIONS:
            raise ValueError(f"the reduction of a loss is one of {', '.join(REDUCTIONS)}; it is "
                             f"{reduction!r}")
        self._loss_name, self._reduction = loss_name, reduction
        self._num_backbone_outputs = num_backbone_outputs

    @property
    def num_backbone_outputs(self) -> int:
        """How many results of the model it takes."""
        return self._num_backbone_outputs

    def _with_reduction(self, expr: Expr) -> Expr:
        if self._reduction == "none":
            return expr
        return R.sum(expr) if self._reduction == "sum" else R.mean(expr)

    def compute(self, bb: BlockBuilder, predictions: Var, targets: Var, weights: Var | None = None
                ) -> Expr:
        """The loss, in the block that is open."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it is computed")

    def __call__(self, predictions: Var | StructInfo, targets: Var | StructInfo,
                 weights: Var | StructInfo | None = None) -> Function:
        """The function of the loss, of parameters with the struct info of these."""
        given = {"predictions": predictions, "targets": targets, "weights": weights}
        params = {name: _param(name, value) for name, value in given.items() if value is not None}
        bb = BlockBuilder()
        with bb.function(self._loss_name, list(params.values())):
            with bb.dataflow():
                out = bb.emit_output(self.compute(bb, *params.values()))
            bb.emit_func_output(out)
        return bb.get()[self._loss_name]


def _param(name: str, value: Any) -> Var:
    if isinstance(value, Var):
        return Var(value.name_hint, value.struct_info)
    if isinstance(value, StructInfo):
        return Var(name, value)
    raise TypeError(f"{name} of a loss is a relax.Var or struct info, got a "
                    f"{type(value).__name__}")


def _dtype(var: Var) -> str:
    info = var.struct_info
    return info.dtype if isinstance(info, TensorStructInfo) else ""


class L1Loss(Loss):
    """The absolute difference of each element."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("l1_loss", 1, reduction)

    def compute(self, bb: BlockBuilder, predictions: Var, targets: Var, weights: Var | None = None
                ) -> Expr:
        """|predictions - targets|"""
        return self._with_reduction(R.abs(R.subtract(predictions, targets)))


class MSELoss(Loss):
    """The square of the difference of each element."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("mse_loss", 1, reduction)

    def compute(self, bb: BlockBuilder, predictions: Var, targets: Var, weights: Var | None = None
                ) -> Expr:
        """(predictions - targets) ** 2"""
        away = bb.emit(R.subtract(predictions, targets))
        return self._with_reduction(R.multiply(away, away))


class CrossEntropyLoss(Loss):
    """log_softmax, then nll_loss: predictions are scores, targets the numbers of classes.

    Targets that are `ignore_index` do not count; `weights` has one for each class.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__("cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def compute(self, bb: BlockBuilder, predictions: Var, targets: Var, weights: Var | None = None
                ) -> Expr:
        """-log_softmax(predictions)[targets]"""
        axis = 1 if getattr(predictions.struct_info, "ndim", 2) > 1 else -1
        logits = bb.emit(R.nn.log_softmax(predictions, axis))
        return R.nn.nll_loss(logits, targets, weights, self._reduction, self.ignore_index)


class CategoricalCrossEntropyLoss(Loss):
    """The cross entropy with targets that are whole numbers, one for each class: 0, or 1 for the
    class. With an `ignore_index` from 0 on, images of that class do not count."""

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__("categorical_cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def compute(self, bb: BlockBuilder, predictions: Var, targets: Var, weights: Var | None = None
                ) -> Expr:
        """-log_softmax(predictions) * targets"""
        if "int" not in _dtype(targets):
            raise TypeError("the targets of CategoricalCrossEntropyLoss are whole numbers, these "
                            f"are {_dtype(targets) or 'of no known dtype'}")
        logits = bb.emit(R.nn.log_softmax(predictions))
        if self.ignore_index >= 0:
            classes = bb.emit(R.argmax(targets, axis=1))
            return R.nn.nll_loss(logits, classes, weights, self._reduction, self.ignore_index)
        out = bb.emit(R.multiply(R.negative(logits), R.astype(targets, _dtype(predictions))))
        if weights is not None:
            out = bb.emit(R.multiply(out, weights))
        return self._with_reduction(out)


__all__ = ["CategoricalCrossEntropyLoss", "CrossEntropyLoss", "L1Loss", "Loss", "MSELoss"]

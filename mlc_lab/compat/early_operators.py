"""Operators of Relax of 2022 that are called otherwise now, or that later versions dropped.

`tvm.ir.Op.get("relax.transpose")` is the operator `relax.permute_dims` itself, so that each pass
treats it as that; `relax.op.transpose`, `R.transpose` and `relax.transpose` in a function take what
they took that year. `releases.py` says which versions had each.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from .. import topi
from ..relax import op as R
from ..relax.expr import Expr
from ..relax.op.declare import (
    CONSTRUCTORS, Flag, FloatTensor, Size, Tensor, operator,
)
from ..relax.op.loss import infer_cross_entropy
from ..relax.op.pool import adaptive_pool
from ..tir.expr import OPS
from ..topi.utils import need

#: name of an operator then -> its name now
RENAMED: dict[str, str] = {
    "relax.transpose": "relax.permute_dims", "relax.concatenate": "relax.concat",
    "relax.cast": "relax.astype", "relax.nn.matmul": "relax.matmul",
    "relax.nn.flatten": "relax.nn.batch_flatten", "relax.nn.sigmoid": "relax.sigmoid",
}


def transpose(data: Expr, axes: Sequence[int] | None = None) -> Expr:
    """The dimensions in another order, reversed for None: R.permute_dims."""
    return R.permute_dims(data, axes)


def concatenate(data: Expr | Sequence[Expr], axis: int | None = 0) -> Expr:
    """Tensors in a row along an axis: R.concat."""
    return R.concat(data, axis)


def cast(data: Expr, dtype: str) -> Expr:
    """The values converted to `dtype`: R.astype."""
    return R.astype(data, dtype)


def matmul(a: Expr, b: Expr, out_dtype: str | None = None) -> Expr:
    """The product of matrices: R.matmul."""
    return R.matmul(a, b, out_dtype)


def flatten(data: Expr) -> Expr:
    """All dimensions but the first in one: R.nn.batch_flatten."""
    return R.nn.batch_flatten(data)


@operator("relax.nn.dense", precision="follow")
def dense(x: FloatTensor, weight: FloatTensor) -> Tensor:
    """x @ weight.T, as later versions write it with R.matmul and R.permute_dims."""
    need(x.dtype == weight.dtype, f"x holds {x.dtype} and weight {weight.dtype}: cast one of them")
    return topi.nn.dense(x, weight)


@operator("relax.trilu")
def trilu(data: Tensor, k: Size = 0, is_upper: Flag = True) -> Tensor:
    """What R.triu gives, or R.tril where `is_upper` is false."""
    return topi.trilu(data, k, is_upper)


@operator("relax.nn.cross_entropy", infer_cross_entropy)
def cross_entropy(predictions: FloatTensor, labels: FloatTensor) -> Tensor:
    """-sum(labels * log(predictions)), of probabilities."""
    return topi.negative(topi.sum(topi.multiply(topi.log(predictions), labels)))


@operator("relax.nn.softmax_cross_entropy", infer_cross_entropy)
def softmax_cross_entropy(predictions: FloatTensor, labels: FloatTensor) -> Tensor:
    """The cross entropy of softmax(predictions) along the last axis."""
    return topi.negative(topi.sum(topi.multiply(topi.nn.log_softmax(predictions), labels)))


adaptive_max_pool2d = adaptive_pool("relax.nn.adaptive_max_pool2d", "HW", "max")

for _then, _now in RENAMED.items():
    OPS[_then] = OPS[_now]

#: name of an operator of that year -> its constructor
EARLY_OPERATORS: dict[str, Callable[..., Any]] = {
    "relax.transpose": transpose, "relax.concatenate": concatenate, "relax.cast": cast,
    "relax.nn.matmul": matmul, "relax.nn.flatten": flatten, "relax.nn.sigmoid": R.sigmoid,
    **{name: CONSTRUCTORS[name] for name in (
        "relax.trilu", "relax.nn.dense", "relax.nn.cross_entropy", "relax.nn.softmax_cross_entropy",
        "relax.nn.adaptive_max_pool2d")},
}

__all__ = ["EARLY_OPERATORS", "RENAMED"]

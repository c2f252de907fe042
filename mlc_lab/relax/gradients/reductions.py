"""Gradients of reductions and scans: sum, mean, variance, max, min, prod, cumsum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...tir.expr import IntImm
from .. import op as R
from ..expr import Expr
from .common import axes_of, dims_of, dtype_of, number, rule, shape_of, spread

if TYPE_CHECKING:
    from ..block_builder import BlockBuilder
    from ..expr import Call, Var


def _count(x: Expr, axis: Any, keepdims: bool) -> Expr:
    """How many elements each result comes from: a constant, or computed for symbolic sizes."""
    dims = dims_of(x)
    of = [dims[a] for a in axes_of(x, axis)]
    if all(isinstance(d, IntImm) for d in of):
        return number(math.prod(d.value for d in of), x)
    return R.sum(R.ones_like(x), axis, keepdims)


@rule("relax.sum")
def sum(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient of the sum for each element."""
    x, (axis, keepdims) = call.args[0], (call.attrs.axis, call.attrs.keepdims)
    return [R.broadcast_to(spread(grad, x, axis, keepdims), shape_of(x))]


@rule("relax.mean")
def mean(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """An equal share for each element."""
    x, (axis, keepdims) = call.args[0], (call.attrs.axis, call.attrs.keepdims)
    share = R.divide(grad, _count(x, axis, keepdims))
    return [R.broadcast_to(spread(share, x, axis, keepdims), shape_of(x))]


def _away(x: Expr, axis: Any) -> Expr:
    """2 * (x - mean) / count: how the variance changes with each element."""
    return R.divide(R.multiply(number(2, x), R.subtract(x, R.mean(x, axis, True))),
                    _count(x, axis, True))


@rule("relax.variance")
def variance(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """Twice the distance from the mean, over how many there are."""
    x, (axis, keepdims) = call.args[0], (call.attrs.axis, call.attrs.keepdims)
    return [R.multiply(spread(grad, x, axis, keepdims), _away(x, axis))]


@rule("relax.std")
def std(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """That of the variance, over twice the deviation."""
    x, (axis, keepdims) = call.args[0], (call.attrs.axis, call.attrs.keepdims)
    half = R.divide(R.multiply(number(0.5, x), grad), var)
    return [R.multiply(spread(half, x, axis, keepdims), _away(x, axis))]


@rule("relax.max", "relax.min")
def extreme(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """Shared by the elements that are the largest (or smallest)."""
    x, (axis, keepdims) = call.args[0], (call.attrs.axis, call.attrs.keepdims)
    found = R.astype(R.equal(x, spread(var, x, axis, keepdims)), dtype_of(x))
    share = R.divide(spread(grad, x, axis, keepdims), R.sum(found, axis, True))
    return [R.multiply(share, found)]


@rule("relax.prod")
def prod(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The product of the others, where no element is zero."""
    x, (axis, keepdims) = call.args[0], (call.attrs.axis, call.attrs.keepdims)
    return [R.divide(spread(R.multiply(grad, var), x, axis, keepdims), x)]


@rule("relax.cumsum")
def cumsum(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The sums from each element to the end."""
    x, axis = call.args[0], call.attrs.axis
    if dtype_of(grad) != dtype_of(x):
        grad = R.astype(grad, dtype_of(x))
    k = 0 if axis is None else axis
    out = R.flip(R.cumsum(R.flip(grad, k), k, exclusive=call.attrs.exclusive), k)
    return [R.reshape(out, shape_of(x)) if axis is None else out]

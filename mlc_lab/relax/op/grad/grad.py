"""Operators that gradients are made of, under R.grad: what stops one, what marks checkpoints, and
gradients that have a kernel of their own.

`no_grad`, `start_checkpoint` and `end_checkpoint` give their argument as it is: they are read by
`transform/gradient.py`.
"""

from __future__ import annotations

from typing import Any, Callable

from ...expr import Call, Expr
from ...struct_info import StructInfo
from ..base import HINT
from ..conv import windows
from ..declare import Flag, IntegerTensor, Ints, Tensor, Text, Value, Whole, operator
from ..later import topi, utils


@operator("relax.grad.no_grad", **HINT)
def no_grad(input: Value) -> Any:
    """input, through which no gradient goes."""


@operator("relax.grad.start_checkpoint", **HINT)
def start_checkpoint(input: Value) -> Any:
    """input, which is kept: what is computed of it up to `end_checkpoint` is computed again where
    gradients need it."""


@operator("relax.grad.end_checkpoint", **HINT)
def end_checkpoint(input: Value) -> Any:
    """input, where a part ends whose values are not kept for the gradients."""


def _like_second(call: Call, grad: StructInfo, x: StructInfo, *rest: Any) -> StructInfo:
    return x


@operator("relax.grad.nll_loss_backward", _like_second)
def nll_loss_backward(output_grad: Tensor, predictions: Tensor, targets: IntegerTensor,
                      weights: Tensor | None = None, reduction: Text = "mean",
                      ignore_index: Whole = -100) -> Tensor:
    """The gradient of nll_loss for its predictions."""
    if weights is None:
        classes = predictions.shape[0 if predictions.ndim == 1 else 1]
        weights = topi.full((classes,), predictions.dtype, 1.0)
    return topi.nn.nll_loss_grad(output_grad, predictions, targets, weights, reduction,
                                 ignore_index)


_ORDER = ("pool_size", "strides", "dilation", "padding", "ceil_mode", "count_include_pad", "layout",
          "out_layout")


def _pool_backward(name: str, kind: str) -> Callable[..., Expr]:
    complete = windows(2)

    def attrs(name: str, given: dict[str, Any]) -> dict[str, Any]:
        given = complete(name, given)
        return {key: given[key] for key in _ORDER}

    def fn(output_grad: Tensor, data: Tensor, pool_size: Ints = 1, strides: Ints = 1,
           padding: Ints = 0, dilation: Ints = 1, ceil_mode: Flag = False,
           count_include_pad: Flag = False, layout: Text = "NCHW",
           out_layout: Text | None = None) -> Any:
        if out_layout not in (None, layout):
            output_grad = topi.layout_transform(output_grad, out_layout, layout)
        return topi.nn.pool_grad(output_grad, data, pool_size, strides, padding, kind, ceil_mode,
                                 count_include_pad, layout, dilation=dilation)

    fn.__doc__ = f"The gradient of {kind}_pool2d for its data."
    return operator(name, _like_second, attrs=attrs)(fn)


max_pool2d_backward = _pool_backward("relax.grad.max_pool2d_backward", "max")
avg_pool2d_backward = _pool_backward("relax.grad.avg_pool2d_backward", "avg")


@operator("relax.grad.take_backward", _like_second)
def take_backward(output_grad: Tensor, x: Tensor, indices: IntegerTensor,
                  axis: Whole | None = None) -> Tensor:
    """The gradient of take for x: what was taken of an element, added up."""
    k = 0 if axis is None else axis % x.ndim
    shape = [*x.shape[:k], utils.product(indices.shape), *x.shape[k + 1:]]
    flat = topi.reshape(indices, (shape[k],))
    places = topi.transform.injective(shape, lambda *i: flat(i[k]), "T_places")
    return topi.scatter_elements(topi.full(x.shape, x.dtype, 0), places,
                                 topi.reshape(output_grad, shape), k, "add")

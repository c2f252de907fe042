"""Gradients of softmax, losses, norms and pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...tir.expr import IntImm
from .. import op as R
from ..op.conv import is_packed
from .common import GradientError, dims_of, number, rule, tensor

if TYPE_CHECKING:
    from ..block_builder import BlockBuilder
    from ..expr import Call, Expr, Var


@rule("relax.nn.softmax")
def softmax(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """(grad - sum(grad * y)) * y along the axis."""
    total = R.sum(R.multiply(grad, var), call.attrs.axis, True)
    return [R.multiply(R.subtract(grad, total), var)]


@rule("relax.nn.log_softmax")
def log_softmax(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """grad - sum(grad) * exp(y) along the axis."""
    return [R.subtract(grad, R.multiply(R.sum(grad, call.attrs.axis, True), R.exp(var)))]


@rule("relax.nn.cross_entropy_with_logits")
def cross_entropy_with_logits(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """-grad times the other one, over the number of images."""
    x, y = call.args
    if tensor(x).ndim > 1:
        batch = dims_of(x)[0]
        if not isinstance(batch, IntImm):
            raise GradientError("R.nn.cross_entropy_with_logits: the size of the batch must be "
                                "known in numbers to differentiate")
        grad = R.divide(grad, number(batch.value, grad))
    return [R.multiply(R.negative(grad), y), R.multiply(R.negative(grad), x)]


@rule("relax.nn.nll_loss")
def nll_loss(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """For the predictions alone, at the target classes."""
    out = R.grad.nll_loss_backward(grad, *call.args, reduction=call.attrs.reduction,
                                   ignore_index=call.attrs.ignore_index)
    return [out, *[None] * (len(call.args) - 1)]


@rule("relax.nn.layer_norm")
def layer_norm(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """Through the arithmetic that it stands for; the mean and the variance depend on x too."""
    x, gamma, beta = call.args
    axes = [axis % tensor(x).ndim for axis in call.attrs.axes]
    away = bb.emit(R.subtract(x, R.mean(x, axes, True)))
    scale = bb.emit(R.rsqrt(R.add(R.variance(x, axes, True), number(call.attrs.epsilon, x))))
    normal = bb.emit(R.multiply(away, scale))
    inner = bb.emit(R.multiply(grad, gamma) if call.attrs.scale else grad)
    share = R.multiply(normal, R.mean(R.multiply(inner, normal), axes, True))
    of_x = R.multiply(scale, R.subtract(R.subtract(inner, R.mean(inner, axes, True)), share))
    others = [k for k in range(tensor(x).ndim) if k not in axes]

    def over_others(value: Any) -> Any:
        return R.sum(value, others) if others else value

    return [of_x, over_others(R.multiply(grad, normal)) if call.attrs.scale else None,
            over_others(grad) if call.attrs.center else None]


def _need_plain(call: Call) -> None:
    a = call.attrs
    if is_packed(a.layout) or is_packed(a.out_layout):
        raise GradientError(f"{call.op}: the layouts {a.layout} and {a.out_layout} split an axis, "
                            "which cannot be differentiated: pack after relax.transform.Gradient")


@rule("relax.nn.max_pool2d", "relax.nn.avg_pool2d")
def pool2d(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """Back to the elements of each window: to the largest, or to all an equal share."""
    a = call.attrs
    _need_plain(call)
    build = (R.grad.max_pool2d_backward if getattr(call.op, "name", "") == "relax.nn.max_pool2d"
             else R.grad.avg_pool2d_backward)
    return [build(grad, call.args[0], a.pool_size, a.strides, a.padding, a.dilation, a.ceil_mode,
                  a.count_include_pad, a.layout, a.out_layout)]


@rule("relax.nn.adaptive_avg_pool2d")
def adaptive_avg_pool2d(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """An equal share for each element, where all windows are of one size."""
    x, a = call.args[0], call.attrs
    _need_plain(call)
    where = [a.layout.index("H"), a.layout.index("W")]
    have, out = ([dims_of(t)[k] for k in where] for t in (x, var))
    if a.out_layout != a.layout or not all(
            isinstance(n, IntImm) and isinstance(m, IntImm) and n.value % m.value == 0
            for n, m in zip(have, out)):
        raise GradientError("R.nn.adaptive_avg_pool2d: only windows of one size can be "
                            "differentiated: use R.nn.avg_pool2d")
    size = [n.value // m.value for n, m in zip(have, out)]
    return [R.grad.avg_pool2d_backward(grad, x, size, size, 0, 1, False, True, a.layout,
                                       a.out_layout)]

"""Gradients of what moves elements: reshape, transpose, concat, split, take, slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import topi
from ...tir import op as O
from .. import op as R
from ..op.declare import prim
from ..op.slicing import slice_start
from ..struct_info import ShapeExpr, TensorStructInfo, TupleStructInfo
from .common import GradientError, dims_of, rule, shape_of, tensor

if TYPE_CHECKING:
    from ..block_builder import BlockBuilder
    from ..expr import Call, Expr, Var


@rule("relax.reshape", "relax.flatten", "relax.squeeze", "relax.expand_dims",
      "relax.nn.batch_flatten")
def reshape(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient in the shape of the argument."""
    x, name = call.args[0], getattr(call.op, "name", "")
    if name == "relax.expand_dims":
        return [R.squeeze(grad, call.attrs.axis)]
    return [R.reshape(grad, shape_of(x)), *[None] * (len(call.args) - 1)]


@rule("relax.permute_dims")
def permute_dims(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient, its dimensions in the order they had."""
    axes = call.attrs.axes
    if not axes:
        return [R.permute_dims(grad)]
    axes = [a % len(axes) for a in axes]
    return [R.permute_dims(grad, [axes.index(k) for k in range(len(axes))])]


@rule("relax.flip")
def flip(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient, flipped back."""
    return [R.flip(grad, call.attrs.axis)]


@rule("relax.broadcast_to")
def broadcast_to(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The sum over what was repeated."""
    return [R.collapse_sum_to(grad, shape_of(call.args[0])), None]


@rule("relax.collapse_sum_to", "relax.collapse_sum_like")
def collapse_sum_to(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient for all that was added up."""
    return [R.broadcast_to(grad, shape_of(call.args[0])), None]


def _parts(call: Any) -> list[TensorStructInfo]:
    info = call.args[0].struct_info
    assert isinstance(info, TupleStructInfo)
    return [f for f in info.fields_ if isinstance(f, TensorStructInfo)]


@rule("relax.concat")
def concat(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient, cut into the parts."""
    parts, axis = _parts(call), 0 if call.attrs.axis is None else call.attrs.axis
    ends: list[Any] = []
    for part in parts[:-1]:
        if part.dims is None:
            raise GradientError("R.concat: the shapes of its parts must be known to differentiate")
        ends.append(part.dims[axis] + (ends[-1] if ends else 0))
    return [R.split(grad, ends, axis)]


@rule("relax.split")
def split(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradients of the parts, in a row."""
    return [R.concat(grad, call.attrs.axis)]


@rule("relax.stack")
def stack(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient, cut into the parts."""
    axis = (call.attrs.axis or 0) % tensor(grad).ndim
    count = len(_parts(call))
    pieces = bb.emit(R.split(grad, count, axis))
    return [[R.squeeze(pieces[k], [axis]) for k in range(count)]]


@rule("relax.take")
def take(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """What was taken of an element, added up."""
    x, indices = call.args
    if not isinstance(indices.struct_info, TensorStructInfo):
        raise GradientError("R.take: only indices that are a tensor can be differentiated")
    return [R.grad.take_backward(grad, x, indices, call.attrs.axis), None]


@rule("relax.strided_slice")
def strided_slice(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient where the slice was, zero elsewhere."""
    x, (axes, begin, end, *rest) = call.args[0], [[prim(f) for f in a.fields_]
                                                  for a in call.args[1:]]
    strides = rest[0] if rest else [1] * len(axes)
    shape = dims_of(x)
    first, step = {}, {}
    for axis, low, high, by in zip(axes, begin, end, strides):
        k = axis % len(shape)
        step[k] = by
        first[k] = slice_start(shape[k], low, high, by, call.attrs.assume_inbound)

    def slice_grad(grad: Any, shape: Any) -> Any:
        def element(*i: Any) -> Any:
            at, inside = list(i), []
            for k, begin in first.items():
                at[k] = O.floordiv(i[k] - begin, step[k])
                inside += [at[k] >= 0, at[k] < grad.shape[k],
                           O.equal(at[k] * step[k], i[k] - begin)]
            return O.if_then_else(O.all(*inside), grad(*at), O.const(0, grad.dtype))

        return topi.transform.injective(shape, element, "T_slice_grad")

    return [bb.call_te(slice_grad, bb.normalize(grad), ShapeExpr(shape)),
            *[None] * (len(call.args) - 1)]

"""Gradients of products of matrices and of convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...tir.expr import IntImm
from .. import op as R
from ..expr import Expr
from .common import GradientError, dims_of, dtype_of, fitted, rule, tensor

if TYPE_CHECKING:
    from ..block_builder import BlockBuilder
    from ..expr import Call, Var


def _transposed(x: Expr) -> Expr:
    """The last two dimensions exchanged."""
    n = tensor(x).ndim
    return R.permute_dims(x, [*range(n - 2), n - 1, n - 2])


@rule("relax.matmul")
def matmul(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """grad @ b.T and a.T @ grad; a vector counts as a matrix of one row, or of one column."""
    a, b = call.args
    if dtype_of(grad) != dtype_of(a):  # an out_dtype of the product's own
        grad = R.astype(grad, dtype_of(a))
    a_dim, b_dim = tensor(a).ndim, tensor(b).ndim
    if a_dim == b_dim == 1:
        return [R.multiply(grad, b), R.multiply(grad, a)]
    if a_dim > 1 and b_dim > 1:
        return [fitted(bb, R.matmul(grad, _transposed(b)), a),
                fitted(bb, R.matmul(_transposed(a), grad), b)]
    if a_dim == 1:
        row = R.expand_dims(grad, [-2])
        of_a = bb.normalize(R.matmul(row, _transposed(b)))
        return [fitted(bb, R.squeeze(of_a, [-2]), a),
                fitted(bb, R.matmul(R.expand_dims(a, [1]), row), b)]
    column = R.expand_dims(grad, [-1])
    of_b = bb.normalize(R.matmul(_transposed(a), column))
    return [fitted(bb, R.matmul(column, R.expand_dims(b, [0])), a),
            fitted(bb, R.squeeze(of_b, [-1]), b)]


@rule("relax.outer")
def outer(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """grad @ b and a @ grad."""
    a, b = call.args
    return [R.matmul(grad, b), R.matmul(a, grad)]


def _sizes(value: Expr, what: str) -> list[int]:
    dims = dims_of(value)
    if not all(isinstance(d, IntImm) for d in dims):
        raise GradientError(f"R.nn.conv2d: the shape of its {what} must be known in numbers to "
                            "differentiate: bind its symbolic dimensions first, by "
                            "relax.transform.BindSymbolicVars")
    return [d.value for d in dims]


@rule("relax.nn.conv2d")
def conv2d(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """For the data the transposed convolution of the gradient; for the weights a convolution of the
    data with the gradient, in which the images of the batch take the place of channels."""
    a: Any = call.attrs
    data, weight = call.args
    if (a.data_layout, a.kernel_layout, a.out_layout) != ("NCHW", "OIHW", "NCHW"):
        raise GradientError("R.nn.conv2d: only the layouts NCHW and OIHW can be differentiated, "
                            f"these are {a.data_layout}, {a.kernel_layout} and {a.out_layout}: "
                            "change layouts after relax.transform.Gradient")
    batch, channels, *image = _sizes(data, "data")
    out_channels, per_group, *window = _sizes(weight, "weights")
    found = _sizes(var, "result")[2:]
    padding = [a.padding[k] + a.padding[k + 2] for k in range(2)]
    left = []  # elements at the end that no window reaches
    for k in range(2):
        reach = (window[k] - 1) * a.dilation[k] + 1
        left.append(image[k] + padding[k] - (found[k] - 1) * a.strides[k] - reach)
    of_data = R.nn.conv2d_transpose(
        grad, weight, a.strides, a.padding, left, a.dilation, a.groups, "NCHW", "IOHW", "NCHW",
        a.out_dtype or None)
    images = data
    if a.groups != 1:
        images = R.reshape(images, (batch, a.groups, per_group, *image))
        images = R.permute_dims(images, [1, 0, 2, 3, 4])
        images = R.reshape(images, (batch * a.groups, per_group, *image))
    of_weight = R.nn.conv2d(
        images, grad, strides=a.dilation, padding=a.padding, dilation=a.strides, groups=a.groups,
        data_layout="CNHW", kernel_layout="IOHW", out_layout="CNHW", out_dtype=a.out_dtype or None)
    of_weight = bb.normalize(of_weight)
    if dims_of(of_weight)[2:] != dims_of(weight)[2:]:  # windows of what is left at the end
        of_weight = R.strided_slice(of_weight, [2, 3], [0, 0], window)
    return [of_data, of_weight]

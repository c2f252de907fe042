"""What the rules share: constants of a dtype, known shapes, and sums over what was broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from .. import op as R
from ..expr import Call, Constant, Expr, Var, const
from ..op.registry import OPERATORS
from ..struct_info import ShapeExpr, TensorStructInfo, same_dim

if TYPE_CHECKING:
    from ..block_builder import BlockBuilder

    Rule = Callable[[Var, Call, Expr, BlockBuilder], list[Expr | None]]


class GradientError(ValueError):
    """A program that cannot be differentiated: where, and what to do."""


def rule(*names: str) -> Callable[[Any], Any]:
    """Decorator: the gradient of these operators, unless they have one already."""
    def keep(function: Any) -> Any:
        for name in names:
            if OPERATORS[name].gradient is None:  # one of the user's own, registered before
                OPERATORS[name].gradient = function
        return function

    return keep


def number(value: float, like: Expr) -> Constant:
    """A constant of no dimensions, of the dtype of a tensor."""
    return const(value, dtype_of(like))


def tensor(value: Expr) -> TensorStructInfo:
    """What is known of a tensor."""
    info = value.struct_info
    if not isinstance(info, TensorStructInfo):
        raise GradientError(f"{value} must be a tensor, it is {info}")
    return info


def dtype_of(value: Expr) -> str:
    """The dtype of a tensor."""
    return tensor(value).dtype


def dims_of(value: Expr) -> tuple:
    """The dimensions of a tensor, which must be known, at least symbolically."""
    dims = tensor(value).dims
    if dims is None:
        raise GradientError(f"the shape of {value} must be known to differentiate: name its "
                            "dimensions with R.match_cast")
    return dims


def shape_of(value: Expr) -> ShapeExpr:
    """The shape of a tensor as a value."""
    return ShapeExpr(dims_of(value))


def axes_of(value: Expr, axis: Any) -> list[int]:
    """Axes counted from 0; all of them for None."""
    ndim = tensor(value).ndim
    if axis is None:
        return list(range(ndim))
    return sorted(a % ndim for a in (axis if isinstance(axis, (tuple, list)) else [axis]))


def fitted(bb: BlockBuilder, grad: Expr, argument: Expr) -> Expr | None:
    """A gradient summed over what broadcasting repeated of an argument; None for a scalar."""
    info = argument.struct_info
    if not isinstance(info, TensorStructInfo):
        return None
    grad = bb.normalize(grad)
    have, want = dims_of(grad), dims_of(argument)
    if len(have) == len(want) and all(map(same_dim, have, want)):
        return grad
    return R.collapse_sum_to(grad, ShapeExpr(want))


def spread(grad: Expr, x: Expr, axis: Any, keepdims: bool) -> Expr:
    """What a reduction of x over `axis` gave (or its gradient), with the axes put back as 1."""
    if not keepdims and axis is not None:
        return R.expand_dims(grad, axes_of(x, axis))
    return grad


__all__ = ["GradientError", "axes_of", "dims_of", "dtype_of", "fitted", "number", "rule",
           "shape_of", "spread", "tensor"]

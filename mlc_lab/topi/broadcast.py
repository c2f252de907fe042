"""Arithmetic, comparisons and logic of tensors whose shapes are broadcast as numpy does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from .. import te
from ..ir import dtype as dt
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import IntImm, PrimExpr
from .tag import BROADCAST, ELEMWISE
from .utils import axes, shape_of, sum_type, text

if TYPE_CHECKING:
    from ..tir.expr import ExprLike


def broadcast_shape(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The common shape. Raises ValueError with both shapes where they do not fit."""
    out = []
    for k in range(1, max(len(a), len(b)) + 1):
        x = a[-k] if k <= len(a) else IntImm(b[-k].dtype, 1)
        y = b[-k] if k <= len(b) else IntImm(a[-k].dtype, 1)
        cx, cy = O.as_int(x), O.as_int(y)
        if cx is not None and cy is not None and cx != cy and 1 not in (cx, cy):
            raise ValueError(f"shapes {text(a)} and {text(b)} cannot be broadcast together: "
                             f"{cx} and {cy} differ and neither is 1")
        out.append(y if cx == 1 or (cx is None and cy not in (None, 1)) else x)
    return out[::-1]


def read(tensor: Tensor, indices: Sequence[Any], shape: Sequence[PrimExpr]) -> PrimExpr:
    """The element that goes to `indices` of the broadcast `shape`."""
    skip = len(shape) - tensor.ndim
    at = [IntImm(d.dtype, 0) if O.is_const_int(d, 1) and not O.is_const_int(s, 1) else i
          for d, i, s in zip(tensor.shape, indices[skip:], shape[skip:])]
    return tensor(*at)


def broadcast(name: str, fn: Callable, *operands: Any) -> Tensor:
    """fn of the elements of tensors (and scalars) broadcast together; the block is `T_<name>`."""
    shape: list[PrimExpr] = []
    for x in operands:
        if isinstance(x, Tensor):
            shape = broadcast_shape(shape, x.shape) if shape else list(x.shape)
    return te.compute(
        shape, lambda *i: fn(*(read(x, i, shape) if isinstance(x, Tensor) else x
                               for x in operands)),
        name=f"T_{name}", tag=BROADCAST if sum(isinstance(x, Tensor) for x in operands) > 1 else (
            ELEMWISE), varargs_names=axes(len(shape)))


def _broadcast(name: str, fn: Callable, doc: str) -> Callable:
    def operator(lhs: Tensor | ExprLike, rhs: Tensor | ExprLike) -> Any:
        if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
            return fn(lhs, rhs)
        return broadcast(name, fn, lhs, rhs)

    operator.__name__, operator.__doc__ = name, doc
    return operator


def _logical(boolean: Callable, integer: Callable) -> Callable:
    """A function of conditions; integers count as true where they are not zero."""
    def fn(a: Tensor | ExprLike, b: Tensor | ExprLike) -> PrimExpr:
        a, b = O.convert(a), O.convert(b)
        return boolean(*(x if dt.is_bool(x.dtype) else O.not_equal(x, 0) for x in (a, b)))

    return fn


def _bits(boolean: Callable, integer: Callable) -> Callable:
    """A function of bits that on conditions is the logical one."""
    def fn(a: Tensor | ExprLike, b: Tensor | ExprLike) -> PrimExpr:
        a, b = O.match_values(a, b)
        return boolean(a, b) if dt.is_bool(a.dtype) else integer(a, b)

    return fn


def _floor_divide(a: Tensor | ExprLike, b: Tensor | ExprLike) -> PrimExpr:
    return O.floordiv(*O.match_values(a, b))


def _floor_mod(a: Tensor | ExprLike, b: Tensor | ExprLike) -> PrimExpr:
    """As TVM writes it: of floats not exact where the quotient is large (T.floormod is)."""
    a, b = O.match_values(a, b)
    return a - O.floor(a / b) * b if dt.is_float(a.dtype) else O.floormod(a, b)


def _log_add_exp(a: Tensor | ExprLike, b: Tensor | ExprLike) -> PrimExpr:
    a, b = O.match_values(a, b)
    own, wide = a.dtype, sum_type(a.dtype)
    a, b = O.cast(a, wide), O.cast(b, wide)
    high = O.max_value_of(a, b)
    high = O.select(O.equal(O.abs(high), O.infinity(wide)), O.const(0, wide), high)
    return O.cast(O.log(O.exp(a - high) + O.exp(b - high)) + high, own)


add = _broadcast("add", O.add, "lhs + rhs")
subtract = _broadcast("subtract", O.sub, "lhs - rhs")
multiply = _broadcast("multiply", O.mul, "lhs * rhs")
divide = _broadcast("divide", O.div, "lhs / rhs")
floor_divide = _broadcast("floor_divide", _floor_divide, "lhs // rhs")
mod = _broadcast("mod", O.truncmod, "remainder with the sign of lhs")
floor_mod = _broadcast("floor_mod", _floor_mod, "lhs % rhs, with the sign of rhs")
maximum = _broadcast("maximum", O.max_value_of, "the larger one")
minimum = _broadcast("minimum", O.min_value_of, "the smaller one")
power = _broadcast("power", O.power, "lhs to the power rhs")
atan2 = _broadcast("atan2", O.atan2, "the angle of the point (rhs, lhs)")
log_add_exp = _broadcast("log_add_exp", _log_add_exp, "log(exp(lhs) + exp(rhs))")
left_shift = _broadcast("left_shift", O.shift_left, "lhs << rhs")
right_shift = _broadcast("right_shift", O.shift_right, "lhs >> rhs")
equal = _broadcast("equal", O.equal, "lhs == rhs")
not_equal = _broadcast("not_equal", O.not_equal, "lhs != rhs")
less = _broadcast("less", O.less, "lhs < rhs")
less_equal = _broadcast("less_equal", O.less_equal, "lhs <= rhs")
greater = _broadcast("greater", O.greater, "lhs > rhs")
greater_equal = _broadcast("greater_equal", O.greater_equal, "lhs >= rhs")
logical_and = _broadcast("logical_and", _logical(O.logical_and, O.bitwise_and), "lhs and rhs")
logical_or = _broadcast("logical_or", _logical(O.logical_or, O.bitwise_or), "lhs or rhs")
logical_xor = _broadcast("logical_xor", _logical(O.not_equal, O.bitwise_xor),
                         "one of lhs and rhs, not both")
bitwise_and = _broadcast("bitwise_and", _bits(O.logical_and, O.bitwise_and), "lhs & rhs")
bitwise_or = _broadcast("bitwise_or", _bits(O.logical_or, O.bitwise_or), "lhs | rhs")
bitwise_xor = _broadcast("bitwise_xor", _bits(O.not_equal, O.bitwise_xor), "lhs ^ rhs")


def where(condition: Tensor, x: Tensor | ExprLike, y: Tensor | ExprLike) -> Tensor:
    """x where condition, else y; all three broadcast together."""
    def element(c: PrimExpr, a: Tensor | ExprLike, b: Tensor | ExprLike) -> PrimExpr:
        return O.select(c if dt.is_bool(c.dtype) else O.not_equal(c, 0), a, b)

    return broadcast("where", element, condition, x, y)


def broadcast_to(data: Tensor, shape: Sequence[Any]) -> Tensor:
    """`data` repeated to `shape`. A size of -1 keeps the one it has."""
    full = [data.shape[i - len(shape) + data.ndim] if O.as_int(d) == -1 else d
            for i, d in enumerate(shape)]
    full = shape_of(full)
    if len(full) < data.ndim:
        raise ValueError(f"broadcast_to: {text(data.shape)} has more dimensions than {text(full)}")
    for have, want in zip(data.shape[::-1], full[::-1]):
        if O.as_int(have) not in (None, 1, O.as_int(want)) and O.as_int(want) is not None:
            raise ValueError(f"broadcast_to: {text(data.shape)} cannot be broadcast to "
                             f"{text(full)}: {have} and {want} differ")
    return te.compute(full, lambda *i: read(data, i, full), name="T_broadcast_to", tag="broadcast",
                      varargs_names=axes(len(full)))

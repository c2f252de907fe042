"""Arithmetic and comparisons of tensors whose shapes are broadcast as numpy does."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from .. import te
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import IntImm, PrimExpr


def axes(ndim: int) -> list[str]:
    """The axis names ax0, ax1, ..."""
    return [f"ax{i}" for i in range(ndim)]


def broadcast_shape(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The common shape. Raises ValueError with both shapes where they do not fit."""
    out = []
    for k in range(1, max(len(a), len(b)) + 1):
        x = a[-k] if k <= len(a) else IntImm(b[-k].dtype, 1)
        y = b[-k] if k <= len(b) else IntImm(a[-k].dtype, 1)
        cx, cy = O.as_int(x), O.as_int(y)
        if cx is not None and cy is not None and cx != cy and 1 not in (cx, cy):
            raise ValueError(f"shapes {_text(a)} and {_text(b)} cannot be broadcast together: "
                             f"{cx} and {cy} differ and neither is 1")
        out.append(y if cx == 1 or (cx is None and cy not in (None, 1)) else x)
    return out[::-1]


def _text(shape: Sequence[PrimExpr]) -> str:
    return "(" + ", ".join(str(getattr(d, "value", d)) for d in shape) + ")"


def read(tensor: Tensor, indices: Sequence[Any], shape: Sequence[PrimExpr]) -> PrimExpr:
    """The element that goes to `indices` of the broadcast `shape`."""
    skip = len(shape) - tensor.ndim
    at = [IntImm(d.dtype, 0) if O.is_const_int(d, 1) and not O.is_const_int(s, 1) else i
          for d, i, s in zip(tensor.shape, indices[skip:], shape[skip:])]
    return tensor(*at)


def _broadcast(name: str, fn: Callable, doc: str) -> Callable:
    def operator(lhs: Any, rhs: Any) -> Any:
        if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
            return fn(lhs, rhs)
        if isinstance(lhs, Tensor) and isinstance(rhs, Tensor):
            shape = broadcast_shape(lhs.shape, rhs.shape)
        else:
            shape = list(lhs.shape if isinstance(lhs, Tensor) else rhs.shape)

        def element(*i: Any) -> PrimExpr:
            a = read(lhs, i, shape) if isinstance(lhs, Tensor) else lhs
            b = read(rhs, i, shape) if isinstance(rhs, Tensor) else rhs
            return fn(a, b)

        return te.compute(shape, element, name=f"T_{name}", tag="broadcast",
                          varargs_names=axes(len(shape)))

    operator.__name__, operator.__doc__ = name, doc
    return operator


add = _broadcast("add", O.add, "lhs + rhs")
subtract = _broadcast("subtract", O.sub, "lhs - rhs")
multiply = _broadcast("multiply", O.mul, "lhs * rhs")
divide = _broadcast("divide", O.div, "lhs / rhs")
floor_divide = _broadcast("floor_divide", O.floordiv, "lhs // rhs")
mod = _broadcast("mod", O.truncmod, "remainder with the sign of lhs")
floor_mod = _broadcast("floor_mod", O.floormod, "lhs % rhs, with the sign of rhs")
maximum = _broadcast("maximum", O.max_value_of, "the larger one")
minimum = _broadcast("minimum", O.min_value_of, "the smaller one")
power = _broadcast("power", O.power, "lhs to the power rhs")
equal = _broadcast("equal", O.equal, "lhs == rhs")
not_equal = _broadcast("not_equal", O.not_equal, "lhs != rhs")
less = _broadcast("less", O.less, "lhs < rhs")
less_equal = _broadcast("less_equal", O.less_equal, "lhs <= rhs")
greater = _broadcast("greater", O.greater, "lhs > rhs")
greater_equal = _broadcast("greater_equal", O.greater_equal, "lhs >= rhs")


def broadcast_to(data: Tensor, shape: Sequence[Any]) -> Tensor:
    """`data` repeated to `shape`."""
    full = [te.tensor.extent_of(d) for d in shape]
    broadcast_shape(data.shape, full)
    return te.compute(full, lambda *i: read(data, i, full), name="T_broadcast_to", tag="broadcast",
                      varargs_names=axes(len(full)))

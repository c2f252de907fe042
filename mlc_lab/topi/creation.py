"""Tensors from nothing, or from the shape of another: full, arange, eye; and triangles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import te
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import IntImm, PrimExpr
from .utils import axes, need, number, shape_of, simplify

if TYPE_CHECKING:
    from ..tir.expr import ExprLike


def full(shape: Any, dtype: str, fill_value: ExprLike) -> Tensor:
    """`shape` elements of `dtype`, all of them fill_value (a number, or a tensor of one)."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value(*[0] * fill_value.ndim)
    value = O.cast(O.const(fill_value), dtype) if not isinstance(
        fill_value, (int, float)) else O.const(fill_value, dtype)
    sizes = shape_of(shape)
    return te.compute(sizes, lambda *i: value, name="T_full", tag="elemwise",
                      varargs_names=axes(len(sizes)))


def full_like(x: Tensor, fill_value: ExprLike) -> Tensor:
    """As `full`, with the shape and dtype of x."""
    value = fill_value(*[0] * fill_value.ndim) if isinstance(fill_value, Tensor) else fill_value
    value = O.cast(O.const(value), x.dtype)
    return te.compute(x.shape, lambda *i: value, name="T_full_like", tag="elemwise",
                      varargs_names=axes(x.ndim))


def arange(start: Any, stop: ExprLike | None = None, step: Any = 1, dtype: str = "float32"
           ) -> Tensor:
    """start, start + step, ... up to but without stop; from 0 with one argument."""
    if stop is None:
        start, stop = 0, start
    start, end, step = map(number, (start, stop, step))
    values: list[Any] = [v.value if hasattr(v, "value") and not isinstance(v, IntImm) else v
                         for v in (start, end, step)]
    if all(isinstance(v, (int, float)) for v in values):
        need(values[2] != 0, "arange: the step is 0")
        count: Any = max(0, math.ceil((values[1] - values[0]) / values[2]))
        start, step = values[0], values[2]
    else:
        need(isinstance(step, int) and step != 0, "arange: the step of symbolic bounds is a number")
        away = O.convert(end) - O.convert(start)
        count = simplify(O.floordiv(away + (step - 1 if step > 0 else step + 1), step))

    def element(i: PrimExpr) -> PrimExpr:
        first, by = (O.const(v, dtype) if isinstance(v, (int, float)) else O.cast(v, dtype)
                     for v in (start, step))
        return first + by * O.cast(i, dtype)

    return te.compute(shape_of([count]), element, name="T_arange", tag="injective",
                      varargs_names=["ax0"])


def trilu(data: Tensor, k: ExprLike, upper: bool) -> Tensor:
    """The upper or lower triangle of the last two dimensions; k moves the diagonal right."""
    need(data.ndim >= 2, f"trilu: {data.name} has {data.ndim} dimensions and needs 2")

    def element(*i: PrimExpr) -> PrimExpr:
        row, column = i[-2], i[-1]
        row = row if number(k) == 0 else row + k
        kept = O.less_equal(row, column) if upper else O.greater_equal(row, column)
        return O.select(kept, data(*i), O.const(0, data.dtype))

    return te.compute(data.shape, element, name="trilu", tag="elemwise")


def tril(data: Tensor, k: ExprLike = 0) -> Tensor:
    """The lower triangle, up to diagonal k."""
    return trilu(data, k, False)


def triu(data: Tensor, k: ExprLike = 0) -> Tensor:
    """The upper triangle, from diagonal k."""
    return trilu(data, k, True)


def eye(n: ExprLike, m: ExprLike | None = None, k: int = 0, dtype: str = "float32") -> Tensor:
    """n by m, one on diagonal k and zero elsewhere."""
    m = n if m is None else m
    one, zero = O.const(1, dtype), O.const(0, dtype)
    return te.compute(shape_of((n, m)), lambda i, j: O.select(O.equal(i + k, j), one, zero),
                      name="eye", tag="elemwise")


def matrix_set_diag(data: Tensor, diagonal: Tensor, k: int | Sequence[int] = 0,
                    align: str = "RIGHT_LEFT") -> Tensor:
    """data with `diagonal` on diagonal k of its last two dimensions, or on diagonals k[0] to k[1].

    Of several, the rows of `diagonal` are the highest first; `align` says at which end of its row a
    shorter one stands, above and below the main diagonal.
    """
    given_k = [k] if isinstance(k, int) else list(k)
    low, high = (given_k[0], given_k[-1]) if given_k else (1, 0)
    need(len(given_k) < 3 and low <= high,
         "matrix_set_diag: k is one number, or two, the smaller first")
    ends = align.split("_")
    need(len(ends) == 2 and set(ends) <= {"LEFT", "RIGHT"},
         f"matrix_set_diag: align is LEFT_RIGHT, RIGHT_LEFT or the like, not {align!r}")
    rows, columns = data.shape[-2:]

    def element(*i: PrimExpr) -> PrimExpr:
        row, column = i[-2], i[-1]
        number = column - row
        if low == high:
            given = diagonal(*i[:-2], row if low >= 0 else column)
            return O.if_then_else(O.equal(row + low, column), given, data(*i))
        zero = O.const(0, number.dtype)
        length = O.min_value_of(columns - O.max_value_of(number, zero),
                                rows + O.min_value_of(number, zero))
        short = diagonal.shape[-1] - length
        above, below = (short if end == "RIGHT" else zero for end in ends)
        at = O.min_value_of(row, column) + O.if_then_else(number >= zero, above, below)
        return O.if_then_else(O.all(number >= low, number <= high),
                              diagonal(*i[:-2], high - number, at), data(*i))

    return te.compute(data.shape, element, name="matrix_set_diag", tag="injective")


__all__ = ["arange", "eye", "full", "full_like", "matrix_set_diag", "tril", "trilu", "triu"]

"""Hurwitz's zeta function, and polygamma, which is a multiple of it.

zeta(s, q) is the sum of (q + n)^-s. The terms up to q + n = 9 are added one by one, the rest by
Euler and Maclaurin's formula, in float64.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Sequence

from .. import te
from ..te.tensor import Tensor
from ..tir import ir_builder
from ..tir import op as O
from ..tir.buffer import Buffer
from ..tir.expr import PrimExpr
from ..tir.ir_builder import BufferVar, IRBuilder
from .broadcast import broadcast_shape
from .special import digamma
from .utils import product, simplify, unravel, zero_of

#: below this many terms before 0 the sum is given up: it would take as long as the number is large
_MOST = 1_000_000


def _c(value: float) -> PrimExpr:
    return O.const(value, "float64")


def _bernoulli(count: int) -> list[Fraction]:
    """The numbers B_2, B_4, ... of Bernoulli."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        numbers.append(-sum((math.comb(n + 1, k) * b for k, b in enumerate(numbers)), Fraction(0))
                       / (n + 1))
    return numbers[2::2]


_TAIL = [float(b / math.factorial(2 * k)) for k, b in enumerate(_bernoulli(12), 1)]


def zeta(s: Tensor, q: Tensor) -> Tensor:
    """The sum of (q + n)^-s over n from 0. Infinite at s = 1 and at q = 0, -1, ...; NaN for s below
    1, for q below 0 where s is not a whole number, and for q below minus a million."""
    shape = [simplify(d) for d in broadcast_shape(s.shape, q.shape)]

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        ib = ir_builder.create()
        out = ib.buffer_ptr(outs[0])
        powers, starts = map(ib.buffer_ptr, ins)
        with ib.for_range(0, simplify(O.convert(product(shape))), "i", kind="parallel") as flat:
            at = unravel(flat, shape)
            x, first = (O.cast(values[tuple(
                zero_of(n) if O.is_const_int(d, 1) else n
                for d, n in zip(t.shape, at[len(shape) - t.ndim:]))], "float64")
                for values, t in ((powers, s), (starts, q)))
            total, term, a, left = (ib.allocate("float64", (1,), name, scope="local")
                                    for name in ("total", "term", "a", "left"))
            total[0] = _c(math.nan)
            with ib.if_scope(O.equal(x, _c(1))):
                total[0] = O.infinity("float64")
            with ib.else_scope():
                with ib.if_scope(O.greater(x, _c(1))):
                    with ib.if_scope(O.logical_and(O.less_equal(first, _c(0)),
                                                   O.equal(first, O.floor(first)))):
                        total[0] = O.infinity("float64")
                    with ib.else_scope():
                        with ib.if_scope(O.logical_and(
                                O.greater(first, _c(-_MOST)), O.logical_or(
                                    O.greater(first, _c(0)), O.equal(x, O.floor(x))))):
                            _sum(ib, x, first, total, term, a, left)
            out[tuple(at)] = O.cast(total[0], s.dtype)
        return ib.get()

    return te.extern([shape], [s, q], body, dtype=s.dtype, name="zeta", tag="zeta")


def _sum(ib: IRBuilder, x: PrimExpr, first: PrimExpr, total: BufferVar, term: BufferVar,
         a: BufferVar, left: BufferVar) -> None:
    """The terms one by one, and then the tail, unless the terms have become too small to matter."""
    tiny = _c(2.0 ** -53)
    a[0] = first
    term[0] = O.power(first, O.neg(x))
    total[0] = term[0]
    left[0] = _c(9)  # terms to add at least
    with ib.while_loop(O.logical_or(O.greater(left[0], _c(0)), O.logical_and(
            O.equal(left[0], _c(0)), O.less_equal(a[0], _c(9))))):
        a[0] = a[0] + _c(1)
        term[0] = O.power(a[0], O.neg(x))
        total[0] = total[0] + term[0]
        left[0] = O.max_value_of(left[0] - _c(1), _c(0))
        with ib.if_scope(O.less_equal(O.abs(term[0]), tiny * O.abs(total[0]))):
            left[0] = _c(-1)
    with ib.if_scope(O.equal(left[0], _c(0))):
        total[0] = total[0] + term[0] * (a[0] / (x - _c(1)) - _c(0.5))
        left[0] = x
        term[0] = term[0] / a[0]
        for k, factor in enumerate(_TAIL):
            with ib.if_scope(O.greater(O.abs(left[0] * term[0]), tiny * O.abs(total[0]))):
                total[0] = total[0] + left[0] * term[0] * _c(factor)
                left[0] = left[0] * (x + _c(2 * k + 1)) * (x + _c(2 * k + 2))
                term[0] = term[0] / (a[0] * a[0])


def polygamma(n: int, x: Tensor) -> Tensor:
    """The derivative n + 1 of log gamma: (-1)^(n + 1) n! zeta(n + 1, x), or digamma for n = 0."""
    if n < 0:
        raise ValueError(f"polygamma: the order must be 0 or more, it is {n}")
    if n == 0:
        return digamma(x)
    order = te.compute((), lambda: O.const(float(n + 1), "float64"), "order")
    wide = te.compute(x.shape, lambda *i: O.cast(x(*i), "float64"), "wide")
    values = zeta(order, wide)
    scale = math.gamma(n + 1) * (-1) ** (n + 1)
    return te.compute(x.shape, lambda *i: O.cast(_c(scale) * values(*i), x.dtype), "polygamma")


__all__ = ["polygamma", "zeta"]

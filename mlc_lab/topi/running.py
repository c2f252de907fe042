"""Running totals that keep more than a number: cummax and cummin with places, logcumsumexp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from .. import te
from ..ir import dtype as dt
from ..te.tensor import Tensor
from ..tir import ir_builder
from ..tir import op as O
from ..tir.expr import PrimExpr
from .utils import axis_of, product, rounded, simplify, sum_type, unravel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ..tir.ir_builder import IRBuilder


def _rows(ib: IRBuilder, data: Tensor, k: int
          ) -> tuple[Any, Callable[[PrimExpr], Callable[[Any], tuple]]]:
    """Open a loop over the rows along dimension k; how element i of the row is indexed."""
    others = [d for n, d in enumerate(data.shape) if n != k]
    loop = ib.for_range(0, simplify(O.convert(product(others))), "row", kind="parallel")

    def place_in(row: PrimExpr) -> Callable[[Any], tuple]:
        at = unravel(row, others)
        return lambda i: (*at[:k], i, *at[k:])

    return loop, place_in


def _best(name: str, better: Callable[[PrimExpr, PrimExpr], PrimExpr]) -> Callable:
    """An operator: the best element so far along `axis`, and where it stands."""
    def operator(data: Tensor, axis: int = 0) -> list[Tensor]:
        k = axis_of(name, axis, data.ndim)

        def wins(new: PrimExpr, old: PrimExpr) -> PrimExpr:
            """Equal elements win: torch gives the last index. A first NaN wins, and stays."""
            if not dt.is_float(data.dtype):
                return better(new, old)
            return O.logical_or(O.isnan(new), O.logical_and(O.logical_not(O.isnan(old)),
                                                            better(new, old)))

        def body(ins: Sequence[Any], outs: Any) -> Any:
            ib = ir_builder.create()
            source = ib.buffer_ptr(ins[0])
            values, places = map(ib.buffer_ptr, outs)
            loop, place_in = _rows(ib, data, k)
            with loop as row:
                at = place_in(row)
                with ib.for_range(0, data.shape[k], "i") as i:
                    previous = O.max_value_of(i - 1, O.const(0, i.dtype))
                    with ib.if_scope(O.equal(i, 0)):
                        values[at(i)] = source[at(i)]
                        places[at(i)] = O.const(0, "int64")
                    with ib.else_scope():
                        with ib.if_scope(wins(source[at(i)], values[at(previous)])):
                            values[at(i)] = source[at(i)]
                            places[at(i)] = O.cast(i, "int64")
                        with ib.else_scope():
                            values[at(i)] = values[at(previous)]
                            places[at(i)] = places[at(previous)]
            return ib.get()

        return te.extern([data.shape, data.shape], [data], body, dtype=[data.dtype, "int64"],
                         name=name, tag=name)

    operator.__name__ = name
    operator.__doc__ = (f"The {'largest' if name == 'cummax' else 'least'} element so far along "
                        "`axis`, and its last place: [values, places].")
    return operator


cummax = _best("cummax", O.greater_equal)
cummin = _best("cummin", O.less_equal)


def logcumsumexp(data: Tensor, axis: int = 0) -> Tensor:
    """log(exp(x_0) + .. + exp(x_i)) along `axis`, each step from the one before:
    max + log(1 + exp(min - max)). The total of 16-bit floats is kept in float32."""
    k, wide = axis_of("logcumsumexp", axis, data.ndim), sum_type(data.dtype)

    def joined(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        large, small = O.select(O.less(a, b), b, a), O.select(O.less(a, b), a, b)
        one = O.const(1, wide)
        out = large + O.log(one + O.exp(small - large))
        same = O.logical_and(O.equal(a, b), O.equal(O.abs(a), O.infinity(wide)))
        out = O.select(same, a, out)
        return O.select(O.logical_or(O.isnan(a), O.isnan(b)), a + b, out)

    def body(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        ib = ir_builder.create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        loop, place_in = _rows(ib, data, k)
        with loop as row:
            at = place_in(row)
            with ib.for_range(0, data.shape[k], "i") as i:
                with ib.if_scope(O.equal(i, 0)):
                    out[at(i)] = O.cast(source[at(i)], wide)
                with ib.else_scope():
                    out[at(i)] = joined(out[at(i - 1)], O.cast(source[at(i)], wide))
        return ib.get()

    return rounded(te.extern([data.shape], [data], body, dtype=wide, name="logcumsumexp",
                             tag="logcumsumexp"), data.dtype)


__all__ = ["cummax", "cummin", "logcumsumexp"]

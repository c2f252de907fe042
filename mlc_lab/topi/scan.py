"""Running totals along one dimension: cumsum, cumprod, and any other associative operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from .. import te
from ..te.tensor import Tensor
from ..tir import ir_builder
from ..tir import op as O
from ..tir.expr import PrimExpr
from .utils import axis_of, product, simplify, sum_type, unravel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ..tir.expr import ExprLike
    from ..tir.ir_builder import IRBuilder


def scanop(data: Tensor, binop: Callable[[PrimExpr, PrimExpr], PrimExpr], identity_value: ExprLike,
           op_name: str, axis: int | None = None, dtype: str | None = None,
           exclusive: bool | None = None) -> Tensor:
    """out[.., i, ..] = data[.., 0, ..] op ... op data[.., i, ..] along `axis`.

    Without `axis` the elements are taken in row-major order, and the result has one dimension.
    `exclusive` leaves data[.., i, ..] itself out. The rows run in parallel.
    """
    dtype = dtype or data.dtype
    wide = sum_type(dtype)
    identity = O.cast(O.convert(identity_value), dtype)
    if axis is None:
        size = simplify(O.convert(product(data.shape)))
        shape, before, length, after = [size], [], size, []
    else:
        k = axis_of(op_name, axis, data.ndim)
        shape = list(data.shape)
        before, length, after = shape[:k], shape[k], shape[k + 1:]
    rows = [*before, *after]

    def body(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        ib = ir_builder.create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, simplify(O.convert(product(rows))), "fused", kind="parallel") as row:
            at = unravel(row, rows)

            def place(i: Any) -> tuple:
                return (*at[:len(before)], i, *at[len(before):])

            def value(i: PrimExpr) -> PrimExpr:
                where = unravel(i, data.shape) if axis is None else place(i)
                return O.cast(source[tuple(where)], dtype)

            if wide != dtype:
                _wide_total(ib, out, place, value, length, (dtype, wide), binop, identity_value,
                            exclusive)
            else:
                with ib.if_scope(length > 0):
                    out[place(O.const(0, length.dtype))] = identity if exclusive else value(
                        O.const(0, length.dtype))
                with ib.for_range(1, length, "i") as i:
                    out[place(i)] = binop(out[place(i - 1)], value(i - 1 if exclusive else i))
        return ib.get()

    return te.extern([shape], [data], body, dtype=dtype, name=op_name, tag=op_name)


def _wide_total(ib: IRBuilder, out: Any, place: Callable, value: Callable, length: Any,
                dtypes: tuple[str, str], binop: Callable, identity: Any, exclusive: Any) -> None:
    """One row of a scan whose total has a wider type than the results."""
    dtype, wide = dtypes
    total = ib.allocate(wide, (1,), "total", scope="local")
    total[0] = O.cast(O.convert(identity), wide)
    with ib.for_range(0, length, "i") as i:
        if exclusive:
            out[place(i)] = O.cast(total[0], dtype)
        total[0] = binop(total[0], O.cast(value(i), wide))
        if not exclusive:
            out[place(i)] = O.cast(total[0], dtype)


def cumsum(data: Tensor, axis: int | None = None, dtype: str | None = None,
           exclusive: bool | None = None) -> Tensor:
    """Running sums along `axis`."""
    return scanop(data, O.add, 0, "cumsum_generic", axis, dtype, exclusive)


def cumprod(data: Tensor, axis: int | None = None, dtype: str | None = None,
            exclusive: bool | None = None) -> Tensor:
    """Running products along `axis`."""
    return scanop(data, O.mul, 1, "cumprod_generic", axis, dtype, exclusive)


__all__ = ["cumprod", "cumsum", "scanop"]

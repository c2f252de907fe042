"""Fully connected layers: matmul, dense, batch_matmul."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ...tir.expr import IntImm
from ..broadcast import add
from ..elementwise import cast
from ..linalg import matmul as batched
from ..utils import differ, need, number, rounded, sum_type, text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ...tir.expr import PrimExpr


def matmul(tensor_a: Tensor, tensor_b: Tensor, bias: Tensor | None = None,
           out_dtype: str | None = None, transpose_a: bool = False, transpose_b: bool = False,
           auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None
           ) -> Tensor:
    """The product of two matrices, either of them transposed, plus a bias for each column.

    Leading dimensions, if there are any, broadcast.
    """
    a, b = tensor_a, tensor_b
    if min(a.ndim, b.ndim) >= 2 and max(a.ndim, b.ndim) > 2:
        if out_dtype is not None:
            a, b = (x if x.dtype == out_dtype else cast(x, out_dtype) for x in (a, b))
        product = batched(a, b, transpose_a, transpose_b)
        return product if bias is None else add(product, cast(bias, product.dtype))
    need(a.ndim == 2 and b.ndim == 2,
         f"matmul: {text(a.shape)} and {text(b.shape)} are not both matrices")
    n, k = (a.shape[1], a.shape[0]) if transpose_a else a.shape
    k2, m = (b.shape[1], b.shape[0]) if transpose_b else b.shape
    need(not differ(k, k2), f"matmul: the inner sizes of {a} and {b} differ: the shapes "
                            f"{text(a.shape)} and {text(b.shape)} have {number(k)} and "
                            f"{number(k2)}")
    dtype = out_dtype or a.dtype
    wide = sum_type(dtype)
    r = te.reduce_axis((0, k), name="k")

    def element(i: PrimExpr, j: PrimExpr) -> Any:
        x = a[r, i] if transpose_a else a[i, r]
        y = b[j, r] if transpose_b else b[r, j]
        return te.sum(O.cast(x, wide) * O.cast(y, wide), axis=r)

    kind = f"_{'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'}"
    out = te.compute((n, m), lambda *i: element(*i), name=f"T_matmul{kind}", tag="matmul",
                     attrs={"layout_free_placeholders": [b]})
    if bias is not None:
        need(bias.ndim == 1 and not differ(bias.shape[0], m),
             f"matmul: the bias {text(bias.shape)} does not fit the result {text((n, m))}")
        total = out
        out = te.compute((n, m), lambda *i: total(*i) + O.cast(bias(i[1]), wide), name="T_add",
                         tag="broadcast", varargs_names=["ax0", "ax1"])
    return rounded(out, dtype)


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None,
          auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None
          ) -> Tensor:
    """data (n, k) times the transpose of weight (m, k), plus bias (m)."""
    return matmul(data, weight, bias, out_dtype, False, True)


def batch_matmul(tensor_a: Tensor, tensor_b: Tensor, oshape: Sequence[Any] | None = None,
                 out_dtype: str | None = None, transpose_a: bool = False, transpose_b: bool = True,
                 auto_scheduler_rewritten_layout: str = "",
                 meta_schedule_original_shape: object = None) -> Tensor:
    """A product for each index of the first dimension; tensor_b is transposed by default.

    A batch of one is broadcast to that of the other tensor.
    """
    a, b = tensor_a, tensor_b
    need(a.ndim == 3 and b.ndim == 3,
         f"batch_matmul: {text(a.shape)} and {text(b.shape)} have not both three dimensions")
    n, k = (a.shape[2], a.shape[1]) if transpose_a else a.shape[1:]
    k2, m = (b.shape[2], b.shape[1]) if transpose_b else b.shape[1:]
    one_a, one_b = O.is_const_int(a.shape[0], 1), O.is_const_int(b.shape[0], 1)
    need(not differ(k, k2) and (one_a or one_b or not differ(a.shape[0], b.shape[0])),
         f"batch_matmul: the shapes {text(a.shape)} and {text(b.shape)} do not fit"
         + (" with tensor_b transposed" if transpose_b else ""))
    batch = b.shape[0] if one_a else a.shape[0]
    dtype = out_dtype or a.dtype
    wide = sum_type(dtype)
    r = te.reduce_axis((0, k), name="k")

    def at(x: Tensor, i: PrimExpr) -> Any:
        return IntImm(i.dtype, 0) if O.is_const_int(x.shape[0], 1) and not (
            O.is_const_int(batch, 1)) else i

    def element(b_: PrimExpr, i: PrimExpr, j: PrimExpr) -> Any:
        x = a[at(a, b_), r, i] if transpose_a else a[at(a, b_), i, r]
        y = b[at(b, b_), j, r] if transpose_b else b[at(b, b_), r, j]
        return te.sum(O.cast(x, wide) * O.cast(y, wide), axis=r)

    kind = f"_{'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'}"
    name = "T_batch_matmul" + kind
    return rounded(te.compute((batch, n, m), lambda b, i, j: element(b, i, j), name=name,
                              tag="batch_matmul", attrs={"layout_free_placeholders": [b]}), dtype)


__all__ = ["batch_matmul", "dense", "matmul"]

"""Products of groups of rows, columns or terms, each with a matrix of its own: mixtures of experts.

`offs` says where each group ends. In what lies behind the last group the result is 0.
"""

from __future__ import annotations

from .. import te
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import PrimExpr
from .utils import sum_type


def grouped_matmul(a: Tensor, b: Tensor, offs: Tensor, out_dtype: str = "") -> Tensor:
    """The products of the groups that `offs` divides a dimension into.

    ============== ============== ======================== ==============
    a              b              groups of                result
    ============== ============== ======================== ==============
    (M, K)         (G, K, N)      rows of a                (M, N)
    (G, M, K)      (K, N)         columns of b             (M, N)
    (M, K)         (K, N)         terms of the sums        (G, M, N)
    ============== ============== ======================== ==============
    """
    dtype = out_dtype or a.dtype
    wide = sum_type(a.dtype)
    count = offs.shape[0]
    if (a.ndim, b.ndim) not in ((2, 3), (3, 2), (2, 2)):
        raise ValueError("grouped_matmul: of a matrix and a stack of matrices, or of two matrices, "
                         f"not of {a.ndim} and {b.ndim} dimensions")
    k = te.reduce_axis((0, a.shape[-1]), "k")

    def product(left: PrimExpr, right: PrimExpr) -> PrimExpr:
        return O.cast(left, wide) * O.cast(right, wide)

    if a.ndim == b.ndim:
        def inside(g: PrimExpr) -> PrimExpr:
            begin = O.if_then_else(O.greater(g, 0), offs[O.max_value_of(g - 1, 0)],
                                   O.const(0, offs.dtype))
            at = O.cast(k.var, "int64")
            return O.logical_and(O.less_equal(O.cast(begin, "int64"), at),
                                 O.less(at, O.cast(offs[g], "int64")))

        total = te.compute((count, a.shape[0], b.shape[1]), lambda g, i, j: te.sum(
            O.if_then_else(inside(g), product(a[i, k], b[k, j]), O.const(0, wide)), k), "product")
        return te.compute(total.shape, lambda *i: O.cast(total(*i), dtype), "grouped_matmul")

    grouped = a.shape[0] if a.ndim == 2 else b.shape[1]
    g = te.reduce_axis((0, count), "g")
    group = te.compute((grouped,), lambda i: te.sum(O.cast(O.less_equal(
        O.cast(offs[g], "int64"), O.cast(i, "int64")), "int32"), g), "group")

    def of(i: PrimExpr) -> PrimExpr:
        return O.min_value_of(group[i], O.cast(count - 1, "int32"))

    rows = a.shape[0] if a.ndim == 2 else a.shape[1]
    total = te.compute((rows, b.shape[-1]), lambda i, j: te.sum(
        product(a[i, k], b[of(i), k, j]) if a.ndim == 2 else product(a[of(j), i, k], b[k, j]),
        k), "product")

    def element(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        known = O.less(group[i if a.ndim == 2 else j], O.cast(count, "int32"))
        return O.cast(O.if_then_else(known, total[i, j], O.const(0, wide)), dtype)

    return te.compute(total.shape, element, "grouped_matmul")


__all__ = ["grouped_matmul"]

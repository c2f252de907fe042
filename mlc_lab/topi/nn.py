"""Operators of neural networks."""

from __future__ import annotations

from typing import Any

from .. import te
from ..te.tensor import Tensor
from ..tir import op as O


def matmul(a: Tensor, b: Tensor, bias: Any = None, out_dtype: str | None = None,
           transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """The product of two matrices, either of them transposed, plus a bias for each column."""
    n, k = (a.shape[1], a.shape[0]) if transpose_a else a.shape
    k2, m = (b.shape[1], b.shape[0]) if transpose_b else b.shape
    if O.as_int(k) != O.as_int(k2):
        raise ValueError(f"matmul: the inner sizes of {a} and {b} differ: {k} and {k2}")
    dtype = out_dtype or a.dtype
    r = te.reduce_axis((0, k), name="k")

    def element(i: Any, j: Any) -> Any:
        x = a[r, i] if transpose_a else a[i, r]
        y = b[j, r] if transpose_b else b[r, j]
        return te.sum(O.cast(x, dtype) * O.cast(y, dtype), axis=r)

    kind = f"_{'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'}"
    name = "T_matmul" if kind == "_NN" else f"T_matmul{kind}"
    out = te.compute((n, m), lambda *i: element(*i), name=name, tag="matmul",
                     attrs={"layout_free_placeholders": [b]})
    if bias is not None:
        out = te.compute((n, m), lambda i, j: out[i, j] + O.cast(bias[j], dtype), name="T_add")
    return out


def dense(data: Tensor, weight: Tensor, bias: Any = None, out_dtype: str | None = None) -> Tensor:
    """data (n, k) times the transpose of weight (m, k), plus bias (m)."""
    return matmul(data, weight, bias, out_dtype, False, True)


def relu(x: Tensor) -> Tensor:
    """max(x, 0)"""
    return te.compute(x.shape, lambda *i: te.max(x(*i), O.const(0, x.dtype)), tag="elemwise")

"""Products with sparse matrices in the forms CSR and BSR, and what goes with them.

A sparse matrix is three tensors, as scipy has it. CSR: `data` (nnz) and `indices` (nnz) have the
elements row by row and the column of each, and those of row r are `indptr[r]` to `indptr[r + 1]`.
BSR: the same of blocks, `data` is (blocks, bs_r, bs_c), and `indices` and `indptr` count blocks.

How many terms a sum has is read from `indptr` when the program runs. Tags are TVM's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import te
from ...te.tensor import Tensor
from ...tir import ir_builder
from ...tir import op as O
from ..utils import differ, need, number, text

if TYPE_CHECKING:
    from collections.abc import Callable
    from ...tir.expr import PrimExpr


def sparse_dense(dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor,
                 sparse_indptr: Tensor, sparse_lhs: bool = False) -> Tensor:
    """A dense matrix times the transpose of a sparse one, which is (n, k): (m, k) -> (m, n).

    With `sparse_lhs` the sparse matrix (m, k) is multiplied with the transpose of the dense one
    (n, k): again (m, n). ValueError for shapes that are no matrix in CSR or BSR.
    """
    _check("sparse_dense", sparse_data, sparse_indices, sparse_indptr, blocks=True)
    need(dense_data.ndim == 2, f"sparse_dense: {dense_data} of shape {text(dense_data.shape)} is "
                               "no matrix")
    if sparse_data.ndim == 1:
        return _csr(dense_data, sparse_data, sparse_indices, sparse_indptr, sparse_lhs)
    return _bsr(dense_data, sparse_data, sparse_indices, sparse_indptr, sparse_lhs)


def sparse_dense_sp_rhs(data: Tensor, weight_data: Tensor, weight_indices: Tensor,
                        weight_indptr: Tensor) -> Tensor:
    """`sparse_dense` whose second matrix is sparse."""
    return sparse_dense(data, weight_data, weight_indices, weight_indptr)


def sparse_dense_sp_lhs(data_data: Tensor, data_indices: Tensor, data_indptr: Tensor,
                        weight: Tensor) -> Tensor:
    """`sparse_dense` whose first matrix is sparse."""
    return sparse_dense(weight, data_data, data_indices, data_indptr, sparse_lhs=True)


def _check(name: str, data: Tensor, indices: Tensor, indptr: Tensor, blocks: bool) -> None:
    forms = "(nnz) for CSR" + (" or (blocks, bs_r, bs_c) for BSR" if blocks else "")
    need(data.ndim == 1 or blocks and data.ndim == 3,
         f"{name}: the data of a sparse matrix are {forms}, not {text(data.shape)}")
    need(indices.ndim == 1 and indptr.ndim == 1,
         f"{name}: indices {text(indices.shape)} and indptr {text(indptr.shape)} have one "
         "dimension each")
    need(not differ(indices.shape[0], data.shape[0]),
         f"{name}: there are {number(data.shape[0])} data and {number(indices.shape[0])} indices")


def _rows(indptr: Tensor) -> PrimExpr:
    """How many rows (of elements, or of blocks) a matrix has."""
    return O.convert(number(indptr.shape[0] - 1))


def _of_row(indptr: Tensor, row: PrimExpr) -> tuple[PrimExpr, Any]:
    """Where the elements of a row begin, and an axis over them."""
    start = indptr[row]
    return start, te.reduce_axis((0, indptr[row + 1] - start), name="elem_idx")


def _csr(dense: Tensor, data: Tensor, indices: Tensor, indptr: Tensor, lhs: bool) -> Tensor:
    def element(row: PrimExpr, other: PrimExpr) -> Any:
        start, k = _of_row(indptr, row)
        return te.sum(data[start + k] * dense[other, indices[start + k]], axis=k)

    if lhs:
        return te.compute((_rows(indptr), dense.shape[0]), lambda row, i: element(row, i),
                          tag="sparse_dense_sp_lhs_csrmm")
    return te.compute((dense.shape[0], _rows(indptr)), lambda i, row: element(row, i),
                      tag="sparse_dense_sp_rhs_csrmm")


def _bsr(dense: Tensor, data: Tensor, indices: Tensor, indptr: Tensor, lhs: bool) -> Tensor:
    _, bs_r, bs_c = data.shape
    rows = _rows(indptr)

    def element(block_row: PrimExpr, within: PrimExpr, other: PrimExpr) -> Any:
        start, k = _of_row(indptr, block_row)
        c = te.reduce_axis((0, bs_c), name="c")
        return te.sum(data[start + k, within, c] * dense[other, bs_c * indices[start + k] + c],
                      axis=[k, c])

    many = number(rows * bs_r)
    if lhs:
        n = dense.shape[0]
        parts = te.compute((rows, bs_r, n), lambda nb_j, j, i: element(nb_j, j, i),
                           tag="sparse_dense_sp_lhs_bsrmm_block")
        return te.compute((many, n), lambda m, n: parts[
            O.indexdiv(m, bs_r), O.indexmod(m, bs_r), n], tag="sparse_dense_sp_lhs_bsrmm")
    m, k = dense.shape
    # for those that count operations: as many as the dense product has
    parts = te.compute((m, rows, bs_r), lambda i, nb_j, j: element(nb_j, j, i),
                       tag="sparse_dense_sp_rhs_bsrmm_block",
                       attrs={"FLOP": number(2 * m * rows * bs_r * k)})
    return te.compute((m, many), lambda m, n: parts[m, O.indexdiv(n, bs_r), O.indexmod(n, bs_r)],
                      tag="sparse_dense_sp_rhs_bsrmm")


def sparse_add(dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor,
               sparse_indptr: Tensor) -> Tensor:
    """A dense matrix (m, n) and a sparse one in CSR, added: (m, n)."""
    _check("sparse_add", sparse_data, sparse_indices, sparse_indptr, blocks=False)
    need(dense_data.ndim == 2 and not differ(dense_data.shape[0], _rows(sparse_indptr)),
         f"sparse_add: a sparse matrix of {number(_rows(sparse_indptr))} rows is added to one of "
         f"shape {text(dense_data.shape)}")
    rows, columns = dense_data.shape

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        dense, data, indices, indptr, out = map(ib.buffer_ptr, (*ins, *outs))
        with ib.for_range(0, rows, name="row") as row:
            with ib.for_range(0, columns, name="col") as col:
                out[row, col] = dense[row, col]
            _each_of_row(ib, indptr, row, lambda at: _add_to(
                out, (row, indices[at]), data[at]))
        return ib.get()

    return te.extern([dense_data.shape], [dense_data, sparse_data, sparse_indices, sparse_indptr],
                     body, dtype=dense_data.dtype, name="sparse_add_csr_output",
                     tag="sparse_add_csr")


def _add_to(pointer: Any, at: Any, value: Any) -> None:
    pointer[at] = pointer[at] + value


def _each_of_row(ib: Any, indptr: Any, row: PrimExpr, do: Callable[[PrimExpr], None]) -> None:
    """A loop over the elements of a row of a matrix in CSR."""
    with ib.for_range(0, indptr[row + 1] - indptr[row], name="idx") as idx:
        do(indptr[row] + idx)


def sparse_transpose(sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor
                     ) -> list[Tensor]:
    """The transpose of a square matrix in CSR: [data, indices, indptr]. In each of its rows the
    columns are in ascending order where each element of the matrix was there once."""
    _check("sparse_transpose", sparse_data, sparse_indices, sparse_indptr, blocks=False)
    count, n = sparse_data.shape[0], _rows(sparse_indptr)

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        data, indices, indptr, out, out_indices, out_indptr = map(ib.buffer_ptr, (*ins, *outs))
        with ib.for_range(0, n + 1, name="col") as col:
            out_indptr[col] = O.const(0, "int32")
        with ib.for_range(0, count, name="at") as at:  # how many elements each column has
            _add_to(out_indptr, indices[at] + 1, O.const(1, "int32"))
        with ib.for_range(0, n, name="col") as col:  # where each begins
            _add_to(out_indptr, col + 1, out_indptr[col])

        def move(row: PrimExpr, at: PrimExpr) -> None:
            there = out_indptr[indices[at]]
            out[there] = data[at]
            out_indices[there] = O.cast(row, "int32")
            _add_to(out_indptr, indices[at], O.const(1, "int32"))

        with ib.for_range(0, n, name="row") as row:
            _each_of_row(ib, indptr, row, lambda at: move(row, at))
        with ib.for_range(0, n, name="col") as col:  # each stands at its end by now
            out_indptr[n - col] = out_indptr[n - 1 - col]
        out_indptr[0] = O.const(0, "int32")
        return ib.get()

    return list(te.extern([(count,), (count,), (n + 1,)],
                          [sparse_data, sparse_indices, sparse_indptr], body,
                          dtype=[sparse_data.dtype, "int32", "int32"], name="out",
                          tag="sparse_transpose_csr"))


__all__ = ["sparse_add", "sparse_dense", "sparse_dense_sp_lhs", "sparse_dense_sp_rhs",
           "sparse_transpose"]

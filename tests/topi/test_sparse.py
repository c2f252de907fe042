"""Products with sparse matrices of any form: against numpy, compiled and interpreted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlc_lab
from mlc_lab import te, topi
from mlc_lab.backend.interp import interpret

from .running import run

RNG = np.random.default_rng(3)


def bsr(rows, columns, bs_r, bs_c, keep):
    """(dense, data, indices, indptr) of a matrix in blocks; keep[i, j] says which are there."""
    data = RNG.standard_normal((int(keep.sum()), bs_r, bs_c)).astype("float32")
    indices = np.nonzero(keep)[1].astype("int32")
    indptr = np.concatenate([[0], np.cumsum(keep.sum(1))]).astype("int32")
    dense = np.zeros((rows * bs_r, columns * bs_c), "float32")
    for block, (i, j) in zip(data, np.argwhere(keep)):
        dense[i * bs_r:(i + 1) * bs_r, j * bs_c:(j + 1) * bs_c] = block
    return dense, data, indices, indptr


def csr(keep):
    """The same of a matrix in CSR."""
    dense, data, indices, indptr = bsr(*keep.shape, 1, 1, keep)
    return dense, data.reshape(-1), indices, indptr


def both(operator, *arrays):
    """What compiled and what interpreted code gives, checked to be the same."""
    ins = [te.placeholder(a.shape, str(a.dtype), name=f"x{n}") for n, a in enumerate(arrays)]
    made = operator(*ins)
    outs = list(made) if isinstance(made, list) else [made]
    func = te.create_prim_func([*ins, *outs])
    compiled = run(operator, *arrays)
    results = [np.full([int(d) for d in t.shape], 7, t.dtype) for t in outs]
    interpret(func, *arrays, *results)
    for a, b in zip(compiled if isinstance(made, list) else [compiled], results):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    return compiled


@st.composite
def patterns(draw, square=False):
    """Which elements are there: at least one, and rows without any are frequent."""
    rows = draw(st.integers(1, 5))
    columns = rows if square else draw(st.integers(1, 5))
    cells = draw(st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns))
    keep = np.array(cells).reshape(rows, columns)
    for row in draw(st.sets(st.integers(0, rows - 1))):
        keep[row] = False
    keep[draw(st.integers(0, rows - 1)), draw(st.integers(0, columns - 1))] = True
    return keep


@settings(max_examples=6, deadline=None)
@given(patterns(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 5))
def test_a_product_with_a_matrix_of_blocks(keep, bs_r, bs_c, m):
    dense, *sparse = bsr(*keep.shape, bs_r, bs_c, keep)
    x = RNG.standard_normal((m, dense.shape[1])).astype("float32")
    right = both(topi.nn.sparse_dense, x, *sparse)
    np.testing.assert_allclose(right, x @ dense.T, rtol=1e-4, atol=1e-5)
    left = both(lambda *a: topi.nn.sparse_dense(*a, sparse_lhs=True), x, *sparse)
    np.testing.assert_allclose(left, dense @ x.T, rtol=1e-4, atol=1e-5)


@settings(max_examples=6, deadline=None)
@given(patterns(), st.integers(1, 5))
def test_a_product_and_a_sum_with_a_matrix_of_elements(keep, m):
    dense, *sparse = csr(keep)
    x = RNG.standard_normal((m, dense.shape[1])).astype("float32")
    np.testing.assert_allclose(both(topi.nn.sparse_dense_sp_rhs, x, *sparse), x @ dense.T,
                               rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(both(topi.nn.sparse_dense_sp_lhs, *sparse, x), dense @ x.T,
                               rtol=1e-4, atol=1e-5)
    y = RNG.standard_normal(dense.shape).astype("float32")
    np.testing.assert_allclose(both(topi.nn.sparse_add, y, *sparse), y + dense, rtol=1e-6)


@settings(max_examples=6, deadline=None)
@given(patterns(square=True))
def test_a_transpose_has_its_columns_in_order(keep):
    dense, *sparse = csr(keep)
    data, indices, indptr = both(topi.nn.sparse_transpose, *sparse)
    np.testing.assert_array_equal(indptr, np.concatenate([[0], np.cumsum(keep.sum(0))]))
    np.testing.assert_array_equal(indices, np.nonzero(keep.T)[1])
    np.testing.assert_array_equal(data, dense.T[keep.T])


def test_operators_bear_the_tags_that_schedules_look_for():
    x = te.placeholder((6, 8), name="X")
    blocks = [te.placeholder(s, dtype=d) for s, d in (((5, 2, 4), "float32"), ((5,), "int32"),
                                                      ((4,), "int32"))]
    y = topi.nn.sparse_dense(x, *blocks)
    (inner,) = y.op.input_tensors
    assert y.op.tag == "sparse_dense_sp_rhs_bsrmm" and y.shape == (6, 6)
    assert inner.op.tag == "sparse_dense_sp_rhs_bsrmm_block" and inner.op.attrs["FLOP"] == 576
    assert [iv.var.name for iv in inner.op.axis] == ["i", "nb_j", "j"]
    assert [iv.var.name for iv in inner.op.reduce_axis] == ["elem_idx", "c"]
    left = topi.nn.sparse_dense(x, *blocks, sparse_lhs=True)
    assert left.op.tag == "sparse_dense_sp_lhs_bsrmm"
    elements = [te.placeholder((5,), dtype=d) for d in ("float32", "int32")]
    elements.append(te.placeholder((7,), dtype="int32"))
    assert topi.nn.sparse_dense(x, *elements).op.tag == "sparse_dense_sp_rhs_csrmm"
    assert topi.nn.sparse_add(x, *elements).op.tag == "sparse_add_csr"
    assert topi.nn.sparse_transpose(*elements)[0].op.tag == "sparse_transpose_csr"


def test_shapes_that_are_no_sparse_matrix_are_refused():
    x = te.placeholder((6, 8), name="X")
    flat, blocks = te.placeholder((5,)), te.placeholder((5, 2))
    index = te.placeholder((5,), dtype="int32")
    short = te.placeholder((4,), dtype="int32")
    for give, why in (
            (lambda: topi.nn.sparse_dense(x, blocks, index, index), r"not \(5, 2\)"),
            (lambda: topi.nn.sparse_dense(x, flat, short, index), "5 data and 4 indices"),
            (lambda: topi.nn.sparse_dense(flat, flat, index, index), "is no matrix"),
            (lambda: topi.nn.sparse_add(x, flat, index, index), "4 rows"),
            (lambda: topi.nn.sparse_transpose(te.placeholder((5, 1, 1)), index, index), "CSR")):
        with pytest.raises(ValueError, match=why):
            give()


def test_a_random_matrix_has_blocks_as_many_as_asked_for():
    pytest.importorskip("scipy")
    made = topi.sparse.utils.random_bsr_matrix(12, 16, 4, 2, 0.3, "float32")
    assert made.data.shape == (8, 4, 2) and made.indptr.shape == (4,)
    assert made.data.dtype == np.float32 and made.indptr.dtype == np.int32
    x = RNG.standard_normal((3, 16)).astype("float32")
    np.testing.assert_allclose(run(topi.nn.sparse_dense, x, made.data, made.indices, made.indptr),
                               x @ made.toarray().T, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="do not divide"):
        topi.sparse.utils.random_bsr_matrix(12, 16, 5, 2, 0.3, "float32")
    with pytest.raises(ValueError, match="places"):
        topi.sparse.utils.random_bsr_matrix(12, 16, 4, 2, 1.0, "float32")


@settings(max_examples=10, deadline=None)
@given(patterns(), st.integers(1, 4), st.integers(1, 2), st.sampled_from([1, 2, 4]),
       st.permutations(range(7)))
def test_schedules_of_te_keep_the_product_or_are_refused(keep, bs_r, bs_c, tile, order):
    """Loops of the sum among those of the elements, in whatever order is legal."""
    dense, *sparse = bsr(*keep.shape, bs_r, bs_c, keep)
    x = RNG.standard_normal((4, dense.shape[1])).astype("float32")
    ins = [te.placeholder(a.shape, str(a.dtype), name=f"x{n}")
           for n, a in enumerate((x, *sparse))]
    y = topi.nn.sparse_dense(*ins)
    s = te.create_schedule(y.op)
    stage = s[y.op.input_tensors[0]]
    i, nb, j = stage.op.axis
    i0, i1 = stage.split(i, factor=tile)
    nb0, nb1 = stage.split(nb, factor=1)
    loops = [i0, i1, nb0, nb1, j, *stage.op.reduce_axis]
    stage.reorder(*[loops[n] for n in order])
    at = order.index
    try:
        program = mlc_lab.lower(s, [*ins, y])
    except mlc_lab.schedule.ScheduleError:
        first = min(at(5), at(6))
        unknown = max(at(2), at(3)) > first  # how far the sum goes
        # a block is made of the inner parts of iterators, not of the outer ones (blockize)
        turned = at(1) < first < at(0)
        assert unknown or turned, "the bounds of the sum were known"
        return
    out = np.full((4, dense.shape[0]), 7, "float32")
    interpret(program, x, *sparse, out)
    np.testing.assert_allclose(out, x @ dense.T, rtol=1e-4, atol=1e-5)
    out[:] = 7
    mlc_lab.build(program, target="llvm")(x, *sparse, out)
    np.testing.assert_allclose(out, x @ dense.T, rtol=1e-4, atol=1e-5)

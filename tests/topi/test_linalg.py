"""Products of tensors against numpy."""

import numpy as np
import pytest
from topi.running import array, check

from mlc_lab import te, topi


@pytest.mark.parametrize("a, b, ta, tb", [((3, 4), (4, 5), 0, 0), ((4, 3), (4, 5), 1, 0),
                                          ((3, 4), (5, 4), 0, 1), ((2, 1, 3, 4), (6, 4, 5), 0, 0)])
def test_matmul(a, b, ta, tb):
    x, y = array(*a), array(*b)
    want = (np.swapaxes(x, -1, -2) if ta else x) @ (np.swapaxes(y, -1, -2) if tb else y)
    check(lambda s, t: topi.matmul(s, t, bool(ta), bool(tb)), [x, y], want)


def test_dense_with_bias():
    x, w, b = array(3, 4), array(5, 4), array(5)
    check(topi.nn.dense, [x, w, b], x @ w.T + b)
    check(lambda s, t: topi.nn.matmul(s, t, transpose_a=True), [x, array(3, 2)][:1] + [
        w2 := array(3, 2)], x.T @ w2)


def test_batch_matmul():
    x, y = array(2, 3, 4), array(2, 5, 4)
    check(topi.nn.batch_matmul, [x, y], x @ y.transpose(0, 2, 1))
    check(lambda s, t: topi.nn.batch_matmul(s, t, None, None, False, False),
          [x, array(1, 4, 2)][:1] + [z := array(1, 4, 2)], x @ z)


@pytest.mark.parametrize("subscripts, shapes", [
    ("ij,jk->ik", [(3, 4), (4, 5)]), ("ij,kj", [(3, 4), (5, 4)]), ("ii->i", [(3, 3)]),
    ("ij->", [(3, 4)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]), ("i,j->ij", [(3,), (4,)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]), ("ij->ji", [(2, 3)]),
    ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 2)]), ("bhqd,bhkd->bhqk", [(1, 2, 3, 4), (1, 2, 5, 4)]),
])
def test_einsum(subscripts, shapes):
    xs = [array(*s) for s in shapes]
    check(lambda *ts: topi.einsum(subscripts, *ts), xs, np.einsum(subscripts, *xs))


def test_tensordot():
    x, y = array(2, 3, 4), array(3, 4, 5)
    check(topi.tensordot, [x, y], np.tensordot(x, y))
    check(lambda a, b: topi.tensordot(a, b, ([1], [0])), [x, y], np.tensordot(x, y, ([1], [0])))


@pytest.mark.parametrize("operator, words", [
    (topi.matmul, r"\(3, 4\) and \(5, 6\) do not fit"),
    (topi.nn.dense, r"\(3, 4\) and \(5, 6\)"),
    (lambda a, b: topi.einsum("ij,jk", a, b), "j is 4 and 5"),
    (lambda a, b: topi.tensordot(a, b, 1), r"do not fit"),
])
def test_shapes_that_do_not_fit_are_both_named(operator, words):
    with pytest.raises(ValueError, match=words):
        operator(te.placeholder((3, 4)), te.placeholder((5, 6)))

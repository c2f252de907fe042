"""TOPI operators against numpy."""

import numpy as np
import pytest

from mlc_lab import te, topi
from mlc_lab.backend.interp import interpret

RNG = np.random.default_rng(2)
CASES = [
    (topi.add, [(3, 4), (4,)], np.add), (topi.multiply, [(3, 1), (1, 4)], np.multiply),
    (topi.maximum, [(2, 3, 4), (3, 1)], np.maximum), (topi.exp, [(3, 4)], np.exp),
    (lambda x: x * 2.0 - 1.0, [(3, 4)], lambda x: x * 2 - 1),
    (topi.nn.dense, [(3, 4), (5, 4)], lambda x, w: x @ w.T),
    (topi.matmul, [(3, 4), (4, 5)], np.matmul), (topi.nn.relu, [(5,)], lambda x: np.maximum(x, 0)),
    (lambda x: topi.sum(x, 1), [(2, 3, 4)], lambda x: x.sum(1)),
    (lambda x: topi.max(x, (0, -1), True), [(2, 3, 4)], lambda x: x.max((0, 2), keepdims=True)),
    (topi.sum, [(2, 3)], np.sum), (topi.transpose, [(2, 3, 4)], np.transpose),
    (lambda x: topi.reshape(x, (4, 6)), [(2, 3, 4)], lambda x: x.reshape(4, 6)),
]


@pytest.mark.parametrize("operator, shapes, expected", CASES)
def test_equals_numpy(operator, shapes, expected):
    ins = [te.placeholder(s, name=f"x{i}") for i, s in enumerate(shapes)]
    arrays = [RNG.standard_normal(s).astype("float32") for s in shapes]
    want = expected(*arrays)
    out = np.zeros(np.shape(want), "float32")
    interpret(te.create_prim_func([*ins, operator(*ins)]), *arrays, out)
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)


def test_dense_is_named_as_in_tvm():
    x, w = te.placeholder((1, 784), name="x"), te.placeholder((128, 784), name="B")
    text = te.create_prim_func([x, w, topi.nn.dense(x, w)]).script()
    assert '"layout_free_buffers": [1]' in text and "T_matmul_NT[v_i0, v_i1] + " in text


def test_shapes_that_do_not_fit_are_both_named():
    a, b = te.placeholder((3, 4)), te.placeholder((5,))
    with pytest.raises(ValueError, match=r"\(3, 4\) and \(5\) cannot be broadcast"):
        topi.add(a, b)

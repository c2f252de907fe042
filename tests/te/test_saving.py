"""Tensors and operations are saved as JSON, and compute the same after loading."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.backend.interp import interpret
from mlc_lab.ir.serialize import SerializeError, load_json, save_json


def again(value):
    return load_json(save_json(value))


def test_a_computation_comes_back():
    A, B = te.placeholder((4, 6), name="A"), te.placeholder((5, 6), name="B")
    k = te.reduce_axis((0, 6), "k")
    C = te.compute((4, 5), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C", tag="dense",
                   attrs={"note": [1, 2]})
    a2, b2, c2 = again([A, B, C])
    assert isinstance(c2, te.Tensor) and str(c2) == str(C)
    assert (c2.op.tag, c2.op.attrs) == ("dense", {"note": [1, 2]})
    assert c2.op.input_tensors == [a2, b2]
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("float32") for s in ((4, 6), (5, 6)))
    out = np.zeros((4, 5), "float32")
    interpret(te.create_schedule(c2.op).to_module([a2, b2, c2]), a, b, out)
    np.testing.assert_allclose(out, a @ b.T, rtol=1e-5, atol=1e-6)


def test_a_scan_and_foreign_code_come_back():
    X, state = te.placeholder((8, 4), name="X"), te.placeholder((8, 4), name="state")
    init = te.compute((1, 4), lambda _, i: X[0, i])
    update = te.compute((8, 4), lambda t, i: state[t - 1, i] + X[t, i])
    total = te.scan(init, update, state, inputs=[X])
    x2, total2 = again([X, total])
    x = np.random.default_rng(0).standard_normal((8, 4)).astype("float32")
    out = np.zeros((8, 4), "float32")
    interpret(te.create_schedule(total2.op).to_module([x2, total2]), x, out)
    np.testing.assert_allclose(out, x.cumsum(0), rtol=1e-5)
    E = te.extern((8, 4), [X], lambda ins, outs: tvm.tir.call_packed("f", ins[0], outs[0]))
    assert again(E).op.inputs[0].op.name == "X"


def test_a_text_that_is_no_tensor_is_refused():
    text = save_json(te.placeholder((2,), name="A")).replace('"t":[{"$":1},0]', '"t":[{"$":1},7]')
    with pytest.raises(SerializeError, match="output of an operation"):
        load_json(text)


def test_expressions_leave_operators_to_tensors():
    n, A = te.var("n"), te.placeholder((), name="A")
    B = te.placeholder((3,), name="B")
    for value in (n + A, A + n, n * B, B[0] + B, B[0] - A, 2 - B):
        assert isinstance(value, te.Tensor)
    with pytest.raises(TypeError):
        n + object()

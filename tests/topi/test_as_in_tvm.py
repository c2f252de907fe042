"""What topi takes as TVM 0.18 does: sizes known when it runs, batches, other forms of arguments."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te, topi


@pytest.mark.parametrize("k, k2", [(3, 3), (3, 1), (1, 3)])
def test_a_size_that_turns_out_to_be_one(k, k2):
    K, K2, n = te.size_var("K"), te.size_var("K2"), te.size_var("n")
    A, B = te.placeholder((2, K), name="A"), te.placeholder((K2, n), name="B")
    C = topi.einsum("ij,jk->ik", A, B)
    a = np.random.rand(2, k).astype("float32")
    b = np.random.rand(k2, 4).astype("float32")
    c = np.zeros((2, 4), "float32")
    tvm.build(te.create_schedule(C.op), [A, B, C], "llvm")(a, b, c)
    wide = max(k, k2)
    want = np.broadcast_to(a, (2, wide)) @ np.broadcast_to(b, (wide, 4))
    np.testing.assert_allclose(c, want, rtol=1e-5)


def test_a_number_as_argument_of_a_schedule():
    x, B = te.var("x", "float32"), te.placeholder((10,), name="B")
    C = topi.divide(x, B)
    c = np.zeros(10, "float32")
    tvm.build(te.create_schedule(C.op), [x, B, C], "llvm")(2.0, np.full(10, 4, "float32"), c)
    np.testing.assert_array_equal(c, 0.5)


def test_instance_norm_as_in_0_18():
    A = te.placeholder((2, 3, 4), name="A")
    g, b = te.placeholder((3, 4), name="g"), te.placeholder((3, 4), name="b")
    C = topi.nn.instance_norm(A, g, b, [1, 2], 1e-5)
    a, gamma, beta = (np.random.rand(*s).astype("float32") for s in ((2, 3, 4), (3, 4), (3, 4)))
    c = np.zeros_like(a)
    tvm.build(te.create_schedule(C.op), [A, g, b, C], "llvm")(a, gamma, beta, c)
    np.testing.assert_allclose(c, topi.testing.layer_norm_python(a, gamma, beta, (1, 2)),
                               rtol=1e-4, atol=1e-5)


def test_devices_by_their_names():
    assert tvm.device("sdaccel").device_type == tvm.device("opencl").device_type
    assert tvm.device("test") == tvm.cpu()


@pytest.mark.parametrize("ta, tb", [(False, False), (True, True)])
def test_matmul_of_networks_in_batches(ta, tb):
    A = te.placeholder((4, 3, 5) if ta else (4, 5, 3), name="A")
    B, bias = te.placeholder((2, 3) if tb else (3, 2), name="B"), te.placeholder((2,), name="bias")
    C = topi.nn.matmul(A, B, bias, None, ta, tb)
    a, b, v = (np.random.rand(*(int(d) for d in t.shape)).astype("float32") for t in (A, B, bias))
    c = np.zeros((4, 5, 2), "float32")
    tvm.build(te.create_schedule(C.op), [A, B, bias, C], "llvm")(a, b, v, c)
    left, right = a.swapaxes(1, 2) if ta else a, b.T if tb else b
    np.testing.assert_allclose(c, left @ right + v, rtol=1e-5)


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1), (1,)])
def test_collapse_sum(shape):
    A = te.placeholder((4, 2, 3), name="A")
    C = topi.collapse_sum(A, shape)
    a, c = np.random.rand(4, 2, 3).astype("float32"), np.zeros(shape, "float32")
    tvm.build(topi.x86.schedule_pool([C], "NCHW"), [A, C], "llvm")(a, c)
    want = a.sum(0)
    for axis, d in enumerate((1,) * (2 - len(shape)) + shape):
        want = want.sum(axis, keepdims=True) if d == 1 else want
    np.testing.assert_allclose(c, want.reshape(shape), rtol=1e-5)

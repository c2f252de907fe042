"""topi.generic, topi.x86 and topi.cuda: schedules of operators, and what they compute."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te, topi


def run(s, args, target, *arrays):
    dev = tvm.device("cuda" if target == "cuda" else "cpu")
    given = [tvm.nd.array(a, dev) for a in arrays]
    tvm.build(s, args, target)(*given)
    return given[-1].numpy()


@pytest.mark.parametrize("where, target", [(topi.generic, "llvm"), (topi.hls, "llvm"),
                                           (topi.x86, "llvm"),
                                           (topi.arm_cpu, "llvm"), (topi.cuda, "cuda")])
class TestEach:
    """On each kind of target."""

    def test_an_injective_operator(self, where, target):
        x = te.placeholder((5, 32), name="x")
        y = topi.nn.relu(topi.transpose(x) - 0.5)
        a = np.random.rand(5, 32).astype("float32")
        got = run(where.schedule_injective([y]), [x, y], target, a, np.zeros((32, 5), "float32"))
        np.testing.assert_allclose(got, np.maximum(a.T - 0.5, 0))

    @pytest.mark.parametrize("axis", [None, 1, 0])
    def test_a_sum(self, where, target, axis):
        x = te.placeholder((7, 100), name="x")
        y = topi.sum(x * 2.0, axis=axis)
        a = np.random.rand(7, 100).astype("float32")
        want = (2 * a).sum(axis)
        got = run(where.schedule_reduce(y), [x, y], target, a, np.zeros_like(want))
        np.testing.assert_allclose(got, want, rtol=1e-5)

    def test_a_softmax(self, where, target):
        x = te.placeholder((6, 70), name="x")
        y = topi.nn.softmax(x)
        a = np.random.rand(6, 70).astype("float32")
        got = run(where.schedule_softmax(y), [x, y], target, a, np.zeros_like(a))
        np.testing.assert_allclose(got, np.exp(a) / np.exp(a).sum(1, keepdims=True), rtol=1e-5)

    def test_an_index_of_the_largest(self, where, target):
        x = te.placeholder((6, 70), name="x")
        y = topi.argmax(x, axis=1)
        a = np.random.rand(6, 70).astype("float32")
        got = run(where.schedule_reduce(y), [x, y], target, a, np.zeros(6, "int32"))
        np.testing.assert_array_equal(got, a.argmax(1))

    def test_a_convolution(self, where, target):
        x, w = te.placeholder((1, 3, 6, 6), name="x"), te.placeholder((4, 3, 1, 1), name="w")
        y = topi.nn.relu(where.conv2d_nchw(x, w, 1, 0, 1))
        a, b = np.random.rand(1, 3, 6, 6), np.random.rand(4, 3, 1, 1)
        got = run(where.schedule_conv2d_nchw([y]), [x, w, y], target, a.astype("float32"),
                  b.astype("float32"), np.zeros((1, 4, 6, 6), "float32"))
        np.testing.assert_allclose(got, np.einsum("nchw,oc->nohw", a, b[:, :, 0, 0]), rtol=1e-4)

    def test_what_is_not_there_says_so(self, where, target):
        with pytest.raises(AttributeError, match="schedule_nothing"):
            where.schedule_nothing


def test_what_is_inlined_may_be_cached():
    x = te.placeholder((8, 8), name="x")
    padded = te.compute((10, 10), lambda i, j: tvm.tir.if_then_else(
        tvm.tir.all(i > 0, i < 9, j > 0, j < 9), x[i - 1, j - 1], 0.0), name="padded")
    k = te.reduce_axis((0, 3), name="k")
    y = te.compute((8, 8), lambda i, j: te.sum(padded[i + k, j], axis=k), name="y")
    s = te.create_schedule(y.op)
    s[padded].compute_inline()
    cached = s.cache_read(padded, "shared", [y])
    s[cached].compute_at(s[y], y.op.axis[0])
    assert "padded = " not in s.to_module([x, y]).script()
    a = np.random.rand(8, 8).astype("float32")
    whole = np.pad(a, 1)
    got = run(s, [x, y], "llvm", a, np.zeros_like(a))
    np.testing.assert_allclose(got, sum(whole[d:d + 8, :8] for d in range(3)), rtol=1e-5)

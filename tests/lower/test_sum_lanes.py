"""SumLanes: sums over a vector give the very numbers that the loops give."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.backend.meaning import evaluate
from mlc_lab.ir.module import IRModule
from mlc_lab.ir.structural import structural_equal
from mlc_lab.lower import SumLanes, lower
from mlc_lab.observe import flops
from mlc_lab.script import from_source
from mlc_lab.script import tir as T
from .programs import arguments, run


def lanes_added(count, dtype):
    @T.prim_func
    def add(R: T.Buffer((6, count), dtype), C: T.Buffer((6,), dtype)):
        T.func_attr({"tir.noalias": True})
        for i, k in T.grid(6, count):
            C[i] = C[i] + R[i, k]

    return add


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [2, 4, 8, 12, 16, 32])
def test_a_loop_over_lanes_adds_them_in_order(count, dtype):
    """One addition of a vector, rounded as the loop is."""
    func = lanes_added(count, dtype)
    lib = tvm.build(func, target="llvm")
    assert ("llvm.vector.reduce.fadd" in lib.get_source("ll")) == (count in (4, 8, 16))
    rng = np.random.default_rng(count)
    r = (rng.standard_normal((6, count)) * 10.0 ** rng.integers(-6, 7, (6, count))).astype(dtype)
    want = rng.standard_normal(6).astype(dtype)
    c = tvm.nd.array(want.copy())
    lib["add"](tvm.nd.array(r), c)
    for k in range(count):
        want = want + r[:, k]
    assert (c.numpy() == want).all()


@T.prim_func
def running(A: T.Buffer((9,), "float32")):
    T.func_attr({"tir.noalias": True})
    for k in range(8):
        A[0] = A[0] + A[k]


@T.prim_func
def sliding(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tir.noalias": True})
    for k in range(8):
        C[k] = C[k] + A[k]


@T.prim_func
def backwards(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tir.noalias": True})
    for k in range(8):
        C[3] = C[3] + A[15 - k * 2]


@T.prim_func
def shifted(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in range(2):
        for k in range(2, 6):
            C[i * 3] = C[i * 3] + A[3 + k + i]


@T.prim_func
def whole(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    T.func_attr({"tir.noalias": True})
    for k in range(8):
        C[3] = C[3] + A[k + 1]


@T.prim_func
def squares(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tir.noalias": True})
    for k in range(8):
        C[3] = C[3] + A[k] * A[k]


@pytest.mark.parametrize("func", [running, sliding, backwards, shifted, whole, squares])
def test_loops_that_look_alike(func):
    buffers = [func.buffer_map[p] for p in func.params]
    rng = np.random.default_rng(1)
    arrays = [(rng.random(int(b.shape[0])) * 100).astype(b.dtype) for b in buffers]
    args = [tvm.nd.array(a.copy()) for a in arrays]
    tvm.build(func, target="llvm")[func.attrs["global_symbol"]](*args)
    interpret(func, *arrays)
    for got, want in zip(args, arrays):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def test_memory_that_two_arguments_share():
    """Without the promise of ``tir.noalias`` each addition sees what the last one wrote."""
    @T.prim_func
    def add(R: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for k in range(8):
            C[2] = C[2] + R[k]

    both = tvm.nd.array(np.arange(8, dtype="float32"))
    tvm.build(add, target="llvm")["add"](both, both)
    want = np.arange(8, dtype="float32")
    for k in range(8):
        want[2] += want[k]
    assert (both.numpy() == want).all()


def test_the_loop_is_one_store_of_a_sum():
    mod = IRModule({"main": lanes_added(8, "float32")})
    flat = lower(mod, until="LowerIntrin")
    out = SumLanes()(flat)
    text = out.script()
    assert ('C[i] = T.call_llvm_pure_intrin("float32", "llvm.vector.reduce.fadd.v8f32", C[i], '
            "R_2[i * 8:i * 8 + 8])") in text
    assert structural_equal(from_source(text), out, True) is True
    assert flops.count(out) == flops.count(flat) == 48
    args = arguments(mod["main"])
    for a, b, c in zip(run(mod, args), run(out, args), defined(out, args)):
        assert (a == b).all() and (a == c).all()
    assert SumLanes()(out) is out


def defined(mod, args):
    """The arrays after a run by the definition."""
    arrays = [a.copy() for a in args]
    evaluate(mod, *arrays)
    return arrays


def test_what_may_share_memory_stays_a_loop():
    @T.prim_func
    def add(R: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for k in range(8):
            C[2] = C[2] + R[k]

    mod = IRModule({"main": add})
    assert SumLanes()(mod) is mod

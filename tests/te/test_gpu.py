"""Schedules with thread axes lower to a module that prints, and mean the same."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.backend.interp import interpret
from mlc_lab.script import tir as T
from mlc_lab.target import Target

RNG = np.random.default_rng(3)


def bound_add():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    bx, tx = s[C].split(C.op.axis[0], factor=8)
    s[C].bind(bx, te.thread_axis("blockIdx.x"))
    s[C].bind(tx, te.thread_axis("threadIdx.x"))
    return s, [A, C]


@pytest.mark.parametrize("scope", [None, "cuda", "nvptx", "llvm"])
@pytest.mark.parametrize("simple_mode", [True, False])
def test_lower_needs_no_target(scope, simple_mode):
    s, args = bound_add()
    if scope is None:
        mod = tvm.lower(s, args, simple_mode=simple_mode)
    else:
        with Target(scope):
            mod = tvm.lower(s, args, simple_mode=simple_mode)
    assert 'T.launch_thread("blockIdx.x", ' in mod.script()
    for n in (1, 8, 13):
        a, c = RNG.standard_normal(n).astype("float32"), np.full(n, np.nan, "float32")
        interpret(mod, a, c)
        np.testing.assert_allclose(c, a + 1)


def test_a_function_with_thread_bindings():
    @T.prim_func
    def add_one(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
        for b in T.thread_binding(4, thread="blockIdx.x"):
            for t in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [b, t])
                    B[vi, vj] = A[vi, vj] + T.float32(1)

    for program in (add_one, tvm.IRModule({"main": add_one})):
        mod = tvm.lower(program)
        assert 'T.launch_thread("threadIdx.x", 8)' in mod.script()
        a, b = RNG.standard_normal((4, 8)).astype("float32"), np.zeros((4, 8), "float32")
        interpret(mod, a, b)
        np.testing.assert_allclose(b, a + 1)


@pytest.mark.parametrize("n", [8, 13])
def test_a_store_predicate_lets_some_threads_store(n):
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    bx, tx = s[C].split(C.op.axis[0], factor=4)
    thread = te.thread_axis("threadIdx.x")
    s[C].bind(bx, te.thread_axis("blockIdx.x"))
    s[C].bind(tx, thread)
    s[C].set_store_predicate(thread.var.equal(0))
    a = RNG.standard_normal(n).astype("float32")
    want = np.where(np.arange(n) % 4 == 0, a + 1, -1)
    for mod in (s.to_module([A, C]), tvm.lower(s, [A, C])):
        c = np.full(n, -1, "float32")
        interpret(mod, a, c)
        np.testing.assert_allclose(c, want)


@pytest.mark.parametrize("m", [64, 50])
def test_the_reduction_tutorial(m):
    """Its last schedule: slices, then a reduction across threads that one of them stores."""
    A = te.placeholder((40, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((40,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    xo, xi = s[B].split(s[B].op.axis[0], factor=32)
    s[B].bind(xo, te.thread_axis("blockIdx.x"))
    s[B].bind(xi, te.thread_axis("threadIdx.y"))
    tx = te.thread_axis("threadIdx.x")
    s[B].bind(s[B].op.reduce_axis[0], tx)
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(tx.var.equal(0))
    a, b = RNG.standard_normal((40, m)).astype("float32"), np.zeros(40, "float32")
    interpret(s.to_module([A, B]), a, b)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-4, atol=1e-4)
    on_device = tvm.nd.array(a, tvm.cuda()), tvm.nd.array(np.zeros(40, "float32"), tvm.cuda())
    tvm.build(s, [A, B], "cuda")(*on_device)
    np.testing.assert_allclose(on_device[1].numpy(), a.sum(1), rtol=1e-4, atol=1e-4)


def test_a_predicate_of_a_thread_that_is_not_there():
    s, args = bound_add()
    s[args[1]].set_store_predicate(te.thread_axis("threadIdx.z").var.equal(0))
    with pytest.raises(ValueError, match="threadIdx.z, and no loop around it is bound"):
        s.to_module(args)


def test_double_buffer_keeps_the_values():
    A = te.placeholder((16, 16), name="A")
    C = te.compute((16, 16), lambda i, j: A[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "shared", [C])
    s[AA].compute_at(s[C], C.op.axis[0])
    s[AA].double_buffer()
    mod = s.to_module([A, C])
    assert "double_buffer_scope" in mod.script()
    a, c = RNG.standard_normal((16, 16)).astype("float32"), np.zeros((16, 16), "float32")
    tvm.build(s, [A, C], "llvm")(a, c)
    np.testing.assert_allclose(c, a * 2)


def test_only_reduction_axes_are_reduced_over():
    A = te.placeholder((16, 8), name="A")
    C = te.compute((16, 8), lambda i, j: A[i, j] * 2.0, name="C")
    with pytest.raises(ValueError, match=r"sum over i: that is an axis of a result.*\(0, 16\)"):
        te.sum(C[C.op.axis[0], 0], axis=C.op.axis[0])
    with pytest.raises(ValueError, match="thread axis threadIdx.x"):
        te.max(A[0, 0], axis=te.thread_axis("threadIdx.x"))

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

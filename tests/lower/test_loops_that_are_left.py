"""Kernels whose loops are left, or go on, in the middle: where their barriers stand."""

import textwrap

import numpy as np
import pytest
from mlc_lab.backend.device.simulated import on_the_cpu
from mlc_lab.backend.interp import interpret
from mlc_lab.backend.meaning import evaluate
from mlc_lab.lower import LowerError, lower
from mlc_lab.script import from_source


def left(body):
    """Two blocks, whose threads exchange values in a loop and after it."""
    return from_source("""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            S = T.decl_buffer((32,), "float32", scope="shared")
            R = T.decl_buffer((32,), "float32", scope="shared")
            S[t] = A[b * 32 + t]
            for k in range(6):
""" + textwrap.indent(textwrap.dedent(body), " " * 16) + """
            B[b * 32 + t] = S[31 - t]
""")


EXCHANGE = """
R[t] = S[31 - t] + T.float32(1)
S[t] = R[t]
"""


@pytest.mark.parametrize("body, barriers", [
    ("if k > b + 2:\n    T.evaluate(T.break_loop())" + EXCHANGE, 3),
    ("if k % 2 == b:\n    T.evaluate(T.continue_loop())" + EXCHANGE, 3),
    # each thread has elements of its own, and nobody waits in the loop
    ("S[t] = S[t] + T.float32(1)\nif S[t] > T.float32(4):\n    T.evaluate(T.break_loop())", 2),
    ("if A[t] > T.Cast('float32', k):\n    T.evaluate(T.continue_loop())\n"
     "S[t] = S[t] + T.float32(1)", 2),
])
def test_loops_that_are_left_have_barriers_that_all_reach(body, barriers):
    mod = left(body)
    kernel = lower(mod, target="cuda")
    assert kernel["main_kernel"].script().count("tvm_storage_sync") == barriers
    arrays = [np.random.default_rng(0).uniform(0, 6, 64).astype("float32"),
              np.zeros(64, "float32")]
    results = []
    for run in (interpret, evaluate):
        own = [a.copy() for a in arrays]
        run(kernel, *own)
        results.append(own[1])
    own = [a.copy() for a in arrays]
    interpret(on_the_cpu(kernel), *own)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], own[1])


def test_a_loop_with_barriers_that_threads_leave_apart_is_refused():
    with pytest.raises(LowerError, match="the loop over k: threads exchange values inside of it"):
        lower(left(EXCHANGE + "if t > k:\n    T.evaluate(T.break_loop())"), target="cuda")

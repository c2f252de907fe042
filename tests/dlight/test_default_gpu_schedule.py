"""DefaultGPUSchedule: threads for every element, and the same numbers."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.dlight.gpu.default_gpu_schedule import DefaultGPUSchedule
from mlc_lab.lower import lower
from mlc_lab.script import from_source
from mlc_lab.target import Target

PROGRAMS = {
    "elements": ("(32, 40)", "(32, 40)", """
    for i, j in T.grid(32, 40):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)"""),
    "sums": ("(6, 40)", "(6,)", """
    for i, j in T.grid(6, 40):
        with T.block("B"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj]"""),
    "one sum": ("(4, 3)", "()", """
    for i, j in T.grid(4, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("RR", [i, j])
            with T.init():
                B[()] = T.float32(0)
            B[()] = B[()] + A[vi, vj]"""),
    "one element": ("(1,)", "()", """
    with T.block("root"):
        with T.block("B"):
            B[()] = A[0] + T.float32(1)"""),
    "two kernels": ("(8, 5)", "(8, 5)", """
    C = T.alloc_buffer((8, 5), "float32")
    for i, j in T.grid(8, 5):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * A[vi, vj]
    for i, j in T.grid(8, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = C[vi, 4 - vj]"""),
}


def func_of(a, b, body):
    return from_source('@T.prim_func\ndef main(A: T.Buffer({}, "float32"), '
                       'B: T.Buffer({}, "float32")):{}'.format(a, b, body))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_block_gets_threads_and_computes_the_same(name):
    func = func_of(*PROGRAMS[name])
    with Target("cuda"):
        mod = DefaultGPUSchedule()(tvm.IRModule({"main": func}))
    text = mod.script()
    assert text.count('thread="threadIdx.x"') == text.count('thread="blockIdx.x"') == (
        2 if name == "two kernels" else 1)
    a = np.random.default_rng(0).random([int(d) for d in func.buffers[0].shape], "float32")
    shape = [int(d) for d in func.buffers[1].shape]
    want, got, lowered = (np.zeros(shape, "float32") for _ in range(3))
    interpret(func, a, want)
    interpret(mod["main"], a, got)
    interpret(lower(mod, target="cuda"), a, lowered)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(lowered, want)
    with Target("cuda"):
        assert DefaultGPUSchedule()(mod)["main"] is mod["main"]  # is done already


def test_threads_of_many_elements_do_several():
    func = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 3), "float32")
    B = T.match_buffer(b, (n, 3), "float32")
    for i, j in T.grid(n, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
""")
    with Target({"kind": "cuda", "max_threads_per_block": 4}):
        after = DefaultGPUSchedule()(tvm.IRModule({"main": func}))["main"]
    assert "T.thread_binding(T.int64(256)" in after.script() and "range((n * " in after.script()
    a = np.arange(33, dtype="float32").reshape(11, 3)
    b = np.zeros_like(a)
    interpret(after, a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_functions_of_a_cpu_are_left_and_a_target_is_asked_for():
    func = func_of(*PROGRAMS["elements"])
    mod = tvm.IRModule({"main": func})
    with Target("llvm"):
        after = DefaultGPUSchedule()(mod)["main"]
    assert after.body is func.body and after.attrs["tir.is_scheduled"]
    with pytest.raises(ValueError, match="needs to know the GPU"):
        DefaultGPUSchedule()(mod)

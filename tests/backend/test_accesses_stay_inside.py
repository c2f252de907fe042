"""Kernels on the simulated device that access memory outside of their buffers: it is reported."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.runtime import driver
from mlc_lab.script import from_source
from mlc_lab.tir.functor import pre_order
from mlc_lab.tir.stmt import AssertStmt


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    monkeypatch.setenv("MLC_LAB_DEVICE", "simulated")
    driver.driver_of.cache_clear()
    yield
    driver.driver_of.cache_clear()


def kernel(statement, more=""):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int32"),
         B: T.Buffer((64,), "float32")):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.spatial(64, bx * 32 + tx)
                {more}
                {statement}
""")


def run(func, places):
    a = np.arange(64, dtype="float32")
    there = [tvm.nd.array(x, tvm.cuda(0)) for x in (a, np.asarray(places, "int32"), a * 0)]
    tvm.build(func, target="cuda")["main"](*there)
    return there[2].numpy()


BACKWARDS = np.arange(64)[::-1]
FAR = np.where(np.arange(64) == 40, 10**9, BACKWARDS)


@pytest.mark.parametrize("statement,name", [
    ("B[v] = A[I[v]]", "A"),
    ("B[I[v]] = A[v]", "B"),
    ("B[v] = T.if_then_else(I[v] >= 0, A[I[v]], T.float32(0))", "A"),
    ("B[v] = A[I[v] % 64] + A[I[v] * 2 % 128]", "A"),
])
def test_what_is_outside_is_reported_and_the_process_lives(statement, name):
    func = kernel(statement)
    with pytest.raises(RuntimeError, match=f"{name} is accessed outside of its elements, of which "
                                           r"there are \(64\)"):
        run(func, FAR)
    assert run(kernel("B[v] = A[I[v]]"), BACKWARDS).tolist() == list(range(63, -1, -1))


@pytest.mark.parametrize("statement", [
    "B[v] = T.if_then_else(I[v] < 64, A[I[v]], T.float32(0))",
    "B[v] = A[I[v] % 64]",
])
def test_an_access_that_is_not_made_is_no_fault(statement):
    got = run(kernel(statement), FAR)
    assert got[:40].tolist() == list(range(63, 23, -1))


def test_a_condition_on_memory_that_changes_proves_nothing():
    func = kernel("""if 0 <= I[v] and I[v] < 64:
                    I[v] = I[v] + 1000000000
                    B[v] = A[I[v]]""")
    with pytest.raises(RuntimeError, match="A is accessed outside"):
        run(func, BACKWARDS)


VECTORS = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int32"),
         B: T.Buffer((64,), "float32")):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for x in T.vectorized(4):
            with T.block("B"):
                v = T.axis.spatial(64, tx * 4 + x)
                B[v] = {value}
"""


@pytest.mark.parametrize("value", ["A[I[v]]", "T.if_then_else(v % 4 < 3, A[I[v]], A[v])",
                                   "A[v // 2 * 2 + I[v] % 2] + A[I[v] // 1]"])
def test_each_lane_of_a_vector_is_looked_at(value):
    func = from_source(VECTORS.format(value=value))
    far = np.where(np.arange(64) == 41, -5, BACKWARDS)
    with pytest.raises(RuntimeError, match="A is accessed outside"):
        run(func, far)
    v = np.arange(64)
    want = v // 2 * 2 + v % 2 + v if "+" in value else v
    assert run(func, v).tolist() == want.tolist()


def test_a_lane_that_is_not_accessed_is_no_fault():
    func = from_source(VECTORS.format(value="T.if_then_else(v % 4 < 3, A[I[v]], A[v])"))
    far = np.where(np.arange(64) == 43, -5, BACKWARDS)
    assert run(func, far)[43] == 43


def test_indices_that_follow_from_loops_and_threads_need_no_check():
    from mlc_lab.backend.device.simulated import on_the_cpu
    from mlc_lab.lower import lower

    mod = on_the_cpu(lower(kernel("B[v] = A[v] + A[63 - v]"), target="cuda"))
    assert not any(isinstance(n, AssertStmt) for f in mod.functions.values()
                   for n in pre_order(f.body))

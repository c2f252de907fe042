"""One walk over a kernel finds the accesses that may lie outside, for all devices."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import dlight
from mlc_lab.backend.outside import accesses_outside, may_be_outside, without_lets
from mlc_lab.backend.source import last_passes
from mlc_lab.lower import lower
from mlc_lab.lower.split_host_device import is_kernel
from mlc_lab.script import from_source
from mlc_lab.target import Target

from . import gpu_programs as programs

RULES = [dlight.gpu.Matmul(), dlight.gpu.GEMV(), dlight.gpu.Reduction(), dlight.gpu.Transpose(),
         dlight.gpu.Fallback()]


def kernels(program, kind="opencl"):
    """The kernels of a program, as their source is written from."""
    target = Target(kind)
    mod = lower(program, target=target)
    for step in last_passes(target):
        mod = step(mod)
    return [without_lets(f) for f in mod.functions.values() if is_kernel(f)]


def by_default(func):
    with Target("opencl"):
        return dlight.ApplyDefaultSchedule(*RULES)(tvm.IRModule({"main": func}))


SYMBOLIC = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    T.func_attr({{"tir.noalias": True}})
    m = T.{dtype}()
    n = T.{dtype}()
    l = T.{dtype}()
    A = T.match_buffer(a, (m, l), "float32")
    B = T.match_buffer(b, (l, n), "float32")
    C = T.match_buffer(c, (m, n), "float32")
    for i, j, k in T.grid(m, n, l):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
ROWS = """
@T.prim_func
def main(A: T.Buffer((37, 70), "float32"), C: T.Buffer((37,), "float32")):
    for i, k in T.grid(37, 70):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
"""
UNEVEN = {
    "products": lambda: by_default(programs.product(100, 100, 100)),
    "products, all sizes odd": lambda: by_default(programs.product(45, 51, 37)),
    "matrix and vector": lambda: by_default(programs.product(128, 1, 200)),
    "rows": lambda: by_default(from_source(ROWS)),
    "sums across threads": lambda: programs.rows_sum(5, 37, 6),
    "threads left over": programs.uneven,
    "two kernels": programs.two_kernels,
    "symbolic": programs.symbolic,
}


@pytest.mark.parametrize("name", UNEVEN)
def test_tiles_that_do_not_divide_are_not_looked_at(name):
    """The condition under which an access is made, or the length of the loop, says that it lies
    inside."""
    for kernel in kernels(UNEVEN[name]()):
        assert accesses_outside(kernel) == []


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_tiles_of_symbolic_sizes_are_not_looked_at(dtype):
    for kernel in kernels(by_default(from_source(SYMBOLIC.format(dtype=dtype)))):
        given = set(kernel.params)
        assert [a for a in accesses_outside(kernel) if a.node.buffer.data in given] == []


GATHERED = """
@T.prim_func
def main(A: T.Buffer((50,), "float32"), I: T.Buffer((64,), "int32"),
         J: T.Buffer((64,), "int32"), C: T.Buffer((64,), "float32")):
    {attribute}
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("C"):
            v = T.axis.spatial(64, t)
            if 0 <= I[v] and I[v] < 50:
                J[v] = I[v] + 100
                C[v] = A[I[v]]
"""


@pytest.mark.parametrize("attribute, found", [
    ("T.func_attr({'tir.noalias': True})", 0), ("T.evaluate(0)", 1)])
def test_what_a_condition_read_may_change_where_arrays_are_one(attribute, found):
    """I and J may be one array, unless the function says that they are not."""
    (kernel,) = kernels(from_source(GATHERED.format(attribute=attribute)))
    assert len(accesses_outside(kernel)) == len(may_be_outside(kernel)) == found


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_all_devices_look_at_the_same_accesses(name):
    for kernel in kernels(programs.PROGRAMS[name]()):
        of_arrays = {a.node for a in accesses_outside(kernel)
                     if a.node.buffer.data in set(kernel.params)}
        assert of_arrays == may_be_outside(kernel).keys()


NAMED = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int32"),
         C: T.Buffer((64,), "float32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("C"):
            v = T.axis.spatial(64, t)
            x = T.int32()
            C[v] = T.Let(A[x], where={x: I[v] * 2 - 60})
"""


def test_an_index_with_a_name_is_reported_by_the_simulated_device(monkeypatch):
    from mlc_lab.runtime import driver

    monkeypatch.setenv("MLC_LAB_DEVICE", "simulated")
    driver.driver_of.cache_clear()
    try:
        built = tvm.build(from_source(NAMED), target="cuda")
        a = np.arange(64, dtype="float32")
        for places, fault in ((a // 4 + 30, False), (a * 0 + 62, True)):
            there = [tvm.nd.array(x, tvm.cuda(0)) for x in (a, places.astype("int32"), a * 0)]
            if fault:
                with pytest.raises(RuntimeError, match="A is accessed outside of its elements"):
                    built["main"](*there)
            else:
                built["main"](*there)
                np.testing.assert_array_equal(there[2].numpy(), places * 2 - 60)
    finally:
        driver.driver_of.cache_clear()

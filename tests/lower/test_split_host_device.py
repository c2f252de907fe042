"""Kernels as functions of their own: what the host computes, what a kernel takes."""

import numpy as np
import pytest
from mlc_lab.backend.interp import interpret
from mlc_lab.ir.structural import structural_equal
from mlc_lab.lower import LowerError, lower
from mlc_lab.lower.split_host_device import is_kernel, launch_extents
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.tir.functor import pre_order
from mlc_lab.tir.stmt import AttrStmt
from .programs import chain, check_stages

SYMBOLIC = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * T.float32(2)
""")


def bound(program, name, threads):
    sch = Schedule(program)
    i0, i1 = sch.split(sch.get_loops(sch.get_block(name))[0], [None, threads])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    return sch


def kernels(mod):
    return {v.name_hint: f for v, f in mod.functions.items() if is_kernel(f)}


def test_launch_parameters_are_computed_on_the_host():
    mod = lower(bound(SYMBOLIC, "B", 16).mod, target="cuda")
    text = mod.script()
    assert "Module.main_kernel(A.data, B.data, n, (n + 15) // 16)" in text
    kernel = kernels(mod)["main_kernel"]
    extents = launch_extents(kernel)
    assert extents["blockIdx.x"] is kernel.params[-1] and int(extents["threadIdx.x"]) == 16
    assert structural_equal(from_source(text), mod)
    for n in (1, 16, 37):
        a, b = np.arange(n, dtype="float32"), np.zeros(n, "float32")
        interpret(mod, a, b)
        np.testing.assert_array_equal(b, 2 * a)


def test_each_kernel_is_a_function():
    sch = Schedule(chain)
    for name in "BCD":
        sch.bind(sch.get_loops(sch.get_block(name))[0], "threadIdx.x")
    mod = check_stages(sch.mod)["SplitHostDevice"]
    assert sorted(kernels(mod)) == ["main_kernel", "main_kernel_1", "main_kernel_2"]
    assert lower(sch.mod, until="LowerThreadAllreduce")["main"] is not mod["main"]


def test_an_axis_has_one_name():
    mod = lower(from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    row = T.alloc_buffer((4, 8), "float32", scope="shared")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("row"):
                vb, vt = T.axis.remap("SS", [b, t])
                row[vb, vt] = A[vb, vt]
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vb, vt = T.axis.remap("SS", [b, t])
                B[vb, vt] = row[vb, 7 - vt]
"""), target="cuda")
    (kernel,) = kernels(mod).values()
    axes = [s for s in pre_order(kernel.body) if type(s) is AttrStmt]
    assert [s.node.thread_tag for s in axes] == ["blockIdx.x", "threadIdx.x"]


def test_how_many_threads_run_is_known_before():
    with pytest.raises(LowerError, match="depends on k inside of the kernel"):
        lower(from_source("""
@T.prim_func
def main(B: T.Buffer((4, 8), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for k in range(8):
            for t in T.thread_binding(k + 1, thread="threadIdx.x"):
                with T.block("B"):
                    vb, vt = T.axis.remap("SS", [b, k])
                    B[vb, vt] = T.float32(1)
"""), target="cuda")


def test_virtual_threads_are_iterations_of_each_thread():
    sch = Schedule(chain)
    loop = sch.get_loops(sch.get_block("B"))[0]
    v, t = sch.split(loop, [2, None])
    sch.bind(v, "vthread.x")
    sch.bind(t, "threadIdx.x")
    for name in "CD":
        sch.bind(sch.get_loops(sch.get_block(name))[0], "threadIdx.x")
    mod = check_stages(sch.mod)["SplitHostDevice"]
    assert "virtual_thread" not in mod.script()

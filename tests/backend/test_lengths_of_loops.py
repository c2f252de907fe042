"""Kernels that PoCL 3 gets wrong, or ends the process for, with its optimizations on.

Both have a barrier, and loops that run differently often in threads or blocks.
"""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.runtime.driver import driver_of
from mlc_lab.script import from_source

from .gpu_programs import missing

BY_THREAD = """
@T.prim_func
def main(A: T.Buffer((3, 2), "int32"), B: T.Buffer((2, 7), "int32"),
         D: T.Buffer((3, 7), "int32")):
    # with T.block("root"):
    C_local = T.alloc_buffer((3, 7), "int32", scope="local")
    B_shared = T.alloc_buffer((2, 7), "int32", scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i_1, j_1 in T.grid(1, 1):
            for t in T.thread_binding(9, thread="threadIdx.x"):
                for ax1_0 in range(1):
                    for p in range(2):
                        for q in T.thread_binding(9, thread="threadIdx.x"):
                            for r in range(1):
                                with T.block("B_shared"):
                                    v0 = T.axis.spatial(2, (p * 9 + q + r) // 7)
                                    v1 = T.axis.spatial(7, (p * 9 + q + r) % 7)
                                    T.where(p * 9 + q + r < 14)
                                    T.reads(B[v0, v1])
                                    T.writes(B_shared[v0, v1])
                                    B_shared[v0, v1] = B[v0, v1]
                    for ax0, ax1_1 in T.grid(3, 4):
                        with T.block("C"):
                            vi = T.axis.spatial(3, t // 3)
                            vj = T.axis.spatial(7, t % 3 * 3 + ax0)
                            vk = T.axis.reduce(2, ax1_0 * 4 + ax1_1)
                            T.where(t % 3 * 3 + ax0 < 7 and ax1_0 * 4 + ax1_1 < 2)
                            T.reads(A[vi, vk], B_shared[vk, vj])
                            T.writes(C_local[vi, vj])
                            with T.init():
                                C_local[vi, vj] = 0
                            C_local[vi, vj] = C_local[vi, vj] + A[vi, vk] * B_shared[vk, vj]
                for i_3, j_3 in T.grid(1, 3):
                    with T.block("D"):
                        vi = T.axis.spatial(3, b * 3 + i_1 * 3 + t // 3 + i_3)
                        vj = T.axis.spatial(7, j_1 * 9 + t % 3 * 3 + j_3)
                        T.where((j_1 * 3 + t % 3) * 3 + j_3 < 7)
                        T.reads(C_local[vi, vj])
                        T.writes(D[vi, vj])
                        D[vi, vj] = T.max(C_local[vi, vj], 0) + 1
"""
BY_BLOCK = """
@T.prim_func
def main(A: T.Buffer((8, 6), "int32"), B: T.Buffer((6, 1), "int32"),
         D: T.Buffer((8, 1), "int32")):
    # with T.block("root"):
    C_local = T.alloc_buffer((8, 1), "int32", scope="local")
    A_shared = T.alloc_buffer((8, 6), "int32", scope="shared")
    for b in T.thread_binding(3, thread="blockIdx.x"):
        for i_1, j_1 in T.grid(1, 1):
            for t in T.thread_binding(3, thread="threadIdx.x"):
                for z in range(3):
                    with T.block("C_init"):
                        vi = T.axis.spatial(8, b * 3 + z)
                        vj = T.axis.spatial(1, t)
                        T.where(b * 3 + z < 8 and t < 1)
                        T.reads()
                        T.writes(C_local[vi, vj])
                        C_local[vi, vj] = 0
                for ax1_0 in range(2):
                    for p in range(3):
                        for q in T.thread_binding(3, thread="threadIdx.x"):
                            for r in range(1):
                                with T.block("A_shared"):
                                    v0 = T.axis.spatial(8, b * 3 + (p * 3 + q + r) // 3)
                                    v1 = T.axis.spatial(6, ax1_0 * 3 + (p * 3 + q + r) % 3)
                                    T.where(b * 3 + (p * 3 + q + r) // 3 < 8)
                                    T.reads(A[v0, v1])
                                    T.writes(A_shared[v0, v1])
                                    A_shared[v0, v1] = A[v0, v1]
                    for ax0, ax1_1 in T.grid(3, 3):
                        with T.block("C_update"):
                            vi = T.axis.spatial(8, b * 3 + ax0)
                            vj = T.axis.spatial(1, t)
                            vk = T.axis.reduce(6, ax1_0 * 3 + ax1_1)
                            T.where(b * 3 + ax0 < 8 and t < 1)
                            T.reads(C_local[vi, vj], A_shared[vi, vk], B[vk, vj])
                            T.writes(C_local[vi, vj])
                            C_local[vi, vj] = C_local[vi, vj] + A_shared[vi, vk] * B[vk, vj]
                for i_3, j_3 in T.grid(3, 1):
                    with T.block("D"):
                        vi = T.axis.spatial(8, b * 3 + i_1 * 3 + i_3)
                        vj = T.axis.spatial(1, j_1 * 3 + t + j_3)
                        T.where((b + i_1 + t // 3) * 3 + i_3 < 8 and j_1 * 3 + t % 3 + j_3 < 1)
                        T.reads(C_local[vi, vj])
                        T.writes(D[vi, vj])
                        D[vi, vj] = T.max(C_local[vi, vj], 0) + 1
"""


@pytest.mark.parametrize("kind", ["opencl", "webgpu", "cuda"])
@pytest.mark.parametrize("program", [BY_THREAD, BY_BLOCK], ids=["by thread", "by block"])
def test_loops_of_different_lengths(program, kind):
    if kind != "cuda" and driver_of(kind).simulated:
        missing(kind, "no device of this type")
    mod = from_source(program)
    shapes = [[int(n) for n in mod.buffer_map[p].shape] for p in mod.params]
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, shape).astype("int32") for shape in shapes]
    held = [tvm.nd.array(a, tvm.device(kind, 0)) for a in arrays]
    tvm.build(mod, target=kind)(*held)
    a, b, _ = arrays
    np.testing.assert_array_equal(held[2].numpy(), np.maximum(a @ b, 0) + 1)

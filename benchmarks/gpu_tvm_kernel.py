"""The CUDA source that apache-tvm makes of the tiled product of benchmarks/gpu.py.

    pip install apache-tvm==0.27.0.post1
    python benchmarks/gpu_tvm_kernel.py product.cu       # needs nvcc on the path, and no GPU
    python benchmarks/gpu.py --only cuda --tvm-kernel product.cu

The schedule is that of `square_tiles` in tests/observe/gpu/programs.py, step by step.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import tvm
from tvm import s_tir, te
from tvm.target import Target

TILE, EACH, DEPTH, VECTOR = 64, 4, 8, 2


def scheduled(n):
    """The product of n x n, in tiles of shared memory."""
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func([a, b, c])}))
    block = sch.get_sblock("C")
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    side = TILE // EACH
    i0, i1, i2 = sch.split(i, [None, side, EACH])
    j0, j1, j2 = sch.split(j, [None, side, EACH])
    k0, k1 = sch.split(k, [None, DEPTH])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    sch.reverse_compute_at(local, j1)
    for loop, axis in zip((i0, j0, i1, j1), ("blockIdx.y", "blockIdx.x", "threadIdx.y",
                                             "threadIdx.x")):
        sch.bind(loop, axis)
    for at in (0, 1):
        copy = sch.cache_read(block, at, "shared")
        sch.compute_at(copy, k0)
        _, ty, tx, vec = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, side, side, VECTOR])
        sch.vectorize(vec)
        sch.bind(ty, "threadIdx.y")
        sch.bind(tx, "threadIdx.x")
    sch.decompose_reduction(block, k0)
    return sch.mod


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--size", type=int, default=1024)
    options = parser.parse_args()
    target = Target({"kind": "cuda", "arch": "sm_90", "max_threads_per_block": 1024,
                     "max_num_threads": 1024, "max_shared_memory_per_block": 49152,
                     "thread_warp_size": 32}, host={"kind": "llvm"})
    built = tvm.compile(scheduled(options.size), target=target)
    options.file.write_text(built.mod.imports[0].inspect_source())


if __name__ == "__main__":
    main()

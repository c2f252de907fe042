"""The CUDA source that apache-tvm makes of the tiled product of benchmarks/gpu.py.

    pip install apache-tvm==0.27.0.post1
    python benchmarks/gpu_tvm_kernel.py product.cu       # needs nvcc on the path, and no GPU
    python benchmarks/gpu.py --only cuda --tvm-kernel product.cu

The schedule is that of the lab's kernel beside it, tests/observe/gpu/square_tiles.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tvm
from tvm import s_tir, te
from tvm.target import Target

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "observe" / "gpu"))

from square_tiles import tile_squares

TILE, EACH, DEPTH, VECTOR = 64, 4, 8, 2


def scheduled(n):
    """The product of n x n, in tiles of shared memory."""
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func([a, b, c])}))
    tile_squares(sch, sch.get_sblock("C"), TILE, EACH, DEPTH, VECTOR)
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

"""How quick the compiler itself is: primitives, replay, build, call, import.

    python benchmarks/compiler.py

Prints one row a figure: median, worst, and what was asked for. Times are medians over many runs
in one process; `import mlc_lab` is measured in fresh processes.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

import numpy as np

import mlc_lab as tvm
from mlc_lab.script import tir as T


@T.prim_func
def mm_relu(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"),
            C: T.Buffer((128, 128), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    Y = T.alloc_buffer((128, 128))
    for i, j, k in T.grid(128, 128, 128):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] += A[vi, vk] * B[vk, vj]
    for i, j in T.grid(128, 128):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


def setup():
    sch = tvm.tir.Schedule(mm_relu)
    y, c = sch.get_block("Y"), sch.get_block("C")
    return sch, y, c, sch.get_loops(y), sch.get_loops(c)


def tiled(sch, y, c, loops, consumer_loops):
    i, j, k = loops
    i_0, i_1 = sch.split(i, factors=[None, 8])
    j_0, j_1 = sch.split(j, factors=[None, 32])
    sch.reorder(i_0, j_0, k, i_1, j_1)
    return i_0, j_0, k, i_1, j_1


PRIMITIVES = {
    "get_block": lambda s, y, c, yl, cl: s.get_block("Y"),
    "get_loops": lambda s, y, c, yl, cl: s.get_loops(y),
    "split": lambda s, y, c, yl, cl: s.split(yl[1], factors=[None, 4]),
    "split, predicate": lambda s, y, c, yl, cl: s.split(yl[1], factors=[None, 5]),
    "fuse": lambda s, y, c, yl, cl: s.fuse(yl[0], yl[1]),
    "reorder": lambda s, y, c, yl, cl: s.reorder(yl[2], yl[0], yl[1]),
    "parallel": lambda s, y, c, yl, cl: s.parallel(yl[0]),
    "vectorize": lambda s, y, c, yl, cl: s.vectorize(yl[1]),
    "unroll": lambda s, y, c, yl, cl: s.unroll(yl[1]),
    "bind": lambda s, y, c, yl, cl: s.bind(yl[0], "blockIdx.x"),
    "add_unit_loop": lambda s, y, c, yl, cl: s.add_unit_loop(y),
    "reverse_compute_at": lambda s, y, c, yl, cl: s.reverse_compute_at(c, yl[0]),
    "compute_at": lambda s, y, c, yl, cl: s.compute_at(y, cl[0]),
    "decompose_reduction": lambda s, y, c, yl, cl: s.decompose_reduction(y, yl[2]),
    "rfactor": lambda s, y, c, yl, cl: s.rfactor(yl[2], factor_axis=0),
    "cache_read": lambda s, y, c, yl, cl: s.cache_read(y, 0, "global"),
    "cache_write": lambda s, y, c, yl, cl: s.cache_write(y, 0, "global"),
    "reindex": lambda s, y, c, yl, cl: s.reindex(y, ("read", 0)),
    "set_scope": lambda s, y, c, yl, cl: s.set_scope(y, 0, "shared"),
    "storage_align": lambda s, y, c, yl, cl: s.storage_align(y, 0, 0, 32, 8),
    "transform_layout": lambda s, y, c, yl, cl: s.transform_layout(
        y, ("write", 0), lambda i, j: (i // 16, j // 16, i % 16, j % 16)),
    "blockize": lambda s, y, c, yl, cl: s.blockize(yl[1]),
    "annotate": lambda s, y, c, yl, cl: s.annotate(y, "key", 1),
    "sample_perfect_tile": lambda s, y, c, yl, cl: s.sample_perfect_tile(yl[1], 2),
}


def median_ms(fn, runs=30):
    """Median and worst milliseconds of `fn(prepared)`; fn returns a (prepare, act) pair."""
    prepare, act = fn
    times = []
    for _ in range(runs):
        args = prepare()
        start = time.perf_counter()
        act(*args)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times), max(times)


def row(name, got, asked, note=""):
    print(f"{name:44} {got:>12} {asked:>14}  {note}")


def main():
    row("what", "here", "asked")
    medians = {}
    for name, act in PRIMITIVES.items():
        medians[name], _ = median_ms((setup, act))
    for name, value in medians.items():
        print(f"    {name:40} {value:9.3f} ms")
    row("one primitive on mm_relu 128, median of all", f"{statistics.median(medians.values()):.3f}"
        " ms", "1 ms")
    worst = max(medians, key=medians.get)
    row("  the slowest", f"{medians[worst]:.3f} ms", "4 ms", worst)

    sch, *rest = setup()
    i_0, j_0, k, i_1, j_1 = tiled(sch, *rest)
    sch.reverse_compute_at(rest[1], j_0)
    sch.vectorize(j_1)
    sch.unroll(i_1)
    sch.parallel(i_0)
    sch.decompose_reduction(rest[0], k)
    assert len(sch.trace.insts) >= 10
    replay, _ = median_ms((lambda: (tvm.tir.Schedule(mm_relu),),
                           lambda s: sch.trace.apply_to_schedule(s)))
    row(f"replay of a trace of {len(sch.trace.insts)} steps", f"{replay:.2f} ms", "8 ms")

    build, _ = median_ms((lambda: (), lambda: tvm.build(sch.mod, target="llvm")["main"]), 15)
    row("from module to callable code, mm_relu 128", f"{build:.1f} ms", "45 ms")
    naive, _ = median_ms((lambda: (), lambda: tvm.build(mm_relu, target="llvm")["main"]), 15)
    row("  the same, unscheduled", f"{naive:.1f} ms", "45 ms")

    @T.prim_func
    def tiny(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "float32"),
             C: T.Buffer((1,), "float32")):
        for i in range(1):
            with T.block("C"):
                vi = T.axis.spatial(1, i)
                C[vi] = A[vi] + B[vi]

    f = tvm.build(tiny, target="llvm")["tiny"]
    args = [tvm.nd.array(np.ones(1, "float32")) for _ in range(3)]
    times = []
    for _ in range(30):
        start = time.perf_counter()
        for _ in range(1000):
            f(*args)
        times.append((time.perf_counter() - start) / 1000)
    row("call of a kernel with three tensors", f"{1e6 * statistics.median(times):.3f} us",
        "0.15 us")

    # as for a user, whose Python keeps the bytecode of what it has compiled
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    used = "mlc_lab.tir.Schedule, mlc_lab.build, mlc_lab.nd.array, mlc_lab.script.tir.prim_func"
    for name, code in (("import mlc_lab", "import mlc_lab"),
                       ("  import, and load all that lesson 1 uses", f"import mlc_lab; {used}")):
        starts = []
        for _ in range(7):
            program = f"import time; t = time.perf_counter(); {code}; print(time.perf_counter()-t)"
            out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                                 env=environment)
            starts.append(float(out.stdout))
        row(name, f"{statistics.median(starts):.3f} s", "0.35 s")


if __name__ == "__main__":
    main()

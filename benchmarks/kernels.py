"""Speed of compiled kernels, side by side with apache-tvm 0.27 on the same programs and schedules.

    python benchmarks/kernels.py --oracle /path/to/python-with-apache-tvm

Without --oracle (or the variable MLC_LAB_ORACLE) only this compiler is measured. Each compiler runs
in a process of its own, on one thread; the two take turns kernel by kernel, so that what else the
machine does meets both. Printed are medians and their ratio, the ratio of the best times (which a
busy machine disturbs least), and for the products the best times' fraction of the measured peak of
fused multiply-adds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import programs
import turns


def tile_matmul(rows, columns, block_rows=128):
    """Register tile: rows unrolled, columns a vector, initialisation taken out of the loop.

    Tiles go down a block of rows, so that the columns of B that they read are still in the cache.
    """

    def schedule(sch):
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        i0, i1, i2 = sch.split(i, [None, block_rows // rows, rows])
        j0, j1 = sch.split(j, [None, columns])
        sch.reorder(i0, j0, i1, k, i2, j1)
        sch.unroll(i2)
        sch.vectorize(j1)
        init = sch.decompose_reduction(block, k)
        ii, ij = sch.get_loops(init)[-2:]
        sch.unroll(ii)
        sch.vectorize(ij)

    return schedule


def tile_packed(rows, columns, block_rows):
    """As tile_matmul, over a packed right operand, a block of rows at a time."""

    def schedule(sch):
        pack = sch.get_block("P")
        p, k, j = sch.get_loops(pack)
        sch.reorder(k, p, j)
        sch.vectorize(j)
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        i0, i1, i2 = sch.split(i, [None, block_rows // rows, rows])
        j0, j1 = sch.split(j, [None, columns])
        sch.reorder(i0, j0, i1, k, i2, j1)
        sch.unroll(i2)
        sch.vectorize(j1)
        init = sch.decompose_reduction(block, k)
        loops = sch.get_loops(init)
        sch.unroll(loops[-2])
        sch.vectorize(loops[-1])

    return schedule


def schedule_conv(sch):
    """A vector of outputs along x, a few filters at once, reduction outside of both."""
    block = sch.get_block("Y")
    n, f, y, x, c, r, s = sch.get_loops(block)
    f0, f1 = sch.split(f, [None, 4])
    x0, x1 = sch.split(x, [None, 8])
    sch.reorder(n, f0, y, x0, c, r, s, f1, x1)
    sch.unroll(f1)
    sch.vectorize(x1)
    init = sch.decompose_reduction(block, c)
    loops = sch.get_loops(init)
    sch.unroll(loops[-2])
    sch.vectorize(loops[-1])


def schedule_softmax(sch):
    """Elementwise stages as vectors; the exponentials are where the time goes."""
    for name in ("E", "Y"):
        k = sch.get_loops(sch.get_block(name))[-1]
        sch.vectorize(sch.split(k, [None, 16])[1])


def schedule_layernorm(sch):
    """The elementwise stage as vectors."""
    k = sch.get_loops(sch.get_block("Y"))[-1]
    sch.vectorize(sch.split(k, [None, 16])[1])


def schedule_add(sch):
    """Vectors of sixteen."""
    (i,) = sch.get_loops(sch.get_block("C"))
    sch.vectorize(sch.split(i, [None, 16])[1])


def schedule_transpose(sch):
    """Square tiles that fit the cache."""
    i, j = sch.get_loops(sch.get_block("B"))
    i0, i1 = sch.split(i, [None, 16])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, i1, j1)


def none(sch):
    """As written."""


def kernels(rows, columns):
    """name -> (program, schedule, shapes, operations or None)."""

    def mm(n):
        return [(n, n)] * 3, 2 * n**3

    return {
        "matmul 128 naive": (programs.matmul(128), none, *mm(128)),
        "matmul 512 naive": (programs.matmul(512), none, *mm(512)),
        "matmul 1024 naive": (programs.matmul(1024), none, *mm(1024)),
        "matmul 128 tiled": (programs.matmul(128), tile_matmul(rows, columns), *mm(128)),
        "matmul 512 tiled": (programs.matmul(512), tile_matmul(rows, columns), *mm(512)),
        "matmul 1024 tiled": (programs.matmul(1024), tile_matmul(rows, columns), *mm(1024)),
        "matmul 512 packed": (
            programs.matmul_packed(512, columns), tile_packed(rows, columns, 64), *mm(512)
        ),
        "matmul 1024 packed": (
            programs.matmul_packed(1024, columns), tile_packed(rows, columns, 32), *mm(1024)
        ),
        "conv2d 64x56x56": (
            programs.conv2d(64, 56), schedule_conv,
            [(1, 64, 58, 58), (64, 64, 3, 3), (1, 64, 56, 56)],
            2 * 64 * 56 * 56 * 64 * 9,
        ),
        "softmax 512x1024": (
            programs.softmax(512, 1024), schedule_softmax, [(512, 1024)] * 2, None
        ),
        "layernorm 512x1024": (
            programs.layernorm(512, 1024), schedule_layernorm,
            [(512, 1024), (1024,), (1024,), (512, 1024)], None
        ),
        "add 2^24": (programs.add(1 << 24), schedule_add, [(1 << 24,)] * 3, None),
        "transpose 4096": (programs.transpose(4096), schedule_transpose, [(4096, 4096)] * 2, None),
    }


class Ours:
    """This compiler."""

    def __init__(self):
        from mlc_lab.build import build
        from mlc_lab.runtime.ndarray import cpu, from_dlpack
        from mlc_lab.schedule import Schedule
        from mlc_lab.script import from_source

        self.tensor, self.cpu = from_dlpack, cpu
        self.compile, self.schedule, self.parse = build, Schedule, from_source

    def build(self, text, schedule):
        sch = self.schedule(self.parse(text))
        schedule(sch)
        start = time.perf_counter()
        module = self.compile(sch.mod, target="llvm")
        return module, time.perf_counter() - start

    def time(self, module, arrays, number, repeat):
        timer = module.time_evaluator("main", self.cpu(), number=number, repeat=repeat)
        return list(timer(*map(self.tensor, arrays)).results)


class Theirs:
    """apache-tvm 0.27, whose names differ."""

    def __init__(self):
        import tvm
        from tvm import s_tir

        s_tir.Schedule.get_block = s_tir.Schedule.get_sblock
        self.tvm, self.s_tir = tvm, s_tir

    def build(self, text, schedule):
        text = text.replace("T.block(", "T.sblock(").replace('"tir.noalias"', '"tirx.noalias"')
        text = text.replace("@T.prim_func", "@T.prim_func(s_tir=True)")
        text = text.replace("T.alloc_buffer", "T.sblock_alloc_buffer")
        func = self.tvm.script.from_source("# from tvm.script import tirx as T\n" + text)
        sch = self.s_tir.Schedule(func)
        schedule(sch)
        target = json.loads(os.environ["MLC_LAB_BENCH_TARGET"])
        start = time.perf_counter()
        module = self.tvm.compile(sch.mod, target=target)
        module["main"]
        return module, time.perf_counter() - start

    def time(self, module, arrays, number, repeat):
        inner = getattr(module, "mod", module)
        timer = inner.time_evaluator("main", self.tvm.cpu(), number=number, repeat=repeat)
        return list(timer(*map(self.tvm.runtime.from_dlpack, arrays)).results)


def placed(rng, shape):
    """An array of float32 that begins anywhere in a page, at a multiple of 128 bytes."""
    import numpy as np

    count = int(np.prod(shape))
    memory = np.empty(4 * count + 2 * 4096, np.uint8)
    start = -memory.ctypes.data % 4096 + 128 * int(rng.integers(32))
    array = memory[start:start + 4 * count].view("float32").reshape(shape)
    array[...] = rng.standard_normal(shape, dtype="float32")
    return array


def serve(which):
    """Answer requests for a kernel's times."""
    import numpy as np

    side = Ours() if which == "ours" else Theirs()
    kept = []

    def answer(kernel, tile, number, repeat, turn):
        program, schedule, shapes, _ = kernels(*tile)[kernel]
        # In the same places for both: where tensors lie in their pages changes a time by a tenth.
        rng = np.random.default_rng(turn)
        arrays = [placed(rng, shape) for shape in shapes]
        # Built anew for each turn and kept, so that its code lies elsewhere each time: the page in
        # which it lies makes a loop up to 8 % faster or slower, with the same instructions.
        module, build = side.build(program, schedule)
        kept.append(module)
        times = side.time(module, arrays, number, repeat)
        return {"times": times, "build": build, "sum": float(np.abs(arrays[-1]).sum())}

    turns.serve(answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--oracle", default=os.environ.get("MLC_LAB_ORACLE"))
    parser.add_argument("--serve", choices=("ours", "theirs"))
    parser.add_argument("--rounds", type=int, default=5, help="turns; quick kernels get six times")
    parser.add_argument("--only", default="", help="part of a kernel's name")
    parser.add_argument("--json", help="write the numbers to this file")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    from mlc_lab.machine import peak, vector_bits
    from mlc_lab.runtime import jit

    triple, cpu, _ = jit.host_cpu()
    os.environ["MLC_LAB_BENCH_TARGET"] = json.dumps({"kind": "llvm", "mcpu": cpu})
    # The register tile that the vector registers hold.
    tile = (8, 32) if vector_bits() == 512 else (4, 16)
    top = peak.measure_peak()
    print(f"{cpu}, {top / 1e9:.1f} GFLOP/s a core, register tile {tile[0]}x{tile[1]}")
    print(f"{'kernel':<20} {'ours ms':>9} {'tvm ms':>9} {'ratio':>6} {'best':>6}"
          f" {'of peak':>8} {'tvm':>6}"
          f" {'build ms':>9} {'tvm':>6}")
    ours = turns.start(__file__, "ours")
    theirs = turns.start(__file__, "theirs", options.oracle) if options.oracle else None
    table, numbers = kernels(*tile), {}
    for name, (_, _, _, operations) in table.items():
        if options.only not in name:
            continue
        times = {"ours": [], "theirs": []}
        answers = {}
        turn, rounds = 0, options.rounds
        while turn < rounds:
            for which, process in (("ours", ours), ("theirs", theirs)):
                if process is None:
                    continue
                # Some milliseconds a repeat, or the clock is still rising from the turn's wait.
                number = 1 if operations is None or operations > 1e8 else 100
                answer = answers[which] = turns.ask(
                    process, kernel=name, tile=tile, number=number, repeat=7, turn=turn
                )
                times[which] += answer.get("times", [])
            if turn == 0 and sum(times["ours"]) * number < 0.1:
                # Other work on the machine comes and goes: many short turns meet it alike.
                rounds *= 6
            turn += 1
        row = {w: statistics.median(t) for w, t in times.items() if t}
        problems = [f"{w}: {a['error']}" for w, a in answers.items() if "error" in a]
        sums = [a["sum"] for a in answers.values() if "sum" in a]
        if len(sums) == 2 and abs(sums[0] - sums[1]) > 1e-3 * abs(sums[0]):
            problems.append(f"the results differ: {sums}")
        a, b = row.get("ours"), row.get("theirs")
        top = max(top, peak.measure_peak())  # other work may have slowed the first measurement
        best = [min(times[w], default=None) for w in ("ours", "theirs")]
        of_peak = [f"{operations / t / top:.2f}" if t and operations else "" for t in best]
        builds = [f"{answers[w]['build'] * 1e3:.0f}" if "build" in answers.get(w, {}) else ""
                  for w in ("ours", "theirs")]
        print(
            f"{name:<20} {a * 1e3 if a else 0:>9.3f} {b * 1e3 if b else 0:>9.3f} "
            f"{a / b if a and b else 0:>6.2f} {best[0] / best[1] if all(best) else 0:>6.2f} "
            f"{of_peak[0]:>8} {of_peak[1]:>6} "
            f"{builds[0]:>9} {builds[1]:>6}",
            flush=True,
        )
        for problem in problems:
            print(f"    {problem}")
        numbers[name] = {**row, "best": best, "operations": operations}
    if options.json:
        Path(options.json).write_text(json.dumps({"peak": top, "kernels": numbers}, indent=1))
    for process in (ours, theirs):
        turns.stop(process)


if __name__ == "__main__":
    main()

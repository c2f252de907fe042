"""How well the model of a GPU ranks schedules: Spearman's correlation with times on a device.

    python benchmarks/gpu_model.py                       # 100 schedules of a product of 1024
    python benchmarks/gpu_model.py --seed 7 --size 2048 --save pairs.json
    python benchmarks/gpu_model.py --program rows        # sums of rows; also "columns"
    python benchmarks/gpu_model.py --recorded pairs.json # the model again, with recorded times

Schedules are drawn at random from the space of the search (docs/gpu.md). Each is timed on the
CUDA device, by its events, and modelled from its quick counts for the GPU that
the tag names. A recorded file has the programs too, so no device is needed to model them again;
programs in it that were not timed are timed where a device is.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from backend import gpu_programs  # noqa: E402

import mlc_lab as tvm  # noqa: E402
from mlc_lab import meta_schedule as ms  # noqa: E402
from mlc_lab.runtime import driver  # noqa: E402
from mlc_lab.script import from_source  # noqa: E402
from mlc_lab.target import Target  # noqa: E402

SUM = '''
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), B: T.Buffer(({n},), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i, k in T.grid({n}, {n}):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[{index}]
'''
PROGRAMS = {
    "product": lambda n: gpu_programs.product(n, n, n),
    "rows": lambda n: from_source(SUM.format(n=n, index="vi, vk")),
    "columns": lambda n: from_source(SUM.format(n=n, index="vk, vi")),
}


#: schedules that are drawn with one seed, so that what is drawn does not depend on --jobs
CHUNK = 10


def all_drawn(name, size, tag, count, seed, jobs):
    """The texts of so many different schedules, drawn in processes of their own."""
    seeds = [seed * 1000 + at for at in range(-(-count // CHUNK) + 1)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(drawn, *zip(*((name, size, tag, CHUNK, s) for s in seeds))))
    return list(dict.fromkeys(text for part in parts for text in part))[:count]


def drawn(name, size, tag, count, seed):
    """Texts of different random schedules of a program, as the search would measure them."""
    random.seed(seed)
    context = ms.TuneContext(PROGRAMS[name](size), target=Target(tag),
                             space_generator="post-order-apply",
                             search_strategy=ms.search_strategy.ReplayTrace(), rand_state=seed)
    context.initialize()
    spaces = context.generate_design_space()
    context.pre_tuning(4 * count, 4 * count, spaces)
    found = {}
    while len(found) < count:
        candidates = context.generate_measure_candidates()
        if not candidates:
            break
        for candidate in candidates:
            found[candidate.sch.mod.script()] = None
            context.notify_runner_results([candidate], [])
    return list(found)[:count]


def modelled(text, tag):
    """(seconds by the model, its parts) of a program."""
    counts = tvm.count_gpu(from_source(text), tag, quick=True)
    return counts.seconds, [k.modelled.parts for k in counts]


def all_modelled(texts, tag, jobs):
    """`modelled` of each, in processes of their own."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(modelled, texts, [tag] * len(texts)))


def measured(text, tag):
    """Seconds on the device, on random arrays, with warm caches."""
    mod, dev = from_source(text), tvm.cuda(0)
    buffers = [mod["main"].buffer_map[p] for p in mod["main"].params]
    rng = np.random.default_rng(0)
    arrays = [tvm.nd.array(rng.uniform(-1, 1, [int(d) for d in b.shape]).astype(b.dtype), dev)
              for b in buffers]
    rt = tvm.build(mod, target=Target(tag))
    return rt.time_evaluator("main", dev, number=5, repeat=5)(*arrays).median


def rank_correlation(x, y):
    """Spearman's: Pearson's correlation of ranks, equal values with the mean of theirs."""
    ranks = []
    for values in (x, y):
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        ranks.append((ends - (counts - 1) / 2)[inverse])
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--program", choices=PROGRAMS, default="product")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tag", default="nvidia/nvidia-h100")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--save", type=Path, help="a file for programs and times (JSON)")
    parser.add_argument("--recorded", type=Path, help="a file that --save wrote: no device then")
    options = parser.parse_args()
    if options.recorded:
        kept = json.loads(options.recorded.read_text())
    else:
        texts = all_drawn(options.program, options.size, options.tag, options.count, options.seed,
                          options.jobs)
        kept = {"tag": options.tag, "programs": [{"text": text} for text in texts]}
    new = [p for p in kept["programs"] if "measured" not in p]
    if new and not driver.driver_of("cuda").simulated:
        kept["device"] = tvm.cuda(0).device_name
        for program in new:
            program["measured"] = measured(program["text"], kept["tag"])
    if options.save:
        options.save.write_text(json.dumps(kept))
    if "device" not in kept:
        raise SystemExit("no CUDA device here (docs/gpu.md): programs are drawn and not timed")
    rows = all_modelled([p["text"] for p in kept["programs"]], kept["tag"], options.jobs)
    times = [p["measured"] for p in kept["programs"]]
    seconds = [s for s, _ in rows]
    best = times[int(np.argmin(seconds))]
    print(f"{len(times)} schedules on {kept['device']}: rank correlation of modelled and measured "
          f"time {rank_correlation(seconds, times):.3f}; measured {min(times) * 1e6:.1f} to "
          f"{max(times) * 1e6:.1f} us; the best by the model takes {best / min(times):.2f} times "
          "the best of all")
    if options.save:
        for program, (s, parts) in zip(kept["programs"], rows):
            program.update(modelled=s, parts=parts)
        options.save.write_text(json.dumps(kept))


if __name__ == "__main__":
    main()

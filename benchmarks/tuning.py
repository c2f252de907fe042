"""How good and how quick the search is, in one run, against the FMA peak measured in that run.

    python benchmarks/tuning.py                      one seed
    python benchmarks/tuning.py --seeds 3            medians of three
    python benchmarks/tuning.py --only matmul

One core, 64 trials; checks of results and everything else that makes measuring trustworthy are on.
`of peak` is the best kernel's share of the FMA peak, measured again at the end beside the peak;
`seconds` the whole search. For the ranking, the cost model that a search left behind predicts
programs it has not seen, which are then measured.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

os.environ["MLC_LAB_NUM_THREADS"] = "1"
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
import programs  # noqa: E402

TARGET = "llvm --num-cores=1"


def parse(text):
    from mlc_lab.script import from_source

    return from_source(text)


def own_time(function, repeat=9):
    """The smallest processor time of several calls, which other processes do not add to."""
    best = float("inf")
    for _ in range(repeat):
        start = time.thread_time()
        function()
        best = min(best, time.thread_time() - start)
    return best


def tune(mod, seed, trials, **options):
    """(database, seconds)."""
    from mlc_lab import meta_schedule as ms

    start = time.perf_counter()
    database = ms.tune_tir(mod, TARGET, None, trials, seed=seed, verbose=False, **options)
    return database, time.perf_counter() - start


def best_seconds(database, mod):
    """The best schedule, built and timed in this process."""
    from mlc_lab import meta_schedule as ms
    from mlc_lab.build import build
    from mlc_lab.observe.measure import random_arrays
    from mlc_lab.runtime import array
    from mlc_lab.runtime.timing import time_calls

    sch = ms.tir_integration.compile_tir(database, mod, TARGET)
    function = build(sch.mod, target=TARGET)["main"]
    tensors = [array(a) for a in random_arrays(sch.mod["main"])]
    function(*tensors)
    number = max(1, int(3e-3 / database.records()[-1]["times"][0])) if database.records()[-1][
        "times"] else 1
    return own_time(lambda: time_calls(function, number, *tensors), 15) / number


def contraction(name, text, flop, asked, seeds, trials):
    """A row: share of the peak, seconds."""
    from mlc_lab.backend.peak import measure_peak

    shares, times = [], []
    for seed in seeds:
        mod = parse(text)
        database, seconds = tune(mod, seed, trials)
        peak = max(measure_peak() for _ in range(3))
        shares.append(flop / best_seconds(database, mod) / peak)
        times.append(seconds)
    print(f"{name:<28} {statistics.median(shares):>6.2f} of peak {statistics.median(times):>7.1f} s"
          f"   asked {asked}   (seeds: {', '.join(f'{s:.2f}' for s in shares)})", flush=True)


def softmax(seeds, trials):
    """A row: how many times faster than numpy, seconds."""
    x = np.random.default_rng(0).uniform(-1, 1, (1024, 1024)).astype("float32")

    def by_numpy():
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    ratios, times = [], []
    for seed in seeds:
        mod = parse(programs.softmax(1024, 1024))
        database, seconds = tune(mod, seed, trials)
        ratios.append(own_time(by_numpy, 15) / best_seconds(database, mod))
        times.append(seconds)
    print(f"{'softmax 1024x1024':<28} {statistics.median(ratios):>6.2f} x numpy  "
          f"{statistics.median(times):>7.1f} s   asked 4 in 60 s", flush=True)


def course(seeds, trials):
    """A row: seconds for the course's own space by trace replay."""
    times = []
    for seed in seeds:
        _, seconds = tune(parse(programs.matmul(128)), seed, trials, strategy="replay-trace",
                          num_trials_per_iter=64, space=programs.stochastic_schedule_mm)
        times.append(seconds)
    print(f"{'stochastic_schedule_mm':<28} {'':>6}          {statistics.median(times):>7.1f} s   "
          "asked 15 s", flush=True)


def ranking(seeds, trials, unseen=48):
    """A row: rank correlation of predicted and measured on programs the search did not see."""
    from mlc_lab import meta_schedule as ms
    from mlc_lab.meta_schedule.context import TuneContext
    from mlc_lab.meta_schedule.cost_model import TreeModel
    from mlc_lab.meta_schedule.search_strategy import MeasureCandidate

    found = []
    for seed in seeds:
        mod, model = parse(programs.matmul(512)), TreeModel()
        database, _ = tune(mod, seed, trials, cost_model=model)
        context = TuneContext(mod, target=TARGET, search_strategy="replay-trace")
        fresh = ms.tune_tir(mod, TARGET, None, unseen, seed=1000 + seed, cost_model="none",
                            space=ms.space_generator.PostOrderApply(with_default=False),
                            strategy="replay-trace", verbose=False)
        seen, pairs = {str(r["decisions"]) for r in database.records()}, []
        for record, row in zip(fresh.get_all_tuning_records(), fresh.records()):
            if record.time is not None and str(row["decisions"]) not in seen:
                seen.add(str(row["decisions"]))
                candidate = MeasureCandidate(record.as_schedule())
                pairs.append((model.log_time(context, [candidate])[0], np.log(record.time)))
        ranks = [np.argsort(np.argsort([p[i] for p in pairs])) for i in (0, 1)]
        found.append(float(np.corrcoef(*ranks)[0, 1]))
    print(f"{'rank correlation, unseen':<28} {statistics.median(found):>6.2f}"
          f"{'':>27}asked 0.8   (seeds: {', '.join(f'{f:.2f}' for f in found)})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--only", default="", help="part of a row's name")
    options = parser.parse_args()
    seeds, trials = range(1, options.seeds + 1), options.trials
    from mlc_lab.backend.peak import measure_peak
    from mlc_lab.meta_schedule.measure.builder import LocalBuilder
    from mlc_lab.meta_schedule.measure.runner import LocalRunner
    from mlc_lab.runtime import jit

    LocalBuilder(), LocalRunner()  # start the worker processes, as a second search finds them
    print(f"{jit.host_cpu()[1]}, FMA peak of one core {measure_peak() / 1e9:.0f} GFLOP/s, "
          f"{trials} trials, load {os.getloadavg()[0]:.1f}")
    rows = {
        "stochastic_schedule_mm": lambda: course(seeds, trials),
        "matmul 128": lambda: contraction(
            "matmul 128", programs.matmul(128), 2 * 128**3, "0.90 in 15 s", seeds, trials),
        "matmul 512": lambda: contraction(
            "matmul 512", programs.matmul(512), 2 * 512**3, "0.95 in 20 s", seeds, trials),
        "matmul 1024": lambda: contraction(
            "matmul 1024", programs.matmul(1024), 2 * 1024**3, "0.88 in 40 s", seeds, trials),
        "conv2d 3x3 NCHW": lambda: contraction(
            "conv2d 3x3 NCHW", programs.conv2d(16, 32), 2 * 16 * 32 * 32 * 16 * 9, "0.90 in 25 s",
            seeds, trials),
        "softmax": lambda: softmax(seeds, trials),
        "rank correlation": lambda: ranking(seeds, trials),
    }
    for name, row in rows.items():
        if options.only in name:
            row()


if __name__ == "__main__":
    main()

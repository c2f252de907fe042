"""How good and how quick the search is, in one run, against the FMA peak measured in that run.

    python benchmarks/tuning.py                          one seed
    python benchmarks/tuning.py --seeds 3                medians of three, and [least..most]
    python benchmarks/tuning.py --only "matmul 512,conv"
    python benchmarks/tuning.py --peer /path/to/python-with-apache-tvm --peer-limit 300

One core, 64 trials; checks of results and everything else that makes measuring trustworthy are on.
`of peak` is the best kernel's share of the FMA peak, measured again at the end beside the peak;
`seconds` the whole search. For the ranking, the cost model that a search left behind predicts
programs it has not seen, which are then measured. Models are tuned as a whole, and compared with
numpy or torch in turns. A row is printed as soon as it is known.

With --peer, TVM (0.25 or later, with xgboost, psutil and cloudpickle) searches for the same program
with as many trials, in a process of its own, which is ended after --peer-limit seconds; then the
best kernel it had measured until then counts, and its time is marked with `>`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["MLC_LAB_NUM_THREADS"] = "1"
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

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


def peak():
    """Operations a second of one core."""
    from mlc_lab.machine.peak import measure_peak

    return max(measure_peak() for _ in range(3))


def tune(mod, seed, trials, **options):
    """(database, seconds)."""
    from mlc_lab import meta_schedule as ms

    start = time.perf_counter()
    database = ms.tune_tir(mod, TARGET, None, trials, seed=seed, verbose=False, **options)
    return database, time.perf_counter() - start


def best_seconds(database, mod, seconds=3.0):
    """The best schedule, built and timed in this process: the median of five sets of tensors.

    Where tensors lie changes the time of a kernel. Of each set the shortest time counts, taken in
    turns for some seconds, since other work on the machine slows whole tenths of a second.
    """
    from mlc_lab import meta_schedule as ms
    from mlc_lab.build import build
    from mlc_lab.observe.measure import random_arrays
    from mlc_lab.runtime import array
    from mlc_lab.runtime.timing import time_calls

    sch = ms.tir_integration.compile_tir(database, mod, TARGET)
    function = build(sch.mod, target=TARGET)["main"]
    sets = [[array(a) for a in random_arrays(sch.mod["main"])] for _ in range(5)]
    function(*sets[0])
    number = max(1, int(2e-3 / own_time(lambda: function(*sets[0]), 3)))
    times, end = [float("inf")] * len(sets), time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, tensors in enumerate(sets):
            took = own_time(lambda t=tensors: time_calls(function, number, *t), 2) / number
            times[i] = min(times[i], took)
    return statistics.median(times)


# ------------------------------------------------------------------------------ the peer


class Peer:
    """TVM's search, in another Python."""

    def __init__(self, python, limit, cpu):
        self.python, self.limit = python, limit
        self.target = {"kind": "llvm", "mcpu": cpu, "num-cores": 1}

    def search(self, text, seed, trials, course=False):
        """(seconds of the best kernel, seconds of the search, "" or ">" or what went wrong)."""
        with tempfile.TemporaryDirectory() as work_dir:
            request = {"text": text, "trials": trials, "seed": seed, "course": course,
                       "work_dir": work_dir, "target": self.target}
            process = subprocess.Popen(
                [self.python, str(Path(__file__).with_name("tuning_peer.py")),
                 json.dumps(request)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=dict(os.environ, TVM_NUM_THREADS="1"), start_new_session=True)
            try:
                out, err = process.communicate(timeout=self.limit)
            except subprocess.TimeoutExpired:
                best = self._best_record(work_dir)
                return best, self.limit, ">" if best else "nothing measured in time"
            finally:
                if process.poll() is None:  # its workers are in its session
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
            if process.returncode:
                return None, None, (err.strip().splitlines() or ["it ended"])[-1][:60]
            found = json.loads(out.strip().splitlines()[-1])
            return found["time"], found["seconds"], ""

    @staticmethod
    def _best_record(work_dir):
        """The best time that its database has; None if there is none."""
        path = Path(work_dir, "database_tuning_record.json")
        times = []
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                times.append(statistics.mean(json.loads(line)[1][1]))
            except ValueError:
                pass  # the line it was writing
        return min((t for t in times if t < 1e9), default=None)


# ------------------------------------------------------------------------------ cases


class Program:
    """A tensor program; what counts is `value(seconds of the best kernel)`."""

    def __init__(self, text, unit, asked, value, **options):
        self.text, self.unit, self.asked, self.value = text, unit, asked, value
        self.options, self.course = options, "space" in options

    def ours(self, seed, trials):
        """(value, seconds of the search)."""
        mod = parse(self.text)
        database, seconds = tune(mod, seed, trials, **self.options)
        return self.value(best_seconds(database, mod)), seconds

    def theirs(self, peer, seed, trials):
        """(value, seconds, remark) of TVM."""
        best, seconds, remark = peer.search(self.text, seed, trials, self.course)
        return None if best is None else self.value(best), seconds, remark


def of_peak(flop):
    """The share of the peak, as measured now."""
    return lambda seconds: flop / seconds / peak()


def of_numpy_softmax(seconds):
    """How many times faster than numpy."""
    x = np.random.default_rng(0).uniform(-1, 1, (1024, 1024)).astype("float32")

    def by_numpy():
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    return own_time(by_numpy, 15) / seconds


class Ranking:
    """Rank correlation of predicted and measured on programs the search did not see."""

    unit, asked = "", "0.8"

    def ours(self, seed, trials, unseen=48):
        """(correlation, seconds of the search)."""
        from mlc_lab import meta_schedule as ms
        from mlc_lab.meta_schedule.context import TuneContext
        from mlc_lab.meta_schedule.cost_model import TreeModel
        from mlc_lab.meta_schedule.search_strategy import MeasureCandidate

        mod, model = parse(programs.matmul(512)), TreeModel()
        database, seconds = tune(mod, seed, trials, cost_model=model)
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
        return float(np.corrcoef(*ranks)[0, 1]), seconds


class Model:
    """A model of networks.py, all kernels tuned; its time beside another library's, in turns."""

    def __init__(self, name, against, unit, asked, per_task=None):
        self.name, self.against, self.unit, self.asked = name, against, unit, asked
        self.per_task = per_task

    def ours(self, seed, trials):
        """(ratio, seconds of the search)."""
        import models

        from mlc_lab import nd, relax
        from mlc_lab import meta_schedule as ms

        mod, args, others = models.networks.MODELS[self.name](models.Ours().library)
        other = others[self.against]()
        integration = ms.relax_integration
        if self.per_task:
            trials = self.per_task * len(integration.extract_tasks(mod, TARGET))
        start = time.perf_counter()
        database = integration.tune_relax(mod, None, TARGET, None, trials, seed=seed,
                                          verbose=False)
        took = time.perf_counter() - start
        vm = relax.VirtualMachine(integration.compile_relax(database, mod, TARGET), nd.cpu())
        tensors, number = [nd.array(a) for a in args], 1 if self.per_task else 2000
        np.testing.assert_allclose(vm["main"](*tensors).numpy(), other(*args), rtol=2e-3, atol=2e-3)
        times = []
        for function, given in ((vm["main"], tensors), (other, args)) * 7:
            times.append(own_time(lambda f=function, g=given: [f(*g) for _ in range(number)], 3))
        here, there = statistics.median(times[::2]), statistics.median(times[1::2])
        return (here / there if self.per_task else there / here), took


def cases():
    """The rows, by name."""
    return {
        "stochastic_schedule_mm": Program(
            programs.matmul(128), "of peak", "15 s", of_peak(2 * 128**3),
            strategy="replay-trace", num_trials_per_iter=64,
            space=programs.stochastic_schedule_mm),
        "matmul 128": Program(
            programs.matmul(128), "of peak", "0.90 in 15 s", of_peak(2 * 128**3)),
        "matmul 512": Program(
            programs.matmul(512), "of peak", "0.95 in 20 s", of_peak(2 * 512**3)),
        "matmul 1024": Program(
            programs.matmul(1024), "of peak", "0.88 in 40 s", of_peak(2 * 1024**3)),
        "conv2d 3x3 NCHW": Program(
            programs.conv2d(16, 32), "of peak", "0.90 in 25 s", of_peak(2 * 16 * 32 * 32 * 16 * 9)),
        "softmax 1024x1024": Program(
            programs.softmax(1024, 1024), "x numpy", "4 in 60 s", of_numpy_softmax),
        "rank correlation": Ranking(),
        "MLP": Model("mlp", "numpy", "x numpy", "1.3"),
        "ResNet-18": Model("resnet18", "torch", "of torch", "0.8 or less", per_task=20),
    }


# ------------------------------------------------------------------------------ the table


def spread(values, digits):
    """Median and [least..most]."""
    text = f"{statistics.median(values):.{digits}f}"
    if len(values) > 1:
        text += f" [{min(values):.{digits}f}..{max(values):.{digits}f}]"
    return text


def measured(searches, unit):
    """Two cells of the table: how good, how long."""
    good = [s for s in searches if s[0] is not None]
    if not good:
        return searches[0][2] if searches else "", ""
    late = ">" if any(s[2:] == (">",) for s in good) else ""
    return f"{spread([s[0] for s in good], 3)} {unit}", late + spread([s[1] for s in good], 1)


def row(name, case, seeds, peer, peer_seeds, trials):
    """Measure a case and print its row."""
    own = [case.ours(seed, trials) for seed in seeds]
    cells = measured(own, case.unit)
    if peer is not None:
        searches = []
        if hasattr(case, "theirs"):
            searches = [case.theirs(peer, seed, trials) for seed in peer_seeds]
        cells += measured(searches, case.unit)
    print(line(name, cells, case.asked), flush=True)


def line(name, cells, asked):
    """A row of the table."""
    widths = (30, 20) * (len(cells) // 2)
    return " ".join([f"{name:<24}", *(f"{c:<{w}}" for c, w in zip(cells, widths)), asked])


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--only", default="", metavar="CASE[,CASE]", help="parts of rows' names")
    parser.add_argument("--peer", "--oracle", default=os.environ.get("MLC_LAB_TUNING_PEER"),
                        metavar="PYTHON", help="a Python that has apache-tvm")
    parser.add_argument("--peer-limit", type=float, default=300, metavar="SECONDS",
                        help="for one search of the peer")
    parser.add_argument("--peer-seeds", type=int, default=1)
    options = parser.parse_args()
    from mlc_lab.meta_schedule.measure.builder import LocalBuilder
    from mlc_lab.meta_schedule.measure.runner import LocalRunner
    from mlc_lab.runtime import jit

    LocalBuilder(), LocalRunner()  # start the worker processes, as a second search finds them
    cpu = jit.host_cpu()[1]
    peer = Peer(options.peer, options.peer_limit, cpu) if options.peer else None
    print(f"{cpu}, FMA peak of one core {peak() / 1e9:.0f} GFLOP/s, {options.trials} trials, "
          f"{options.seeds} seeds, load {os.getloadavg()[0]:.1f}")
    heads = ("here", "seconds") + (("TVM", "seconds") if peer else ())
    print(line("", heads, "asked"), flush=True)
    for name, case in cases().items():
        if any(part.strip() in name for part in options.only.split(",")):
            try:
                row(name, case, range(1, options.seeds + 1), peer,
                    range(1, options.peer_seeds + 1), options.trials)
            except Exception as error:  # a case that fails does not end the run
                print(line(name, (f"{type(error).__name__}: {error}"[:200],), ""), flush=True)


if __name__ == "__main__":
    main()

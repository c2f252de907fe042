"""Whole models through relax.build and the virtual machine, beside numpy, torch and TVM.

    python benchmarks/models.py [--only resnet] [--oracle /path/to/python-with-apache-tvm]

Without --oracle (or the variable MLC_LAB_ORACLE) TVM is left out. One thread each. Times are
medians of several rounds in which the contestants take turns, so that what else the machine does
meets all of them; TVM runs in a process of its own, builds the same model (see networks.py) of the
same numbers for the same processor, and its results are compared too. It is measured twice: as
relax.build does by default, which fuses nothing, and with the passes it has for processors
(relax.get_default_pipeline), which fold constants and fuse. It has no default schedule for
processors, so neither tiles a convolution or a product.

Printed are the time of a call here and of the machine without Python around it, the others' times,
the ratio to each of them (below 1: faster here), the time to build (the first in the process, and
the median of those after it; of the processor, since a build is too long to escape what other
processes take), for ResNet-18 the memory of its intermediate results with and without planning,
and at the end the figures that were asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

for _name in ("MLC_LAB_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import networks  # noqa: E402
import numpy as np  # noqa: E402
import turns  # noqa: E402

SLOW = 0.5  # seconds: what takes longer is called once a round
LIMIT = 60.0  # seconds that TVM may take for one answer


def seconds(func, args, least=0.05):
    """Seconds a call, over as many calls as take `least` seconds."""
    start = time.perf_counter()
    func(*args)
    once = max(time.perf_counter() - start, 1e-7)
    if once > SLOW:
        return once
    count = max(1, int(least / once))
    start = time.perf_counter()
    for _ in range(count):
        func(*args)
    return (time.perf_counter() - start) / count


# ------------------------------------------------------------------------------ contestants


class Ours:
    """This compiler; pipelines "default" and, one kernel an operator, "default_build"."""

    def __init__(self):
        import mlc_lab as tvm
        from mlc_lab import relax, topi
        from mlc_lab.relax import op

        self.tvm, self.relax = tvm, relax
        self.library = networks.Library(relax, op, topi, relax.TensorStructInfo, tvm.tir.Var)

    def build(self, mod, pipeline):
        """An executable."""
        return self.relax.build(mod, "llvm -num-cores=1", pipeline=pipeline)

    def tensor(self, array):
        """A tensor of these numbers."""
        return self.tvm.nd.array(array)


class Theirs:
    """apache-tvm 0.27, whose names differ; pipelines "default" and "processor"."""

    def __init__(self):
        import tvm
        from tvm import relax, tirx, topi
        from tvm.relax import op

        self.tvm, self.relax = tvm, relax
        self.library = networks.Library(relax, op, topi, relax.TensorType, tirx.Var)
        self.target = tvm.target.Target(json.loads(os.environ["MLC_LAB_BENCH_TARGET"]))

    def build(self, mod, pipeline):
        """An executable."""
        if pipeline == "processor":
            pipeline = self.relax.get_default_pipeline(self.target)
        return self.relax.build(mod, self.target, relax_pipeline=pipeline)

    def tensor(self, array):
        """A tensor of these numbers."""
        return self.tvm.runtime.tensor(array)


class Runner:
    """The models that a contestant has built, ready to run."""

    def __init__(self, side):
        self.side, self.models, self.ready = side, {}, {}

    def model(self, name):
        """(module, arguments, what to compare with), made once."""
        if name not in self.models:
            self.models[name] = networks.MODELS[name](self.side.library)
        return self.models[name]

    def build(self, name, pipeline):
        """Seconds of the processor to build; the result is kept."""
        mod, args, _ = self.model(name)
        start = time.process_time()
        executable = self.side.build(mod, pipeline)
        took = time.process_time() - start
        device = self.side.tvm.cpu()
        vm = self.side.relax.VirtualMachine(executable, device)
        self.ready[name, pipeline] = vm, [self.side.tensor(a) for a in args], executable
        return took

    def run(self, name, pipeline):
        """The numbers it gives."""
        vm, args, _ = self.ready[name, pipeline]
        return vm["main"](*args).numpy()

    def times(self, name, pipeline):
        """Seconds of a call from Python, and of one that the machine repeats by itself."""
        vm, args, _ = self.ready[name, pipeline]
        call = seconds(vm["main"], args)
        if call > SLOW:
            return {"call": call, "native": call}
        evaluator = vm.time_evaluator("main", self.side.tvm.cpu(), number=1, min_repeat_ms=20)
        return {"call": call, "native": evaluator(*args).mean}


def serve():
    """TVM's side: answer requests to build, run and time."""
    runner = Runner(Theirs())

    def answer(what, name, pipeline):
        if what == "build":
            return {"seconds": runner.build(name, pipeline)}
        if what == "run":
            return {"numbers": runner.run(name, pipeline).ravel().tolist()}
        return runner.times(name, pipeline)

    turns.serve(answer)


class Peer:
    """TVM in its own process, started anew when an answer took too long."""

    def __init__(self, python):
        self.python, self.process = python, None

    def ask(self, what, name, pipeline):
        """An answer; {"error": ...} where there is none."""
        if self.process is None or self.process.poll() is not None:
            self.process = turns.start(__file__, "theirs", self.python)
        return turns.ask(self.process, limit=LIMIT, what=what, name=name, pipeline=pipeline)


# ------------------------------------------------------------------------------ measuring


def planned_memory(mod, pipeline):
    """Bytes of intermediate results of `main`: planned, unplanned, and the most alive at once."""
    from mlc_lab.relax import transform as T
    from mlc_lab.relax.pipeline import zero_passes
    from mlc_lab.relax.transform.static_plan_block_memory import memory_use

    passes = zero_passes() if pipeline == "default" else [T.LegalizeOps()]
    for step in (*passes, T.RewriteDataflowReshape(), T.ToNonDataflow(),
                 T.RemovePurityChecking(), T.CallTIRRewrite()):
        mod = step(mod)
    return memory_use(mod["main"], mod)


def show_memory(mod, executable):
    """Print what the plan saves; gives the numbers."""
    found = {which: planned_memory(mod, which) for which in ("default", "default_build")}
    for which, use in found.items():
        label = "fused" if which == "default" else "one kernel an operator"
        print(f"    memory, {label}: planned {use['planned'] / 2**20:.2f} MiB, unplanned "
              f"{use['unplanned'] / 2**20:.2f} MiB, ratio {use['planned'] / use['unplanned']:.2f}; "
              f"alive at once {use['lower_bound'] / 2**20:.2f} MiB")
    block, alone = executable.memory["main"], found["default_build"]["unplanned"]
    print(f"    memory of the compiled form: {block / 2**20:.2f} MiB, "
          f"{block / found['default']['unplanned']:.2f} of its tensors apart, "
          f"{block / alone:.2f} of those of one kernel an operator")
    return found


def measure(name, ours, peer, rounds):
    """What one model takes: {"times": {who: {"call", "native"}}, "builds": {who: [...]}, ...}."""
    pipeline = "default_build" if name == "chain" else "default"
    theirs = {} if peer is None else {"tvm": "default", "tvm fused": "processor"}
    if name == "chain":
        theirs.pop("tvm fused", None)
    builds = {"ours": [], **{who: [] for who in theirs}}
    problems = {}
    for _ in range(1 if name == "resnet18" else 5):
        builds["ours"].append(ours.build(name, pipeline))
        for who, theirs_pipeline in theirs.items():
            answer = {} if who in problems else peer.ask("build", name, theirs_pipeline)
            if "error" in answer:
                problems[who] = answer["error"]
            elif answer:
                builds[who].append(answer["seconds"])
    _, args, others = ours.model(name)
    others = {who: make() for who, make in others.items()}
    have = ours.run(name, pipeline)
    wanted = {who: func(*args) for who, func in others.items()}
    for who, theirs_pipeline in theirs.items():
        answer = {} if who in problems else peer.ask("run", name, theirs_pipeline)
        if "error" in answer:
            problems[who] = answer["error"]
        elif answer:
            wanted[who] = np.array(answer["numbers"], "float32").reshape(have.shape)
    for who, want in wanted.items():
        np.testing.assert_allclose(have, want, rtol=2e-3, atol=2e-3, err_msg=f"{name}: {who}")
    times = {who: [] for who in ("ours", *others, *theirs)}
    for _ in range(rounds):
        times["ours"].append(ours.times(name, pipeline))
        for who, func in others.items():
            times[who].append({"call": seconds(func, args)})
        for who, theirs_pipeline in theirs.items():
            answer = {} if who in problems else peer.ask("time", name, theirs_pipeline)
            if "error" in answer:
                problems[who] = answer["error"]
            elif answer:
                times[who].append(answer)
    medians = {who: {k: statistics.median(row[k] for row in rows) for k in rows[0]}
               for who, rows in times.items() if rows}
    return {"times": medians, "builds": builds, "problems": problems}


def again(builds):
    """The median of the builds after the first, in seconds."""
    return statistics.median(builds[1:] or builds) if builds else None


def show(name, found, executable):
    """Print a model's rows."""
    times, builds = found["times"], found["builds"]
    own = times["ours"]["call"]
    for who, row in times.items():
        made = builds.get(who)
        print(f"{name if who == 'ours' else '':<14} {who:<10} {row['call'] * 1e6:>12.2f} "
              f"{format(row['native'] * 1e6, '.2f') if 'native' in row else '':>12} "
              f"{'' if who == 'ours' else format(own / row['call'], '.2f'):>7} "
              + (f"{made[0] * 1e3:>8.0f} {again(made) * 1e3:>7.0f}" if made else ""), flush=True)
    for who, problem in found["problems"].items():
        print(f"    {who}: {problem}")
    if executable.exec_mode != "compiled" or "main" not in executable.compiled:
        print(f"    bytecode: {executable.not_compiled.get('main', '')}")


def of_both(found, text):
    """text(who) here, and for each way of TVM's that gave an answer."""
    theirs = [w for w in ("tvm", "tvm fused") if w in found["times"]]
    problems = [f"{w[4:] or 'default'}: {p}"[:48] for w, p in found["problems"].items()]
    rows = [text(w) + (" (fused)" if w == "tvm fused" else "") for w in theirs]
    return text("ours"), ", ".join(rows + problems) or "not measured"


def summary(numbers):
    """The table of what was asked."""
    rows = []

    def row(name, what, text, asked):
        if name in numbers:
            found = numbers[name]
            rows.append((what, *of_both(found, lambda who: text(found, who)), asked))

    def call(found, who):
        return f"{found['times'][who]['call'] * 1e6:.1f} us"

    def an_operator(found, who):
        return f"{found['times'][who]['native'] * 1e4:.3f} us"

    def building(found, who):
        made = found["builds"][who]
        return f"{made[0] * 1e3:.0f}, then {again(made) * 1e3:.0f} ms"

    def of_torch(found, who):
        times = found["times"]
        return f"{times[who]['call'] / times['torch']['call']:.2f} of torch"

    row("mlp", "MLP, a call", call, "7 us or less")
    row("mlp dense", "MLP with topi.nn.dense, a call", call, "7 us or less")
    row("chain", "an operator of a chain", an_operator, "0.15 us or less")
    row("mlp", "build of the MLP", building, "no more than TVM")
    row("mlp dense", "build with topi.nn.dense", building, "no more than TVM")
    row("convnet", "build of the convnet", building, "no more than TVM")
    row("resnet18", "ResNet-18", of_torch, "1.5 or less")
    row("resnet18", "build of ResNet-18", building, "30 s or less")
    row("gpt2 block", "GPT-2 block", of_torch, "1.5 or less")
    row("gpt2 block n", "GPT-2 block of n tokens", of_torch, "1.5 or less")
    if rows:
        print(f"\n{'what':<32} {'here':<20} {'TVM here':<52} asked")
    for what, own, theirs, asked in rows:
        print(f"{what:<32} {own:<20} {theirs:<52} {asked}")


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--oracle", default=os.environ.get("MLC_LAB_ORACLE"))
    parser.add_argument("--serve", choices=("theirs",), help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="part of a model's name")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="write the numbers to this file")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    from mlc_lab.runtime import jit

    cpu = jit.host_cpu()[1]
    os.environ["MLC_LAB_BENCH_TARGET"] = json.dumps({"kind": "llvm", "mcpu": cpu})
    peer = Peer(options.oracle) if options.oracle else None
    ours, numbers = Runner(Ours()), {}
    print(f"{cpu}, one thread, medians of {options.rounds} rounds\n"
          f"{'model':<14} {'who':<10} {'call us':>12} {'native us':>12} {'ratio':>7} "
          f"{'build ms':>8} {'again':>7}")
    for name in networks.MODELS:
        if options.only not in name:
            continue
        found = numbers[name] = measure(name, ours, peer, options.rounds)
        mod = ours.model(name)[0]
        executable = ours.ready[name, "default_build" if name == "chain" else "default"][2]
        show(name, found, executable)
        if name == "resnet18":
            found["memory"] = show_memory(mod, executable)
    summary(numbers)
    if peer is not None:
        turns.stop(peer.process)
    if options.json:
        Path(options.json).write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()

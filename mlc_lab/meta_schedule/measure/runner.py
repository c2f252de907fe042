"""Runners: time built candidates, one at a time, and check what they compute.

The results of a candidate are compared with those of the unscheduled program on random inputs
before its times count.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple, Sequence

from ...above import above
from ...workers.pool import Worker, shared_pool, usable_cpus
from ..workload import TensorInfo
from .builder import SERVICE, then
from .service import robust


@dataclass(frozen=True)
class EvaluatorConfig:
    """How a candidate is timed.

    Without arguments: repeats until the lower half of the times lies within one percent or
    `budget` seconds are spent; `slice` is the length of one repeat in seconds; a candidate
    `give_up` times slower than the best known gets few repeats. With `number`, `repeat` or
    `min_repeat_ms`, exactly that many calls and repeats, as in `time_evaluator`.
    `enable_cpu_cache_flush` empties the caches before each repeat.
    """

    number: int = 0
    repeat: int = 0
    min_repeat_ms: float = 0
    enable_cpu_cache_flush: bool = False
    budget: float = 0.07
    slice: float = 0.003
    give_up: float = 2.0

    def as_request(self) -> dict:
        """As the worker takes it."""
        adaptive = not (self.number or self.repeat or self.min_repeat_ms)
        return {"adaptive": adaptive, "number": self.number or 3, "repeat": self.repeat or 1,
                "min_repeat_ms": self.min_repeat_ms, "budget": self.budget, "slice": self.slice,
                "give_up": self.give_up, "cache_flush": self.enable_cpu_cache_flush}


@dataclass
class Reference:
    """What candidates of one program are measured with.

    `key` names the program, `args` are (shape, dtype, whether it is written) of each parameter,
    `build` the BuilderResult of the unscheduled program (None: results are not checked), `given`
    inputs that must not be random, by position.
    """

    key: str
    args: list[tuple]
    build: Any
    seed: int = 0
    given: dict | None = None

    def as_request(self) -> dict:
        """As the worker takes it."""
        build = self.build
        return {"do": "prepare", "task": self.key, "args": self.args, "seed": self.seed,
                "obj": build.obj if build else None, "meta": build.meta if build else None,
                "given": self.given}


class RunnerInput(NamedTuple):
    """A built candidate: its BuilderResult, the program's Reference, threads, best time so far.

    `artifact_path` is the file of what was built, as the BuilderResult has it.

    `placement` is the seed of the tensors' offsets within pages; 0 keeps those of the search.
    `exactly` asks for so many calls a repeat and so many repeats, where the runner would choose.
    """

    build: Any
    reference: Reference
    threads: int = 1
    best: float | None = None
    device_type: str = "cpu"
    placement: int = 0
    exactly: tuple[int, int] | None = None

    @property
    def artifact_path(self) -> str | None:
        """The path in the BuilderResult."""
        return self.build.artifact_path

    @property
    def args_info(self) -> list[TensorInfo]:
        """Type and shape of each argument."""
        return [TensorInfo(dtype, tuple(shape)) for shape, dtype, *_ in self.reference.args]


#: what may come of a trial
STATUSES = ("ok", "wrong", "build_error", "run_error", "crash", "timeout", "memory",
            "schedule_error")


class Seconds(float):
    """A time, which has its number as `value` too, as a constant of TVM does."""

    @property
    def value(self) -> float:
        """The number."""
        return float(self)


@dataclass(init=False)
class RunnerResult:
    """Times of a candidate in seconds (each the mean of several calls), or why there are none.

    `status` is "ok", "wrong", "run_error", "crash", "timeout" or "memory"; `error` the largest
    absolute error of its results; `seconds` what measuring took.

    TVM's form is `RunnerResult(run_secs, error_msg)`, one of the two None. Raises TypeError for
    times that are no numbers, ValueError for a result that says neither times nor an error.
    """

    times: tuple[float, ...]
    status: str
    reason: str
    error: float | None
    seconds: float
    calls: int

    def __init__(self, times: object = None, status: str | None = None, reason: str = "",
                 error: float | None = None, seconds: float = 0.0, calls: int = 0, *,
                 run_secs: Any = None, error_msg: str | None = None) -> None:
        times = run_secs if times is None else times
        self.times = _seconds(times)
        if status is not None and not isinstance(status, str):
            raise TypeError("the second argument of a RunnerResult is error_msg (a text or None) "
                            f"or status ({', '.join(STATUSES)}), not {type(status).__name__}")
        if status is not None and status not in STATUSES:
            if self.times or reason:
                raise ValueError(f"there is no status {status!r}; choose one of "
                                 f"{', '.join(STATUSES)}. A result of (run_secs, error_msg) has "
                                 "only one of the two, the other is None")
            status, error_msg = None, status
        self.status = status or ("ok" if error_msg is None else "run_error")
        self.reason = reason or error_msg or ("" if self.status == "ok" else self.status)
        if self.status == "ok" and not self.times:
            raise ValueError("this RunnerResult says neither times (run_secs) nor why there are "
                             "none (error_msg)")
        self.error, self.seconds, self.calls = error, seconds, calls

    @property
    def run_secs(self) -> list[Seconds] | None:
        """The times; None if it failed."""
        return list(map(Seconds, self.times)) if self.status == "ok" else None

    @property
    def error_msg(self) -> str | None:
        """Why it failed; None if it did not."""
        return None if self.status == "ok" else self.reason

    @property
    def time(self) -> float | None:
        """The one number for this candidate, in seconds."""
        return robust(list(self.times)) if self.times else None


def _seconds(times: Any) -> tuple[float, ...]:
    """Times as floats. Raises TypeError where they are something else."""
    try:
        if isinstance(times, (str, bytes)):
            raise TypeError
        return () if times is None else tuple(
            float(getattr(t, "value", t)) for t in times)
    except (TypeError, ValueError):
        raise TypeError(f"the times of a RunnerResult are a list of seconds or None, not "
                        f"{times!r}") from None


class RunnerFuture:
    """A result that may not be there yet."""

    def __init__(self, f_done: Any = None, f_result: Any = None, future: Future | None = None
                 ) -> None:
        if future is not None:
            f_done, f_result = f_done or future.done, f_result or future.result
        if f_done is None or f_result is None:
            raise TypeError("a RunnerFuture takes f_done and f_result, or a future")
        self._done, self._result = f_done, f_result

    def done(self) -> bool:
        """Whether the result is there."""
        return self._done()

    def result(self) -> RunnerResult:
        """The result, waited for."""
        return self._result()


class PyRunnerFuture:
    """Interface of a future of one's own: override `done` and `result`."""

    def done(self) -> bool:
        """Whether the result is there."""
        raise TypeError(f"{type(self).__name__} has to define done()")

    def result(self) -> RunnerResult:
        """The result, waited for."""
        raise TypeError(f"{type(self).__name__} has to define result()")


class Runner:
    """Interface: override `run`, which answers a list of inputs with a list of futures."""

    #: whether the results of candidates are to be compared with the program's
    checks = True
    #: whether times vary from run to run, so that a search ends by measuring its best again
    varies = False

    def prepare(self, reference: Reference) -> Future:
        """Get ready to measure candidates of a program: a future of "" or of what went wrong."""
        future: Future = Future()
        future.set_result("")
        return future

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[Any]:
        """Begin to measure all: a RunnerFuture for each."""
        raise TypeError(f"{type(self).__name__} has to define run(runner_inputs)")

    def cancel(self) -> None:
        """Drop what has not begun."""

    @staticmethod
    def create(kind: Any = "local", **options: Any) -> "Runner":
        """The runner called `kind` ("local"), or the one given."""
        if isinstance(kind, str):
            if kind == "dask":
                return above("DaskRunner")(**options)
            if kind != "local":
                raise ValueError(f'there is no runner {kind!r}; "local" measures in a process '
                                 'here, "dask" on the workers of a cluster')
            return LocalRunner(**options)
        return kind


PyRunner = Runner


class LocalRunner(Runner):
    """Measures in one worker process of this machine, which runs nothing else meanwhile.

    Parameters
    ----------
    timeout_sec: for one candidate, its check and its timing; then its worker is replaced.
    evaluator_config: how often to repeat.
    memory_mb: what a candidate may allocate.
    """

    varies = True

    def __init__(self, timeout_sec: float = 30.0, evaluator_config: EvaluatorConfig | None = None,
                 cooldown_sec: float = 0.0, memory_mb: int = 8192, **_: object) -> None:
        self.timeout_sec, self.memory_mb = timeout_sec, memory_mb
        self.evaluator_config = evaluator_config or EvaluatorConfig()
        self.cooldown_sec = cooldown_sec
        self._pools: dict[int, Any] = {}
        self._pool(1)

    def _pool(self, threads: int) -> Any:
        pool = self._pools.get(threads)
        if pool is None:
            cpus = usable_cpus()
            where = cpus[-threads:] if threads <= len(cpus) else []
            pool = self._pools[threads] = shared_pool(
                SERVICE, "run", 1, where, self.memory_mb << 20, threads)
        return pool

    def prepare(self, reference: Reference, threads: int = 1) -> Future:
        """Make the inputs and run the reference, so that the first candidate need not wait."""
        build = reference.build
        if build is not None and build.obj is None:
            future: Future = Future()
            future.set_result(_FOREIGN)
            return future
        if build is not None and "modelled" in (build.meta or {}):
            return super().prepare(reference)
        pool = self._pool(threads)
        timeout = max(120.0, 4 * self.timeout_sec)
        return then(pool.submit(reference.as_request(), timeout),
                    lambda r: "" if r["status"] == "ok" else r["reason"])

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Begin to measure all, in this order."""
        return [RunnerFuture(future=self._submit(item)) for item in runner_inputs]

    def _submit(self, item: RunnerInput) -> Future:
        if item.build.obj is None:
            future: Future = Future()
            future.set_result(RunnerResult(status="run_error", reason=_FOREIGN))
            return future
        meta = item.build.meta or {}
        if "modelled" in meta:
            ready: Future = Future()
            ready.set_result(RunnerResult((meta["modelled"],), "ok", MODELLED, calls=1))
            return ready
        config = self.evaluator_config.as_request()
        if item.exactly is not None and config["adaptive"]:
            config.update(adaptive=False, number=item.exactly[0], repeat=item.exactly[1])
        request = {"do": "run", "task": item.reference.key, "obj": item.build.obj,
                   "meta": item.build.meta, "threads": item.threads, "best": item.best,
                   "config": config, "placement": item.placement}
        if "module" in meta:  # of a GPU
            request.update(do="run_gpu", module=meta["module"], target=meta["target"])

        def again(worker: Worker) -> dict | None:
            reply = worker.call(item.reference.as_request(), max(120.0, 4 * self.timeout_sec))
            if reply["status"] == "ok":
                return None
            return {**reply, "reason": f"the reference could not be run: {reply['reason']}"}

        return then(self._pool(item.threads).submit(request, self.timeout_sec, again), _result)

    def cancel(self) -> None:
        """Drop what has not begun."""
        for pool in self._pools.values():
            pool.cancel()


#: what is said of a time that was not measured
MODELLED = "modelled, not measured: the device is simulated here"

#: why nothing is run of a builder that gives a path
_FOREIGN = ("LocalRunner runs the object code that LocalBuilder makes, and this builder gave an "
            "artifact_path: give the search a runner of yours that loads it")


def _result(reply: dict) -> RunnerResult:
    status = {"error": "run_error"}.get(reply["status"], reply["status"])
    return RunnerResult(tuple(reply.get("times", ())), status, reply.get("reason", ""),
                        reply.get("error"), reply.get("seconds", 0.0), reply.get("calls", 0))


def __getattr__(name: str) -> Any:
    """DaskRunner, which needs another package, is loaded when it is asked for."""
    if name == "DaskRunner":
        return above("DaskRunner")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["MODELLED", "EvaluatorConfig", "LocalRunner", "PyRunner", "PyRunnerFuture", "Reference",
           "Runner", "RunnerFuture", "RunnerInput", "RunnerResult"]

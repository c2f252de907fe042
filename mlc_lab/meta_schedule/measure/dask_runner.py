"""DaskRunner: measure on the workers of a dask.distributed cluster.

    from dask.distributed import Client
    db = ms.tune_tir(mod, target, work_dir, runner=ms.runner.DaskRunner(Client("scheduler:8786")))

Each cluster worker keeps a process of its own for measuring (the same as LocalRunner's), so that a
candidate that crashes or hangs does not take the cluster's worker with it. When a cluster worker
dies, the trials it had are given to another one once more; a trial that was there at two deaths is
recorded as a crash. (The cluster is told not to repeat such tasks by itself.) A worker that leaves
gives its trials to the others. When the last one has left for a while, or the connection is closed,
the search ends with an error that says so; what was measured is in its database.

One candidate at a time runs on each worker; workers of one cluster should be alike, since times are
compared with each other.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any, Sequence

from ...ir.diagnostics import MLCError
from .runner import (
    EvaluatorConfig, LocalRunner, Reference, Runner, RunnerFuture, RunnerInput, RunnerResult,
)

#: seconds that a cluster may be without workers before a search on it ends
WITHOUT_WORKERS = 20.0

#: the measuring process of this cluster worker, by its settings
_local: dict[tuple, LocalRunner] = {}


def measure_here(item: RunnerInput, timeout: float, config: EvaluatorConfig) -> RunnerResult:
    """Runs on a cluster worker: measure one candidate in the worker's own measuring process."""
    key = (timeout, config)
    runner = _local.get(key)
    if runner is None:
        runner = _local[key] = LocalRunner(timeout, config)
    return runner.run([item])[0].result()


def _no_second_try(dask_scheduler: Any = None) -> None:
    """Runs on the scheduler: a trial that killed a worker is not given to the next one."""
    dask_scheduler.allowed_failures = 0


class DaskRunner(Runner):
    """See the file's text.

    Parameters
    ----------
    client: a dask.distributed Client; by default the current one.
    timeout_sec, evaluator_config: as for LocalRunner.

    Raises MLCError without the package, or without a client.
    """

    def __init__(self, client: Any = None, timeout_sec: float = 30.0,
                 evaluator_config: EvaluatorConfig | None = None) -> None:
        try:
            import distributed
        except ImportError:
            raise MLCError("measuring on a cluster needs dask: pip install \"dask[distributed]\""
                           ) from None
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:
                raise MLCError("there is no cluster: make a dask.distributed.Client first, or give "
                               "it as DaskRunner(client)") from None
        self.client, self.timeout_sec = client, timeout_sec
        self.evaluator_config = evaluator_config or EvaluatorConfig()
        self._running: list[Any] = []
        client.run_on_scheduler(_no_second_try)

    def prepare(self, reference: Reference) -> Future:
        """Whether the cluster has workers; each prepares itself with its first candidate."""
        future: Future = Future()
        workers = self.client.scheduler_info().get("workers", {})
        future.set_result("" if workers else "the cluster has no workers")
        return future

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Begin to measure all, spread over the workers."""
        return [self._begin(measure_here, item) for item in runner_inputs]

    def _begin(self, function: Any, item: RunnerInput) -> RunnerFuture:
        def submit() -> Any:
            try:
                task = self.client.submit(function, item, self.timeout_sec, self.evaluator_config,
                                          pure=False, retries=0)
            except Exception as error:
                if self.client.status == "running":
                    raise
                raise _closed() from error
            self._running.append(task)
            return task

        task = submit()
        return RunnerFuture(task.done, lambda: self._result(task, submit))

    def _result(self, task: Any, submit: Any, again: int = 1) -> RunnerResult:
        try:
            result = self._wait(task)
        except MLCError:
            raise
        except Exception as error:
            if self.client.status != "running":
                raise _closed() from error
            name = type(error).__name__
            if name in ("KilledWorker", "CommClosedError", "CancelledError"):
                if again:  # another trial of that worker may have killed it
                    return self._result(submit(), submit, again - 1)
                result = RunnerResult(status="crash", reason="the cluster's worker died while it "
                                      f"measured, twice ({name})")
            elif name == "TimeoutError":
                task.cancel()
                result = RunnerResult(status="timeout", reason="the cluster gave no answer in time")
            else:
                result = RunnerResult(status="run_error", reason=f"{name}: {error}")
        if task in self._running:
            self._running.remove(task)
        return result

    def _wait(self, task: Any) -> RunnerResult:
        """The result of a task; an error when the cluster has no workers left."""
        until = time.monotonic() + 4 * self.timeout_sec + 120
        deserted = 0.0  # since when the cluster has no workers
        while True:
            try:
                return task.result(timeout=min(2.0, max(0.0, until - time.monotonic())))
            except Exception as error:
                if type(error).__name__ != "TimeoutError" or task.done():
                    raise
                now = time.monotonic()
                if self.client.scheduler_info().get("workers"):
                    deserted = 0.0
                elif not deserted:
                    deserted = now
                elif now - deserted > WITHOUT_WORKERS:
                    raise MLCError(
                        f"the cluster has had no workers for {WITHOUT_WORKERS:.0f} s. What was "
                        "measured is kept: start workers, and the same call goes on from there"
                    ) from None
                if now >= until:
                    raise

    def cancel(self) -> None:
        """Drop what has not finished."""
        for task in self._running:
            task.cancel()
        self._running.clear()


def _closed() -> MLCError:
    return MLCError("the connection to the cluster is closed. What was measured is kept: connect "
                    "again, DaskRunner(Client(address)), and the same call goes on from there")


__all__ = ["DaskRunner", "measure_here"]

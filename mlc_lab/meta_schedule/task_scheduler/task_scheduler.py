"""The loop of a search: pick a task, let its strategy propose, build, run, record.

Every result goes into the database as soon as it is there. An interrupt (Ctrl-C, the stop button)
ends the loop; what was found stays.
"""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from typing import Any, Sequence

from ...above import above
from ...ir.diagnostics import MLCError
from ...workers.pool import usable_cpus
from ..cost_model import CostModel
from ..database import Database, TuningRecord
from ..measure.builder import Builder, BuilderInput, BuilderResult
from ..measure.runner import Reference, Runner, RunnerInput, RunnerResult
from ..workload import arguments
from . import confirm, table
from .task_record import TaskRecord


class TuneError(MLCError, RuntimeError):
    """A search that cannot begin, or none of whose candidates works."""


class TaskScheduler:
    """Interface: override `next_task`, which picks the task whose turn it is, or, as TVM has it,
    `next_task_id`, which gives its number."""

    tasks: list[TaskRecord] = []
    interrupted = False

    def next_task(self) -> TaskRecord | None:
        """One of `self.tasks` that is not done; None to end."""
        number = int(self.next_task_id())
        if not -1 <= number < len(self.tasks):
            raise ValueError(f"{type(self).__name__}: next_task_id gave {number}; the tasks are 0 "
                             f"to {len(self.tasks) - 1}, and -1 is the end")
        return None if number < 0 or self.tasks[number].done else self.tasks[number]

    def next_task_id(self) -> int:
        """The place in `tasks_` of one that is not terminated; -1 to end."""
        raise ValueError(f"{type(self).__name__}: next_task_id is not defined, and next_task is "
                         "not either: one of them picks the task whose turn it is")

    @property
    def tasks_(self) -> list[TaskRecord]:
        """TVM's name of `tasks`."""
        return self.tasks

    def touch_task(self, task_id: int) -> None:
        """Nothing is left to be brought up to date: the state of a task is always known."""

    def join_running_task(self, task_id: int) -> list[RunnerResult]:
        """Nothing is left to wait for: a round has ended when the next task is asked for."""
        return []

    def tune(self, tasks: Sequence[Any], task_weights: Sequence[float], *, max_trials_global: int,
             max_trials_per_task: int, num_trials_per_iter: int, builder: Builder, runner: Runner,
             measure_callbacks: Sequence[Any], database: Database,
             cost_model: CostModel | None = None, progress: Any = None) -> None:
        """Run the search. ValueError, before any measurement, for a target that is not here."""
        for task in tasks:
            task.must_run_here()
        self.builder, self.runner, self.database = builder, runner, database
        self.cost_model, self.callbacks, self.progress = cost_model, measure_callbacks, progress
        self.max_trials_global, self.batch = max_trials_global, num_trials_per_iter
        self.tasks = [TaskRecord(t, float(w), wanted=min(max_trials_per_task, max_trials_global))
                      for t, w in zip(tasks, task_weights)]
        self._built: dict[tuple, BuilderResult] = {}
        self.interrupted = False
        try:
            for task in self.tasks:
                self._begin(task)
            if progress is not None:
                progress.start(self)
            self._loop()
        except KeyboardInterrupt:
            self.interrupted = True
            self.builder.cancel()
            self.runner.cancel()
        finally:
            self._end()
        if not self.interrupted:
            self._check_success()

    # ------------------------------------------------------------------ beginning

    def _begin(self, task: TaskRecord) -> None:
        context = task.context
        task.workload = self.database.commit_workload(context.mod)
        mod, args = context.mod, arguments(context.mod["main"])
        self._begin_session(task)
        if task.trials >= task.wanted:
            task.done = True
            return
        reference = self.builder.submit(BuilderInput(mod, context.target))
        spaces = context.generate_design_space()
        context.search_strategy.pre_tuning(
            task.wanted - task.trials, self.batch, spaces, self.database, self.cost_model)
        build = reference.result()
        if build.status != "ok":
            raise TuneError(f"the program of task {context.task_name!r} cannot be built as it is, "
                            f"so there is nothing to compare candidates with: {build.reason}")
        checked = build if getattr(self.runner, "checks", True) else None
        task.reference = Reference(task.workload.shash, args, checked, context.seed % 65536,
                                   context.inputs or None)
        task.ready = self.runner.prepare(task.reference)

    def _begin_session(self, task: TaskRecord) -> None:
        """A new session, or the one like it that was stopped."""
        context, database = task.context, self.database
        space = f"{context.space_generator.description} {type(context.search_strategy).__name__}"
        target = str(context.target)
        found = database.interrupted_session(
            context.task_name, task.workload, target, space, task.wanted)
        if found is not None:
            task.session = found["id"]
            database.update_session(task.session, state="running", pid=_pid())
            for record in database.query_all(task.workload, target):
                if record.session == task.session:
                    task.note(record)
                    task.round = max(task.round, record.round + 1)
        else:
            machine = {"cpu": _cpu(), "cores": context.num_threads}
            task.session = database.begin_session(
                context.task_name, task.workload, target, task.wanted, context.seed, space, machine)

    # ------------------------------------------------------------------ the loop

    def _loop(self) -> None:
        while sum(t.trials for t in self.tasks) < self.max_trials_global:
            task = self.next_task()
            if task is None:
                return
            self._round(task)
        for task in self.tasks:
            if not task.done:  # max_trials_global is used up
                self._finish(task)

    def _round(self, task: TaskRecord) -> None:
        start = time.perf_counter()
        strategy = task.context.search_strategy
        left = self.max_trials_global - sum(t.trials for t in self.tasks)
        batch = min(self.batch, left)
        if task.round == 0:  # where trials are few, every task gets some before one gets many
            batch = min(batch, max(1, self.max_trials_global // len(self.tasks)))
        strategy.num_trials_per_iter = batch
        candidates = strategy.generate_measure_candidates() if task.trials < task.wanted else None
        if not candidates:
            task.exhausted = task.trials < task.wanted
            self._finish(task)
            return
        unprepared = task.ready.result()
        if unprepared:
            raise TuneError(f"the program of task {task.context.task_name!r} cannot be run as it "
                            f"is, so there is nothing to compare candidates with: {unprepared}")
        results = self._measure(task, candidates)
        task.round += 1
        if task.best_time is not None:
            task.history.append(task.best_time)
        strategy.notify_runner_results(candidates, results)
        if self.cost_model is not None:
            self.cost_model.update(task.context, candidates, results)
        task.seconds += time.perf_counter() - start
        if task.trials >= task.wanted:
            self._finish(task)

    def _finish(self, task: TaskRecord) -> None:
        """The task has had its trials: its best programs are compared once more."""
        if self.progress is not None:
            self.progress.confirming()
        confirm.confirm(task, self.runner, self.database)
        task.done, task.leading = True, []
        self.database.update_session(task.session, state="done", finished=time.time())

    def _measure(self, task: TaskRecord, candidates: list) -> list[RunnerResult]:
        """Build all, run each as soon as it is built, record each as soon as it has run."""
        context = task.context
        keys = [_program_key(task, c) for c in candidates]
        futures: dict[tuple, Any] = {}
        for candidate, key in zip(candidates, keys):
            if key not in self._built and key not in futures and not candidate.failure:
                futures[key] = self.builder.submit(BuilderInput(candidate.sch.mod, context.target))
        overlap = context.num_threads < len(usable_cpus())
        if not overlap:  # building would disturb what is timed
            for future in futures.values():
                self._await(future, context.search_strategy)
        ahead = context.search_strategy if overlap else None
        runs: list[Any] = []
        results: list[RunnerResult | None] = [None] * len(candidates)

        def collect(block: bool) -> None:
            for index, (build, run) in enumerate(runs):
                if results[index] is None and (block or run.done()):
                    results[index] = result = self._await(run, ahead)
                    self._record(task, candidates[index], build, result)

        for candidate, key in zip(candidates, keys):
            build = self._build_of(candidate, key, futures, ahead)
            if build.status == "ok":
                run = self.runner.run([RunnerInput(build, task.reference, context.num_threads,
                                                   task.best_time)])[0]
            else:
                run = _Finished(RunnerResult(status=build.status, reason=build.reason))
            runs.append((build, run))
            collect(block=False)
            while len(runs) - sum(r is not None for r in results) > 3:
                # Few runs are queued at a time, so that each is given the best time so far.
                first = next(i for i, r in enumerate(results) if r is None)
                build, run = runs[first]
                results[first] = result = self._await(run, ahead)
                self._record(task, candidates[first], build, result)
        collect(block=True)
        return [r for r in results if r is not None]

    @staticmethod
    def _await(future: Any, strategy: Any = None) -> Any:
        """The result; while it is not there, the strategy may work on its next batch."""
        while strategy is not None and not future.done() and strategy.work_ahead():
            pass
        return future.result()

    def _build_of(self, candidate: Any, key: tuple, futures: dict, ahead: Any) -> BuilderResult:
        if candidate.failure:
            return BuilderResult(None, None, "schedule_error", candidate.failure)
        if key not in self._built:
            try:
                self._built[key] = self._await(futures[key], ahead)
            except CancelledError:
                raise KeyboardInterrupt from None
            while len(self._built) > 256:
                self._built.pop(next(iter(self._built)))
        return self._built[key]

    def _record(self, task: TaskRecord, candidate: Any, build: BuilderResult,
                result: RunnerResult) -> None:
        context = task.context
        record = TuningRecord(
            candidate.sch.trace, task.workload, str(context.target), tuple(result.times),
            context.args_info, result.status, result.reason, result.error, candidate.predicted,
            context.task_name, task.session, task.trials, task.round, candidate.generation,
            candidate.parent, candidate.mutation, candidate.strategy, context.seed,
            build.seconds, result.seconds, flop=context.flop)
        self.database.commit_tuning_record(record)
        candidate.record_id = record.id
        task.note(record)
        confirm.note(task, record, build)
        for callback in self.callbacks:
            callback.apply(self, self.tasks.index(task), [candidate], [build], [result])
        if self.progress is not None:
            self.progress.update(self, record)

    # ------------------------------------------------------------------ the end

    def _end(self) -> None:
        for task in self.tasks:
            if task.session and not task.done:
                state = "stopped" if task.trials < task.wanted else "done"
                if not self.interrupted and sum(
                        t.trials for t in self.tasks) >= self.max_trials_global:
                    state = "done"
                self.database.update_session(task.session, state=state, finished=time.time())
            task.context.search_strategy.post_tuning()
        if self.progress is not None:
            self.progress.finish(self)

    def _check_success(self) -> None:
        """An error where a task ends with no candidate that works."""
        for task in self.tasks:
            if task.best_time is None and task.trials == 0 and task.context.rejected and (
                    not task.context.search_strategy.recalled):
                why = ", ".join(f"{k} ({v} times)" for k, v in task.context.rejected.items())
                raise TuneError(
                    f"the space of task {task.context.task_name!r} has no valid program: every "
                    f"candidate was dropped before it was built. Reasons: {why}")

    def print_tuning_statistics(self) -> None:
        """Print the summary table."""
        print(self.tuning_statistics())

    def tuning_statistics(self) -> str:
        """The summary table as text."""
        return table.text(self.tasks)

    @staticmethod
    def create(kind: Any = "gradient", **options: object) -> "TaskScheduler":
        """The scheduler called `kind` ("round-robin", "gradient"), or the one given."""
        makers = above("task schedulers")
        if isinstance(kind, str):
            if kind not in makers:
                raise ValueError(f"there is no task scheduler {kind!r}; choose one of "
                                 f"{', '.join(makers)}")
            return makers[kind](**options)
        return kind() if isinstance(kind, type) else kind


class _Finished:
    """A future of a result that is there."""

    def __init__(self, result: RunnerResult) -> None:
        self.value = result

    def done(self) -> bool:
        return True

    def result(self) -> RunnerResult:
        return self.value


def _program_key(task: TaskRecord, candidate: Any) -> tuple:
    return task.workload.shash, str(task.context.target), candidate.key


def _pid() -> int:
    import os

    return os.getpid()


def _cpu() -> str:
    from ...runtime import jit

    return jit.host_cpu()[1]


PyTaskScheduler = TaskScheduler

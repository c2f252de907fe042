"""A record: one trial of a search, its trace and what came of it.

As plain data (`Database.records()`, a list of dicts) it has the fields

    id             number of the record in its database
    session        number of the search that made it (see below)
    task           name of the task, e.g. "main"
    workload       key of the program (the same in every process)
    target         the target as text
    trial          number of the trial in its session and task, from 0
    round          number of the batch the trial was part of, from 0
    generation     how many mutations lie between the trace and a random one (0: a random one)
    parent         id of the record this trace was mutated from, or None
    mutation       what was changed in the parent, as text, or None
    strategy       who proposed it: "replay-trace", "evolutionary", "e-greedy", "default", "user"
    trace          the trace as Python text (with the decisions)
    trace_json     the trace as JSON text; `Schedule(mod).apply_trace(trace_json)` replays it
    decisions      {name of the result: decision} of the sampling instructions, e.g. {"v4": [8, 16]}
    status         "ok", or why it does not count: "wrong" (wrong numbers), "build_error",
                   "run_error", "crash", "timeout", "memory", "schedule_error"
    reason         a sentence on what went wrong, "" if ok
    times          list of seconds, each the mean of several calls; [] if it failed
    time           the one number for it, in seconds (median of the lower half), None if it failed
    spread         half the distance from the smallest to the largest of the lower half, relative
    error          largest absolute error of its results, None if not checked
    predicted      what the cost model said before it was measured (higher is faster; a score in
                   units of the best throughput known then), None where there was no model
    seed           seed of the search
    build_s        seconds building took
    run_s          seconds checking and timing took
    created        Unix time at which it was put into the database
    flop           floating point operations of one run, 0.0 if unknown
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from ...reading import MISTAKES, DataError, read_json, reason, shown
from ...schedule import Schedule, Trace
from ...target import Target
from ..measure.runner import Seconds
from ..measure.service import robust
from ..workload import TensorInfo, Workload


@dataclass
class TrialFields:
    """The fields of a trial, in the order of this project; see the head of this file."""

    trace: Trace
    workload: Workload
    target: Any = "llvm"
    times: tuple[float, ...] = ()
    args_info: list[TensorInfo] = field(default_factory=list)
    status: str = "ok"
    reason: str = ""
    error: float | None = None
    predicted: float | None = None
    task: str = "main"
    session: int | None = None
    trial: int = 0
    round: int = 0
    generation: int = 0
    parent: int | None = None
    mutation: str | None = None
    strategy: str = "user"
    seed: int | None = None
    build_s: float = 0.0
    run_s: float = 0.0
    created: float = 0.0
    flop: float = 0.0
    id: int | None = None


class TuningRecord(TrialFields):
    """One trial; the fields are described at the head of this file.

    Times are in seconds; `args_info` are types and shapes of the arguments. Positional arguments
    may stand in TVM's order, (trace, workload, run_secs, target, args_info), too; `run_secs` is
    TVM's name of `times`. Raises TypeError for a target and times that are neither.
    """

    def __init__(self, trace: Trace, workload: Workload, *given: Any, run_secs: Any = None,
                 **fields: Any) -> None:
        third, fourth = (*given, None, None)[:2]
        if given and (third is None or isinstance(third, (list, tuple))):
            if fourth is None and "target" in fields:
                given = (fields.pop("target"), third, *given[2:])
            else:
                given = ("llvm" if fourth is None else fourth, third, *given[2:])
        if run_secs is not None:
            fields["times"] = run_secs
        super().__init__(trace, workload, *given, **fields)
        self.times = () if self.times is None else self.times
        if not isinstance(self.times, (list, tuple)) or isinstance(self.target, (list, tuple)):
            raise TypeError(
                "a TuningRecord is (trace, workload, run_secs, target, args_info), or with target "
                f"before the times: here are {self.target!r} and {self.times!r}")
        self.times = tuple(float(getattr(t, "value", t)) for t in self.times)
        self.args_info = [] if self.args_info is None else self.args_info

    @property
    def run_secs(self) -> list[Seconds] | None:
        """The times; None if it failed."""
        return list(map(Seconds, self.times)) if self.times else None

    @property
    def time(self) -> float | None:
        """The one number for it, in seconds; None if it failed."""
        return robust(list(self.times)) if self.times else None

    def as_schedule(self) -> Schedule:
        """The program with the trace replayed on it.

        Raises ScheduleError where a step of the trace is refused.
        """
        sch = Schedule(self.workload.mod, debug_mask="none")
        self.trace.apply_to_schedule(sch)
        return sch

    def as_measure_candidate(self) -> Any:
        """The program as a candidate to measure again."""
        from ..search_strategy.candidate import MeasureCandidate

        return MeasureCandidate(self.as_schedule(), self.args_info)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, see the head of this file."""
        trace_json = json.dumps(self.trace.as_json())
        own = {name: getattr(self, name) for name in COLUMNS if hasattr(self, name)}
        return with_derived({**own, "workload": self.workload.shash, "target": str(self.target),
                             "trace_json": trace_json, "times": list(self.times)})

    @staticmethod
    def from_json(json_obj: Any, workload: Workload) -> "TuningRecord":
        """A record of what `as_json` gave. Raises DataError for something else."""
        try:
            trace, times, target, args = json_obj
            infos = [TensorInfo.from_json(arg) for arg in args or []]
            Target(target)
            return TuningRecord(Trace.from_json(trace), workload, times_of(times or []),
                                target=target, args_info=infos)
        except MISTAKES as error:
            raise DataError("a tuning record is [trace, times, target, arguments]; this is not: "
                            f"{reason(error)}") from None

    def as_json(self) -> list:
        """[trace, times, target, arguments], TVM's form of a record."""
        return [self.trace.as_json(), list(self.times) or None, str(self.target),
                [a.as_json() for a in self.args_info]]


def times_of(times: Any) -> tuple[float, ...]:
    """Seconds, from a list or its JSON text. Raises DataError."""
    if isinstance(times, (str, bytes)):
        times = read_json(times, "the times of a record")
    if not isinstance(times, (list, tuple)) or not all(
            type(t) in (int, float) and 0 <= t < math.inf for t in times):
        raise DataError(f"the times of a record are numbers of seconds, not {shown(times)}")
    return tuple(times)


#: the columns of a record in the file
COLUMNS = ("id", "session", "task", "workload", "target", "trial", "round", "generation", "parent",
           "mutation", "strategy", "trace_json", "status", "reason", "times", "error", "predicted",
           "seed", "build_s", "run_s", "created", "flop")


def with_derived(row: dict[str, Any]) -> dict[str, Any]:
    """A row of columns with what is derived from them: trace, decisions, time and spread."""
    trace = Trace.from_json(row["trace_json"])
    names = trace.names()
    row["trace"] = str(trace)
    row["decisions"] = {
        ", ".join(names[o] for o in trace.insts[i].output_list): d
        for i, d in trace.decisions.items()}
    times = sorted(row["times"])[: (len(row["times"]) + 1) // 2]
    row["time"] = robust(row["times"]) if times else None
    row["spread"] = (times[-1] - times[0]) / 2 / row["time"] if times else None
    return row


__all__ = ["COLUMNS", "TrialFields", "TuningRecord", "with_derived"]

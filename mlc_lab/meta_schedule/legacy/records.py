"""autotvm's records: one JSON line for each measured configuration, in TVM's form."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple

from ...reading import MISTAKES, DataError, read_json, reason, shown
from ...target import Target
from . import lines
from .config_space import ConfigEntity

if TYPE_CHECKING:
    from pathlib import Path


class MeasureInput(NamedTuple):
    """What was measured."""

    target: Any
    task: Any
    config: ConfigEntity


class MeasureResult(NamedTuple):
    """Seconds of each repeat, or an error: `error_no` is 0 where there is none."""

    costs: tuple[float, ...]
    error_no: int
    all_cost: float
    timestamp: float
    found: Any = None

    @property
    def mean(self) -> float:
        """The one number for it, in seconds."""
        return self.found.time if self.found is not None else sum(self.costs) / len(self.costs)

    @staticmethod
    def of(found: Any) -> "MeasureResult":
        """From what a runner says."""
        numbers = {"ok": 0, "schedule_error": 1, "build_error": 2, "run_error": 4, "crash": 4,
                   "wrong": 5, "timeout": 7, "memory": 4}
        costs = tuple(found.times) if found.status == "ok" else (1e10,)
        return MeasureResult(costs, numbers.get(found.status, 8), found.seconds, time.time(), found)


def encode(inp: MeasureInput, result: MeasureResult) -> str:
    """The line of a measurement."""
    return json.dumps({
        "input": [str(inp.target), inp.task.name, _plain(inp.task.args), {}],
        "config": inp.config.as_json(),
        "result": [list(result.costs), result.error_no, result.all_cost, result.timestamp],
        "version": 0.2})


class LoggedTask(NamedTuple):
    """What a log says of a task: the template need not be there."""

    name: str
    args: tuple
    target: Any

    @property
    def workload(self) -> tuple:
        """(name, arguments...)."""
        return (self.name, *self.args)


def decode(line: str) -> tuple[MeasureInput, MeasureResult]:
    """The measurement of a line. DataError if it is none."""
    try:
        data = read_json(line, "a line")
        target, name, args, _ = data["input"]
        costs, error_no, all_cost, stamp = data["result"]
        Target(target)
        if not isinstance(name, str) or type(error_no) is not int or not all(
                type(number) in (int, float) for number in (*costs, all_cost, stamp)) or not costs:
            raise DataError(f"its result is {shown(data['result'])}")
        task = LoggedTask(name, tuple(_tuples(a) for a in args), target)
        return (MeasureInput(target, task, ConfigEntity.from_json(data["config"])),
                MeasureResult(tuple(costs), error_no, all_cost, stamp))
    except MISTAKES as error:
        raise DataError(f"this is no line of a tuning log: {shown(line)} ({reason(error)})"
                        ) from None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _plain(args: Any) -> list:
    return json.loads(json.dumps(list(args), default=str))


def load_from_file(path: Any) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The measurements of a log; damaged lines are passed over with a warning.

    Raises ValueError for a file without a good line.
    """
    yield from lines.read(path, decode, "tuning log")


def log_to_file(path: str | Path | None) -> Any:
    """A callback that appends to a log."""
    def callback(_: object, inputs: Any, results: Any) -> None:
        lines.append(path, map(encode, inputs, results))

    return callback


def load_any(records: Any) -> list[tuple[MeasureInput, MeasureResult]]:
    """Measurements of a log, of several, or as they are given."""
    if isinstance(records, (str, os.PathLike)):
        return list(load_from_file(records))
    out: list = []
    for item in records:
        out += list(load_from_file(item)) if isinstance(item, (str, os.PathLike)) else [item]
    return out


def best_of(records: Any, target: Target | str | None, name: str, args: object
            ) -> ConfigEntity | None:
    """The fastest configuration of a task in a log, or among measurements."""
    best, seconds = None, float("inf")
    wanted, kind = _plain(args), Target(target).kind.name
    for inp, result in load_any(records):
        if (inp.task.name, _plain(inp.task.args)) != (name, wanted) or result.error_no:
            continue
        if Target(inp.target).kind.name == kind and result.mean < seconds:
            best, seconds = inp.config, result.mean
    return best


def pick_best(in_file: str | Path, out_file: str | Path) -> None:
    """Write the fastest measurement of each task and target in a log to another log."""
    best: dict[tuple, tuple] = {}
    for inp, result in load_from_file(in_file):
        key = (str(inp.target), inp.task.name, json.dumps(_plain(inp.task.args)))
        if not result.error_no and (key not in best or result.mean < best[key][1].mean):
            best[key] = (inp, result)
    with open(out_file, "w") as file:
        file.writelines(encode(*pair) + "\n" for pair in best.values())


__all__ = ["LoggedTask", "MeasureInput", "MeasureResult", "best_of", "decode", "encode",
           "load_any", "load_from_file", "log_to_file", "pick_best"]

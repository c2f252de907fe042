"""`tvm.auto_scheduler`: tuning without a template, as the course notes write it.

    @auto_scheduler.register_workload
    def matmul_add(n): ...  return [A, B, C, out]
    task = auto_scheduler.SearchTask(func=matmul_add, args=(512,), target="llvm")
    task.tune(auto_scheduler.TuningOptions(num_measure_trials=10,
              measure_callbacks=[auto_scheduler.RecordToFile("matmul.json")]))
    sch, args = task.apply_best("matmul.json")
    func = tvm.build(sch, args, "llvm")

The space and the search are those of meta_schedule. A space of one's own is made by sketch rules
(`sketch_rules.py`), and inputs that must not be random are given by name (`task_inputs.py`).
"""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...ir.module import IRModule
from ...reading import DataError, read_json, shown
from ...schedule import Schedule, Trace
from ...target import Target
from ..cost_model import CostModel, RandomModel
from ..cost_model.tree_model import TreeModel
from ..database import MemoryDatabase, TuningRecord
from ..database.record import times_of
from ..measure.builder import LocalBuilder
from ..measure.runner import LocalRunner
from ..measure_callback import MeasureCallback
from ..search_strategy import EvolutionarySearch
from ..tir_integration import tune_tir
from ..workload import text_key
from . import lines, loop_state
from . import search_utils as _ffi_api
from .compute_dag import ComputeDAG
from .sketch_rules import CustomSketches, PreloadCustomSketchRule, sketches_of
from .task_inputs import (
    get_task_input_buffer, inputs_of, must_be_given, register_task_input_buffer,
    register_task_input_check_func,
)

if TYPE_CHECKING:
    from pathlib import Path
    from ..task_scheduler.task_scheduler import TaskScheduler

_workloads: dict[str, Callable] = {}


def register_workload(func: Any = None, f: Callable | None = None, override: bool = False) -> Any:
    """Decorator: a function that makes the tensors of a program."""
    if isinstance(func, str):
        name = func
        if f is not None:
            _workloads[name] = f
            return f
        return lambda fn: _workloads.setdefault(name, fn) if not override else (
            _workloads.update({name: fn}) or fn)
    _workloads[func.__name__] = func
    return func


class TunedSchedule(Schedule):
    """A schedule that `build(sch, args)` and `lower(sch, args)` take like one of te."""

    def to_module(self, args: object, name: str = "main", binds: object = None) -> IRModule:
        """The scheduled module. Raises ValueError for `binds`: its buffers are those it was tuned
        with."""
        del args
        if binds:
            raise ValueError("a schedule that a search found keeps its buffers; binds= is of "
                             "te.create_schedule")
        return IRModule({name: self.mod["main"].with_attr("global_symbol", name)})


class RecordToFile(MeasureCallback):
    """Appends every result to a file, one JSON line each."""

    def __init__(self, filename: str | Path) -> None:
        self.filename = filename

    def apply(self, task_scheduler: TaskScheduler, task_id: int, measure_candidates: Sequence[Any],
              builder_results: Sequence[Any], runner_results: Sequence[Any]) -> None:
        """Write the line of each candidate."""
        mod = task_scheduler.tasks[task_id].context.mod
        lines.append(self.filename, [json.dumps({
            "workload": text_key(mod), "trace": candidate.sch.trace.as_json(),
            "times": list(result.times), "status": result.status, "reason": result.reason})
            for candidate, result in zip(measure_candidates, runner_results)])


def _decode(line: str) -> dict:
    """The measurement of a line. DataError if it is none."""
    data = read_json(line, "a line")
    if not isinstance(data, dict) or not {"workload", "trace", "times", "status"} <= set(data):
        raise DataError(f"this is no tuning record: {shown(line)}")
    for name in ("workload", "status", "reason"):
        if not isinstance(data.get(name) or "", str):
            raise DataError(f"the {name} of a tuning record is {shown(data[name])}")
    Trace.from_json(data["trace"])
    data["times"] = list(times_of(data["times"]))
    return data


class MeasureInput(NamedTuple):
    """What was measured: `task.workload_key` is its program, `state` its trace."""

    task: Any
    state: Any


class MeasureResult(NamedTuple):
    """Seconds of each repeat, or an error: `error_no` is 0 where there is none."""

    costs: tuple[float, ...]
    error_no: int
    error_msg: str


def _pair(data: dict) -> tuple[MeasureInput, MeasureResult]:
    failed = data["status"] != "ok"
    return (MeasureInput(SimpleNamespace(workload_key=data["workload"]), data["trace"]),
            MeasureResult(tuple(data["times"]), int(failed), data.get("reason", "")))


def load_records(filename: str | Path) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The measurements of a file; damaged lines are passed over with a warning."""
    yield from map(_pair, lines.read(filename, _decode, "file of tuning records"))


def load_best_record(filename: str | Path, workload_key: str | None = None,
                     target: Target | str | None = None, include_compatible: bool = False
                     ) -> tuple[Any, Any]:
    """The fastest measurement, of one program if given; (None, None) if there is none."""
    del target, include_compatible  # a file of records has programs of one machine
    good = [(i, r) for i, r in load_records(filename) if not r.error_no and r.costs
            and workload_key in (None, i.task.workload_key)]
    return min(good, key=lambda pair: min(pair[1].costs), default=(None, None))


class ApplyHistoryBest:
    """`with ApplyHistoryBest(file):` is where `task.apply_best()` without a file takes records."""

    _current: list[Any] = []

    def __init__(self, records: Any) -> None:
        self.records = records

    def query(self, target: Target | str | None, workload_key: str) -> Any:
        """The trace of the fastest record of a program; None if there is none."""
        inp, _ = load_best_record(self.records, workload_key, target)
        return inp.state if inp is not None else None

    def __enter__(self) -> "ApplyHistoryBest":
        self._current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._current.remove(self)


class RecordReader:
    """Reads a file of records."""

    def __init__(self, filename: str | Path) -> None:
        self.filename = filename

    def read_lines(self, max_lines: int | None = None, skip_lines: int = 0) -> tuple[list, list]:
        """(inputs, results) of at most `max_lines` lines after the first `skip_lines`."""
        pairs = list(self)[skip_lines:][:max_lines]
        return [i for i, _ in pairs], [r for _, r in pairs]

    def __iter__(self) -> Iterator[tuple[MeasureInput, MeasureResult]]:
        return load_records(self.filename)


class TuningOptions:
    """How long to search and with what; see tune_tir. `early_stopping` ends the search after so
    many measurements without a better one."""

    def __init__(self, num_measure_trials: int = 64, early_stopping: int | None = None,
                 num_measures_per_round: int = 64, verbose: int = 1, builder: object = "local",
                 runner: object = "local", measure_callbacks: Any = None) -> None:
        # TVM takes 0 and -1 for never, too
        self.early_stopping = early_stopping if early_stopping and early_stopping > 0 else None
        self.num_measure_trials, self.num_measures_per_round = (
            num_measure_trials, num_measures_per_round)
        self.verbose, self.builder, self.runner = verbose, builder, runner
        self.measure_callbacks = list(measure_callbacks or [])


class PreloadMeasuredStates:
    """For `SketchPolicy(init_search_callbacks=[...])`: the search begins with the measurements of a
    file."""

    def __init__(self, filename: str | Path) -> None:
        self.filename = filename


class XGBModel(TreeModel):
    """Boosted trees, in auto_scheduler's name."""

    def __init__(self, verbose_eval: int = 25, num_warmup_sample: int = 100,
                 seed: int | None = None, **_: object) -> None:
        super().__init__(seed=seed or 0)
        self.files: list[Any] = []

    def update_from_file(self, file_name: str | Path, n_lines: int | None = None) -> None:
        """Learn from the measurements of a file, of its first `n_lines`, once it is known of which
        task."""
        self.files.append((str(file_name), n_lines))


class SketchPolicy:
    """How a task is searched: with a cost model, from measurements that there are already, in a
    space that sketch rules of one's own make.

    `init_search_callbacks`: PreloadMeasuredStates and PreloadCustomSketchRule, TypeError for
    others. `params`: TVM's numbers of the search by name (see `PARAMS`), ValueError for others.
    """

    #: TVM's name -> that of EvolutionarySearch
    PARAMS = {"eps_greedy": "eps_greedy",
              "evolutionary_search_population": "population_size",
              "evolutionary_search_num_iters": "genetic_num_iters",
              "evolutionary_search_mutation_prob": "genetic_mutate_prob",
              "sample_init_min_population": "init_min_unmeasured",
              "sample_init_use_measured_ratio": "init_measured_ratio"}

    def __init__(self, task: Any, program_cost_model: Any = "random", params: Any = None,
                 seed: int | None = None, verbose: int = 1,
                 init_search_callbacks: Sequence[Any] | None = None) -> None:
        unknown = [name for name in params or () if name not in self.PARAMS]
        if unknown:
            raise ValueError(f"params= has {', '.join(map(repr, unknown))}, which this search has "
                             f"not; it takes {', '.join(self.PARAMS)}. How loops are tiled is said "
                             "by the rules of the space: ms.tune_tir(space=...)")
        self.options = {self.PARAMS[name]: value for name, value in (params or {}).items()}
        self.search_task, self.seed = task, seed
        self.program_cost_model = CostModel.create(program_cost_model)
        callbacks = list(init_search_callbacks or ())
        for callback in callbacks:
            if not isinstance(callback, (PreloadMeasuredStates, PreloadCustomSketchRule)):
                raise TypeError("init_search_callbacks= takes PreloadMeasuredStates and "
                                f"PreloadCustomSketchRule, not {callback!r}")
        self.rules = [c for c in callbacks if isinstance(c, PreloadCustomSketchRule)]
        files = [*getattr(self.program_cost_model, "files", ()),
                 *((str(c.filename), None) for c in callbacks
                   if isinstance(c, PreloadMeasuredStates))]
        self.files = list(dict.fromkeys(files))

    def generate_sketches(self, print_for_debug: bool = False) -> list[loop_state.State]:
        """The states that the sketch rules make; sizes that they leave open are open."""
        dag = self.search_task.compute_dag
        found = [loop_state.State(sketch.state, dag) for sketch in sketches_of(self, self.rules)]
        if print_for_debug:
            for state in found:
                print(state)
        return found


class SearchTask:
    """A program to be tuned for a target. `compute_dag` shows it as TensorIR.

    `task_inputs` are arrays by name that candidates are measured with, in place of random ones, or
    a list of names of which there are data already (see `task_inputs.py`). With
    `task_inputs_save_to_file` they are kept in files of this directory; with
    `task_inputs_overwrite` they take the place of others of these names.
    """

    def __init__(self, func: Any = None, args: Sequence[Any] = (), compute_dag: Any = None,
                 workload_key: str | None = None, target: Any = None,
                 task_inputs: Mapping[str, Any] | Sequence[str] | None = None,
                 task_inputs_overwrite: bool = False, task_inputs_save_to_file: bool = False,
                 **_: object) -> None:
        if isinstance(func, str):
            if func not in _workloads:
                raise ValueError(f"there is no workload {func!r}; there are: "
                                 f"{', '.join(sorted(_workloads)) or 'none'}")
            func = _workloads[func]
        if func is None and not isinstance(compute_dag, ComputeDAG):
            raise ValueError("SearchTask needs func, a function that makes tensors, or its name")
        self.name = "main" if func is None else func.__name__
        self.target = Target(target if target is not None else Target.current() or "llvm")
        self.compute_dag: ComputeDAG = compute_dag if func is None else ComputeDAG(func(*args))
        self.tensors, self.mod = self.compute_dag.tensors, self.compute_dag.mod
        self.database: Any = None
        self.task_input_names = list(task_inputs or ())
        if isinstance(task_inputs, Mapping):
            for name, data in task_inputs.items():
                register_task_input_buffer(self.workload_key, name, data, task_inputs_overwrite,
                                           task_inputs_save_to_file)

    @property
    def workload_key(self) -> str:
        """The key of the program in a file of records."""
        return text_key(self.mod)

    def inputs(self) -> dict[int, Any]:
        """The arrays that candidates are measured with, by the position of their tensors.

        Raises ValueError for data that do not fit, and where some are missing without which the
        program would read outside of its tensors: those that say how often a loop runs.
        """
        found = inputs_of(self.tensors, self.task_input_names, self.workload_key)
        missing = [self.tensors[n].name for n in must_be_given(self.mod["main"]) if n not in found]
        if missing:
            raise ValueError(
                f"how often loops of {self.name} run is read from its inputs, so that "
                f"{', '.join(missing)} cannot be random: give them as SearchTask(task_inputs="
                "{name: array}), by the names of their placeholders or those of a function that is "
                "registered with register_task_input_check_func")
        return found

    def tune(self, tuning_options: TuningOptions, search_policy: Any = None) -> None:
        """Search; results go to the callbacks of the options, and to `self.database`.

        A `SketchPolicy` says with which model, from which measurements it begins, and by which
        rules the space is made. Raises SpaceError where steps of such a rule are refused,
        ValueError where inputs are missing that must not be random.
        """
        options: dict[str, Any] = {"early_stopping": tuning_options.early_stopping}
        chosen: dict[str, Any] = {}
        if search_policy is not None:
            options.update(search_policy.options)
            chosen = {"cost_model": search_policy.program_cost_model, "seed": search_policy.seed,
                      "database": self._recorded(search_policy.files)}
            if search_policy.rules:
                chosen["space"] = CustomSketches(search_policy, search_policy.rules)
        self.database = tune_tir(
            self.mod, self.target, None, tuning_options.num_measure_trials,
            num_trials_per_iter=tuning_options.num_measures_per_round,
            measure_callbacks=tuning_options.measure_callbacks, builder=tuning_options.builder,
            runner=tuning_options.runner, task_name=self.name,
            verbose=bool(tuning_options.verbose), inputs=self.inputs(),
            strategy=EvolutionarySearch(**options), **chosen)

    def _recorded(self, files: Sequence[tuple[str, int | None]]) -> MemoryDatabase:
        """The measurements of this program in the first lines of files, None for all of one."""
        database = MemoryDatabase()
        workload = database.commit_workload(self.mod)
        for file, most in files:
            for data in itertools.islice(
                    lines.read(file, _decode, "file of tuning records"), most):
                if data["workload"] == self.workload_key:
                    database.commit_tuning_record(TuningRecord(
                        Trace.from_json(data["trace"]), workload, str(self.target),
                        tuple(data["times"]), status=data["status"],
                        reason=data.get("reason") or ""))
        return database

    def _best(self, path: str | Path | None) -> Any:
        best, seconds = None, float("inf")
        for data in lines.read(path, _decode, "file of tuning records"):
            times = data["times"]
            if data["workload"] == self.workload_key and data["status"] == "ok" and (
                    times and min(times) < seconds):
                best, seconds = data["trace"], min(times)
        if best is None:
            raise ValueError(f"{path} has no valid record of {self.name}: tune it first")
        return best

    def apply_best(self, log_file: str | Path | None = None) -> tuple[TunedSchedule, list]:
        """(schedule, tensors) of the fastest record; `build(sch, args)` takes them.

        Raises ValueError where there is no record, or no file.
        """
        if log_file is None and ApplyHistoryBest._current:
            log_file = ApplyHistoryBest._current[-1].records
        if log_file is None:
            raise ValueError("apply_best needs the file that RecordToFile wrote")
        sch = TunedSchedule(self.mod)
        sch.apply_trace(json.dumps(self._best(log_file)))
        return sch, self.tensors

    def print_best(self, log_file: str | Path | None, print_mode: str = "schedule") -> str:
        """The trace of the fastest record as Python. ValueError for another `print_mode`."""
        if print_mode != "schedule":
            raise ValueError(f'print_mode={print_mode!r}: a record is printed as "schedule"')
        return str(self.apply_best(log_file)[0].trace)


__all__ = ["ApplyHistoryBest", "ComputeDAG", "LocalBuilder", "LocalRunner", "MeasureInput",
           "MeasureResult", "PreloadCustomSketchRule", "PreloadMeasuredStates", "RandomModel",
           "RecordReader", "RecordToFile", "SearchTask", "SketchPolicy", "TunedSchedule",
           "TuningOptions", "XGBModel", "_ffi_api", "get_task_input_buffer", "load_best_record",
           "load_records", "loop_state", "register_task_input_buffer",
           "register_task_input_check_func", "register_workload"]

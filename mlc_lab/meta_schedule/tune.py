"""tune_tasks: the search that all else (tune_tir, tune_relax, the older interfaces) calls."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Sequence

from ..above import name_above
from .context import TuneContext
from .cost_model import CostModel
from .database import Database, DatabaseError
from .database.kinds import only_structural
from .measure.builder import Builder
from .measure.runner import Runner
from .measure_callback import MeasureCallback
from .progress import Progress
from .task_scheduler import TaskScheduler

if TYPE_CHECKING:
    from pathlib import Path

#: trials where no number was given
DEFAULT_TRIALS = 64


def open_database(database: Database | str | None, work_dir: Any) -> Database:
    """The database of a search: the one given, or the file in `work_dir`."""
    if isinstance(database, Database):
        return database
    kind = "sqlite" if database is None else database
    if kind == "memory" or work_dir is None:
        return Database.create("memory" if kind in ("json", "sqlite") else kind)
    directory = os.fspath(work_dir)
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise DatabaseError(f"the work_dir {directory!r} cannot be made: {error.strerror}; choose "
                            "a directory you may write in") from None
    if not os.access(directory, os.W_OK):
        raise DatabaseError(f"the work_dir {directory!r} may only be read; choose another one")
    return Database.create(kind, work_dir=directory)


def _cores(given: Any) -> int | None:
    """How many processes build candidates; None: as many as the machine has cores to spare."""
    if given in (None, "physical", "logical"):
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ValueError(f'num_tuning_cores is "physical", "logical" or a number from 1 on, not '
                         f"{given!r}")
    return given


def tune_tasks(*, tasks: Sequence[TuneContext], task_weights: Sequence[float] | None = None,
               work_dir: str | Path | None = None, max_trials_global: int | None = None,
               max_trials_per_task: int | None = None, num_trials_per_iter: int = 64,
               builder: object = "local", runner: object = "local",
               database: Database | str | None = "sqlite",
               cost_model: object = "xgb", measure_callbacks: object = "default",
               task_scheduler: object = "gradient", module_equality: str = "structural",
               post_optimization: bool = False, num_tuning_cores: Any = "physical",
               verbose: bool = True) -> Database:
    """Tune several tasks together. Returns the database; see tune_tir for the arguments."""
    only_structural(module_equality)
    if post_optimization:
        raise ValueError("post_optimization=True asks for TVM's droplet search after the search, "
                         "which is not part of this package; more trials do its work")
    if isinstance(builder, str):
        builder = Builder.create(builder, max_workers=_cores(num_tuning_cores))
    if not tasks:
        raise ValueError("there is nothing to tune: the list of tasks is empty")
    if max_trials_global is None:
        max_trials_global = DEFAULT_TRIALS * len(tasks)
    for name, value in (("max_trials_global", max_trials_global),
                        ("num_trials_per_iter", num_trials_per_iter)):
        if value < 1:
            raise ValueError(f"{name} has to be at least 1, not {value}")
    opened = open_database(database, work_dir)
    TaskScheduler.create(task_scheduler).tune(
        tasks, task_weights or [1.0] * len(tasks), max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task or max_trials_global,
        num_trials_per_iter=num_trials_per_iter, builder=Builder.create(builder),
        runner=Runner.create(runner), measure_callbacks=MeasureCallback.create(measure_callbacks),
        database=opened, cost_model=CostModel.create(cost_model),
        progress=Progress(quiet=not verbose))
    return opened


def __getattr__(name: str) -> Any:
    """A name that TVM of 2022 has here and that stands above: `TuneConfig`."""
    return name_above("meta_schedule.tune", name)


__all__ = ["open_database", "tune_tasks"]

"""Tuning TensorIR: tune_tir and compile_tir."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from ..above import above
from ..ir.module import IRModule
from ..schedule import Schedule
from ..target import Target
from ..tir.function import PrimFunc
from .context import TuneContext
from .database import Database
from .search_strategy import SearchStrategy
from .space_generator import SpaceGenerator
from .tune import tune_tasks
from .workload import as_workload

if TYPE_CHECKING:
    from pathlib import Path


def tune_tir(mod: IRModule | PrimFunc, target: Target | str | None = None,
             work_dir: str | Path | None = None, max_trials_global: int | None = None, *,
             max_trials_per_task: int | None = None, num_trials_per_iter: int = 64,
             builder: object = "local", runner: object = "local",
             database: Database | str | None = "sqlite",
             cost_model: object = "xgb", measure_callbacks: object = "default",
             task_scheduler: object = "gradient", space: object = "post-order-apply",
             strategy: object = "evolutionary", num_tuning_cores: int | str = "physical",
             seed: int | None = None, task_name: str | None = None, verbose: bool = True,
             module_equality: str = "structural", special_space: Mapping[str, Any] | None = None,
             post_optimization: bool = False, num_threads: int | None = None,
             config: object = None, inputs: Mapping[int, Any] | None = None) -> Any:
    """Search for a fast schedule of a tensor program.

    Parameters
    ----------
    mod: an IRModule or a PrimFunc. Of a module with several functions each becomes a task.
    target: such as "llvm --num-cores=1"; this machine by default.
    work_dir: where the database is kept; a search that was stopped goes on when it is called again
        with the same directory. None keeps it in memory.
    max_trials_global: how many candidates are measured in all; `max_trials_per_task` for one task.
    num_trials_per_iter: how many at most before the strategy learns from them.
    space: a ScheduleFn, a function of a Schedule, or "post-order-apply", which generates the space
        from the program.
    special_space: the space of single tasks, by their names.
    num_tuning_cores: how many candidates are built at once; "physical": as many as cores are free.
        `num_threads` is how many threads the program itself may use.
    strategy: "evolutionary", "replay-trace", "replay-func", "e-greedy", or a SearchStrategy.
    runner, builder, database, cost_model, task_scheduler, measure_callbacks: a name, or an object
        of that interface.
    seed: of every random choice.
    inputs: arrays for parameters, by position, where random ones would not do: candidates are
        measured, and their results compared, with these.
    config: the options as one object, as TVM had them in 2022 (`ms.TuneConfig`).

    Returns
    -------
    The database with every candidate that was tried; where `config` is given, the fastest schedule.
    Ctrl-C ends the search and returns what was
    found until then.

    Raises
    ------
    SpaceError, TuneError, DatabaseError, ValueError
        For a space that cannot be made, a program that cannot run, a work_dir that cannot be used,
        a target or name that does not exist, a module_equality other than "structural", and
        post_optimization.
    """
    if config is not None:
        return above("search by one object of options")(
            config, mod, target, work_dir, builder=builder, runner=runner, database=database,
            cost_model=cost_model, measure_callbacks=measure_callbacks, space=space,
            num_tuning_cores=num_tuning_cores, seed=seed, task_name=task_name, verbose=verbose,
            num_threads=num_threads)
    tasks = []
    for name, part in _parts(mod, task_name):
        tasks.append(TuneContext(
            part, target=target, space_generator=SpaceGenerator.create(
                (special_space or {}).get(name, space)).clone(),
            search_strategy=SearchStrategy.create(strategy).clone(), task_name=name,
            rand_state=-1 if seed is None else seed, num_threads=num_threads, inputs=inputs))
    return tune_tasks(
        tasks=tasks, work_dir=work_dir, max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task, num_trials_per_iter=num_trials_per_iter,
        builder=builder, runner=runner, database=database, cost_model=cost_model,
        measure_callbacks=measure_callbacks, task_scheduler=task_scheduler,
        module_equality=module_equality, post_optimization=post_optimization,
        num_tuning_cores=num_tuning_cores, verbose=verbose)


def _parts(mod: IRModule | PrimFunc, task_name: str | None) -> list[tuple[str, IRModule]]:
    """The programs of a module, by task name."""
    if isinstance(mod, IRModule):
        funcs = {v.name_hint: f for v, f in mod.functions.items() if isinstance(f, PrimFunc)}
        if len(funcs) > 1:
            return [(name, as_workload(f)) for name, f in funcs.items()]
        if funcs:
            return [(task_name or next(iter(funcs)), as_workload(mod))]
    return [(task_name or "main", as_workload(mod))]


def compile_tir(database: Database, mod: IRModule | PrimFunc, target: Target | str | None = None
                ) -> Schedule:
    """The fastest schedule that a search found for a program.

    `.mod` is the scheduled module, `.trace` the trace. Raises ValueError where the database has no
    valid record of the program.
    """
    target = Target(target if target is not None else Target.current() or "llvm")
    sch = database.query_schedule(mod, target)
    if sch is None:
        known = database.has_workload(mod)
        why = "every candidate of it failed" if known else "the database does not know this program"
        raise ValueError(f"there is no schedule for this program: {why}. Tune it first: "
                         "database = ms.tune_tir(mod, target, work_dir, max_trials_global)")
    return sch


__all__ = ["compile_tir", "tune_tir"]

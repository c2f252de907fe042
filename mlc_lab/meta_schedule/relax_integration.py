"""Tuning whole models: extract_tasks, tune_relax, compile_relax.

A model is first brought into kernels, by the passes with which `relax.build` begins
(`relax.get_pipeline("kernels")`). Kernels that are equal up to names are one task, whose weight is
how often the model calls them. Kernels with symbolic shapes are left to the default schedules.
What is found takes the place of the kernels, and the rest of the passes of `relax.build` follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ..ir.module import IRModule
from ..ir.structural import structural_equal
from ..schedule import Schedule, ScheduleError
from ..target import Target
from ..tir.function import PrimFunc
from .context import TuneContext
from .database import Database
from .database.kinds import only_structural
from .search_strategy import SearchStrategy
from .space_generator import SpaceGenerator
from .space_generator.post_order_apply import default_schedule
from .tune import DEFAULT_TRIALS, tune_tasks
from .workload import TensorInfo, as_workload, block_names, coarse_key

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class ExtractedTask:
    """A kernel of a model: its name, program, target, and how often the model calls it."""

    task_name: str
    mod: IRModule
    target: Target
    dispatched: list[IRModule] = field(default_factory=list)
    weight: int = 1


def prepare(mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
    """The model with `params` bound, as calls of the kernels that `relax.build` makes of it."""
    from .. import relax

    if params:
        mod = relax.transform.BindParams("main", dict(params))(mod)
    return relax.get_pipeline("kernels")(mod)


def _calls(mod: IRModule) -> dict[str, int]:
    """How often each kernel is called, by name."""
    from ..ir.module import GlobalVar
    from ..relax.expr import Call, Function

    counts: dict[str, int] = {}
    for func in mod.functions.values():
        if not isinstance(func, Function):
            continue
        seen: set[int] = set()
        stack: list[Any] = [func.body]
        while stack:
            node = stack.pop()
            if id(node) in seen and not isinstance(node, Call):
                continue
            seen.add(id(node))
            if isinstance(node, Call):
                for item in (node.op, *node.args):
                    if isinstance(item, GlobalVar):
                        counts[item.name_hint] = counts.get(item.name_hint, 0) + 1
            stack.extend(node.children() if hasattr(node, "children") else ())
    return counts


def _kernels(mod: IRModule) -> dict[str, tuple[PrimFunc, int]]:
    """The kernels that can be tuned, with how often they are called.

    Left out are those that only reshape, which are views where the model is built, and those that
    were written as they are to run, such as a sort.
    """
    from ..dlight.base import is_scheduled
    from ..relax.transform.rewrite_dataflow_reshape import has_reshape_pattern

    counts = _calls(mod)
    out = {}
    for var, func in mod.functions.items():
        if not isinstance(func, PrimFunc) or has_reshape_pattern(func) or is_scheduled(func):
            continue
        try:
            TensorInfo.from_prim_func(func)
        except ValueError:
            continue  # symbolic shapes, or scalars among the parameters
        out[var.name_hint] = (func, max(1, counts.get(var.name_hint, 1)))
    return out


def _bare(func: PrimFunc) -> PrimFunc:
    """A kernel without what the graph noted on it, so that equal kernels are equal."""
    for name in list(func.attrs):
        if name != "tir.noalias":
            func = func.without_attr(name)
    return func


def extract_tasks(mod: IRModule, target: Target | str | None = None,
                  params: Mapping[str, Any] | None = None, *, module_equality: str = "structural"
                  ) -> list[ExtractedTask]:
    """The distinct kernels of a model."""
    only_structural(module_equality)
    target = Target(target if target is not None else Target.current() or "llvm")
    tasks: list[ExtractedTask] = []
    known: dict[str, list[ExtractedTask]] = {}
    for name, (func, count) in _kernels(prepare(mod, params)).items():
        work = as_workload(_bare(func))
        alike = known.setdefault(coarse_key(work), [])
        for task in alike:
            if block_names(task.mod) == block_names(work) and structural_equal(task.mod, work):
                task.weight += count
                break
        else:
            task = ExtractedTask(name, work, target, [work], count)
            alike.append(task)
            tasks.append(task)
    return tasks


def extracted_tasks_to_tune_contexts(extracted_tasks: Sequence[ExtractedTask],
                                     work_dir: str | Path | None = None,
                                     space: object = "post-order-apply",
                                     strategy: object = "evolutionary", seed: int | None = None,
                                     **_: object) -> tuple[list[TuneContext], list[float]]:
    """(contexts, weights) of tasks, as tune_tasks takes them."""
    contexts = [TuneContext(
        t.mod, target=t.target, space_generator=SpaceGenerator.create(space).clone(),
        search_strategy=SearchStrategy.create(strategy).clone(), task_name=t.task_name,
        rand_state=-1 if seed is None else seed) for t in extracted_tasks]
    return contexts, [float(t.weight) for t in extracted_tasks]


def _begins_at_default(task: ExtractedTask) -> bool:
    """Whether the default schedule is among the candidates of a generated space.

    A rule may rewrite the kernel before it schedules it, as for a convolution with its pooling.
    Then no trace leads from the kernel to what it gets by default, and a search, which has only
    traces to choose from, could end with something slower.
    """
    sch = default_schedule(task.mod, task.target)
    if sch is None:
        return True
    try:
        sch.trace.apply_to_schedule(Schedule(task.mod, debug_mask="none"), remove_postproc=True)
    except (ScheduleError, ValueError):
        return False
    return True


def tune_relax(mod: IRModule, params: Mapping[str, Any] | None = None,
               target: Target | str | None = None, work_dir: str | Path | None = None,
               max_trials_global: int | None = None, *, max_trials_per_task: int | None = None,
               op_names: Sequence[str] | None = None, space: object = "post-order-apply",
               strategy: object = "evolutionary", seed: int | None = None, **options: Any
               ) -> Database:
    """Search for fast schedules of all kernels of a model.

    `op_names` keeps only kernels whose name contains one of them. With the generated space, kernels
    whose default schedule is beyond traces keep it: the default is a candidate of every search, so
    that tuning never loses. The other arguments are those of tune_tir. Returns the database, for
    `compile_relax`.
    """
    tasks = extract_tasks(mod, target, params)
    if space == "post-order-apply":
        tasks = [t for t in tasks if _begins_at_default(t)]
    if op_names is not None:
        tasks = [t for t in tasks if any(name in t.task_name for name in op_names)]
    if not tasks:
        raise ValueError(
            "the model has no kernel that can be tuned" + (
                f" and whose name contains one of {list(op_names)}" if op_names else "")
            + ": kernels of sizes that are not known, and those that only reshape or were written "
              "as they are to run, have their default. BindSymbolicVars gives sizes numbers")
    contexts, weights = extracted_tasks_to_tune_contexts(tasks, work_dir, space, strategy, seed)
    if max_trials_global is None:
        max_trials_global = DEFAULT_TRIALS * len(tasks)
    return tune_tasks(tasks=contexts, task_weights=weights, work_dir=work_dir,
                      max_trials_global=max_trials_global,
                      max_trials_per_task=max_trials_per_task, **options)


def apply_database(database: Database, mod: IRModule, target: Target | str | None = None
                   ) -> IRModule:
    """The module with every kernel the database knows replaced by its fastest schedule."""
    from ..dlight.base import SCHEDULED

    target = Target(target if target is not None else Target.current() or "llvm")
    mod = mod.copy()
    for var, func in list(mod.functions.items()):
        if not isinstance(func, PrimFunc):
            continue
        work = as_workload(_bare(func))
        if not database.has_workload(work):
            continue
        sch = database.query_schedule(work, target)
        if sch is None:
            continue
        new = sch.mod["main"].without_attr("global_symbol")
        for name, value in func.attrs.items():
            new = new.with_attr(name, value)
        mod.functions[var] = new.with_attr(SCHEDULED, True)
    return mod


def compile_relax(database: Database, mod: IRModule, target: Target | str | None = None,
                  params: Mapping[str, Any] | None = None, enable_warning: bool = False) -> Any:
    """Build a model with the schedules of a database; kernels it does not know get the default.

    Returns what `relax.build` returns: with a database that knows nothing, the same program.
    """
    from .. import relax

    target = Target(target if target is not None else Target.current() or "llvm")
    tuned = apply_database(database, prepare(mod, params), target)
    if enable_warning:
        for name in _kernels(tuned):
            if not database.has_workload(_bare(tuned[name])):
                print(f"{name}: not tuned, the default schedule is used")
    return relax.build(tuned, target, pipeline=relax.get_pipeline("scheduled", target=target))


__all__ = ["ExtractedTask", "apply_database", "compile_relax", "extract_tasks",
           "extracted_tasks_to_tune_contexts", "prepare", "tune_relax"]

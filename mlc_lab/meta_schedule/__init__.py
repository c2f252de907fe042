"""Searching for a schedule: stochastic spaces, search strategies, cost models, measuring.

    from mlc_lab import meta_schedule as ms
    database = ms.tune_tir(mod, "llvm --num-cores=1", "./tune_tmp", max_trials_global=64)
    sch = ms.tir_integration.compile_tir(database, mod, "llvm --num-cores=1")

A reader's path: `tir_integration.py` (what a user calls), `task_scheduler/task_scheduler.py` (the
loop), `search_strategy/`, `space_generator/`, `schedule_rule/`, `cost_model/`, `database/` (what
is kept of each trial), `measure/` (worker processes). Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..above import name_above

#: public name -> module, or "module:name", in this package
_NAMES = {
    "tir_integration": "tir_integration", "relax_integration": "relax_integration",
    "tune_tir": "tir_integration:tune_tir", "compile_tir": "tir_integration:compile_tir",
    "tune_relax": "relax_integration:tune_relax",
    "tune_tasks": "tune:tune_tasks", "TuneContext": "context:TuneContext",
    "database": "database", "Database": "database:Database",
    "TuningRecord": "database:TuningRecord", "DatabaseError": "database:DatabaseError",
    "space_generator": "space_generator", "SpaceGenerator": "space_generator:SpaceGenerator",
    "SpaceError": "space_generator:SpaceError",
    "schedule_rule": "schedule_rule", "ScheduleRule": "schedule_rule:ScheduleRule",
    "postproc": "postproc", "Postproc": "postproc:Postproc",
    "mutator": "mutator", "Mutator": "mutator:Mutator",
    "search_strategy": "search_strategy", "SearchStrategy": "search_strategy:SearchStrategy",
    "MeasureCandidate": "search_strategy:MeasureCandidate",
    "cost_model": "cost_model", "CostModel": "cost_model:CostModel",
    "feature_extractor": "feature_extractor",
    "FeatureExtractor": "feature_extractor:FeatureExtractor",
    "measure_callback": "measure_callback", "MeasureCallback": "measure_callback:MeasureCallback",
    "task_scheduler": "task_scheduler", "TaskScheduler": "task_scheduler:TaskScheduler",
    "TuneError": "task_scheduler:TuneError",
    "builder": "measure.builder", "runner": "measure.runner",
    "Builder": "measure.builder:Builder", "Runner": "measure.runner:Runner",
    "utils": "utils", "derived_object": "utils:derived_object",
    "arg_info": "workload", "ArgInfo": "workload:ArgInfo", "TensorInfo": "workload:TensorInfo",
    "profiler": "profiler", "Profiler": "profiler:Profiler",
    "ExtractedTask": "relax_integration:ExtractedTask",
}


def __getattr__(name: str) -> Any:
    """A public name, loaded the first time it is asked for."""
    path = _NAMES.get(name)
    if path is None:
        return name_above("meta_schedule", name)
    module, _, attribute = path.partition(":")
    found = import_module(f"{__name__}.{module}")
    value = globals()[name] = getattr(found, attribute) if attribute else found
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})

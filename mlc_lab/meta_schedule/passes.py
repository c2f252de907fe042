"""Tuning as passes, for pipelines: MetaScheduleTuneIRMod, MetaScheduleTuneTIR and
MetaScheduleApplyDatabase, and the pipeline "static_shape_tuning" made of them.

    mod = relax.get_pipeline("static_shape_tuning", target="llvm -num-cores=1",
                             total_trials=200)(mod)
    executable = relax.build(mod, "llvm -num-cores=1")
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from .. import relax
from ..ir.module import IRModule
from ..ir.transform import Pass, Sequential, module_pass
from ..target import Target
from .database import Database
from .relax_integration import _kernels, apply_database, tune_relax
from .tune import open_database


def _target(target: Target | str | None = None) -> Target:
    return Target(target if target is not None else Target.current() or "llvm")


def MetaScheduleTuneIRMod(
        params: Mapping[str, Any] | None, work_dir: str, max_trials_global: int,
        max_trials_per_task: int | None = None, op_names: Sequence[str] | None = None,
        target: Target | str | None = None) -> Pass:
    """Search for schedules of all kernels of a model and keep them in `work_dir`.

    The module stays as it is. See `meta_schedule.tune_relax`; the target is the one of
    `with target:` where none is given.
    """
    @module_pass(opt_level=0, name="MetaScheduleTuneIRMod")
    def tune(mod: IRModule, _: object) -> IRModule:
        tune_relax(mod, params, _target(target), work_dir, max_trials_global,
                   max_trials_per_task=max_trials_per_task, op_names=op_names)
        return mod

    return tune


def MetaScheduleTuneTIR(work_dir: str, max_trials_global: int,
                        target: Target | str | None = None) -> Pass:
    """Search for schedules of the TensorIR functions of a module; see MetaScheduleTuneIRMod."""
    return MetaScheduleTuneIRMod(None, work_dir, max_trials_global, target=target)


def MetaScheduleApplyDatabase(work_dir: str | None = None, enable_warning: bool = False,
                              target: Target | str | None = None) -> Pass:
    """Replace every kernel that a database knows by its fastest schedule.

    The database is the one of `with database:`, else the one in `work_dir`; raises ValueError where
    there is neither. With `enable_warning`, kernels that it does not know are named.
    """
    @module_pass(opt_level=0, name="MetaScheduleApplyDatabase")
    def apply(mod: IRModule, _: object) -> IRModule:
        database = Database.current()
        if database is None:
            if work_dir is None:
                raise ValueError("MetaScheduleApplyDatabase needs a database: give it a work_dir, "
                                 "or run it in `with database:`")
            database = open_database("sqlite", work_dir)
        out = apply_database(database, mod, _target(target))
        if enable_warning:
            for name in _kernels(mod):
                if out[name] is mod[name]:
                    print(f"{name}: not in the database, the default schedule is used")
        return out

    return apply


def static_shape_tuning(total_trials: int, target: Target | str | None = None,
                        work_dir: str = "tuning_logs", cpu_weight_prepack: bool = False,
                        max_trials_per_task: int | None = None) -> Pass:
    """`get_pipeline("static_shape_tuning")`: fused, tuned, and each kernel with the best schedule.

    Raises ValueError for `cpu_weight_prepack`, which would change how the model is called.
    """
    if cpu_weight_prepack:
        raise ValueError("cpu_weight_prepack is not supported: schedules pack what they read in "
                         "panels themselves; bind the weights with relax.transform.BindParams to "
                         "have the work on constants done when the model is built")
    target = _target(target)
    return Sequential([
        relax.transform.DecomposeOpsForInference(), relax.transform.CanonicalizeBindings(),
        relax.get_pipeline("kernels"),
        MetaScheduleTuneIRMod(None, work_dir, total_trials, max_trials_per_task, target=target),
        MetaScheduleApplyDatabase(work_dir, target=target),
    ], name="static_shape_tuning")


__all__ = ["MetaScheduleApplyDatabase", "MetaScheduleTuneIRMod", "MetaScheduleTuneTIR",
           "static_shape_tuning"]

"""Named lists of passes: what `relax.build` does to a module before it generates code.

    graph_passes      operators become kernels, which are folded and fused
    sharing_passes    which kernels there are, each once
    (a search puts its schedules here: `meta_schedule.tune_relax`, `compile_relax`)
    scheduling        the default schedule, for kernels that have none
    lowering_passes   calls of kernels become a program for the virtual machine

A search tunes what comes out of the first two, and what it found is built by the last two: what is
tuned is what runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..above import NAMES, name_above
from ..dlight import ApplyDefaultSchedule
from ..ir.transform import Pass, Sequential
from ..lower.pipeline import is_gpu
from . import transform as T

if TYPE_CHECKING:
    from collections.abc import Callable
    from ..target.target import Target


def zero_passes() -> list[Pass]:
    """Operators become kernels, constants are computed, kernels are fused.

    FusePooling is this project's own: TVM's "zero" leaves a pooling a kernel of its own.
    """
    return [T.LegalizeOps(), T.SpecializeKernels(), T.AnnotateTIROpPattern(), T.FoldConstant(),
            T.FuseOps(), T.FusePooling(), T.FuseTIR(), T.DeadCodeElimination()]


def graph_passes(target: Target | str | None = None) -> list[Pass]:
    """What is done to every graph: norms go into the convolutions before, and `zero_passes`. A
    pooling stays a kernel on a GPU."""
    passes = [p for p in zero_passes() if not is_gpu(target) or p.info.name != "FusePooling"]
    return [T.LambdaLift(), T.FoldBatchnormToConv2D(training=False), *passes]


def sharing_passes() -> list[Pass]:
    """Which kernels there are, each once. Reshapes are none, and are found while a kernel is as it
    was written."""
    return [T.RewriteDataflowReshape(), T.DeadCodeElimination(), T.ShareKernels()]


def kernel_passes(target: Target | str | None) -> list[Pass]:
    """Which kernels there are, each once and with a schedule."""
    return [*sharing_passes(), ApplyDefaultSchedule(target=target)]


def lowering_passes(target: Target | str | None = None) -> list[Pass]:
    """From calls of kernels to a program for the virtual machine."""
    # on a GPU memory has no address that one could add to: each tensor has its own
    planned = [] if is_gpu(target) else [T.StaticPlanBlockMemory()]
    return [
        T.ToNonDataflow(), T.RemovePurityChecking(), T.CallTIRRewrite(),
        *planned, T.LowerAllocTensor(), T.KillAfterLastUse(),
        T.LowerRuntimeBuiltin(), T.VMShapeLower(), T.AttachGlobalSymbol(),
    ]


def zero_pipeline(*, enable_log: bool = False) -> Pass:
    """`get_pipeline("zero")`: legal, folded and fused, still a graph one can look at."""
    return Sequential(zero_passes(), name="zero_pipeline")


def default_build_pipeline(target: Target | str | None = None) -> Pass:
    """`get_pipeline("default_build")`: lowered without fusion, as TVM builds by default."""
    return Sequential([T.LambdaLift(), T.LegalizeOps(), *kernel_passes(target),
                       *lowering_passes(target)],
                      name="default_build_pipeline")


def default_pipeline(target: Target | str | None = None) -> Pass:
    """`get_pipeline("default")`: fused, every kernel scheduled, lowered for the machine."""
    return Sequential([*graph_passes(target), *kernel_passes(target), *lowering_passes(target)],
                      name="default_pipeline")


def kernels_pipeline() -> Pass:
    """`get_pipeline("kernels")`: the first half of "default", up to kernels without schedules."""
    return Sequential([*graph_passes(), *sharing_passes()], name="kernels_pipeline")


def scheduled_pipeline(target: Target | str | None = None) -> Pass:
    """`get_pipeline("scheduled")`: the second half of "default", which keeps the schedules that
    kernels have and gives the default to the others."""
    return Sequential([ApplyDefaultSchedule(target=target), *lowering_passes(target)],
                      name="scheduled_pipeline")


#: the pipelines by name; others may be added with `register_pipeline`
PIPELINES: dict[str, Any] = {
    "zero": zero_pipeline, "default": default_pipeline, "default_build": default_build_pipeline,
    "kernels": kernels_pipeline, "scheduled": scheduled_pipeline,
}


def get_pipeline(name: str = "zero", **options: object) -> Pass:
    """The pipeline of that name. Raises ValueError with the names there are."""
    if name not in PIPELINES:
        if name in NAMES["relax.pipeline"]:
            return name_above("relax.pipeline", name)(**options)
        have = ", ".join(sorted({*PIPELINES, *NAMES["relax.pipeline"]}))
        raise ValueError(f"there is no pipeline {name!r}; there are: {have}")
    return PIPELINES[name](**options)


def get_default_pipeline(target: Target | str | None = None) -> Pass:
    """The pipeline that `relax.build` uses for a target."""
    return default_pipeline(target)


def register_pipeline(name: str) -> Any:
    """Decorator: a function that makes a pass, under a name for `get_pipeline`."""
    if name in PIPELINES:
        raise ValueError(f"a pipeline {name!r} is registered already")

    def register(make: Callable[..., Any]) -> Any:
        PIPELINES[name] = make
        return make

    return register


__all__ = ["PIPELINES", "default_build_pipeline", "default_pipeline", "get_default_pipeline",
           "get_pipeline", "kernels_pipeline", "register_pipeline", "scheduled_pipeline",
           "zero_pipeline"]

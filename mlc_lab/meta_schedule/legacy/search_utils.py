"""What TVM's `auto_scheduler._ffi_api` answers to sketch rules: `SearchPolicyUtils*`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...te.tensor import ComputeOp
from .loop_state import State

if TYPE_CHECKING:
    from .loop_state import Stage


class Numbers(dict):
    """Numbers of stages, each for itself; `items()` is a list of pairs, as of TVM's Map."""

    def items(self) -> list[tuple[int, int]]:  # type: ignore[override]
        """The pairs."""
        return list(super().items())


def SearchPolicyUtilsGetConsumers(task: Any, state: Any, stage_id: int) -> Numbers:
    """The stages that read a stage; in place of one that is inlined, those that read it."""
    dag = task.compute_dag
    return Numbers((n, n) for n in dag.consumers(_object(state), int(stage_id)))


def SearchPolicyUtilsIsElementwiseMatch(task: Any, state: Any, stage_id: int, target_stage_id: int
                                        ) -> bool:
    """Whether each element of the target is computed of the one of a stage at the same place."""
    del state
    return task.compute_dag.elementwise_match(int(stage_id), int(target_stage_id))


def SearchPolicyUtilsIsTiled(stage: Stage) -> bool:
    """Whether a stage has other loops than its axes."""
    op = stage.op
    return isinstance(op, ComputeOp) and len(stage.iters) != len(op.axis) + len(op.reduce_axis)


def SearchPolicyUtilsHasCrossThreadReduction(state: Any, stage_id: int) -> bool:
    """Whether a stage is a reduction over threads, or another computed in its loops is. `state` is
    a State: which loops there are is known of it alone."""
    if not isinstance(state, State):
        raise ValueError("SearchPolicyUtilsHasCrossThreadReduction takes a loop_state.State")
    stages = [state.stages[stage_id], *(s for s in state.stages
                                        if s.attached is not None and s.attached[0] == stage_id)]
    return any(it.annotation == "threadIdx.x" and it.is_reduction
               for stage in stages for it in stage.iters)


def SearchPolicyUtilsHasCacheReadStage(state: Any, stage_id: int) -> bool:
    """Whether a copy is read in place of a stage: no step here makes one."""
    return False


def SearchPolicyUtilsHasCacheWriteStage(state: Any, stage_id: int) -> bool:
    """Whether a stage writes a copy first: no step here does that."""
    return False


def SearchPolicyUtilsHasRfactorStage(state: Any, stage_id: int) -> bool:
    """Whether a stage reduces in slices: no step here does that."""
    return False


def _object(state: Any) -> Any:
    return getattr(state, "state_object", state)


__all__ = ["SearchPolicyUtilsGetConsumers", "SearchPolicyUtilsHasCacheReadStage",
           "SearchPolicyUtilsHasCacheWriteStage", "SearchPolicyUtilsHasCrossThreadReduction",
           "SearchPolicyUtilsHasRfactorStage", "SearchPolicyUtilsIsElementwiseMatch",
           "SearchPolicyUtilsIsTiled"]

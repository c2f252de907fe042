"""sample_compute_location: where to compute a block, left to a search."""

from __future__ import annotations

import random
from typing import Any

from ...tir.functor import uses_var
from ..guards import REDUCE, is_block
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


def compute_locations(state: ScheduleState, block: StmtSRef) -> list[StmtSRef]:
    """The loops at which the block could be computed for its consumers."""
    scope = state.scope_root(block)
    consumers = [state.refs[b] for b in state.scope(scope).consumers(block.stmt)]
    if not consumers:
        return []
    chains = [state.loops_above(c) for c in consumers]
    common: list[StmtSRef] = []
    for level in zip(*chains):
        if any(s is not level[0] for s in level):
            break
        common.append(level[0])
    for position, loop in enumerate(common):
        # not inside a loop that drives a reduction of a consumer: the block would be repeated
        for consumer in consumers:
            realize = state.realize_of(consumer)
            for iv, value in zip(consumer.stmt.iter_vars, realize.iter_values):
                if iv.iter_type == REDUCE and uses_var(value, loop.stmt.loop_var):
                    return common[:position]
    return common


@primitive("SampleComputeLocation", pure=True, sampling=True)
def sample_compute_location(state: ScheduleState, rng: random.Random, block: StmtSRef,
                            decision: int | None = None) -> tuple[Any, int]:
    """Choose where to compute a block: at one of its consumer's loops, at root (-1), inline (-2).

    The result is a loop, or one of the two numbers; `compute_at` and `reverse_compute_at` accept
    all three.
    """
    is_block(block)
    candidates = compute_locations(state, block)
    if decision is None:
        decision = rng.choice([-2, -1, *range(len(candidates))])
    decision = int(getattr(decision, "value", decision))
    if decision >= len(candidates):
        decision = len(candidates) - 1
    if decision < 0:
        return decision, decision
    return candidates[decision], decision

"""sample_compute_location: where to compute a block, left to a search."""

from __future__ import annotations

import random
from typing import Any

from ...tir.functor import uses_var
from ..guards import REDUCE, is_block
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


def _shared_loops(state: ScheduleState, block: StmtSRef) -> tuple[list[StmtSRef], int]:
    """The loops that all consumers share, down to those of elements that are inside of loops of a
    reduction, and how many there are before the first of a reduction."""
    scope = state.scope_root(block)
    consumers = [state.refs[b] for b in state.scope(scope).consumers(block.stmt)]
    if not consumers:
        return [], 0
    shared: list[StmtSRef] = []
    for level in zip(*[state.loops_above(c) for c in consumers]):
        if any(s is not level[0] for s in level):
            break
        shared.append(level[0])
    reduces = [any(iv.iter_type == REDUCE and uses_var(value, loop.stmt.loop_var)
                   for c in consumers
                   for iv, value in zip(c.stmt.iter_vars, state.realize_of(c).iter_values))
               for loop in shared]
    plain = reduces.index(True) if True in reduces else len(shared)
    last = next((n for n in range(plain, len(shared)) if not reduces[n]), len(shared))
    return shared[:last], plain


@primitive("SampleComputeLocation", pure=True, sampling=True)
def sample_compute_location(state: ScheduleState, rng: random.Random, block: StmtSRef,
                            decision: int | None = None) -> tuple[Any, int]:
    """Choose where to compute a block: at one of its consumer's loops, at root (-1), inline (-2).
    Loops of a consumer's reduction are taken only where `decision` says so.

    The result is a loop, or one of the two numbers; `compute_at` and `reverse_compute_at` accept
    all three.
    """
    is_block(block)
    candidates, plain = _shared_loops(state, block)
    if decision is None:
        decision = rng.choice([-2, -1, *range(plain)])
    decision = int(getattr(decision, "value", decision))
    if decision >= len(candidates):
        decision = len(candidates) - 1
    if decision < 0:
        return decision, decision
    return candidates[decision], decision

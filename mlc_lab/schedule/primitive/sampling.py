"""sample_perfect_tile, sample_categorical, sample_compute_location: choices left to a search."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any, Sequence

from ...tir import op
from ...tir.functor import uses_var
from ..error import Refusal
from ..guards import REDUCE, is_block, is_loop
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@lru_cache(maxsize=None)
def divisors(n: int) -> tuple[int, ...]:
    """The divisors of n >= 1, in order."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return tuple(sorted({*small, *(n // d for d in small)}))


@lru_cache(maxsize=4096)
def _count(n: int, parts: int, max_innermost: int) -> int:
    """In how many ways n is an ordered product of `parts` factors with a bounded last one."""
    if parts == 1:
        return int(n <= max_innermost)
    return sum(_free_count(n // d, parts - 1) for d in divisors(n) if d <= max_innermost)


@lru_cache(maxsize=65536)
def _free_count(n: int, parts: int) -> int:
    if parts == 1:
        return 1
    return sum(_free_count(n // d, parts - 1) for d in divisors(n))


def sample_tile(rng: random.Random, extent: int, n: int, max_innermost: int) -> list[int]:
    """n factors of `extent` with the last at most `max_innermost`, uniform over all such."""
    if max_innermost <= 0:
        max_innermost = extent
    if n == 1:
        return [extent]
    last_choices = [d for d in divisors(extent) if d <= max_innermost]
    weights = [_free_count(extent // d, n - 1) for d in last_choices]
    last = rng.choices(last_choices, weights)[0]
    rest, left = [], extent // last
    for remaining in range(n - 1, 1, -1):
        choices = divisors(left)
        pick = rng.choices(choices, [_free_count(left // d, remaining - 1) for d in choices])[0]
        rest.append(pick)
        left //= pick
    return [*rest, left, last]


@primitive("SamplePerfectTile", pure=True, sampling=True)
def sample_perfect_tile(state: ScheduleState, rng: random.Random, loop: StmtSRef, n: int,
                        max_innermost_factor: int = 16, decision: Sequence[int] | None = None
                        ) -> tuple[list[int], list[int]]:
    """Choose n factors whose product is the loop's extent, all such choices equally likely.

    The last factor is at most `max_innermost_factor` (no bound if <= 0). A `decision` fixes the
    factors; one made for another extent is fitted: its outermost factor takes what is left.
    The results are variables (ExprRV) to compute with and to pass to `split`.

    Errors: the extent must be a constant.
    """
    is_loop(loop)
    extent = op.as_int(loop.stmt.extent)
    if n < 1:
        raise Refusal("tile_has_parts", f"n={n}: a tile has at least one factor")
    if extent is None:
        if decision is None:
            raise Refusal("extent_is_constant", f"loop {loop.stmt.loop_var.name} has the symbolic "
                          f"extent {loop.stmt.extent!r}: it has no divisors to choose from",
                          nodes=[loop.stmt], hint="give the factors yourself, or specialize the "
                          "function first")
        chosen = [int(d) for d in decision]
    elif decision is not None:
        chosen = _fit([int(d) for d in decision], extent, n)
    else:
        chosen = sample_tile(rng, extent, n, max_innermost_factor)
    return chosen, chosen


def _fit(decision: list[int], extent: int, n: int) -> list[int]:
    """A decision made for some extent, as factors of this one."""
    if len(decision) != n:
        raise Refusal("decision_fits", f"the decision {decision} has {len(decision)} factors, "
                      f"n is {n}")
    left = extent
    out = [1] * n
    for position in range(n - 1, 0, -1):
        wanted = max(1, decision[position])
        factor = wanted if left % wanted == 0 else max(
            d for d in divisors(left) if d <= wanted)
        out[position] = factor
        left //= factor
    out[0] = left
    return out


@primitive("SampleCategorical", pure=True, sampling=True)
def sample_categorical(state: ScheduleState, rng: random.Random, candidates: Sequence[int],
                       probs: Sequence[float], decision: int | None = None) -> tuple[int, int]:
    """Choose one of `candidates` with the given probabilities; the decision is its index.

    Errors: as many probabilities as candidates, none negative, not all zero.
    """
    values = [int(op.as_int(c) if not isinstance(c, float) else c) for c in candidates]
    weights = [float(getattr(p, "value", p)) for p in probs]
    if len(values) != len(weights) or not values:
        raise Refusal("one_probability_each", f"{len(values)} candidates but {len(weights)} "
                      "probabilities")
    if min(weights) < 0 or sum(weights) <= 0:
        raise Refusal("probabilities_are_positive", f"{weights} are no probabilities")
    if decision is None:
        decision = rng.choices(range(len(values)), weights)[0]
    decision = int(getattr(decision, "value", decision))
    if not 0 <= decision < len(values):
        raise Refusal("decision_fits", f"decision {decision} is no index of {len(values)} "
                      "candidates")
    return values[decision], decision


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


def compute_locations(state: ScheduleState, block: StmtSRef) -> list[StmtSRef]:
    """The loops at which the block could be computed for its consumers."""
    scope = state.scope_root(block)
    consumers = [state.refs[b] for b in state.scope(scope).consumers(block.stmt)]
    if not consumers:
        return []
    chains = [state.loops_above(c) for c in consumers]
    common = []
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

"""sample_perfect_tile: factors of a loop's extent, left to a search."""

from __future__ import annotations

import random
from functools import lru_cache
from itertools import accumulate
from typing import Sequence

from ...tir import op
from ..error import Refusal
from ..guards import is_loop
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@lru_cache(maxsize=None)
def divisors(n: int) -> tuple[int, ...]:
    """The divisors of n >= 1, in order."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return tuple(sorted({*small, *(n // d for d in small)}))


@lru_cache(maxsize=65536)
def _free_count(n: int, parts: int) -> int:
    if parts == 1:
        return 1
    return sum(_free_count(n // d, parts - 1) for d in divisors(n))


@lru_cache(maxsize=65536)
def _choices(extent: int, parts: int, most: int) -> tuple[list[int], list[int]]:
    """The divisors of `extent` up to `most`, and in how many ways each of them and those before it
    leave the rest to `parts` factors: the cumulated weights of a uniform choice."""
    found = [d for d in divisors(extent) if d <= most]
    return found, list(accumulate(_free_count(extent // d, parts) for d in found))


def sample_tile(rng: random.Random, extent: int, n: int, max_innermost: int) -> list[int]:
    """n factors of `extent` with the last at most `max_innermost`, uniform over all such."""
    if n == 1:
        return [extent]
    found, weights = _choices(extent, n - 1, max_innermost if max_innermost > 0 else extent)
    last = rng.choices(found, cum_weights=weights)[0]
    rest: list[int] = []
    left = extent // last
    for remaining in range(n - 1, 1, -1):
        found, weights = _choices(left, remaining - 1, left)
        pick = rng.choices(found, cum_weights=weights)[0]
        rest.append(pick)
        left //= pick
    return [*rest, left, last]


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
    if extent is not None and extent < 1:
        raise Refusal("loop_runs", f"loop {loop.stmt.loop_var.name} never runs: its extent "
                      f"{extent} has no factors to choose from", nodes=[loop.stmt])
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

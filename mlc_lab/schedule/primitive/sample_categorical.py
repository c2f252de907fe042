"""sample_categorical: one of several values, left to a search."""

from __future__ import annotations

import random
from typing import Sequence

from ..error import Refusal
from ..instruction import primitive
from ..state import ScheduleState


@primitive("SampleCategorical", pure=True, sampling=True)
def sample_categorical(state: ScheduleState, rng: random.Random, candidates: Sequence[int],
                       probs: Sequence[float], decision: int | None = None) -> tuple[int, int]:
    """Choose one of `candidates` with the given probabilities; the decision is its index.

    Errors: as many probabilities as candidates, none negative, not all zero.
    """
    values = [int(c) for c in candidates]
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

"""RandomModel: scores by chance; what a real model has to beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from .cost_model import CostModel

if TYPE_CHECKING:
    from ..context import TuneContext


class RandomModel(CostModel):
    """Uniform scores from a seed."""

    def __init__(self, *, seed: int | None = None, max_range: float = 1.0) -> None:
        self.generator, self.max_range = np.random.default_rng(seed), max_range

    def predict(self, context: TuneContext, candidates: Sequence[Any]) -> np.ndarray:
        """Random scores."""
        return self.generator.uniform(0, self.max_range, len(candidates))

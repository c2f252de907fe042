"""RandomModel: scores by chance; what a real model has to beat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from ...reading.errors import DataError
from ...reading.json_text import read_json
from .cost_model import CostModel

if TYPE_CHECKING:
    from ..context import TuneContext


class RandomModel(CostModel):
    """Uniform scores from a seed."""

    def __init__(self, *, seed: int | None = None, max_range: float = 1.0) -> None:
        self.generator, self.max_range = np.random.default_rng(seed), max_range

    def save(self, path: str) -> None:
        """Write where its numbers go on, as JSON."""
        Path(path).write_text(json.dumps({
            "random_model": self.generator.bit_generator.state, "max_range": self.max_range}),
            encoding="utf-8")

    def load(self, path: str) -> None:
        """Go on where the model that was saved had stopped. Raises DataError for another file."""
        data = read_json(Path(path).read_bytes(), f"the file {path}")
        try:
            generator = np.random.default_rng(0)
            generator.bit_generator.state = data["random_model"]
            max_range = float(data["max_range"])
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            raise DataError(f"{path} is no file of a RandomModel") from None
        self.generator, self.max_range = generator, max_range

    def predict(self, context: TuneContext, candidates: Sequence[Any]) -> np.ndarray:
        """Random scores."""
        return self.generator.uniform(0, self.max_range, len(candidates))

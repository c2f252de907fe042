"""The interface of cost models: how fast candidates will be, before they are measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from ...above import above

if TYPE_CHECKING:
    from ..context import TuneContext


class CostModel:
    """To write one: override `predict`, and `update` if it learns.

    Scores are throughputs relative to the best known: higher is faster, 1 the best so far.
    """

    def load(self, path: str) -> None:
        """Read what was learnt."""

    def save(self, path: str) -> None:
        """Write what was learnt."""

    def update(self, context: TuneContext, candidates: Sequence[Any], results: Sequence[Any]
               ) -> None:
        """Learn from the results of a batch."""

    def predict(self, context: TuneContext, candidates: Sequence[Any]) -> np.ndarray:
        """A score for each candidate."""
        raise TypeError(f"{type(self).__name__} has to define predict(context, candidates)")

    @property
    def trained(self) -> bool:
        """Whether predictions mean anything yet."""
        return True

    @staticmethod
    def create(kind: Any = "xgb", **options: object) -> "CostModel | None":
        """The model called `kind`, or the one given.

        "xgb" (TVM's name) and "trees" are trees, "random" is random, "none" no model.
        """
        makers = above("cost models")
        if isinstance(kind, str):
            if kind not in makers:
                raise ValueError(f"there is no cost model {kind!r}; choose one of "
                                 f"{', '.join(makers)}")
            return makers[kind](**options)
        return kind() if isinstance(kind, type) else kind


PyCostModel = CostModel

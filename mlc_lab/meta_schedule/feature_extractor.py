"""Feature extractors: what a cost model knows of a candidate, an array with a row for each store.

A model with its own extractor (`XGBModel(extractor=...)`) learns the time from these rows alone,
without the estimate of `features.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from ..machine.hardware import hardware_of
from .component import Component
from .features import stores_of

if TYPE_CHECKING:
    from .context import TuneContext


class FeatureExtractor(Component):
    """To write one: override `extract_from`."""

    def extract_from(self, context: TuneContext, candidates: Sequence[Any]) -> list[Any]:
        """An array for each candidate; all have equally many columns."""
        raise TypeError(f"{type(self).__name__} has to define extract_from(context, candidates)")

    @staticmethod
    def create(kind: Any = "per-store-feature", **options: Any) -> "FeatureExtractor":
        """The extractor of a name, "per-store-feature" or "random", or the one given."""
        if not isinstance(kind, str):
            return kind
        makers = {"per-store-feature": PerStoreFeature, "random": RandomFeatureExtractor}
        if kind not in makers:
            raise ValueError(f"there is no feature extractor {kind!r}; choose one of "
                             f"{', '.join(makers)}")
        return makers[kind](**options)


PyFeatureExtractor = FeatureExtractor


class PerStoreFeature(FeatureExtractor):
    """What `features.py` finds of every store, the most expensive first. For programs of CPUs."""

    def extract_from(self, context: TuneContext, candidates: Sequence[Any]) -> list[Any]:
        """The features of the stores of each candidate's function."""
        hardware = hardware_of(context.target)
        out: list[Any] = []
        for candidate in candidates:
            mod = candidate.sch.mod
            func = mod["main"] if "main" in mod else next(iter(mod.functions.values()))
            out.append(np.array([s.vector_of() for s in stores_of(func, hardware)], "float32"))
        return out


class RandomFeatureExtractor(FeatureExtractor):
    """Numbers by chance, of `feature_size` columns and at most `max_block_num` rows: for tests."""

    def __init__(self, *, feature_size: int = 30, max_block_num: int = 5, seed: int | None = None
                 ) -> None:
        self.feature_size, self.max_block_num = feature_size, max_block_num
        self.generator = np.random.default_rng(seed)

    @property
    def random_state(self) -> Any:
        """Where its numbers go on; what was read can be set again."""
        return self.generator.bit_generator.state

    @random_state.setter
    def random_state(self, state: Any) -> None:
        self.generator.bit_generator.state = state

    def extract_from(self, context: TuneContext, candidates: Sequence[Any]) -> list[Any]:
        """An array of random numbers for each candidate."""
        del context
        return [self.generator.random((int(self.generator.integers(1, self.max_block_num + 1)),
                                       self.feature_size)) for _ in candidates]


create = FeatureExtractor.create

__all__ = ["FeatureExtractor", "PerStoreFeature", "PyFeatureExtractor", "RandomFeatureExtractor",
           "create"]

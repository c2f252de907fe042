"""e-greedy: fresh candidates, the best by the cost model, and now and then any one."""

from __future__ import annotations

from typing import Any

from .candidate import MeasureCandidate
from .evolutionary_search import EvolutionarySearch


class GreedySearch(EvolutionarySearch):
    """Draws `population_size` fresh candidates a batch and takes the best predictions; with
    probability `eps_greedy` a random one instead. Nothing is mutated."""

    name = "e-greedy"

    def __init__(self, eps_greedy: float = 0.1, population_size: int = 64, **options: Any
                 ) -> None:
        super().__init__(eps_greedy=eps_greedy, population_size=population_size, **options)

    def _plan(self, ranked: list[MeasureCandidate]) -> None:
        """Nothing is made ahead."""

    def _evolve(self, room: int) -> list[MeasureCandidate]:
        pool = self._fresh(self.population_size)
        self._predict(pool)
        ranked = sorted(pool, key=lambda c: -(c.predicted or 0.0))
        explore = sum(self.context.rng.random() < self.eps_greedy for _ in range(room))
        out = self._take(ranked, room - explore)
        others = ranked[len(out):]
        self.context.rng.shuffle(others)
        return out + self._take(others, room - len(out))

"""autotvm's tuners: random, grid, genetic, and one with a cost model."""

from __future__ import annotations

import random
from typing import Any, Callable, Sequence

from ..search_strategy.candidate import MeasureCandidate
from .bench import Bench
from .config_space import InstantiationError
from .records import MeasureInput, MeasureResult


class Tuner:
    """Interface: `next_batch(count)` gives numbers of configurations, `update` the results."""

    def __init__(self, task: Any, seed: int | None = None, **_: object) -> None:
        self.task, self.space = task, task.config_space
        self.rng = random.Random(seed)
        self.tried: set[int] = set()
        self.best_config: Any = None
        self.best_flops = 0.0
        self.best_time: float | None = None

    def next_batch(self, count: int) -> list[int]:
        """Numbers of configurations that were not tried, at most `count`."""
        raise TypeError(f"{type(self).__name__} has to define next_batch(count)")

    def update(self, batch: Sequence[int], results: Sequence[Any]) -> None:
        """Learn from results."""

    def has_next(self) -> bool:
        """Whether there is a configuration that was not tried."""
        return len(self.tried) < len(self.space)

    def tune(self, n_trial: int, measure_option: Any = None, early_stopping: int | None = None,
             callbacks: Sequence[Callable] = (), si_prefix: str = "G") -> None:
        """Measure at most `n_trial` configurations; Ctrl-C keeps what was found.

        `callbacks` are called as `callback(tuner, inputs, results)` after each batch.
        `early_stopping` ends the search after so many trials without progress.
        """
        option = measure_option or {}
        builder, runner = option.get("builder", "local"), option.get("runner", "local")
        self.bench = Bench(self.task.program(), self.task.target, builder, runner)
        done, since = 0, 0
        try:
            while done < n_trial and self.has_next():
                batch = self.next_batch(min(8, n_trial - done))
                if not batch:
                    return
                self.tried.update(batch)
                inputs, results = self._measure(batch)
                for measured, result in zip(inputs, results):
                    since = 0 if self._note(measured, result) else since + 1
                done += len(batch)
                self.update(batch, results)
                for callback in callbacks:
                    callback(self, inputs, results)
                if early_stopping and since >= early_stopping:
                    return
        except KeyboardInterrupt:
            pass

    def _measure(self, batch: Sequence[int]) -> tuple[list, list]:
        configs = [self.space.get(i) for i in batch]
        made = [self._schedule(c) for c in configs]
        found = self.bench.measure([m if isinstance(m, Exception) else m.mod for m in made])
        self.schedules = [None if isinstance(m, Exception) else m for m in made]
        inputs = [MeasureInput(self.task.target, self.task, c) for c in configs]
        return inputs, [MeasureResult.of(r) for r in found]

    def _schedule(self, config: Any) -> Any:
        """The schedule of a configuration, or the InstantiationError that there is instead."""
        try:
            return self.task.schedule(config)
        except InstantiationError as error:
            return error

    def _note(self, measured: Any, result: Any) -> bool:
        if result.error_no or (self.best_time is not None and result.mean >= self.best_time):
            return False
        self.best_time, self.best_config = result.mean, measured.config
        self.best_flops = self.task.flop / result.mean if self.task.flop else 0.0
        return True

    def _fresh(self, count: int) -> list[int]:
        size, out = len(self.space), []
        while len(out) < count and len(self.tried) + len(out) < size:
            index = self.rng.randrange(size)
            if index not in self.tried and index not in out:
                out.append(index)
        return out


class RandomTuner(Tuner):
    """Configurations by chance."""

    def next_batch(self, count: int) -> list[int]:
        """Fresh ones."""
        return self._fresh(count)


class GridSearchTuner(Tuner):
    """Configurations in their order."""

    at = 0

    def next_batch(self, count: int) -> list[int]:
        """The next ones."""
        out = list(range(self.at, min(self.at + count, len(self.space))))
        self.at += len(out)
        return out


class GATuner(Tuner):
    """A genetic search: the choices of two good configurations are mixed, and some mutated.

    `pop_size` configurations a generation, `elite_num` survive, `mutation_prob` for each choice.
    """

    def __init__(self, task: Any, pop_size: int = 32, elite_num: int = 4,
                 mutation_prob: float = 0.15, **options: Any) -> None:
        super().__init__(task, **options)
        self.pop_size, self.elite_num, self.mutation_prob = pop_size, elite_num, mutation_prob
        self.scores: dict[int, float] = {}

    def next_batch(self, count: int) -> list[int]:
        """The first generation by chance, then children."""
        if len(self.scores) < min(self.pop_size, len(self.space)) // 2:
            return self._fresh(count)
        ranked = sorted(self.scores, key=lambda i: -self.scores[i])[: self.pop_size // 2]
        weights = [1 / (1 + rank) for rank in range(len(ranked))]
        out: list[int] = []
        for _ in range(count * 20):
            if len(out) >= count:
                break
            mother, father = (self.space.genes(i) for i in self.rng.choices(ranked, weights, k=2))
            genes = [self.rng.choice(pair) for pair in zip(mother, father)]
            genes = [self.rng.randrange(size) if self.rng.random() < self.mutation_prob else gene
                     for gene, size in zip(genes, self.space.dims)]
            index = self.space.index_of(genes)
            if index not in self.tried and index not in out:
                out.append(index)
        return out + [i for i in self._fresh(count) if i not in out][: count - len(out)]

    def update(self, batch: Sequence[int], results: Sequence[Any]) -> None:
        """Fitness is speed."""
        for index, result in zip(batch, results):
            self.scores[index] = 0.0 if result.error_no else 1 / result.mean


class XGBTuner(Tuner):
    """The best of `plan_size` fresh configurations by the cost model of meta_schedule."""

    def __init__(self, task: Any, plan_size: int = 32, feature_type: str = "itervar",
                 loss_type: str = "reg", **options: Any) -> None:
        from ..cost_model import TreeModel

        super().__init__(task, **options)
        self.plan_size, self.model = plan_size, TreeModel()

    def next_batch(self, count: int) -> list[int]:
        """Those that are predicted to be fastest, and one by chance."""
        plan = self._fresh(max(self.plan_size, count))
        made = [(i, self._schedule(self.space.get(i))) for i in plan]
        good = [(i, MeasureCandidate(s)) for i, s in made if not isinstance(s, Exception)]
        if not good:
            return plan[:count]
        scores = self.model.predict(self._context(), [c for _, c in good])
        ranked = [i for _, (i, _) in sorted(zip(scores, good), key=lambda p: -p[0])]
        chosen = ranked[: max(1, count - 1)]
        return chosen + [i for i in plan if i not in chosen][: count - len(chosen)]

    def update(self, batch: Sequence[int], results: Sequence[Any]) -> None:
        """Train the model."""
        pairs = [(MeasureCandidate(s), r.found) for s, r in zip(self.schedules, results)
                 if s is not None]
        self.model.update(self._context(), [c for c, _ in pairs], [r for _, r in pairs])

    def _context(self) -> Any:
        class Context:
            target, task_name = self.task.target, self.task.name

        return Context


__all__ = ["GATuner", "GridSearchTuner", "RandomTuner", "Tuner", "XGBTuner"]

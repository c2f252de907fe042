"""Options of a search as one object, as TVM had them in 2022.

    sch = ms.tune_tir(mod, "llvm --num-cores=4", work_dir="./tune_tmp",
                      config=ms.TuneConfig(max_trials_global=64, num_trials_per_iter=64))

With `config=` the search gives what it gave then: the schedule that was fastest, or None.

The development of 0.9 had `ReplayTraceConfig`, `ReplayFuncConfig` and `EvolutionarySearchConfig`;
the releases 0.9 and 0.10 had `TuneConfig` in their place, and from 0.11 on the options are
arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Mapping

if TYPE_CHECKING:
    from ..meta_schedule.search_strategy import SearchStrategy
    from ..schedule import Schedule


@dataclass(frozen=True)
class TuneConfig:
    """How much to try, and by which strategy."""

    max_trials_global: int
    num_trials_per_iter: int = 64
    max_trials_per_task: int | None = None
    task_scheduler: str = "gradient"
    strategy: str = "evolutionary"
    task_scheduler_config: Mapping[str, Any] | None = None
    search_strategy_config: Mapping[str, Any] | None = None
    logger_config: Mapping[str, Any] | None = None
    adaptive_training: bool | None = None

    def create_strategy(self) -> SearchStrategy:
        """The strategy, with its options."""
        return _strategy(self.strategy, self.search_strategy_config or {})


@dataclass(frozen=True)
class ReplayTraceConfig:
    """Traces are replayed with new decisions."""

    num_trials_per_iter: int
    max_trials_per_task: int
    max_trials_global: int | None = None
    task_scheduler: str = field(default="gradient", init=False)
    strategy: str = field(default="replay-trace", init=False)

    def create_strategy(self) -> SearchStrategy:
        """The strategy."""
        return _strategy(self.strategy, {})


@dataclass(frozen=True)
class ReplayFuncConfig(ReplayTraceConfig):
    """The function that makes the space is run again for each candidate."""

    strategy: str = field(default="replay-func", init=False)


@dataclass(frozen=True)
class EvolutionarySearchConfig(ReplayTraceConfig):
    """Candidates are mutated, and chosen by the cost model."""

    population_size: int = 2048
    init_measured_ratio: float = 0.2
    init_min_unmeasured: int = 50
    genetic_num_iters: int = 4
    genetic_mutate_prob: float = 0.85
    genetic_max_fail_count: int = 10
    eps_greedy: float = 0.05
    strategy: str = field(default="evolutionary", init=False)

    def create_strategy(self) -> SearchStrategy:
        """The strategy, with its options."""
        return _strategy(self.strategy, {name: getattr(self, name) for name in (
            "population_size", "init_measured_ratio", "init_min_unmeasured", "genetic_num_iters",
            "genetic_mutate_prob", "genetic_max_fail_count", "eps_greedy")})


def _strategy(name: str, options: Mapping[str, Any]) -> SearchStrategy:
    from ..meta_schedule.search_strategy import MAKERS

    if name.replace("_", "-") not in MAKERS:
        raise ValueError(f"there is no search strategy {name!r}; there are {', '.join(MAKERS)}")
    return MAKERS[name.replace("_", "-")](**options)


def tune_tir(config: Any, mod: Any, target: Any, work_dir: Any, **options: Any) -> Schedule | None:
    """The search that `config` asks for, and the fastest schedule that it found.

    TypeError where `config` is none of this file.
    """
    from ..meta_schedule import compile_tir, tune_tir as search

    if not isinstance(config, (TuneConfig, ReplayTraceConfig)):
        raise TypeError("config= takes a TuneConfig, such as ms.TuneConfig(max_trials_global=64); "
                        f"got {type(config).__name__}")
    per_task = config.max_trials_per_task
    database = search(
        mod, target, work_dir, config.max_trials_global or per_task, max_trials_per_task=per_task,
        num_trials_per_iter=config.num_trials_per_iter, strategy=config.create_strategy(),
        task_scheduler=config.task_scheduler, **options)
    try:
        return compile_tir(database, mod, target)
    except ValueError:  # no candidate ran
        return None


__all__ = ["EvolutionarySearchConfig", "ReplayFuncConfig", "ReplayTraceConfig", "TuneConfig",
           "tune_tir"]

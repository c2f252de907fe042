"""`tvm.meta_schedule.default_config` of 0.9 and 0.10: what a search gets where nothing is chosen.

    from tvm.meta_schedule.default_config import _DefaultLLVM
    ms.tune_tir(mod, target, config, sch_rules=_DefaultLLVM.schedule_rules, ...)

Each function gives what it was given, or the default for the target where that is None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..meta_schedule import defaults
from ..target import Target

if TYPE_CHECKING:
    from ..target.target import TargetLike


def target(target: TargetLike) -> Target:
    """A target, by name or as it is."""
    return Target(target)


def schedule_rules(sch_rules: Callable[[], list[Any]] | None, target: TargetLike) -> list[Any]:
    """What `sch_rules()` gives; the target's schedule rules if it is None."""
    return sch_rules() if sch_rules is not None else defaults.default_rules(Target(target))


def postproc(postproc: Callable[[], list[Any]] | None, target: TargetLike) -> list[Any]:
    """What `postproc()` gives; the target's postprocessors if it is None."""
    return postproc() if postproc is not None else defaults.default_postprocs(Target(target))


def mutator_probs(mutator_probs: Callable[[], dict[Any, float]] | None, target: TargetLike
                  ) -> dict[Any, float]:
    """What `mutator_probs()` gives; the target's mutators with their probabilities if it is None.
    """
    return (mutator_probs() if mutator_probs is not None
            else defaults.default_mutators(Target(target)))


class _Default:
    """The defaults of one kind of target."""

    of = ""

    @classmethod
    def schedule_rules(cls) -> list[Any]:
        """Schedule rules, in the order in which they are tried."""
        return defaults.default_rules(Target(cls.of))

    @classmethod
    def postprocs(cls) -> list[Any]:
        """Postprocessors, in the order they run."""
        return defaults.default_postprocs(Target(cls.of))

    @classmethod
    def mutator_probs(cls) -> dict[Any, float]:
        """Mutators, with the probability of each."""
        return defaults.default_mutators(Target(cls.of))


class _DefaultLLVM(_Default):
    """For the processor."""

    of = "llvm"


class _DefaultCUDA(_Default):
    """For GPUs of NVIDIA."""

    of = "cuda"


__all__ = ["mutator_probs", "postproc", "schedule_rules", "target"]

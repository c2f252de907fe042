"""What a target gets where the user chose nothing: rules, postprocessors, mutators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend.source import DIALECTS

if TYPE_CHECKING:
    from ..target.target import Target


def is_gpu(target: Any) -> bool:
    """Whether programs for a target are kernels of a GPU."""
    return getattr(getattr(target, "kind", None), "name", "") in DIALECTS


def default_rules(target: Target | str | None) -> list[Any]:
    """Schedule rules, in the order in which they are tried at a block."""
    from . import schedule_rule as rules

    return rules.for_gpu(target) if is_gpu(target) else rules.for_cpu(target)


def default_postprocs(target: Target | str | None) -> list[Any]:
    """Postprocessors, in the order they run."""
    from . import postproc

    return postproc.for_gpu(target) if is_gpu(target) else postproc.for_cpu(target)


def default_mutators(target: Target | str | None) -> dict[Any, float]:
    """Mutators with the probability of each."""
    from . import mutator

    return mutator.for_gpu(target) if is_gpu(target) else mutator.for_cpu(target)


def num_cores(target: Target | str | None) -> int:
    """How many threads a program for this target may use."""
    from ..runtime import native_library

    cores = getattr(target, "num_cores", None)
    return int(cores) if cores else native_library.num_threads()

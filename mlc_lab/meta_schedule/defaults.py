"""What a target gets where the user chose nothing: rules, postprocessors, mutators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend.source import DIALECTS

if TYPE_CHECKING:
    from ..target.target import Target


def is_gpu(target: Any) -> bool:
    """Whether programs for a target are kernels of a GPU."""
    return getattr(getattr(target, "kind", None), "name", "") in DIALECTS


def _has_rules(target: Target | str | None) -> None:
    """ValueError for a GPU that no kernels are made for."""
    if "gpu" in getattr(target, "keys", ()) and not is_gpu(target):
        kind = getattr(getattr(target, "kind", None), "name", target)
        raise ValueError(f"there are no default rules for {kind!r}, and candidates cannot be run "
                         f"for {kind!r} here: give the target \"llvm\", or a space generator with "
                         "sch_rules, postprocs and mutator_probs of its own")


def target_of(given: Target | str | None) -> Any:
    """A target; of TVM's names of sets ("llvm", "cuda-tensorcore") that whose set it is."""
    if not isinstance(given, str):
        return given
    from ..target import Target

    try:
        target = Target(given.removesuffix("-tensorcore"))
    except ValueError:
        target = None
    if target is not None and (target.kind.name == "llvm" or is_gpu(target)):
        return target
    raise ValueError(f"there are no default rules for {given!r}: there are for \"llvm\", "
                     + ", ".join(f'"{name}"' for name in DIALECTS))


def default_rules(target: Target | str | None) -> list[Any]:
    """Schedule rules, in the order in which they are tried at a block."""
    from . import schedule_rule as rules

    target = target_of(target)
    _has_rules(target)
    return rules.for_gpu(target) if is_gpu(target) else rules.for_cpu(target)


def default_postprocs(target: Target | str | None) -> list[Any]:
    """Postprocessors, in the order they run."""
    from . import postproc

    target = target_of(target)
    _has_rules(target)
    return postproc.for_gpu(target) if is_gpu(target) else postproc.for_cpu(target)


def default_mutators(target: Target | str | None) -> dict[Any, float]:
    """Mutators with the probability of each."""
    from . import mutator

    target = target_of(target)
    _has_rules(target)
    return mutator.for_gpu(target) if is_gpu(target) else mutator.for_cpu(target)


def num_cores(target: Target | str | None) -> int:
    """How many threads a program for this target may use."""
    from ..runtime import native_library

    cores = getattr(target, "num_cores", None)
    return int(cores) if cores else native_library.num_threads()

"""Mutators: small changes of a trace's decisions, for evolutionary search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .mutate_choice import MutateChoice
from .mutate_compute_location import MutateComputeLocation
from .mutate_parallel import MutateParallel
from .mutate_thread_binding import MutateThreadBinding
from .mutate_tile_size import MutateTileSize
from .mutate_unroll import MutateUnroll
from .mutator import Mutator, PyMutator

if TYPE_CHECKING:
    from ...target.target import Target


def for_cpu(target: Target | str | None) -> dict[Mutator, float]:
    """Those for CPUs with the probability of each."""
    return {MutateTileSize(): 0.75, MutateChoice(): 0.1, MutateComputeLocation(): 0.05,
            MutateUnroll(): 0.05, MutateParallel(): 0.05}



def for_gpu(target: Target | str | None) -> dict[Mutator, float]:
    """Those for GPUs with the probability of each."""
    return {MutateTileSize(): 0.6, MutateThreadBinding(): 0.15, MutateChoice(): 0.15,
            MutateUnroll(): 0.1}


create = Mutator.create

__all__ = ["MutateChoice", "MutateComputeLocation", "MutateParallel", "MutateThreadBinding",
           "MutateTileSize", "MutateUnroll", "Mutator", "PyMutator", "create", "for_cpu", "for_gpu"]

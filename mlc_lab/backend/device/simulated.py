"""The simulated device: the kernels of a lowered program as machine code for the CPU.

The same program that a GPU would get goes through `lower/threads_to_loops.py` and then the way of
every program for the CPU. Blocks run on all cores. Its time says nothing of a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.module import IRModule
from ...lower import LimitUnroll, PlaceAllocations, Simplify, SplitVector, SumLanes
from ...lower.threads_to_loops import ThreadsToLoops
from .. import llvm

if TYPE_CHECKING:
    from ...runtime.module import Module


def on_the_cpu(mod: IRModule) -> IRModule:
    """A program of kernels as one of loops, with the last passes that LLVM wants."""
    for step in (ThreadsToLoops(), Simplify(), SumLanes(), LimitUnroll(), SplitVector(),
                 PlaceAllocations()):
        mod = step(mod)
    return mod


def build(mod: IRModule, entry: str | None = None) -> Module:
    """Lowered host functions and kernels, compiled for this machine. Raises what LLVM's generator
    raises, and LowerError for barriers that only some threads reach."""
    return llvm.build(on_the_cpu(mod), None, entry)


__all__ = ["build", "on_the_cpu"]

"""Fallback: a kernel for each block, with a thread for each element that it stores.

It fits every function. `threads.py` shows what becomes of a block.
"""

from __future__ import annotations

from ...schedule import Schedule
from ..base import KernelRule, Machine
from .threads import GPUMachine, bind_rest


class Fallback(KernelRule):
    """A thread for each element of each block."""

    inlines = True

    def schedule(self, sch: Schedule, machine: Machine) -> bool:
        """Fits every function."""
        assert isinstance(machine, GPUMachine)
        bind_rest(sch, machine)
        return True


__all__ = ["Fallback"]

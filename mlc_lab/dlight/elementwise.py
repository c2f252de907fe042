"""Elementwise: functions that store each element once, from whatever they read.

Intermediate results are computed where they are used; the loops of what is left become vectors,
and threads where there is much to do. Functions with other blocks too have at least those
scheduled that store each element once.

Before::

    for i, j in T.grid(512, 512):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + B[vi, vj]

After, on vectors of eight::

    for i_j_fused_0 in T.parallel(32768):
        for i_j_fused_1 in T.vectorized(8):
            with T.block("C"):
                ...
"""

from __future__ import annotations

from ..schedule import Schedule
from .base import Machine, KernelRule
from .stages import schedule_elementwise, stages


class Elementwise(KernelRule):
    """Element by element work: inlined, in vectors, on threads where they pay."""

    inlines = True

    def schedule(self, sch: Schedule, machine: Machine) -> bool:
        """Fits every function with a block that stores each element once."""
        done = False
        for stage in stages(sch):
            if stage.is_spatial:
                schedule_elementwise(sch, stage.rv, machine)
                done = True
        return done


__all__ = ["Elementwise"]

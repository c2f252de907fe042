"""Transpose: functions that read along one dimension what they write along another.

Rows of one side are columns of the other, so whichever way the loops run, one side jumps through
memory. In square tiles the lines that one side brings into the cache are used up before they go.

Before::

    for i, j in T.grid(1024, 1024):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]

After, on vectors of eight::

    for i_0, j_0 in T.grid(64, 64):
        for i_1 in T.unroll(16):
            for j_1 in T.vectorized(16): ...
"""

from __future__ import annotations

from ..schedule import Schedule
from .base import Machine, KernelRule
from .stages import Stage, memory_stride, schedule_elementwise, stages

#: rows and columns of a tile: a cache line of float32
_TILE = 16


class Transpose(KernelRule):
    """Tiles for what reads across the direction in which it writes."""

    inlines = True

    def schedule(self, sch: Schedule, machine: Machine) -> bool:
        """Fits where a block reads some buffer with stride one along another dimension than the
        innermost one it writes."""
        done = False
        for stage in stages(sch):
            across = self.across(stage)
            if across is None:
                if stage.is_spatial:
                    schedule_elementwise(sch, stage.rv, machine)
                continue
            loops = sch.get_loops(stage.rv)
            row, column = loops[across], loops[-1]
            r0, r1 = sch.split(row, [None, _TILE])
            c0, c1 = sch.split(column, [None, _TILE])
            others = loops[:across] + loops[across + 1:-1]
            sch.reorder(*others, r0, c0, r1, c1)
            sch.vectorize(c1)
            if machine.threads_pay(stage.work):
                sch.parallel(sch.fuse(*others) if len(others) > 1 else (others or [r0])[0])
            done = True
        return done

    @staticmethod
    def across(stage: Stage) -> int | None:
        """The dimension along which a transposing block reads neighbours; None: it is none."""
        if not stage.is_spatial or len(stage.spatial) < 2:
            return None
        last = stage.spatial[-1]
        if (stage.extents[last] or _TILE) < _TILE or stage.stored.indices[-1] is not last:
            return None
        for load in stage.loads():
            if memory_stride(load, last) in (0, 1):
                continue
            for at, var in enumerate(stage.spatial[:-1]):
                if memory_stride(load, var) == 1 and (stage.extents[var] or _TILE) >= _TILE:
                    return at
        return None


__all__ = ["Transpose"]

"""AutoBind: a thread for each element of every block that no other rule has bound.

Before::

    for i, j in T.grid(64, 1000):
        B[i, j] = A[i, j] * 2

After, with 256 threads::

    for i_j_0 in T.thread_binding(250, thread="blockIdx.x"):
        for i_j_1 in T.thread_binding(256, thread="threadIdx.x"):
            B[...] = A[...] * 2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...dlight.gpu.threads import split_loops
from ...schedule import ScheduleError
from ...target.limits import limits_of
from ...tir.op import as_int
from .schedule_rule import ScheduleRule

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule


class AutoBind(ScheduleRule):
    """`thread_extents` are the numbers of threads to choose from."""

    def __init__(self, max_threadblocks: int = 256,
                 thread_extents: Sequence[int] = (32, 64, 128, 256, 512, 1024)) -> None:
        del max_threadblocks  # TVM's: here there are as many blocks as are needed
        self.thread_extents = list(thread_extents)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """One alternative; what cannot be bound is left to the postprocessor
        RewriteUnboundBlock."""
        if any(sch.get(loop).thread_binding is not None for loop in sch.get_loops(block)):
            return [sch]
        trial = sch.copy()
        try:
            self._bind(trial, block)
        except ScheduleError:
            return [sch]
        return [trial]

    def _bind(self, sch: Schedule, block: BlockRV) -> None:
        spatial, others = split_loops(sch, block)
        if not spatial:
            spatial = [sch.add_unit_loop(others[0] if others else block)]
        elif others:
            sch.reorder(*spatial, *others)
        fused = sch.fuse(*spatial) if len(spatial) > 1 else spatial[0]
        limits = limits_of(self.context.target) if self.context is not None else None
        extent = as_int(sch.get(fused).extent)
        most = min(extent or 1 << 30, limits.threads if limits is not None else 256)
        extents = [n for n in self.thread_extents if n <= most]
        threads: Any = extents[0] if len(extents) == 1 else most
        if len(extents) > 1:
            threads = sch.sample_categorical(extents, [round(1 / len(extents), 4)] * len(extents))
        outer, inner = sch.split(fused, factors=[None, threads])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
        if others and sch.get(block).init is not None:
            sch.decompose_reduction(block, others[0])


__all__ = ["AutoBind"]

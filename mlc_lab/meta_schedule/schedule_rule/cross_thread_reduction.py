"""CrossThreadReduction: the threads of a block sum together, for each result.

Before::

    for i, k in T.grid(64, 4096):
        B[i] = B[i] + A[i, k]

After, with 128 threads::

    for i in T.thread_binding(64, thread="blockIdx.x"):
        for k_0 in range(32):
            for k_1 in T.thread_binding(128, thread="threadIdx.x"):
                B[i] = B[i] + A[i, k_0 * 128 + k_1]    # the threads' sums are added at the end

It is offered beside the other forms of a block, since it pays where results are few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...schedule import ScheduleError
from ...target.limits import limits_of
from ..analysis import BlockFacts
from .schedule_rule import ScheduleRule

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule

#: results from which on each has a thread of its own, and terms below which there are too few
_MANY, _SHORT = 1 << 14, 32


class CrossThreadReduction(ScheduleRule):
    """`thread_extents` are the numbers of threads to choose from."""

    def __init__(self, thread_extents: Sequence[int] = (32, 64, 128, 256, 512, 1024)) -> None:
        self.thread_extents = list(thread_extents)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """The block as it is, and summed by threads where that may pay."""
        facts = BlockFacts(sch, block)
        if not facts.simple or facts.store is None or facts.stmt.init is None:
            return [sch]
        results = terms = 1
        for axis in facts.axes:
            if axis.reduce:
                terms *= axis.extent
            else:
                results *= axis.extent
        if results >= _MANY or terms < _SHORT:
            return [sch]
        limits = limits_of(self.context.target) if self.context is not None else None
        most = min(terms, limits.threads if limits is not None else 256)
        extents = [n for n in self.thread_extents if n <= most] or [min(self.thread_extents)]
        trial = sch.copy()
        try:
            self._together(trial, BlockFacts(trial, block), extents)
        except ScheduleError:
            return [sch]
        return [sch, trial]

    def _together(self, sch: Schedule, facts: BlockFacts, extents: list[int]) -> None:
        spatial = [a.loop for a in facts.spatial if a.loop is not None]
        reduced = [a.loop for a in facts.reduced if a.loop is not None]
        sch.copy().rfactor(reduced[-1], 0)  # is it a sum that threads can share?
        sch.reorder(*spatial, *reduced)
        summed = sch.fuse(*reduced) if len(reduced) > 1 else reduced[0]
        threads = sch.sample_categorical(extents, [round(1 / len(extents), 4)] * len(extents))
        _, inner = sch.split(summed, factors=[None, threads])
        if spatial:
            sch.bind(sch.fuse(*spatial) if len(spatial) > 1 else spatial[0], "blockIdx.x")
        sch.bind(inner, "threadIdx.x")


__all__ = ["CrossThreadReduction"]

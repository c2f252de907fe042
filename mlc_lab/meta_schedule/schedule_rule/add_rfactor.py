"""AddRFactor: sums along contiguous memory get partial sums, one for each lane of a vector.

Before::

    for i, k in T.grid(1024, 1024):
        B[i] = B[i] + A[i, k]

After, with a factor of 32::

    for i, k_0, k_1 in T.grid(1024, 32, 32):               # k_1 a vector
        B_rf[i, k_1] = B_rf[i, k_1] + A[i, k_0 * 32 + k_1]
    for i, k_1 in T.grid(1024, 32):
        B[i] = B[i] + B_rf[i, k_1]

A loop over one sum is a chain of dependent additions, and no vector; the partial sums are
independent. Where an input is used for several results (a matrix times a vector), some of those
are summed at once, so that it is loaded once for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...machine.hardware import hardware_of
from ...schedule import ScheduleError
from ..analysis import BlockFacts, prefers_partial_sums
from .schedule_rule import ScheduleRule
from .sketch_rfactor import partial_sums, wants_partial_sums

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule


class AddRFactor(ScheduleRule):
    """See the file's text. With `max_jobs_per_core`, partial sums are those of TVM, where elements
    keep fewer jobs busy (see `sketch_rfactor.py`); `max_innermost_factor` is of their tiles."""

    def __init__(self, max_jobs_per_core: int | None = None,
                 max_innermost_factor: int | None = 64) -> None:
        self.max_jobs_per_core, self.max_innermost_factor = max_jobs_per_core, max_innermost_factor

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """With partial sums where they pay; otherwise the schedule as it is."""
        if self.max_jobs_per_core is not None:
            cores = self.context.num_threads if self.context is not None else 1
            if not wants_partial_sums(sch, block, cores, self.max_jobs_per_core):
                return [sch]
            return partial_sums(sch, block, self.max_innermost_factor or 0)
        facts = BlockFacts(sch, block)
        axis = sum_axis(facts)
        if axis is None or not prefers_partial_sums(facts):
            return [sch]
        lanes = hardware_of(self.context.target if self.context else None).lanes(
            facts.result.dtype)
        widths = [w * lanes for w in (1, 2, 4, 8)
                  if axis.extent % (w * lanes) == 0 and w * lanes < axis.extent]
        if not widths:
            return [sch]
        new = sch.copy()
        try:
            self._factor(new, facts, axis, widths)
        except ScheduleError:
            return [sch]
        return [new]

    def _factor(self, sch: Schedule, facts: BlockFacts, axis: Any, widths: list) -> None:
        order = [a.loop for a in facts.spatial if a.loop is not None]
        order += [a.loop for a in facts.reduced if a is not axis and a.loop is not None]
        sch.reorder(*order, axis.loop)
        width = sch.sample_categorical(widths, [round(1 / len(widths), 4)] * len(widths))
        _, lane = sch.split(axis.loop, factors=[None, width])
        partial = sch.rfactor(lane, len(facts.result.shape))
        loops = sch.get_loops(partial)
        tile = self._several(sch, facts, loops)
        if tile is not None:
            sums = [lp for lp in loops[len(facts.spatial):-1] if lp is not tile[0]]
            sch.reorder(tile[0], *sums, tile[1], loops[-1])
            sch.unroll(tile[1])
        sch.vectorize(loops[-1])

    def _several(self, sch: Schedule, facts: BlockFacts, loops: list) -> tuple | None:
        """The loop over results that share an input, split for a few of them at once."""
        shared = [i for i, a in enumerate(facts.spatial) if a.extent > 1 and len(facts.reads) > 1
                  and any(a.var not in (facts.steps(r) or {a.var: 1}) for r in facts.reads)]
        if not shared or shared[-1] != len(facts.spatial) - 1:
            return None
        sizes = [n for n in (1, 2, 4, 8) if facts.spatial[-1].extent % n == 0]
        at = len(facts.spatial) - 1
        tile = sch.sample_categorical(sizes, [round(1 / len(sizes), 4)] * len(sizes))
        outer, inner = sch.split(loops[at], factors=[None, tile])
        return outer, inner


def sum_axis(facts: BlockFacts) -> Any:
    """The reduced axis along which every read that moves with it is contiguous; None if none."""
    if not facts.simple or facts.store is None or facts.stmt.init is None:
        return None
    for axis in facts.reduced:
        steps = [facts.steps(r) for r in facts.reads]
        moved = [s[axis.var] for s in steps if s and axis.var in s]
        if None not in steps and moved and all(m == 1 for m in moved):
            return axis
    return None

"""RandomComputeLocation: a block that was not inlined may be computed where it is used.

Padding of an image, for example: all of it beforehand, or the part that a tile of the convolution
needs, right before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...schedule import ScheduleError
from ..analysis import BlockFacts
from ..postproc.common import is_output, is_spatial
from .schedule_rule import ScheduleRule
from .sketch_rfactor import PRODUCER

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule


class RandomComputeLocation(ScheduleRule):
    """Samples a loop of the consumer, or the root, for elementwise blocks."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """One alternative, with a sampled place."""
        stmt = sch.get(block)
        if PRODUCER in stmt.annotations:
            return self._producer_of(sch, block)
        facts = BlockFacts(sch, block)
        if (is_output(sch, block) or not is_spatial(stmt) or not facts.simple
                or not sch.get_consumers(block)):
            return [sch]
        new = sch.copy()
        try:
            where = new.sample_compute_location(block, decision=-1)
            new.compute_at(block, where, preserve_unit_loops=True)
        except ScheduleError:
            return [sch]
        return [new]

    def _producer_of(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """Partial sums that TVM's rule has made are computed at a sampled place."""
        new = sch.copy()
        try:
            (partial,) = new.get_producers(block)
            new.unannotate(block, PRODUCER)
            where = new.sample_compute_location(partial, decision=-1)
            new.compute_at(partial, where, preserve_unit_loops=True)
        except (ScheduleError, ValueError):
            return [sch]
        return [new]

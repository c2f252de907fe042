"""RandomComputeLocation: a block that was not inlined may be computed where it is used.

Padding of an image, for example: all of it beforehand, or the part that a tile of the convolution
needs, right before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...schedule import ScheduleError
from ...tir.stmt import Block
from ..analysis import BlockFacts
from ..postproc.common import is_output, is_spatial, statements
from .schedule_rule import ScheduleRule
from .sketch_rfactor import PRODUCER
from .sketch_tiling import STRUCTURE

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule


class RandomComputeLocation(ScheduleRule):
    """Samples a loop of the consumer, or the root, for elementwise blocks.

    With `reductions`, for all blocks that have loops of their own and are not tiled, as TVM does,
    and for the partial sums that TVM's AddRFactor has made for a block.
    """

    def __init__(self, reductions: bool = False) -> None:
        self.reductions = reductions

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """One alternative, with a sampled place."""
        stmt = sch.get(block)
        if is_output(sch, block) or not sch.get_consumers(block) or not (
                self._stands_alone(sch, block) if self.reductions else
                is_spatial(stmt) and BlockFacts(sch, block).simple):
            return [sch]
        new = sch.copy()
        try:
            makers = []
            if PRODUCER in stmt.annotations:
                makers = new.get_producers(block)
                new.unannotate(block, PRODUCER)
            for one in (block, *makers):
                where = new.sample_compute_location(one, decision=-1)
                new.compute_at(one, where, preserve_unit_loops=True)
        except ScheduleError:
            return [sch]
        return [new]

    def _stands_alone(self, sch: Schedule, block: BlockRV) -> bool:
        loops = sch.get_loops(block)
        return bool(loops) and STRUCTURE not in sch.get(block).annotations and sum(
            type(n) is Block for n in statements(sch.get(loops[0]))) == 1

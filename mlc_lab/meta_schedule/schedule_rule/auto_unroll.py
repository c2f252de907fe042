"""AutoUnroll: how many steps of the loops within a thread are unrolled.

Annotates the root block; the postprocessor RewriteUnroll carries it out when all loops are decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..postproc.common import root_block
from .schedule_rule import ScheduleRule

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule

#: the annotation, which MutateUnroll changes
UNROLL = "meta_schedule.unroll_explicit"


class AutoUnroll(ScheduleRule):
    """`max_steps` are the limits to choose from."""

    def __init__(self, max_steps: Sequence[int] = (0, 16, 64, 256, 512)) -> None:
        self.max_steps = list(max_steps)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """One alternative, annotated at the first block's turn."""
        root = root_block(sch)
        if UNROLL not in sch.get(root).annotations:
            count = len(self.max_steps)
            steps = sch.sample_categorical(self.max_steps, [round(1 / count, 4)] * count)
            sch.annotate(root, UNROLL, steps)
        return [sch]


__all__ = ["AutoUnroll", "UNROLL"]

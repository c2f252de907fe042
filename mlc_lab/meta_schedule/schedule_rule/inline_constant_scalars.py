"""InlineConstantScalars: blocks that hold one constant go into their consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...schedule import ScheduleError
from ...tir.expr import FloatImm, IntImm
from ...tir.stmt import BufferStore
from ..postproc.common import is_output
from .schedule_rule import ScheduleRule

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule


class InlineConstantScalars(ScheduleRule):
    """Inlines `B[()] = constant`."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """One alternative."""
        stmt = sch.get(block)
        body = stmt.body
        if (type(body) is BufferStore and type(body.value) in (IntImm, FloatImm)
                and len(body.buffer.shape) == 0 and not is_output(sch, block)):
            try:
                sch.compute_inline(block)
            except ScheduleError:
                pass
        return [sch]

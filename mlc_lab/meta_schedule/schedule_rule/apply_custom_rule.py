"""ApplyCustomRule: a function of one's own for the blocks that ask for it by an annotation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...runtime.registry import get_global_func
from ...tir.expr import StringImm
from .schedule_rule import ScheduleRule

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule

#: the annotation of a block that names the function
KEY = "schedule_rule"


class ApplyCustomRule(ScheduleRule):
    """At a block with `T.block_attr({"schedule_rule": "name"})` the function that is registered as
    `meta_schedule.cpu.name` is called with the schedule and the block, and gives the alternatives.
    In place of `cpu` stand the keys of the target, one after the other. A block whose function
    nobody has registered is left to the other rules.
    """

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """What the function gives."""
        name = sch.get(block).annotations.get(KEY)
        if isinstance(name, StringImm):
            name = name.value
        if not isinstance(name, str) or self.context is None or self.context.target is None:
            return [sch]
        for key in self.context.target.keys:
            function = get_global_func(f"meta_schedule.{key}.{name}", allow_missing=True)
            if function is not None:
                made = function(sch, block)
                return [sch] if made is None else list(made) if isinstance(made, Sequence) else [
                    made]
        return [sch]

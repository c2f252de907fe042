"""The interface of schedule rules: what may be done with one block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...above import above
from ..component import Component

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule


class ScheduleRule(Component):
    """To write one: override `apply(sch, block)`, which answers with the schedules it makes.

    `[sch]` (changed or not) goes on with one, several schedules are alternatives.
    """

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """The alternatives at this block."""
        raise TypeError(f"{type(self).__name__} has to define apply(sch, block)")

    @staticmethod
    def create(kind: str = "llvm") -> list["ScheduleRule"]:
        """TVM's rules of a kind of target: "llvm", "cuda" or another kind of GPU. What a search
        takes of itself ("from-target") are others for CPUs: these know its vector registers."""
        return above("schedule rules")(kind)


PyScheduleRule = ScheduleRule

"""The interface of postprocessors: last changes to a candidate, and its last check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...above import above
from ..component import Component

if TYPE_CHECKING:
    from ...schedule.schedule import Schedule
    from ...schedule.trace import Trace


class Postproc(Component):
    """To write one: override `apply(sch)`, which schedules in place and answers whether the
    candidate is to be kept.

    `stage` says which programs need it: "judged" those that the cost model judges, "chosen" only
    those that are measured. Where one of a space's postprocessors does not say, all run on every
    candidate.
    """

    stage: str | None = None

    def apply(self, sch: Schedule) -> bool:
        """Change the schedule; False drops the candidate."""
        raise TypeError(f"{type(self).__name__} has to define apply(sch)")

    def admits(self, trace: Trace) -> bool:
        """Whether a candidate with these decisions may be kept, as far as that is known before its
        trace is replayed. Override it where `apply` would drop many."""
        return True

    @staticmethod
    def create(kind: str = "llvm") -> list["Postproc"]:
        """The postprocessors of a kind of target."""
        return above("postprocessors")(kind)


PyPostproc = Postproc

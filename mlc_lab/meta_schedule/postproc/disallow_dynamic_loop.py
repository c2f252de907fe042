"""DisallowDynamicLoop: drop programs with a loop whose extent is not a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tir.expr import IntImm
from ...tir.stmt import For
from .common import statements
from .postproc import Postproc

if TYPE_CHECKING:
    from ...schedule.schedule import Schedule


class DisallowDynamicLoop(Postproc):
    """Their cost cannot be predicted before they run, and they have no perfect tiles."""

    stage = "judged"

    def apply(self, sch: Schedule) -> bool:
        """Whether every loop's extent is known."""
        return all(type(n.extent) is IntImm for f in sch.mod.functions.values()
                   for n in statements(f.body) if type(n) is For)

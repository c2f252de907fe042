"""DisallowDynamicLoop: drop programs with a loop whose extent a schedule left open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schedule.footprint import reads_memory
from ...tir.expr import IntImm
from ...tir.stmt import For
from .common import statements
from .postproc import Postproc

if TYPE_CHECKING:
    from ...schedule.schedule import Schedule


class DisallowDynamicLoop(Postproc):
    """Their cost cannot be predicted before they run, and they have no perfect tiles. Where how far
    a loop goes is read from data, as in a product with a sparse matrix, it is so in every
    schedule."""

    stage = "judged"

    def apply(self, sch: Schedule) -> bool:
        """Whether every loop's extent is known, or read from data."""
        return all(type(n.extent) is IntImm or reads_memory(n.extent)
                   for f in sch.mod.functions.values()
                   for n in statements(f.body) if type(n) is For)

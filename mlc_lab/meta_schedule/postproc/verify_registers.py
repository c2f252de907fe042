"""VerifyRegisters: drop candidates whose register tile does not fit the registers.

A sum whose tile is larger than the register file is kept in memory, and every step of it loads and
stores: such a program builds, runs, and is slow for a known reason. Also dropped are programs that
unroll more than `max_unrolled` statements, since LLVM takes seconds for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...machine.hardware import hardware_of
from ..features import stores_of
from .postproc import Postproc

if TYPE_CHECKING:
    from ...schedule.schedule import Schedule


class VerifyRegisters(Postproc):
    """Judges by the features of the stores, see features.py.

    `spare` registers more than there are may be asked for: LLVM folds some loads into operands.
    """

    stage = "judged"

    def __init__(self, max_unrolled: int = 512, spare: int = 0) -> None:
        self.max_unrolled, self.spare = max_unrolled, spare

    def apply(self, sch: Schedule) -> bool:
        """Whether every store fits."""
        hw = hardware_of(self.context.target if self.context is not None else None)
        for func in sch.mod.functions.values():
            for store in stores_of(func, hw):
                if store.is_sum and store.in_registers and (
                        store.registers > hw.registers + self.spare):
                    return False
                if store.unrolled * max(1, store.vectors) > self.max_unrolled:
                    return False
        return True

"""How many blocks of a kernel a multiprocessor holds at once, and what limits it.

As NVIDIA's occupancy calculator has it: a multiprocessor has so many warps, blocks, registers and
bytes of shared memory; what one block takes is rounded up to the units in which they are handed
out. Registers are an estimate (`registers`), since they are the device's compiler's to choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...ir import dtype as dt
from ...tir import expr as E
from ...tir import stmt as S
from ...tir.functor import pre_order

if TYPE_CHECKING:
    from ...target.gpus import GPU
    from ...tir.function import PrimFunc

#: registers that addresses, counters and thread numbers take, about
_BASE = 16
#: what a thread has at most; the rest is kept in local memory, which is slow
MOST_REGISTERS = 255


@dataclass(frozen=True)
class Occupancy:
    """Blocks that a multiprocessor holds at once.

    Attributes
    ----------
    blocks, warps : int
        Held at once.
    most_warps : int
        What it could hold.
    limit : str
        What allows no more: "warps", "blocks", "registers" or "shared memory".
    each : dict
        How many blocks each of these allows.
    """

    blocks: int
    warps: int
    most_warps: int
    limit: str
    each: dict[str, int]

    @property
    def fraction(self) -> float:
        """Warps held, of those that could be."""
        return self.warps / self.most_warps

    def __str__(self) -> str:
        return (f"{self.fraction:.0%} occupancy: {self.blocks} blocks, {self.warps} of "
                f"{self.most_warps} warps on a multiprocessor, limited by {self.limit}")


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def occupancy(gpu: GPU, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """The occupancy of blocks of so many threads, registers a thread and bytes of shared memory."""
    mp = gpu.processor
    warps = -(-max(threads, 1) // gpu.warp)
    of_block = warps * _up(max(registers, 1) * gpu.warp, mp.register_unit)
    shared = _up(shared_bytes + mp.reserved, mp.shared_unit) if shared_bytes else mp.reserved
    each = {"warps": mp.warps // warps, "blocks": mp.blocks,
            "registers": mp.registers // of_block,
            "shared memory": mp.shared_bytes // shared if shared else mp.blocks}
    limit = min(each, key=lambda name: each[name])
    blocks = each[limit]
    return Occupancy(blocks, blocks * warps, mp.warps, limit, each)


def registers(func: PrimFunc, own_words: int) -> int:
    """Registers of a thread, estimated: its memory, two for each pointer, and what one statement
    loads at most."""
    loads = max((sum(dt.lanes_of(x.indices[0].dtype) for x in pre_order(s.value)
                     if type(x) is E.BufferLoad)
                 for s in pre_order(func.body) if type(s) is S.BufferStore), default=0)
    pointers = sum(p.dtype == "handle" for p in func.params)
    return min(_BASE + own_words + 2 * pointers + loads, MOST_REGISTERS)


__all__ = ["MOST_REGISTERS", "Occupancy", "occupancy", "registers"]

"""What a search needs to know of the processor: vectors, registers, caches."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .caches import CacheHierarchy, CacheLevel
from .vectors import VectorUnit, vector_unit

if TYPE_CHECKING:
    from ..target.target import TargetLike


@dataclass(frozen=True)
class Hardware:
    """One core.

    `vector_bytes` and `registers` of the vector registers, `fma` multiply-adds a cycle with a
    latency of `latency` cycles, `loads` vector loads a cycle; three levels of caches.
    """

    vector_bytes: int = 32
    registers: int = 16
    fma: int = 2
    latency: int = 4
    loads: int = 2
    caches: tuple[CacheLevel, ...] = (
        CacheLevel("L1", 32 << 10), CacheLevel("L2", 512 << 10),
        CacheLevel("L3", 16 << 20, ways=16))

    def lanes(self, dtype: str) -> int:
        """Elements of a type in one vector register."""
        digits = "".join(c for c in dtype if c.isdigit())
        return max(1, self.vector_bytes * 8 // int(digits or 8))


@functools.cache
def _of(unit: VectorUnit) -> Hardware:
    caches = CacheHierarchy.machine().levels
    return Hardware(unit.bits // 8, unit.registers, caches=(*caches, *caches[-1:] * 3)[:3])


def hardware_of(target: TargetLike = None) -> Hardware:
    """The processor of a target, with the caches of this machine: candidates run here."""
    return _of(vector_unit(target))


__all__ = ["Hardware", "hardware_of"]

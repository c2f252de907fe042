"""What a search needs to know of the processor: vectors, registers, caches."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from ..observe.cache import CacheHierarchy, CacheLevel


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
def _of(features: str, triple: str) -> Hardware:
    caches = CacheHierarchy.machine().levels
    have = features.split(",")
    arm = triple.startswith(("aarch64", "arm64"))
    wide = "+avx512f" in have
    width = 64 if wide else 32 if "+avx" in have else 16
    return Hardware(width, 32 if wide or arm else 16, caches=(*caches, *caches[-1:] * 3)[:3])


def hardware_of(target: Any = None) -> Hardware:
    """The processor of a target; candidates run here, so mostly this one."""
    from ..backend.machine import has_avx512, machine_of
    from ..target import Target

    where = machine_of(Target(target or "llvm"))
    features = where.features
    if has_avx512(where) and "+avx512f" not in features:
        features += ",+avx512f,+avx"
    return _of(features, where.triple)


__all__ = ["Hardware", "hardware_of"]

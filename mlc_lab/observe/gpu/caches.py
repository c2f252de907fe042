"""The sectors that the blocks of a launch ask for, in simulated caches of a GPU.

The model: blocks go to multiprocessors in turn. Each multiprocessor has a first level for loads;
stores go through it to the second level, which all share. A line is a sector of 32 bytes, and both
levels are 16-way with LRU. Blocks that are held at once ask in step, so an order of requests among
them that a GPU might have too. How full the levels are, the launch before does not matter: they are
empty at its start. Stores that come to rest in the second level reach memory once it is over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...machine.caches import CacheHierarchy, CacheLevel
from ..replay import simulate
from .requests import SECTOR

_WAYS = 16


@dataclass(frozen=True)
class Traffic:
    """Sectors of 32 bytes: what was asked of each level, and what came from and went to memory."""

    l1_sectors: int = 0
    l1_hits: int = 0
    l2_sectors: int = 0
    l2_hits: int = 0
    read: int = 0
    written: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(a + b for a, b in zip(self._row(), other._row())))

    def scaled(self, by: float) -> Traffic:
        """As many times as much."""
        return Traffic(*(round(n * by) for n in self._row()))

    def _row(self) -> tuple[int, ...]:
        return (self.l1_sectors, self.l1_hits, self.l2_sectors, self.l2_hits, self.read,
                self.written)


def _level(name: str, size: int) -> CacheHierarchy:
    whole = max(size // (SECTOR * _WAYS), 1) * SECTOR * _WAYS
    return CacheHierarchy((CacheLevel(name, whole, SECTOR, _WAYS, "lru"),))


def traffic(sector: np.ndarray, store: np.ndarray, processor: np.ndarray, l1_bytes: int,
            l2_bytes: int) -> Traffic:
    """What caches make of requests in time order: the number of the sector, whether it is stored,
    and the multiprocessor that asks."""
    if not sector.size:
        return Traffic()
    address = (sector - sector.min()) * SECTOR
    loads = ~store
    first = simulate(address[loads], SECTOR, False, _level("L1", l1_bytes), processor[loads])
    missed = np.ones(len(address), bool)
    missed[np.flatnonzero(loads)[first.found == 0]] = False
    below, wrote = address[missed], store[missed]
    second = simulate(below, SECTOR, wrote, _level("L2", l2_bytes))
    hits = second.found == 0
    return Traffic(int(loads.sum()), int((first.found == 0).sum()), len(below), int(hits.sum()),
                   int((~hits & ~wrote).sum()),
                   second.counts[0].written_back + _left(below, wrote, second.gone))


def _left(address: np.ndarray, wrote: np.ndarray, gone: np.ndarray) -> int:
    """Sectors that were stored and have not left the cache since."""
    if not wrote.any():
        return 0
    line, at = address // SECTOR, np.arange(len(address))
    last = np.full(int(line.max()) + 1, -1, np.int64)
    np.maximum.at(last, line[wrote], at[wrote])
    left = np.full(len(last), -1, np.int64)
    if len(gone):
        np.maximum.at(left, gone[:, 1], gone[:, 0])
    return int(np.count_nonzero((last >= 0) & (last >= left)))


__all__ = ["Traffic", "traffic"]

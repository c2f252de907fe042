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
from ..replay import Replay
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


class Caches:
    """The caches of a GPU in one launch, which are asked part by part. A context.

    `processors` is how many multiprocessors have blocks, and `first` the lowest sector that is
    asked for.
    """

    def __init__(self, l1_bytes: int, l2_bytes: int, processors: int, first: int) -> None:
        self.first = first
        self._near = Replay(_level("L1", l1_bytes), processors)
        self._far = Replay(_level("L2", l2_bytes))
        self._loads = self._near_hits = self._below = self._hits = self._read = self._back = 0
        #: of each sector the request that stored to it last, and with which it left the second
        #: level last; requests to the second level are counted from 1
        self._stored = np.zeros(0, np.int64)
        self._left = np.zeros(0, np.int64)

    def __enter__(self) -> Caches:
        return self

    def __exit__(self, *_: object) -> None:
        self._near.__exit__()
        self._far.__exit__()

    def ask(self, sector: np.ndarray, store: np.ndarray, processor: np.ndarray) -> None:
        """Requests in time order: the number of the sector, whether it is stored, and the
        multiprocessor that asks."""
        if not sector.size:
            return
        address = (sector - self.first) * SECTOR
        loads = ~store
        near = self._near.feed(address[loads], SECTOR, False, processor[loads]).found == 0
        missed = np.ones(len(address), bool)
        missed[np.flatnonzero(loads)[near]] = False
        below, wrote = address[missed], store[missed]
        far = self._far.feed(below, SECTOR, wrote)
        hits = far.found == 0
        self._loads += int(loads.sum())
        self._near_hits += int(near.sum())
        self._hits += int(hits.sum())
        self._read += int((~hits & ~wrote).sum())
        self._back = far.counts[0].written_back
        self._remember(below // SECTOR, wrote, far.gone)
        self._below += len(below)

    def _remember(self, line: np.ndarray, wrote: np.ndarray, gone: np.ndarray) -> None:
        """Which sectors were stored, and which left; of several times numpy keeps the last."""
        more = int(line.max(initial=-1)) + 1 - len(self._stored)
        if more > 0:
            self._stored = np.concatenate([self._stored, np.zeros(more, np.int64)])
            self._left = np.concatenate([self._left, np.zeros(more, np.int64)])
        self._stored[line[wrote]] = self._below + 1 + np.flatnonzero(wrote)
        self._left[gone[:, 1]] = self._below + 1 + gone[:, 0]

    def traffic(self) -> Traffic:
        """What was asked of each level so far, and what came from memory and went to it. Sectors
        that were stored and have not left since are written at the end."""
        kept = np.count_nonzero((self._stored > 0) & (self._stored >= self._left))
        return Traffic(self._loads, self._near_hits, self._below, self._hits, self._read,
                       self._back + int(kept))


__all__ = ["Caches", "Traffic"]

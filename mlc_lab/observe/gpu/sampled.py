"""Counts from the blocks of one multiprocessor, for a search: the same numbers in less time.

Where all blocks do the same but for where, and each block's memory begins where a sector does, what
one block asks for is what every other one asks for. So the blocks that the first multiprocessor
holds at once are run, and what they do is multiplied. Instructions, sectors, conflicts and waits
are those that all blocks together have: exact.

The caches are not those of `caches.py`, which want the requests of all multiprocessors. The first
level is one of this multiprocessor, of the same size, any line in any place. The second level holds
all memory that the kernel is given, or the launch is not counted this way; so each sector comes
from memory once, if all of each array is used.

Where blocks begin within a sector, sectors differ from block to block: then the first `MIXED` ones
are run, and sectors are an estimate too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arith import Analyzer
from ...ir import dtype as dt
from ...lower.split_host_device import axes_of
from ...tir import expr as E
from ...tir import stmt as S
from ...tir.functor import pre_order, uses_var
from ..replay import reuse_distances
from .caches import Traffic
from .expressions import linear_terms
from .watching import Memory
from .requests import SECTOR

if TYPE_CHECKING:
    from ...target.gpus import GPU
    from .launching import Launch


#: blocks that are run where they begin at different places of a sector
MIXED = 8


def blocks_of_one(launch: Launch, gpu: GPU, held: int) -> list[int]:
    """The blocks that stand for all, of which a multiprocessor holds `held`; none where they do
    not. That all blocks do the same has been found out before (`counts.alike`)."""
    memory = {id(m): m for m, _, _ in _global(launch)}.values()
    if sum(m.size * dt.bytes_of(m.dtype) for m in memory) > gpu.l2_bytes:
        return []
    if not _aligned(launch):
        return list(range(min(max(held, MIXED), launch.blocks)))
    return list(range(0, launch.blocks, gpu.processors))[:max(held, 1)]


def _global(launch: Launch) -> Iterator[tuple[Memory, bool, Any]]:
    """Loads and stores of global memory: (the memory, whether it is stored to, the node)."""
    for x in pre_order(launch.func.body):
        if isinstance(x, (E.BufferLoad, S.BufferStore)):
            memory = launch.given.get(x.buffer.data)
            if isinstance(memory, Memory):
                yield memory, type(x) is S.BufferStore, x


def _aligned(launch: Launch) -> bool:
    """Whether from block to block all accesses are moved by whole sectors."""
    blocks = {s.node.var for s in axes_of(launch.func)[0]
              if s.node.thread_tag.startswith("blockIdx")}
    analyzer = Analyzer()
    for memory, _, node in _global(launch):
        (index,) = node.indices
        for term, factor in linear_terms(index.base if type(index) is E.Ramp else index):
            if uses_var(term, blocks):
                step = analyzer.modular_set(term).coeff * factor
                if step * dt.bytes_of(memory.dtype) % SECTOR:
                    return False
    return True


def traffic_of_one(launch: Launch, sector: np.ndarray, store: np.ndarray, together: np.ndarray,
                   by: float, l1_bytes: int) -> Traffic:
    """The traffic of all blocks from the requests of those that were run, which are one `by`-th;
    `together` says which requests are of blocks that share a first level."""
    loads = sector[~store & together]
    first = reuse_distances(loads)
    found = int(np.count_nonzero((first >= 0) & (first < l1_bytes // SECTOR)))
    asked, stored = round(int((~store).sum()) * by), round(int(store.sum()) * by)
    hits = round(asked * found / max(len(loads), 1))
    below = asked - hits + stored
    rows: dict[bool, dict[int, int]] = {False: {}, True: {}}
    for memory, write, _ in _global(launch):
        rows[write][id(memory)] = -(-memory.size * dt.bytes_of(memory.dtype) // SECTOR)
    read = min(sum(rows[False].values()), asked - hits)
    written = min(sum(rows[True].values()), stored)
    fresh = min(sum(n for key, n in rows[True].items() if key not in rows[False]), written)
    return Traffic(asked, hits, below, max(below - read - fresh, 0), read, written)


__all__ = ["MIXED", "blocks_of_one", "traffic_of_one"]

"""Exact counts of a program's memory accesses: hits and misses a level, bytes moved.

    >>> print(count_accesses(matmul))          # doctest: +SKIP

The program is lowered and compiled with a simulator of the caches inside (`instrument.py`,
`cache_code.py`), run once on random data, and gives the same counts every time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..lower.pipeline import as_module
from ..machine.caches import CacheHierarchy, as_hierarchy
from . import flops
from .cache import LevelCount, level_counts
from .cache_code import SITE_HEAD, site_words
from .instrument import Program, Site, call, instrument
from .sharing import Sharing, count_sharing

if TYPE_CHECKING:
    from ..ir.module import IRModule
    from ..target.target import TargetLike
    from ..tir.function import PrimFunc


@dataclass(frozen=True)
class SiteCount:
    """What one load or store of the program did: `misses` a level, of `accesses`."""

    site: Site
    accesses: int
    lookups: int
    misses: tuple[int, ...]


@dataclass(frozen=True)
class AccessCounts:
    """Counts of one run.

    Attributes
    ----------
    hierarchy : CacheHierarchy
        The caches simulated.
    levels : tuple of LevelCount
        Lookups, hits, misses, bytes in and out, level by level.
    reads, writes : int
        Loads and stores that the program made; one of a vector counts as one.
    bytes_read, bytes_written : int
        What they asked for.
    flops : int or None
        Floating point operations, where they can be counted.
    sites : tuple of SiteCount
        The same by place in the program.
    unseen : tuple of str
        External functions that the program calls; what they access is not counted.
    sharing : Sharing or None
        Lines that threads take from each other, where a loop is spread over several
        (`sharing.py`).
    """

    hierarchy: CacheHierarchy
    levels: tuple[LevelCount, ...]
    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    flops: int | None
    sites: tuple[SiteCount, ...]
    unseen: tuple[str, ...] = ()
    sharing: Sharing | None = None

    @property
    def accesses(self) -> int:
        """Loads and stores together."""
        return self.reads + self.writes

    @property
    def bytes_from_memory(self) -> int:
        """Bytes that came from or went to memory, below the last level."""
        return self.levels[-1].bytes_moved

    def intensity(self, level: int = -1) -> float | None:
        """Floating point operations for each byte moved below a level (the last: memory)."""
        moved = self.levels[level].bytes_moved
        return self.flops / moved if self.flops and moved else None

    def level(self, name: str) -> LevelCount:
        """The counts of a level by name. Raises KeyError, naming those there are."""
        for level in self.levels:
            if level.name == name:
                return level
        have = ", ".join(level.name for level in self.levels)
        raise KeyError(f"there is no level {name!r}; there are {have}")

    def by_buffer(self) -> dict[str, dict[str, Any]]:
        """Accesses, the bytes they ask for, and misses a level of each buffer, by name."""
        out: dict[str, dict[str, Any]] = {}
        for one in self.sites:
            found = out.setdefault(one.site.buffer.name, {
                "reads": 0, "writes": 0, "bytes": 0, "misses": [0] * len(self.levels)})
            found["writes" if one.site.write else "reads"] += one.accesses
            found["bytes"] += one.accesses * one.site.nbytes
            found["misses"] = [a + b for a, b in zip(found["misses"], one.misses, strict=True)]
        return out

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as the cost of a recording's program has it under "counts"."""
        return {
            "levels": [
                {"name": x.name, "lookups": x.lookups, "misses": x.misses, "bytes_in": x.bytes_in,
                 "bytes_out": x.bytes_out} for x in self.levels
            ],
            "reads": self.reads, "writes": self.writes,
            "bytes_read": self.bytes_read, "bytes_written": self.bytes_written,
            "flops": self.flops, "intensity": self.intensity(),
            "buffers": self.by_buffer(), "unseen": list(self.unseen),
            "sharing": self.sharing and self.sharing.to_dict(),
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{self.reads:,} reads, {self.writes:,} writes"]
        for x in self.levels:
            lines.append(f"{x.name}: {x.hits:,} hits, {x.misses:,} misses ({x.miss_rate:.2%}), "
                         f"{x.bytes_in:,} bytes in, {x.bytes_out:,} bytes out")
        if self.flops:
            intensity = self.intensity()
            lines.append(f"{self.flops:,} operations"
                         + (f", {intensity:.3g} for each byte of memory" if intensity else ""))
        if self.sharing is not None:
            lines.append(str(self.sharing))
        if self.unseen:
            lines.append(f"not seen: what {', '.join(self.unseen)} accesses")
        return "\n".join(lines)


def count_accesses(
    program: object, caches: object = None, *, sizes: Mapping[str, int] | None = None,
    target: TargetLike = "llvm", threads: int | None = None, registers: bool = True,
    arrays: Sequence[np.ndarray] | None = None,
) -> AccessCounts:
    """Count hits and misses of a PrimFunc, IRModule or Schedule in simulated caches.

    Parameters
    ----------
    caches : see `cache.as_hierarchy`
        None for this machine's; "32K:8, 512K:8:64:plru" for others.
    sizes : dict
        Values of symbolic sizes, by name.
    threads : int
        Over how many cores parallel loops are spread; by default as many as the machine has. Each
        has the levels but the last for itself.
    registers : bool
        Whether small arrays indexed by constants only are registers (and no memory), as LLVM
        makes them.
    arrays : list of numpy arrays
        The arguments; random ones if not given.

    Raises
    ------
    Unmeasurable, CacheError, LowerError, CodegenError
        Where the program cannot be run or the caches cannot be.
    """
    mod, hierarchy = as_module(program), as_hierarchy(caches)
    made = instrument(mod, hierarchy, sizes=sizes, target=target, threads=threads,
                      registers=registers, arrays=arrays)
    call(made)
    counts = read_counts(made, hierarchy, _operations(mod, sizes))
    if made.plan.threads == 1:
        return counts
    return replace(counts, sharing=count_sharing(
        mod, threads=made.plan.threads, line=hierarchy.levels[0].line, sizes=sizes, target=target,
        registers=registers, arrays=arrays))


def _operations(mod: IRModule | PrimFunc, sizes: Mapping[str, int] | None) -> int | None:
    try:
        return flops.count(mod, sizes) or None
    except flops.Uncountable:
        return None


def read_counts(made: Program, hierarchy: CacheHierarchy, operations: int | None) -> AccessCounts:
    """The counts that an instrumented program holds after it has run."""
    sites, words = made.plan.sites, site_words(hierarchy)
    table = made.array_at("sim_state", (max(len(sites), 1), words)).copy()[: len(sites)]
    written = made.array_at("sim_written", (len(hierarchy),)).copy()
    per_site, totals = [], {False: [0, 0], True: [0, 0]}
    for site, row in zip(sites, table.tolist(), strict=True):
        lookups = row[0] + row[1]
        per_site.append(SiteCount(site, row[0], lookups, tuple(row[SITE_HEAD:])))
        totals[site.write][0] += row[0]
        totals[site.write][1] += row[0] * site.nbytes
    misses = table[:, SITE_HEAD:].sum(axis=0).tolist()
    lookups = int(table[:, :SITE_HEAD].sum())
    return AccessCounts(
        hierarchy, level_counts(hierarchy, lookups, misses, written.tolist()),
        totals[False][0], totals[True][0], totals[False][1], totals[True][1], operations,
        tuple(per_site), tuple(made.plan.unseen),
    )

"""What counting a GPU program gives: of each access, of each launch, and of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


from ...target.gpus import GPU
from .caches import Traffic
from .model import ModelledTime, modelled_time
from .occupancy import Occupancy
from .requests import SECTOR

#: characters of an access in the table
_WIDTH = 64


@dataclass(frozen=True)
class SiteCount:
    """What one load or store did: `requests` of warps, and for these all `sectors` of global memory
    or `passes` over the banks of shared memory. `least` are those it would have been, had the
    lanes asked for memory without gaps, or without conflicts.

    `lines` are the lines of 128 bytes of the first-level cache that requests touch. `joined` are
    the passes over the banks where a compiler joins what a thread loads or stores next to each
    other, in unrolled statements, up to 16 bytes."""

    name: str
    text: str
    scope: str
    write: bool
    nbytes: int
    requests: int
    sectors: int
    passes: int
    least: int
    lines: int = 0
    joined: int = 0

    @property
    def sectors_a_request(self) -> float:
        """Sectors of 32 bytes that a request of a warp takes."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def conflicts(self) -> int:
        """Passes over the banks that are there for conflicts only."""
        return self.passes - self.least if self.scope == "shared" else 0

    @property
    def efficiency(self) -> float:
        """How much of what was moved was asked for."""
        moved = self.sectors or self.passes
        return self.least / moved if moved else 1.0


@dataclass(frozen=True)
class KernelCounts:
    """Counts of one launch of a kernel.

    Attributes
    ----------
    grid, block : tuple of int
        Blocks, and threads of a block, along x, y, z.
    instructions : dict
        Instructions of warps by kind (`costs.py`), with "load global" and the like.
    sites : tuple of SiteCount
        Loads and stores by place in the program.
    branches, divergent : int
        Conditions that are not the same for all threads, met by a warp; and those at which threads
        of one warp took different ways.
    lanes_active : float
        Of the lanes of warps that ran an instruction, those that took part.
    barriers : int
        Barriers that a block meets.
    registers, shared_bytes : int
        Of a thread (an estimate), and of a block.
    occupancy : Occupancy
        Blocks that a multiprocessor holds.
    traffic : Traffic
        Sectors between the levels of memory.
    waits : dict
        How often warps wait for loads of "global" and "shared" memory: those of one stretch of
        statements, within a round of a loop (`lockstep.py`) and between barriers, are waited for
        together, as many as can be on their way.
    sums : int
        Numbers that a thread keeps in arrays of its own: arithmetic on them is independent.
    blocks_run : int
        Of how many blocks the counts come.
    """

    name: str
    gpu: GPU
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    instructions: dict[str, int]
    sites: tuple[SiteCount, ...]
    branches: int
    divergent: int
    lanes_active: float
    barriers: int
    registers: int
    shared_bytes: int
    occupancy: Occupancy
    traffic: Traffic
    waits: dict[str, int]
    sums: int
    blocks_run: int

    @property
    def modelled(self) -> ModelledTime:
        """The time of a model (`model.py`)."""
        return modelled_time(self)

    @property
    def blocks(self) -> int:
        """How many blocks the launch has."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-(self.block[0] * self.block[1] * self.block[2]) // self.gpu.warp)

    @property
    def conflicts(self) -> int:
        """Bank conflicts of all accesses of shared memory."""
        return sum(s.conflicts for s in self.sites)

    @property
    def bytes_from_memory(self) -> int:
        """Bytes that came from the GPU's memory."""
        return self.traffic.read * SECTOR

    @property
    def bytes_to_memory(self) -> int:
        """Bytes that went to the GPU's memory."""
        return self.traffic.written * SECTOR

    def site(self, name: str, write: bool = False, scope: str | None = None) -> SiteCount:
        """The first access of a buffer, by its name. Raises KeyError, naming those there are."""
        for s in self.sites:
            if s.name == name and s.write == write and scope in (None, s.scope):
                return s
        have = ", ".join(f"{'store' if s.write else 'load'} {s.text}" for s in self.sites)
        raise KeyError(f"there is no {'store' if write else 'load'} of {name!r}; there are {have}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name, "gpu": self.gpu.name, "grid": list(self.grid),
            "block": list(self.block), "instructions": dict(self.instructions),
            "sites": [{**vars(s), "conflicts": s.conflicts} for s in self.sites],
            "branches": self.branches, "divergent": self.divergent,
            "lanes_active": self.lanes_active, "barriers": self.barriers,
            "registers": self.registers, "shared_bytes": self.shared_bytes,
            "occupancy": vars(self.occupancy), "traffic": vars(self.traffic),
            "bytes_from_memory": self.bytes_from_memory,
            "bytes_to_memory": self.bytes_to_memory, "blocks_run": self.blocks_run,
            "modelled": vars(self.modelled),
        }  # fmt: skip

    def __str__(self) -> str:
        at = f"{_times(self.grid)} blocks of {_times(self.block)} threads"
        lines = [f"{self.name}: {at}, as on {self.gpu.name}"]
        if self.blocks_run < self.blocks:
            lines.append(f"  counted in {self.blocks_run} of {self.blocks} blocks, which are all "
                         "alike, and multiplied")
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in self.instructions.items()
                          if n and kind != "index")
        lines.append(f"  instructions of warps: {kinds}")
        lines.append(f"  {self.instructions.get('index', 0):,} more for indices, as written; "
                     f"{self.lanes_active:.0%} of the lanes take part")
        lines.append(f"  {self.barriers} barriers a block; {self.divergent:,} of {self.branches:,} "
                     "branches on threads split a warp")
        lines.append(f"  {self.registers} registers a thread (estimate), {self.shared_bytes:,} "
                     f"bytes of shared memory a block; {self.occupancy}")
        rows = [("", "requests", "sectors/request", "conflicts", "used")]
        for s in self.sites:
            each = f"{s.sectors_a_request:.3g}" if s.scope == "global" else ""
            more = f"{s.conflicts:,}" if s.scope == "shared" else ""
            line = s.text if len(s.text) <= _WIDTH else s.text[:_WIDTH - 4] + " ..."
            rows.append((f"{'store' if s.write else 'load'} {s.scope} {line}",
                         f"{s.requests:,}", each, more, f"{s.efficiency:.0%}"))
        widths = [max(len(row[n]) for row in rows) for n in range(5)]
        for row in rows:
            lines.append("  " + row[0].ljust(widths[0]) + "  " + "  ".join(
                cell.rjust(width) for cell, width in zip(row[1:], widths[1:])))
        t = self.traffic
        lines.append(f"  L1: {t.l1_hits:,} of {t.l1_sectors:,} sectors hit; L2: {t.l2_hits:,} of "
                     f"{t.l2_sectors:,}; {self.bytes_from_memory:,} bytes from memory, "
                     f"{self.bytes_to_memory:,} to it")
        lines.append(f"  {self.modelled}")
        return "\n".join(lines)


def _times(sizes: tuple[int, int, int]) -> str:
    used = sizes if sizes[2] > 1 else sizes[:2] if sizes[1] > 1 else sizes[:1]
    return " x ".join(map(str, used))


@dataclass(frozen=True)
class GPUCounts:
    """Counts of a program: one `KernelCounts` a launch, in order."""

    kernels: tuple[KernelCounts, ...]
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The time of the model for all launches (`model.py`)."""
        return sum(k.modelled.seconds for k in self.kernels)

    def __iter__(self) -> Any:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def __getitem__(self, at: int | str) -> KernelCounts:
        """A launch by its number or its kernel's name."""
        if isinstance(at, int):
            return self.kernels[at]
        for k in self.kernels:
            if k.name == at:
                return k
        raise KeyError(f"there is no kernel {at!r}; there are "
                       + ", ".join(k.name for k in self.kernels))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"kernels": [k.to_dict() for k in self.kernels], "notes": list(self.notes)}

    def __str__(self) -> str:
        return "\n".join([*map(str, self.kernels), *self.notes])


__all__ = ["GPUCounts", "KernelCounts", "SiteCount"]

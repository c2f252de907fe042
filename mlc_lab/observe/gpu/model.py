"""A time for a kernel on a GPU, from its counts: what the busiest multiprocessor takes.

The model is that of V. Volkov, "Understanding Latency Hiding on GPUs" (PhD thesis, UC Berkeley,
2016): a multiprocessor that holds n warps, of which each would take L cycles alone, finishes n / L
warps in a cycle, unless a unit of the hardware is slower: the schedulers, the arithmetic units, the
path to shared memory and first-level cache, the second level, memory. So the time is the longest of

    blocks / blocks held * time of a block alone        latency that is not hidden
    instructions of each kind / lanes of its unit       throughput, kind by kind
    passes over banks + lines of the first level
      + shuffles                                        one a cycle
    bytes from the second level, bytes from memory

A block alone takes L, and what its own arithmetic and accesses of shared memory and first level
take: barriers part it into phases that load and phases that compute, and these do not run side
by side within one block, only those of several blocks do. Passes over banks are counted as a
compiler joins neighbours (`SiteCount.joined`); the first level looks up one line of 128 bytes in a
cycle, however little of it is asked for. Shuffles go the same way, 32 lanes in a cycle (CUDA C++
Programming Guide, "Throughput of Native Arithmetic Instructions"), and take as long as a load of
shared memory.

L is the sum of what a warp waits for: loads of one stretch of statements are in flight together, 16
at a time (`counts.KernelCounts.waits`), each as long as where they were found takes; arithmetic
takes a cycle each where a thread has four or more sums of its own, else up to four.

Limits. It knows nothing of what a device's compiler makes of the source: arithmetic of indices is
left out, registers are estimated. Memory is taken to reach its full bandwidth, clocks to stay at
the boost, caches to be empty at the start; launching is left out. Units are taken to work side by
side without hindering each other. It ranks schedules of one program; it does not say what a clock
would. Spearman's correlation with times on an NVIDIA H100 80GB HBM3 (benchmarks/gpu_model.py) is
0.83 and 0.87 for two draws of 100 random schedules of a product of 1024 that were timed after the
model was made. The phases, lines and joined passes are in it since it was compared with other draws
(0.66 and 0.69 without them, 0.87 and 0.81 with them); nothing in it is fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .requests import SECTOR

if TYPE_CHECKING:
    from .results import KernelCounts

#: cycles that a barrier takes beside the wait for the slowest warp
_BARRIER = 20
_INTEGER = ("integer", "convert", "select", "branch")

_COMPUTING = ("instructions started", "float arithmetic", "special functions",
              "integer arithmetic")


@dataclass(frozen=True)
class ModelledTime:
    """Seconds by the model, and `parts`: cycles of each bound; the longest is the `limit`."""

    seconds: float
    limit: str
    parts: dict[str, float]

    def __str__(self) -> str:
        return f"modelled time {self.seconds * 1e6:,.1f} us, limited by {self.limit}"


def modelled_time(k: KernelCounts) -> ModelledTime:
    """The time of one launch by the model, see the file's text."""
    gpu, mp = k.gpu, k.gpu.processor
    warps = k.blocks * k.warps
    if not warps:
        return ModelledTime(0.0, "nothing", {})
    of_busiest = -(-k.blocks // gpu.processors)  # blocks
    share = of_busiest / k.blocks  # of all work, on the busiest multiprocessor
    held = max(min(k.occupancy.blocks, of_busiest), 1)
    kinds = k.instructions

    def lanes(*names: str) -> float:
        return sum(kinds.get(name, 0) for name in names) * gpu.warp * share

    started = sum(n for kind, n in kinds.items() if kind != "index") * share
    passes = sum(s.joined for s in k.sites if s.scope == "shared") * share
    first = sum(s.lines for s in k.sites if s.scope == "global") * share
    lanes_read = kinds.get("shuffle", 0) * share
    t = k.traffic
    moved = (t.read + t.written) * SECTOR
    parts = {
        "instructions started": started / mp.schedulers,
        "float arithmetic": lanes("fma", "float") / mp.fp32,
        "special functions": lanes("special") / mp.special,
        "integer arithmetic": lanes(*_INTEGER) / mp.integer,
        "shared memory and L1": passes + first + lanes_read,
        "L2": t.l2_sectors * SECTOR * share / gpu.l2_bytes_a_cycle,
        "memory": moved / gpu.bandwidth * gpu.clock,
    }
    # phases of one block follow each other: those that compute, and those that load
    computing = max(parts[name] for name in _COMPUTING)
    alone = _latency(k, warps) + (computing + passes + first + lanes_read) / of_busiest
    parts["latency"] = of_busiest / held * alone
    limit = max(parts, key=lambda name: parts[name])
    return ModelledTime(parts[limit] / gpu.clock, limit, parts)


def _latency(k: KernelCounts, warps: int) -> float:
    """Cycles that a warp takes alone, on average."""
    gpu, t = k.gpu, k.traffic
    below = t.l1_sectors - t.l1_hits  # sectors of loads that the first level had not
    l1 = t.l1_hits / t.l1_sectors if t.l1_sectors else 0.0
    memory = min(t.read / below, 1.0) if below else 0.0
    deep = memory * gpu.memory_latency + (1 - memory) * gpu.l2_latency
    of_load = l1 * gpu.l1_latency + (1 - l1) * deep
    kinds = k.instructions
    slow = kinds.get("special", 0)
    plain = sum(n for kind, n in kinds.items()
                if kind not in ("index", "special", "barrier", "shuffle"))
    each = gpu.arithmetic_latency / min(max(k.sums, 1), gpu.arithmetic_latency)
    of_words = k.waits.get("shared", 0) + kinds.get("shuffle", 0)
    waited = k.waits.get("global", 0) * of_load + of_words * gpu.shared_latency
    conflicts = sum(s.passes for s in k.sites) - sum(
        s.requests for s in k.sites if s.scope == "shared")
    return (waited + plain * each + slow * gpu.special_latency + max(conflicts, 0)
            + kinds.get("barrier", 0) * _BARRIER) / warps


__all__ = ["ModelledTime", "modelled_time"]

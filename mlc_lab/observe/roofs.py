"""The roofs that a program's speed is compared with, measured again where it lies above them.

Peak and bandwidths are measured once in a process. Where other programs kept the machine busy at
that moment, a program may be faster than what the machine is said to do at most. So what lies above
a roof has it measured again (`machine/peak.py`), and the best of all measurements counts. What is
still above has a reason, which pictures say: bytes are counted with caches that are empty at the
start, and times are taken when they are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .recording import Recording

#: a point is above a roof if it is more than this part above it: measurements differ by that much
MARGIN = 1.03


def sharing_of(levels: Sequence[str], cores: int) -> list[int]:
    """How many times the bandwidth of each level, as one core measures it, counts for a program on
    so many cores: each has its own of all caches but the last."""
    shared = {"memory", *levels[-2:-1]}
    return [1 if name in shared else cores for name in levels]


def bytes_by_level(counts: dict[str, Any]) -> dict[str, int]:
    """Bytes that the bandwidth of each level carries: L1 serves the core, L2 the misses of L1,
    memory those of the last level."""
    names = [level["name"] for level in counts["levels"]]
    out = {names[0]: counts["bytes_read"] + counts["bytes_written"]}
    for name, level in zip([*names[1:], "memory"], counts["levels"], strict=True):
        out[name] = level["bytes_in"] + level["bytes_out"]
    return out


def lift(recording: Recording, dtype: str) -> None:
    """Measure again the peak, which is one of `dtype`, and the bandwidths of a recording of this
    machine that one of its programs is above."""
    machine = recording.machine
    costs = [p.cost for p in recording.programs if p.cost and p.cost.get("gflops")]
    if not costs:
        return
    cores = machine.get("cores", 1)
    if machine.get("peak_gflops"):
        fastest = max(cost["gflops"] for cost in costs)
        if dtype and fastest > machine["peak_gflops"]:
            _lift_peak(recording, costs, dtype, fastest, cores)
    levels = list(machine.get("bandwidth", ()))
    for name, times in zip(levels, sharing_of(levels, cores)):
        reached = max(_carried(cost, name) for cost in costs)
        if reached > machine["bandwidth"][name]:
            found = _measured("bandwidth", name, reached * 1e9 / times) * times / 1e9
            better = max(machine["bandwidth"][name], round(found, 2))
            machine["bandwidth"] = {**machine["bandwidth"], name: better}


def _lift_peak(recording: Recording, costs: list[dict[str, Any]], dtype: str, fastest: float,
               cores: int) -> None:
    machine = recording.machine
    found = round(_measured("peak", dtype, fastest * 1e9 / cores) * cores / 1e9, 1)
    if found <= machine["peak_gflops"]:
        return
    machine["peak_gflops"] = found
    for cost in costs:
        if "peak_fraction" in cost:
            cost["peak_fraction"] = cost["gflops"] / found


def _measured(what: str, which: str, reached: float) -> float:
    """The best of what was measured, or 0 where it cannot be."""
    from ..machine import peak

    try:
        return getattr(peak, what)(which, reached)
    except (OSError, ValueError, MemoryError):
        return 0.0


def _carried(cost: dict[str, Any], level: str) -> float:
    """GB/s that a level had to deliver for a program to be as fast as it was; 0 if not known."""
    counts = cost.get("counts") or {}
    if not counts.get("flops") or not counts.get("levels"):
        return 0.0
    return cost["gflops"] / counts["flops"] * bytes_by_level(counts).get(level, 0)


__all__ = ["MARGIN", "bytes_by_level", "lift", "sharing_of"]

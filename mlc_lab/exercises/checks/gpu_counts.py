"""gpu_counts: what the answer's kernels do on a GPU that the row names, counted exactly.

No GPU is used: all warps are run in step (`mlc_lab.count_gpu`), so the same answer has the same
counts everywhere. Where an answer moves more than is asked for, it is told by which access.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...observe.gpu.counts import count_gpu
from ...observe.gpu.results import GPUCounts, KernelCounts, SiteCount
from ...observe.gpu.races import find_races
from ...observe.measure import Unmeasurable
from ...reading import MLCError
from ..result import Found
from .work import too_large

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ..answers import Answer
    from ..exercise import Variant

#: the GPU of a row that names none
GPU = "nvidia/geforce-rtx-2080-ti"


def gpu_counts(answer: Answer, variant: Variant, *, target: str = GPU, sectors: int | None = None,
               shared: int | None = None, conflicts: int | None = None, barriers: int | None = None,
               kernels: int | None = None, shared_bytes: int | None = None,
               occupancy: float | None = None, threads: int | None = None,
               races: bool = False) -> Found:
    """Whether the answer stays within bounds on a GPU.

    At most: `sectors` of global memory asked for, `shared` requests of shared memory, `conflicts`
    of its banks, `barriers` that a block meets, `kernels`, `shared_bytes` of a block. At least:
    `occupancy` of each launch, as a fraction, and `threads` of the largest. With `races` no two
    threads may clash.
    """
    mod = answer.mod
    assert mod is not None
    problem = too_large(mod)
    if problem:
        return Found(False, problem)
    try:
        found = _counted(mod, target)
        clashes = find_races(mod, target) if races else []
    except (MLCError, Unmeasurable, ValueError) as error:
        return Found(False, f"it cannot run on {target}:\n{error}")
    if clashes:
        return Found(False, f"two threads clash: {clashes[0]}")
    sites = [s for k in found for s in k.sites]
    for what, have, most, by in (
        ("launched kernels", len(found), kernels, None),
        ("sectors of global memory", sum(s.sectors for s in sites), sectors,
         lambda s: s.sectors - s.least if s.scope == "global" else 0),
        ("requests of shared memory", sum(s.requests for s in sites if s.scope == "shared"),
         shared, lambda s: s.requests if s.scope == "shared" else 0),
        ("bank conflicts", sum(s.conflicts for s in sites), conflicts, lambda s: s.conflicts),
        ("barriers in a block", max((k.barriers for k in found), default=0), barriers, None),
        ("bytes of shared memory in a block", max((k.shared_bytes for k in found), default=0),
         shared_bytes, None),
    ):
        if most is not None and have > most:
            return Found(False, f"{have:,} {what}; {most:,} are asked for at most"
                         + _worst(sites, by))
    problem = _too_few(found, occupancy, threads)
    if problem:
        return Found(False, problem)
    return Found(True, "; ".join(_summary(k) for k in found))


#: the last program that was counted, for which GPU, and what was found
_last: list[Any] = [None, "", None]


def _counted(mod: IRModule, target: str) -> GPUCounts:
    """The counts of a program. Several rows ask for those of one program, which may have none."""
    if _last[0] is not mod or _last[1] != target:
        try:
            _last[:] = mod, target, count_gpu(mod, target)
        except (MLCError, Unmeasurable, ValueError) as error:
            _last[:] = mod, target, error.with_traceback(None)
    if isinstance(_last[2], Exception):
        raise _last[2]
    return _last[2]


def _worst(sites: list[SiteCount], by: Callable[[SiteCount], int] | None) -> str:
    """The access that is furthest from what it could be."""
    worst = max(sites, key=by, default=None) if by else None
    if worst is None or by is None or not by(worst):
        return ""
    each = (f"{worst.sectors_a_request:.3g} sectors" if worst.scope == "global"
            else f"{worst.passes / max(worst.requests, 1):.3g} passes over the banks")
    return (f". The {'store' if worst.write else 'load'} of {worst.name} has the largest part: "
            f"{worst.requests:,} requests of warps, each {each}")


def _too_few(found: GPUCounts, occupancy: float | None, threads: int | None) -> str:
    """What the launches have less of than is asked for, or nothing."""
    for k in found:
        if occupancy is not None and k.occupancy.fraction < occupancy:
            return (f"{k.occupancy.fraction:.0%} of the warps that a multiprocessor could hold; "
                    f"{occupancy:.0%} are asked for at least. It is limited by "
                    f"{k.occupancy.limit}, with blocks of {math.prod(k.block)} threads")
    most = max((k.blocks * math.prod(k.block) for k in found), default=0)
    if threads is not None and most < threads:
        return f"{most:,} threads at once; {threads:,} are asked for at least"
    return ""


def _summary(k: KernelCounts) -> str:
    """A launch in a line."""
    moved = sum(s.sectors for s in k.sites)
    return (f"{k.blocks:,} blocks of {math.prod(k.block)} threads, "
            f"{moved:,} sectors of global memory, {k.conflicts:,} bank conflicts, "
            f"{k.barriers} barriers a block")


__all__ = ["gpu_counts"]

"""Counts of a GPU as part of a recording: what each step of a schedule does to them.

Adds to the cost of every program of a recording

    "gpu": {"name": the GPU, "seconds": by the model, "limit": what bounds it,
            "rows": [[what, text], ...]}

or {"message": why there are none}, as for a program none of whose loops is bound yet.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend.source import DIALECTS
from ...ir.module import IRModule
from ...language import text
from ...lower.pipeline import has_thread_axes
from ...target import Target
from ...target.gpus import gpu_of
from ..measure import _first_line
from ..recording import Recording
from .counts import count_gpu
from .results import GPUCounts
from .occupancy import Occupancy

if TYPE_CHECKING:
    from ...target.target import TargetLike


def is_counted(target: TargetLike) -> bool:
    """Whether programs for a target are counted as kernels of a GPU."""
    return Target(target).kind.name in DIALECTS


def rows_of(counts: GPUCounts) -> list[list[str]]:
    """The counts of a program as rows of a table: what, and how many."""
    def whole(n: float) -> str:
        return f"{n:,.0f}"

    def all_of(kind: str) -> int:
        return sum(k.instructions.get(kind, 0) for k in counts)

    longest = max(counts, key=lambda k: k.modelled.seconds)
    sectors = sum(s.sectors for k in counts for s in k.sites)
    least = sum(s.least for k in counts for s in k.sites if s.scope == "global")
    return [[text("blocks of threads", "views"), text("{blocks} of {threads}", "views").format(
                blocks=whole(longest.blocks), threads=np.prod(longest.block))],
            [text("loads of global memory", "views"), whole(all_of("load global"))],
            [text("sectors of 32 bytes", "views"), text("{sectors}, {part} used", "views").format(
                sectors=whole(sectors), part=f"{least / max(sectors, 1):.0%}")],
            [text("loads of shared memory", "views"), whole(all_of("load shared"))],
            [text("bank conflicts", "views"), whole(sum(k.conflicts for k in counts))],
            [text("bytes from memory", "views"), whole(sum(k.bytes_from_memory for k in counts))],
            [text("barriers a block", "views"), whole(longest.barriers)],
            [text("occupancy", "views"), _held(longest.occupancy)]]


def _held(o: Occupancy) -> str:
    """What a multiprocessor holds, in words."""
    limit = {"warps": text("warps", "views"), "blocks": text("blocks", "views"),
             "registers": text("registers", "views"),
             "shared memory": text("shared memory", "views")}[o.limit]
    return text("{part} occupancy: {blocks} blocks, {warps} of {most} warps on a multiprocessor, "
                "limited by {limit}", "views").format(
                    part=f"{o.fraction:.0%}", blocks=o.blocks, warps=o.warps, most=o.most_warps,
                    limit=limit)


def _bound(name: str) -> str:
    """What limits the time of the model (`model.py`), in words."""
    return {"instructions started": text("instructions started", "views"),
            "float arithmetic": text("float arithmetic", "views"),
            "special functions": text("special functions", "views"),
            "integer arithmetic": text("integer arithmetic", "views"),
            "shared memory and L1": text("shared memory and L1", "views"),
            "memory": text("memory", "views"), "latency": text("latency", "views"),
            "nothing": text("nothing", "views")}.get(name, name)


def counted(mod: IRModule, target: TargetLike, sizes: Mapping[str, int] | None = None
            ) -> dict[str, Any]:
    """The entry of one program; an error becomes its message."""
    if not has_thread_axes(mod):
        return {"message": text("no loop is bound to blocks or threads yet", "views")}
    try:
        counts = count_gpu(mod, target, sizes=sizes, quick=True)
        longest = max(counts, key=lambda k: k.modelled.seconds)
        return {"name": gpu_of(Target(target)).name, "seconds": counts.seconds,
                "limit": _bound(longest.modelled.limit), "rows": rows_of(counts)}
    except Exception as error:  # one step that cannot be counted must not cost the others
        return {"message": text("not counted: {why}", "views").format(why=_first_line(error))}


def count_each(recording: Recording, modules: list[IRModule], target: TargetLike, *,
               sizes: Mapping[str, int] | None = None, budget_s: float = 60.0) -> Recording:
    """Count the programs of a recording for at most about `budget_s` seconds."""
    end = time.perf_counter() + budget_s
    for program, mod in zip(recording.programs, modules):
        left = time.perf_counter() < end
        program.cost = {**(program.cost or {}), "gpu": counted(mod, target, sizes) if left else {
            "message": text("not counted: the time for it was used up", "views")}}
    return recording


__all__ = ["count_each", "counted", "is_counted", "rows_of"]

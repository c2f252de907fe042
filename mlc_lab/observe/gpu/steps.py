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
from ...lower.pipeline import has_thread_axes
from ...target import Target
from ...target.gpus import gpu_of
from ..measure import _first_line
from ..recording import Recording
from .counts import GPUCounts, count_gpu

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
    return [["blocks of threads", f"{whole(longest.blocks)} of {np.prod(longest.block)}"],
            ["loads of global memory", whole(all_of("load global"))],
            ["sectors of 32 bytes", f"{whole(sectors)}, {least / max(sectors, 1):.0%} used"],
            ["loads of shared memory", whole(all_of("load shared"))],
            ["bank conflicts", whole(sum(k.conflicts for k in counts))],
            ["bytes from memory", whole(sum(k.bytes_from_memory for k in counts))],
            ["barriers a block", whole(longest.barriers)],
            ["occupancy", str(longest.occupancy)]]


def counted(mod: IRModule, target: TargetLike, sizes: Mapping[str, int] | None = None
            ) -> dict[str, Any]:
    """The entry of one program; an error becomes its message."""
    if not has_thread_axes(mod):
        return {"message": "no loop is bound to blocks or threads yet"}
    try:
        counts = count_gpu(mod, target, sizes=sizes, quick=True)
        longest = max(counts, key=lambda k: k.modelled.seconds)
        return {"name": gpu_of(Target(target)).name, "seconds": counts.seconds,
                "limit": longest.modelled.limit, "rows": rows_of(counts)}
    except Exception as error:  # one step that cannot be counted must not cost the others
        return {"message": f"not counted: {_first_line(error)}"}


def count_each(recording: Recording, modules: list[IRModule], target: TargetLike, *,
               sizes: Mapping[str, int] | None = None, budget_s: float = 60.0) -> Recording:
    """Count the programs of a recording for at most about `budget_s` seconds."""
    end = time.perf_counter() + budget_s
    for program, mod in zip(recording.programs, modules):
        left = time.perf_counter() < end
        program.cost = {**(program.cost or {}), "gpu": counted(mod, target, sizes) if left else {
            "message": "not counted: the time for it was used up"}}
    return recording


__all__ = ["count_each", "counted", "is_counted", "rows_of"]

"""ParallelizeVectorizeUnroll: how parallel, how long the vectors, how much unrolled.

Annotates the root block; RewriteParallelVectorizeUnroll carries it out on the loops as they are
when everything else is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...machine.hardware import hardware_of
from ...tir.stmt import Block
from ..postproc.common import is_spatial, root_block, statements
from .schedule_rule import ScheduleRule

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule

#: lanes of a vector that loops are split for by default
_LONGEST = 64


class ParallelizeVectorizeUnroll(ScheduleRule):
    """Parameters
    ----------
    max_jobs_per_core: parallel jobs for each core at most; -1 for no parallel loops.
    max_vectorize_extent: of the loops that other rules left alone; -1 for none. By default one of a
        few vectors of the machine.
    unroll_max_steps: limits of automatic unrolling to choose from, where something is reduced. By
        default few, and none where loops are tiled for registers.
    unroll_explicit: whether our compiler unrolls, or LLVM is told to.
    """

    def __init__(self, max_jobs_per_core: int = 4, max_vectorize_extent: int | None = None,
                 unroll_max_steps: Any = None, unroll_explicit: bool = True) -> None:
        self.max_jobs_per_core, self.max_vectorize_extent = max_jobs_per_core, max_vectorize_extent
        self.unroll_max_steps = None if unroll_max_steps is None else list(unroll_max_steps)
        self.unroll_explicit = unroll_explicit

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """One alternative, annotated at the first block's turn."""
        root = root_block(sch)
        known = sch.get(root).annotations
        if any(key.startswith("meta_schedule.") for key in known):
            return [sch]  # another block came before
        threads = self.context.num_threads if self.context is not None else 1
        if self.max_jobs_per_core > 0 and threads > 1:
            sch.annotate(root, "meta_schedule.parallel", threads * self.max_jobs_per_core)
        tiled = any(inst.kind.name == "Vectorize" for inst in sch.trace.insts) and any(
            inst.kind.name == "SamplePerfectTile" for inst in sch.trace.insts)
        if self.max_vectorize_extent is None:
            lanes = hardware_of(self.context.target if self.context else None).lanes("float32")
            sizes = [n * lanes for n in (1, 2, 4) if n * lanes <= _LONGEST]
            if tiled or not sizes:
                sch.annotate(root, "meta_schedule.vectorize", (sizes or [1])[-1])
            else:
                length = sch.sample_categorical(sizes, [round(1 / len(sizes), 4)] * len(sizes))
                sch.annotate(root, "meta_schedule.vectorize", length)
        elif self.max_vectorize_extent > 0:
            sch.annotate(root, "meta_schedule.vectorize", self.max_vectorize_extent)
        steps = self.unroll_max_steps
        if steps is None:
            steps = [] if tiled else [0, 16]
        elif all(is_spatial(n) for f in sch.mod.functions.values() for n in statements(f.body)
                 if type(n) is Block):
            steps = []
        if steps:
            key = "meta_schedule.unroll_" + ("explicit" if self.unroll_explicit else "implicit")
            sch.annotate(root, key, sch.sample_categorical(
                steps, [round(1 / len(steps), 4)] * len(steps)))
        return [sch]

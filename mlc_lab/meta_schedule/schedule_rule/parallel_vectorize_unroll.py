"""ParallelizeVectorizeUnroll: how parallel, how long the vectors, how much unrolled.

Annotates the root block; RewriteParallelVectorizeUnroll carries it out on the loops as they are
when everything else is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...machine.hardware import hardware_of
from ..postproc.common import is_output, root_block
from .schedule_rule import ScheduleRule

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule


class ParallelizeVectorizeUnroll(ScheduleRule):
    """Parameters
    ----------
    max_jobs_per_core: parallel jobs for each core at most; -1 for no parallel loops.
    max_vectorize_extent: of the loops that other rules left alone; -1 for none.
    unroll_max_steps: limits of automatic unrolling to choose from.
    unroll_explicit: whether our compiler unrolls, or LLVM is told to.
    """

    def __init__(self, max_jobs_per_core: int = 16, max_vectorize_extent: int = 64,
                 unroll_max_steps: Any = (0, 16), unroll_explicit: bool = True) -> None:
        self.max_jobs_per_core, self.max_vectorize_extent = max_jobs_per_core, max_vectorize_extent
        self.unroll_max_steps, self.unroll_explicit = list(unroll_max_steps), unroll_explicit

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """One alternative, annotated at the output block's turn."""
        if not is_output(sch, block):
            return [sch]
        root = root_block(sch)
        known = sch.get(root).annotations
        if any(key.startswith("meta_schedule.") for key in known):
            return [sch]  # another output came before
        threads = self.context.num_threads if self.context is not None else 1
        if self.max_jobs_per_core > 0 and threads > 1:
            sch.annotate(root, "meta_schedule.parallel", threads * min(4, self.max_jobs_per_core))
        tiled = any(inst.kind.name == "Vectorize" for inst in sch.trace.insts) and any(
            inst.kind.name == "SamplePerfectTile" for inst in sch.trace.insts)
        if self.max_vectorize_extent > 0:
            lanes = hardware_of(self.context.target if self.context else None).lanes("float32")
            sizes = [n * lanes for n in (1, 2, 4) if n * lanes <= self.max_vectorize_extent]
            if tiled or not sizes:
                sch.annotate(root, "meta_schedule.vectorize", (sizes or [1])[-1])
            else:
                length = sch.sample_categorical(sizes, [round(1 / len(sizes), 4)] * len(sizes))
                sch.annotate(root, "meta_schedule.vectorize", length)
        if self.unroll_max_steps and not tiled:
            key = "meta_schedule.unroll_" + ("explicit" if self.unroll_explicit else "implicit")
            count = len(self.unroll_max_steps)
            steps = sch.sample_categorical(self.unroll_max_steps, [round(1 / count, 4)] * count)
            sch.annotate(root, key, steps)
        return [sch]

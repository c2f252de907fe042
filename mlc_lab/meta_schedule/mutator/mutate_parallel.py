"""MutateParallel: another extent for the parallel loop."""

from __future__ import annotations

from ...schedule import Trace
from .mutator import Mutator

#: jobs for each core
_JOBS = (1, 2, 4, 8, 16)


class MutateParallel(Mutator):
    """Changes `meta_schedule.parallel`, how many jobs the outermost loops are fused to at most."""

    def __init__(self, max_jobs_per_core: int = 16) -> None:
        self.max_jobs_per_core = max_jobs_per_core

    def apply(self, trace: Trace) -> Trace | None:
        """The trace with another number of jobs."""
        cores = self.context.num_threads if self.context is not None else 1
        for position, inst in enumerate(trace.insts):
            if inst.kind.name == "Annotate" and inst.args["ann_key"] == "meta_schedule.parallel":
                values = [cores * j for j in _JOBS if j <= self.max_jobs_per_core]
                others = [v for v in values if v != inst.args["ann_val"]]
                if not others:
                    return None
                new = trace.copy()
                changed = {**inst.args, "ann_val": self.rng.choice(others)}
                new.insts[position] = inst.with_args(changed)
                return new
        return None

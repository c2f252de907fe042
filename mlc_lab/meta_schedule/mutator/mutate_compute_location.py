"""MutateComputeLocation: another loop at which a block is computed."""

from __future__ import annotations

from ...schedule import Trace
from .mutator import Mutator, sampling


class MutateComputeLocation(Mutator):
    """Changes the decision of a SampleComputeLocation: a loop, the root (-1), or inlined (-2)."""

    def apply(self, trace: Trace) -> Trace | None:
        """The trace with another place."""
        found = sampling(trace, "SampleComputeLocation")
        if not found:
            return None
        index, inst = self.rng.choice(found)
        now = trace.decisions.get(index, -1)
        places = [p for p in range(-2, max(4, now + 3)) if p != now]
        return trace.with_decision(inst, self.rng.choice(places))

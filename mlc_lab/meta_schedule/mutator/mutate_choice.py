"""MutateChoice: another alternative where a rule offers some, as for packing."""

from __future__ import annotations

from ...schedule import Trace
from .mutator import Mutator, annotation_of, other_choice, sampling


class MutateChoice(Mutator):
    """Changes a sampled annotation other than those of unrolling."""

    def apply(self, trace: Trace) -> Trace | None:
        """The trace with another choice."""
        found = []
        for i, inst in sampling(trace, "SampleCategorical"):
            key = annotation_of(trace, inst.outputs)
            if key is not None and not key.startswith("meta_schedule.unroll"):
                found.append((i, inst))
        return other_choice(self, trace, *self.rng.choice(found)) if found else None

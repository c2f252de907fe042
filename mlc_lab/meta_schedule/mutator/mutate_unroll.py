"""MutateUnroll: another limit for automatic unrolling."""

from __future__ import annotations

from ...schedule import Trace
from .mutator import Mutator, annotation_of, other_choice, sampling


class MutateUnroll(Mutator):
    """Changes the sampled value of `meta_schedule.unroll_explicit` or `.unroll_implicit`."""

    def apply(self, trace: Trace) -> Trace | None:
        """The trace with another limit."""
        found = [(i, inst) for i, inst in sampling(trace, "SampleCategorical")
                 if (annotation_of(trace, inst.outputs) or "").startswith("meta_schedule.unroll")]
        return other_choice(self, trace, *self.rng.choice(found)) if found else None

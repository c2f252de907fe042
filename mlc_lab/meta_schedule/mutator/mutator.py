"""The interface of mutators: a small change of a trace's decisions."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from ...above import above
from ...schedule import Trace
from ..component import Component

if TYPE_CHECKING:
    pass


@functools.cache
def _seeds(apply: Any) -> int:
    """How many seeds an `apply(self, trace, ...)` takes: 0 or 1."""
    wanted = [q for q in inspect.signature(apply).parameters.values() if q.default is q.empty
              and q.kind in (q.POSITIONAL_ONLY, q.POSITIONAL_OR_KEYWORD)]
    return int(len(wanted) > 2)


class Mutator(Component):
    """To write one: override `apply(trace)`, which answers with a changed trace, or None."""

    def apply(self, trace: Trace) -> Trace | None:
        """A trace in which something is decided otherwise."""
        raise TypeError(f"{type(self).__name__} has to define apply(trace)")

    def changed(self, trace: Trace) -> Trace | None:
        """What `apply` answers; one written for TVM also takes a seed."""
        return self.apply(trace, *(self.rng.randint(1, 2**31 - 1) for _ in range(
            _seeds(type(self).apply))))

    @property
    def rng(self) -> Any:
        """The task's generator of random choices."""
        return self.context.rng

    @staticmethod
    def create(kind: str = "llvm") -> dict["Mutator", float]:
        """The mutators of a kind of target with their probabilities."""
        return above("mutators")(kind)


def sampling(trace: Trace, kind: str) -> list[tuple[int, Any]]:
    """(index, instruction) of the sampling instructions of a kind."""
    return [(i, inst) for i, inst in enumerate(trace.insts) if inst.kind.name == kind]


def annotation_of(trace: Trace, output: Any) -> str | None:
    """The key of the annotation that a sampled value becomes; None if it is used otherwise."""
    for inst in trace.insts:
        if inst.kind.name == "Annotate" and inst.args["ann_val"] is output:
            return inst.args["ann_key"]
    return None


def other_choice(mutator: Mutator, trace: Trace, index: int, inst: Any) -> Trace | None:
    """The trace with another index decided in a SampleCategorical."""
    now = trace.decisions.get(index)
    weights = [float(getattr(p, "value", p)) for p in inst.args["probs"]]
    others = [i for i in range(len(weights)) if i != now and weights[i] > 0]
    if not others:
        return None
    return trace.with_decision(inst, mutator.rng.choice(others))


PyMutator = Mutator

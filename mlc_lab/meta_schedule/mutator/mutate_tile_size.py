"""MutateTileSize: other factors for one tile."""

from __future__ import annotations

from ...schedule import Instruction, Trace
from ...schedule.primitive.sample_perfect_tile import divisors
from .mutator import Mutator, annotation_of, other_choice, sampling


class MutateTileSize(Mutator):
    """Moves a factor from one part of a perfect tile to another, or takes another tile size from
    the candidates of a SampleCategorical (mostly a neighbour of the one there is)."""

    def apply(self, trace: Trace) -> Trace | None:
        """The trace with one tile changed."""
        perfect = [(i, inst) for i, inst in sampling(trace, "SamplePerfectTile")
                   if trace.decisions.get(i) and max(trace.decisions[i]) > 1]
        listed = [(i, inst) for i, inst in sampling(trace, "SampleCategorical")
                  if annotation_of(trace, inst.outputs) is None]
        if not perfect and not listed:
            return None
        index, inst = self.rng.choice(perfect + listed)
        if inst.kind.name == "SampleCategorical":
            return self._listed(trace, index, inst)
        return self._perfect(trace, index, inst)

    def _perfect(self, trace: Trace, index: int, inst: Instruction) -> Trace | None:
        tiles = list(trace.decisions[index])
        if len(tiles) < 2:
            return None
        limit = inst.args.get("max_innermost_factor") or 0
        for _ in range(8):
            source, sink = self.rng.sample(range(len(tiles)), 2)
            factors = divisors(tiles[source])[1:]
            if not factors:
                continue
            factor = self.rng.choice(factors)
            new = list(tiles)
            new[source] //= factor
            new[sink] *= factor
            if limit > 0 and new[-1] > limit:
                continue
            return trace.with_decision(inst, new)
        return None

    def _listed(self, trace: Trace, index: int, inst: Instruction) -> Trace | None:
        now, count = trace.decisions.get(index), len(inst.args["candidates"])
        if now is None or count < 3 or self.rng.random() < 0.3:
            return other_choice(self, trace, index, inst)
        near = [i for i in (now - 2, now - 1, now + 1, now + 2) if 0 <= i < count]
        return trace.with_decision(inst, self.rng.choice(near))

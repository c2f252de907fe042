"""MutateThreadBinding: other numbers of threads, or the same number laid out otherwise."""

from __future__ import annotations

from typing import Any

from ...schedule import Trace
from ...schedule.primitive.sample_perfect_tile import divisors
from ..trace_extents import outputs_of
from .mutator import Mutator, sampling

_TRIES = 8


class MutateThreadBinding(Mutator):
    """Takes a neighbour of a sampled number of threads. Where tiles bind several axes to threads,
    moves a factor from the threads of one axis to those of another, and the other way within each
    axis, so that a block keeps as many threads: MutateTileSize, which changes one axis at a time,
    gets there only by a number of threads that fits worse."""

    def apply(self, trace: Trace) -> Trace | None:
        """The trace with another binding."""
        bound = _bound(trace)
        listed = [(i, inst) for i, inst in sampling(trace, "SampleCategorical")
                  if outputs_of(inst)[0] in bound]
        tiles = [(i, inst, [at for at, rv in enumerate(inst.outputs) if rv in bound])
                 for i, inst in sampling(trace, "SamplePerfectTile") if trace.decisions.get(i)]
        tiles = [(i, inst, at[0]) for i, inst, at in tiles if at]
        if len(tiles) > 1:
            return self._exchanged(trace, tiles)
        if not listed:
            return None
        index, inst = self.rng.choice(listed)
        now, count = trace.decisions.get(index), len(inst.args["candidates"])
        near = [n for n in range(count) if now is None or abs(n - now) == 1]
        return trace.with_decision(inst, self.rng.choice(near)) if near else None

    def _exchanged(self, trace: Trace, tiles: list[tuple[int, Any, int]]) -> Trace | None:
        """A factor moved from the threads of one axis to those of another."""
        for _ in range(_TRIES):
            (i, first, at), (j, second, to) = self.rng.sample(tiles, 2)
            from_, into = list(trace.decisions[i]), list(trace.decisions[j])
            sinks = [n for n in range(len(from_)) if n != at]
            sink, source = self.rng.choice(sinks), self.rng.choice(
                [n for n in range(len(into)) if n != to])
            common = [d for d in divisors(from_[at])[1:] if into[source] % d == 0]
            if not common:
                continue
            factor = self.rng.choice(common)
            from_[at] //= factor
            from_[sink] *= factor
            into[source] //= factor
            into[to] *= factor
            most = first.args.get("max_innermost_factor") or from_[-1]
            if from_[-1] <= most:
                return trace.with_decision(first, from_).with_decision(second, into)
        return None


def _bound(trace: Trace) -> set[Any]:
    """The factors of splits whose loops, alone or fused, are bound to the threads of a block."""
    loops: set[Any] = set()
    found: set[Any] = set()
    for inst in reversed(trace.insts):
        kind = inst.kind.name
        if kind == "Bind" and str(inst.args["thread_axis"]).startswith("threadIdx"):
            loops.add(inst.args["loop"])
        elif kind == "Fuse" and any(rv in loops for rv in outputs_of(inst)):
            loops.update(inst.args["loops"])
        elif kind == "Split":
            found.update(f for rv, f in zip(inst.outputs, inst.args["factors"])
                         if rv in loops and f is not None and not isinstance(f, int))
    return found


__all__ = ["MutateThreadBinding"]

"""What a trace binds to threads, as far as its decisions tell, without replaying it.

    v0, v1 = sch.sample_perfect_tile(loop=l, n=2, ..., decision=[64, 8])
    l0, l1 = sch.split(loop=l, factors=[v0, v1])
    sch.bind(loop=l1, thread_axis="threadIdx.x")        # threadIdx.x has 8
"""

from __future__ import annotations

import math
from typing import Any

from ..schedule import Trace
from ..schedule.primitive.sample_perfect_tile import sample_tile


def bound_extents(trace: Trace) -> dict[str, int]:
    """The extent of each axis of threads that is known; the largest where several loops are on
    it."""
    sizes: dict[Any, int] = {}
    found: dict[str, int] = {}
    for index, inst in enumerate(trace.insts):
        kind, decision = inst.kind.name, trace.decisions.get(index)
        if kind == "SamplePerfectTile" and decision is not None:
            sizes.update(zip(inst.outputs, decision))
        elif kind == "SampleCategorical" and decision is not None:
            sizes[outputs_of(inst)[0]] = inst.args["candidates"][decision]
        elif kind == "Split":
            for loop, factor in zip(inst.outputs, inst.args["factors"]):
                known = factor if isinstance(factor, int) else sizes.get(factor)
                if known is not None:
                    sizes[loop] = known
        elif kind == "Fuse":
            parts = [sizes.get(loop) for loop in inst.args["loops"]]
            if None not in parts:
                sizes[outputs_of(inst)[0]] = math.prod(n for n in parts if n is not None)
        elif kind == "Bind" and inst.args["loop"] in sizes:
            tag = str(inst.args["thread_axis"])
            found[tag] = max(found.get(tag, 1), sizes[inst.args["loop"]])
    return found


def outputs_of(inst: Any) -> list[Any]:
    """What an instruction gives, as a list."""
    return list(inst.outputs) if isinstance(inst.outputs, (list, tuple)) else [inst.outputs]


def drawn_tiles(trace: Trace, rng: Any) -> dict[int, list[int]]:
    """Decisions, drawn anew, of the perfect tiles of loops that no other decision changes: those
    that the program has. `trace` has decisions, of which the extents follow."""
    whole = {loop for inst in trace.insts if inst.kind.name == "GetLoops"
             for loop in outputs_of(inst)}
    return {index: sample_tile(rng, math.prod(trace.decisions[index]), inst.args["n"],
                                  inst.args["max_innermost_factor"])
            for index, inst in enumerate(trace.insts)
            if inst.kind.name == "SamplePerfectTile" and inst.args["loop"] in whole
            and trace.decisions.get(index)}


__all__ = ["bound_extents", "drawn_tiles", "outputs_of"]

"""Decisions of a trace for a GPU that come to the same program, told without replaying it.

A tile of 96 elements cannot be copied by 32 threads in vectors of 4, so RewriteCooperativeFetch
copies it one element at a time, as it does where 1 was decided. A limit of 256 steps unrolls what
one of 64 does where the next loop outside has too many iterations for both. `effective_decisions`
has what comes of such decisions in their place, so that a search can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dlight.gpu.fetch import vector_length
from .gpu_tiles import Tiles, tiles_of
from .mutator.mutator import annotation_of, sampling
from .schedule_rule.auto_unroll import UNROLL
from .schedule_rule.multi_level_tiling_gpu import FETCH

if TYPE_CHECKING:
    from ..schedule import Trace
    from .gpu_tiles import Product


def effective_decisions(trace: Trace, product: Product | None) -> dict[int, Any]:
    """The decisions by index, with what comes of them in place of those that are rounded."""
    out = dict(trace.decisions)
    tiles = tiles_of(trace, product)
    if product is None or tiles is None:
        return out
    copies = iter(tiles.copies(product))
    for index, inst in sampling(trace, "SampleCategorical"):
        decision, key = trace.decisions.get(index), annotation_of(trace, inst.outputs)
        if key not in (FETCH, UNROLL) or decision is None:
            continue
        wanted = int(inst.args["candidates"][decision])
        if key == UNROLL:
            out[index] = ("unrolled", _unrolled(tiles, wanted))
        elif (elements := next(copies, None)) is not None:
            out[index] = ("elements", vector_length(elements, tiles.threads, wanted))
    return out


def _unrolled(tiles: Tiles, most: int) -> int:
    """Steps that are unrolled in the innermost loops of a thread, at most so many."""
    loops = [t[0] for t in tiles.reduced] + [t[1] for t in tiles.reduced]
    loops += [t[3] for t in tiles.spatial]
    steps = 1
    for extent in reversed(loops):
        if steps * extent > most:
            break
        steps *= extent
    return steps


__all__ = ["effective_decisions"]

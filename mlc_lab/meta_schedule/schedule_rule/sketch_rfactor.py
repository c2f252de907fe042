"""Partial sums as Ansor and TVM have them: over either part of the split reduction.

Before::

    for i, j, k in T.grid(4, 4, 512):
        C[i, j] = C[i, j] + A[i, k] * B[k, j]

After, for the inner part of a split of 64 x 8::

    for i, j, k_0, k_1 in T.grid(4, 4, 64, 8):
        C_rf[i, j, k_1] = C_rf[i, j, k_1] + A[...] * B[...]
    for i, j, k_1 in T.grid(4, 4, 8):
        C[i, j] = C[i, j] + C_rf[i, j, k_1]

It is worth it where elements alone keep too few cores busy.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ...schedule import ScheduleError
from ...schedule.guards import REDUCE, SPATIAL
from ...tir.op import as_int
from .sketch_tiling import STRUCTURE, has_trivial_loops, wants_tiles

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule

#: the annotation of partial sums whose producer is to be given a place as well
PRODUCER = "meta_schedule.random_compute_producer"


def wants_partial_sums(sch: Schedule, block: BlockRV, cores: int, jobs: int) -> bool:
    """Whether a reduction has too few elements for `cores` with `jobs` each."""
    stmt = sch.get(block)
    kinds = {iv.iter_type for iv in stmt.iter_vars}
    if REDUCE not in kinds or kinds - {REDUCE, SPATIAL} or STRUCTURE in stmt.annotations or (
            not has_trivial_loops(sch, block)):
        return False
    extents = [as_int(iv.dom.extent) for iv in stmt.iter_vars]
    if None in extents:
        return False
    elements, terms = (prod(n or 0 for n, iv in zip(extents, stmt.iter_vars)
                            if iv.iter_type == kind) for kind in (SPATIAL, REDUCE))
    if wants_tiles(sch, block):
        return elements < terms and elements <= cores * jobs
    return terms > max(1, cores)


def partial_sums(sch: Schedule, block: BlockRV, most: int) -> list[Any]:
    """The alternatives: none, over the outer part, and over the inner part."""
    own = sch.copy()
    loops = own.get_loops(block)
    kinds = [iv.iter_type for iv in own.get(block).iter_vars]
    spatial = [loop for loop, kind in zip(loops, kinds) if kind == SPATIAL]
    terms = [loop for loop, kind in zip(loops, kinds) if kind == REDUCE]
    if kinds != sorted(kinds, key=[SPATIAL, REDUCE].index):
        own.reorder(*spatial, *terms)
    fused = own.fuse(*terms)
    parts = own.split(fused, own.sample_perfect_tile(fused, 2, most))
    out = []
    for part in parts:
        made = own.copy()
        try:
            made.rfactor(part, len(spatial))
        except ScheduleError:
            continue
        made.annotate(block, PRODUCER, 1)
        out.append(made)
    return [sch, *out]


__all__ = ["PRODUCER", "partial_sums", "wants_partial_sums"]

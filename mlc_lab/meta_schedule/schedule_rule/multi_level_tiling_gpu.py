"""MultiLevelTilingGPU: products and convolutions in tiles of shared memory, for blocks of threads.

The loops of a sum with reuse, spatial axes S and reduced axes R, become

    S0  S1  S2  R0  R1  S3

S0 are the blocks, S1 virtual threads, S2 threads, each fused into one axis; S3 are the results that
a thread keeps in registers, next to each other. All factors are sampled as perfect tiles. For each
step of R0 the threads load a tile of every input into shared memory together, in vectors of a
sampled length: the annotation `meta_schedule.cooperative_fetch`, carried out by the postprocessor
RewriteCooperativeFetch when the number of threads is known. What follows element by element is
done to the registers.

Virtual threads put results of one thread apart, so that neighbouring threads read neighbouring
elements of shared memory.

After the GPU sketch of Zheng et al., "Ansor" (OSDI 2020).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...dlight.gpu.matmul import follow, inline_into
from ...schedule import ScheduleError
from ..analysis import BlockFacts
from .schedule_rule import ScheduleRule

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule

#: the annotation of a copy: elements of a vector that a thread loads at once
FETCH = "meta_schedule.cooperative_fetch"
#: drawings of tiles until the space is given up; of some, as of 7 and 14, not all can be proved
_DRAWS = 16


class MultiLevelTilingGPU(ScheduleRule):
    """See the file's text.

    Parameters
    ----------
    max_innermost_factor: results of a thread along one axis, and terms of R1, at most.
    vector_load_lens: lengths of vectors to choose from.
    """

    def __init__(self, max_innermost_factor: int = 16,
                 vector_load_lens: Sequence[int] = (1, 2, 4)) -> None:
        self.max_innermost_factor = max_innermost_factor
        self.vector_load_lens = list(vector_load_lens)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """One alternative: tiled, where the block is a sum with reuse."""
        facts = BlockFacts(sch, block)
        if not is_product(facts):
            return [sch]
        for _ in range(_DRAWS):
            trial = sch.copy()  # which draws factors of its own
            try:
                self._tile(trial, block, BlockFacts(trial, block))
            except ScheduleError:
                continue
            return [trial]
        return [sch]

    def _tile(self, sch: Schedule, block: BlockRV, facts: BlockFacts) -> None:
        levels: list[list[Any]] = [[], [], [], []]
        local = sch.cache_write(block, 0, "local")
        follow(sch, local)
        for axis in facts.spatial:
            if axis.loop is None:
                continue
            factors = sch.sample_perfect_tile(
                axis.loop, n=4, max_innermost_factor=self.max_innermost_factor)
            for level, loop in zip(levels, sch.split(axis.loop, factors=list(factors))):
                level.append(loop)
        outer, inner = [], []
        for axis in facts.reduced:
            if axis.loop is None:
                continue
            factors = sch.sample_perfect_tile(
                axis.loop, n=2, max_innermost_factor=self.max_innermost_factor)
            first, second = sch.split(axis.loop, factors=list(factors))
            outer.append(first)
            inner.append(second)
        sch.reorder(*levels[0], *levels[1], *levels[2], *outer, *inner, *levels[3])
        bound = []
        for loops, axis in zip(levels, ("blockIdx.x", "vthread.x", "threadIdx.x")):
            fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
            sch.bind(fused, axis)
            bound.append(fused)
        sch.reverse_compute_at(local, bound[-1])
        place = outer[-1]
        for at in range(len(sch.get(block).reads)):
            copy = sch.cache_read(block, at, "shared")
            inline_into(sch, copy)
            sch.compute_at(copy, place, preserve_unit_loops=True)
            count = len(self.vector_load_lens)
            length = sch.sample_categorical(self.vector_load_lens, [round(1 / count, 4)] * count)
            sch.annotate(copy, FETCH, length)
        sch.decompose_reduction(block, outer[0])


def is_product(facts: BlockFacts) -> bool:
    """Whether a block is a sum of several inputs with reuse, its loops untouched."""
    return (facts.simple and facts.store is not None and facts.stmt.init is not None
            and len(facts.reads) >= 2 and facts.has_reuse()
            and any(a.loop is not None for a in facts.spatial)
            and any(a.loop is not None for a in facts.reduced))


__all__ = ["FETCH", "MultiLevelTilingGPU", "is_product"]

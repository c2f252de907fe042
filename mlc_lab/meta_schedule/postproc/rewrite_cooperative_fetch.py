"""RewriteCooperativeFetch: the threads of a block load a tile of shared memory together.

A copy that MultiLevelTilingGPU has annotated is made by all threads, neighbouring elements by
neighbouring threads, in vectors where they divide the tile::

    for ax in range(1024):                              # before, in a block of 64 threads
        A_shared[...] = A[...]

    for ax_0 in range(4):                               # after, with vectors of 4
        for ax_1 in T.thread_binding(64, thread="threadIdx.x"):
            for ax_2 in T.vectorized(4):
                A_shared[...] = A[...]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dlight.gpu.fetch import fetch_together, vector_length
from ...ir import dtype as dt
from ...target.limits import limits_of
from ...tir.op import as_int
from ..schedule_rule.multi_level_tiling_gpu import FETCH
from .common import leaf_blocks
from .postproc import Postproc

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule


class RewriteCooperativeFetch(Postproc):
    """See the file's text. Drops what has no threads to share a copy, and what takes more shared
    memory than a block of the target has."""

    stage = "chosen"

    def apply(self, sch: Schedule) -> bool:
        """Whether all copies could be shared, and fit."""
        limits = limits_of(self.context.target) if self.context is not None else None
        self.nbytes = 0
        for _, block in leaf_blocks(sch):
            asked = sch.get(block).annotations.get(FETCH)
            if asked is not None:
                sch.unannotate(block, FETCH)
                if not self._share(sch, block, int(getattr(asked, "value", asked))):
                    return False
        return limits is None or self.nbytes <= limits.shared_bytes

    def _share(self, sch: Schedule, block: BlockRV, length: int) -> bool:
        loops = sch.get_loops(block)
        threads, after = 0, 0
        for at, loop in enumerate(loops):
            stmt = sch.get(loop)
            if stmt.thread_binding is not None:
                if stmt.thread_binding.thread_tag == "threadIdx.x":
                    threads = as_int(stmt.extent) or 0
                after = at + 1
        inner = self._own(sch, block, loops[after:])
        if not threads or not inner:
            return False
        extent = 1
        for loop in inner:
            size = as_int(sch.get(loop).extent)
            if size is None:
                return False
            extent *= size
        self.nbytes += extent * dt.bytes_of(sch.get(block).writes[0].buffer.dtype)
        fetch_together(sch, inner, [("threadIdx.x", threads)],
                       vector_length(extent, threads, length))
        return True

    @staticmethod
    def _own(sch: Schedule, block: BlockRV, loops: list) -> list:
        """The loops that are around this block only."""
        own = []
        for loop in reversed(loops):
            if len(sch.get_child_blocks(loop)) != 1:
                break
            own.append(loop)
        return own[::-1]


__all__ = ["RewriteCooperativeFetch"]

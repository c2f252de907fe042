"""CrossBlockFusion: chains of sums and elementwise blocks over the same rows, row by row.

Softmax and the norms pass over their input several times, with a sum between the passes. Computed
one row after the other, all passes but the first find the row in the cache, and what lies between
them is one row long. At the output block of such a chain, every block before it is moved into the
loop over the rows. How many rows at once is sampled.

Before::

    for i, k in T.grid(1024, 1024): M[i] = max(M[i], X[i, k])
    for i, k in T.grid(1024, 1024): E[i, k] = exp(X[i, k] - M[i])
    ...

After::

    for i in range(1024):
        for k in range(1024): M[i] = max(M[i], X[i, k])
        for k in range(1024): E[i, k] = exp(X[i, k] - M[i])
        ...
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...schedule import ScheduleError
from ...tir.stmt import ForKind
from ..analysis import BlockFacts, needs_tiling
from ..postproc.common import is_output, is_spatial, leaf_blocks
from .schedule_rule import ScheduleRule

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule


class CrossBlockFusion(ScheduleRule):
    """See the file's text."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """The chain fused at this block, if it is the output of one."""
        if not is_output(sch, block):
            return [sch]
        before = self._chain(sch, block)
        rows = self._rows(sch, block, before)
        if not before or rows == 0:
            return [sch]
        new = sch.copy()
        try:
            loop = new.get_loops(block)[rows - 1]
            for other in reversed(before):
                new.compute_at(other, loop, preserve_unit_loops=True)
        except ScheduleError:
            return [sch]
        return [new]

    def _chain(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """Every block that `block` needs, producers first; [] where one is needed elsewhere."""
        needed, todo = {block}, [block]
        found: dict[Any, Any] = {}
        while todo:
            for producer in sch.get_producers(todo.pop()):
                stmt = sch.get(producer)
                if stmt not in found:
                    found[stmt] = producer
                    todo.append(producer)
        del needed
        order = [b for _, b in leaf_blocks(sch)]
        chain = [found[sch.get(b)] for b in order if sch.get(b) in found]
        inside = {sch.get(b) for b in chain} | {sch.get(block)}
        for other in chain:
            if any(sch.get(c) not in inside for c in sch.get_consumers(other)):
                return []
        return chain

    def _rows(self, sch: Schedule, block: BlockRV, before: list[Any]) -> int:
        """How many leading axes all sums and the output share."""
        out = BlockFacts(sch, block)
        if not out.simple:
            return 0
        extents = [a.extent for a in out.spatial]
        sums = [BlockFacts(sch, b) for b in before if not is_spatial(sch.get(b))]
        partial = [f for f in sums if f.stmt.name_hint.endswith("_rf")]
        own = [f for f in sums if f not in partial]
        if not sums:
            return 0
        if any(needs_tiling(f) for f in own) or any(self._tiled(sch, f.block) for f in partial):
            return 0
        rows = len(extents) if out.reduced else len(extents) - 1
        for facts in own:
            theirs = [a.extent for a in facts.spatial]
            same = 0
            while same < min(len(theirs), len(extents)) and theirs[same] == extents[same]:
                same += 1
            if same < len(theirs):
                return 0
            rows = min(rows, same)
        if out.reduced and not own:  # a sum of partial sums
            return len(extents)
        return rows if math.prod(extents[:rows]) > 1 else 0

    def _tiled(self, sch: Schedule, block: BlockRV) -> bool:
        """Whether several results are summed at once; moving the block would undo that."""
        return any(sch.get(lp).kind is ForKind.UNROLLED for lp in sch.get_loops(block))

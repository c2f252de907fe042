"""RewriteLayout: copy inputs into the layout in which a tiled sum reads them.

Before::

    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]          # vj runs in tiles of 16

After, for `meta_schedule.pack` = 1::

    B_global[vj // 16, vk, vj % 16] = B[vk, vj]            # once
    C[vi, vj] = C[vi, vj] + A[vi, vk] * B_global[vj // 16, vk, vj % 16]

With 2 the copy is made for each tile of the outermost loop along the vector axis, where the panel
is still in the cache when it is used; once, where one vector is all of that axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...schedule import ScheduleError
from ...tir import op
from ...tir.expr import Var
from ...tir.function import IndexMap
from ...tir.functor import uses_var
from ...tir.stmt import ForKind
from ..analysis import BlockFacts, packable, vector_axis
from ..packed_reads import KEY
from .common import leaf_blocks
from .postproc import Postproc

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule
    from ...tir.expr import BufferLoad


class RewriteLayout(Postproc):
    """Carries out the annotation `meta_schedule.pack` of the rule MultiLevelTiling."""

    stage = "chosen"

    def apply(self, sch: Schedule) -> bool:
        """Whether the packing that was asked for can be done."""
        for _, block in leaf_blocks(sch):
            wanted = sch.get(block).annotations.get(KEY)
            if wanted is None:
                continue
            sch.unannotate(block, KEY)
            where = int(getattr(wanted, "value", wanted))
            if where and not self._pack(sch, block, where):
                return False
        return True

    def _pack(self, sch: Any, block: BlockRV, where: int) -> bool:
        facts = BlockFacts(sch, block)
        vector = vector_axis(facts)
        loops = sch.get_loops(block)
        last = sch.get(loops[-1])
        width = op.as_int(last.extent)
        if vector is None or width is None or last.kind is not ForKind.VECTORIZED:
            return False
        tiles = self._first_loop_of(sch, block, vector.var, loops[:-1]) if where == 2 else None
        if tiles is not None and sch.get(tiles).kind is not ForKind.SERIAL:
            return False
        for read in packable(facts, vector):
            buffers = [r.buffer for r in sch.get(block).reads]
            copied = sch.cache_read(block, buffers.index(read.buffer), "global")
            at = next(i for i, ix in enumerate(read.indices) if uses_var(ix, vector.var))
            sch.transform_layout(copied, ("write", 0),
                                 _panels(read, at, width, [a.var for a in facts.reduced]))
            if tiles is not None:
                sch.compute_at(copied, tiles)
            self._loops(sch, copied, at, len(read.indices), width)
        return True

    def _first_loop_of(self, sch: Schedule, block: BlockRV, var: Any, loops: list) -> Any:
        """The outermost of the loops that moves an iterator of the block; None if there is none."""
        realize = sch.state.realize_of(sch.get_sref(block))
        value = next(v for iv, v in zip(realize.block.iter_vars, realize.iter_values)
                     if iv.var is var)
        for loop in loops:
            stmt = sch.get(loop)
            if uses_var(value, stmt.loop_var) and op.as_int(stmt.extent) != 1:
                return loop
        return None

    def _loops(self, sch: Schedule, copied: Any, at: int, dims: int, width: int) -> None:
        """The copy as vectors, one panel after the other."""
        loops = sch.get_loops(copied)[-dims:]
        extent = op.as_int(sch.get(loops[at]).extent)
        if len(loops) < dims or extent is None or extent % width:
            return
        first, last = sch.split(loops[at], factors=[None, width])
        others = [lp for i, lp in enumerate(loops) if i != at]
        try:
            sch.reorder(*others[:-1], first, *others[-1:], last)
            if at == dims - 1:
                sch.vectorize(last)
            else:
                sch.unroll(last)
        except ScheduleError:
            pass


def _panels(read: BufferLoad, at: int, width: int, reduced: list) -> IndexMap:
    """(batch..., vector index // width, summed indices..., vector index % width)."""
    names = [Var(f"i{n}", "int32") for n in range(len(read.indices))]
    batch = [n for i, n in enumerate(names)
             if i != at and not any(uses_var(read.indices[i], v) for v in reduced)]
    summed = [n for i, n in enumerate(names) if i != at and not any(n is b for b in batch)]
    return IndexMap(names, [*batch, op.floordiv(names[at], width), *summed,
                            op.floormod(names[at], width)])

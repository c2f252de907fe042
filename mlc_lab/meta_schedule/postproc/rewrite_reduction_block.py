"""RewriteReductionBlock: give every reduction's initialisation loops of its own.

The init of a reduction block runs where its first reduction loop begins; taken out of the loops by
decompose_reduction, it costs nothing inside and can be a vector store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schedule.guards import REDUCE
from ...tir.expr import IntImm
from ...tir.functor import uses_var
from ...tir.stmt import Block, ForKind
from .common import leaf_blocks
from .postproc import Postproc

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule


class RewriteReductionBlock(Postproc):
    """Applies decompose_reduction to every block with an init, at its first reduction loop."""

    stage = "chosen"

    def apply(self, sch: Schedule) -> bool:
        """Always keeps the candidate."""
        for _, block in leaf_blocks(sch):
            stmt: Block = sch.get(block)
            if stmt.init is None:
                continue
            loops = sch.get_loops(block)
            at = first_reduction_loop(sch, block, loops)
            if at is None:
                continue
            kinds = [sch.get(lp).kind for lp in loops]
            init = sch.decompose_reduction(block, loops[at])
            for key in [k for k in sch.get(init).annotations if k.startswith("meta_schedule.")]:
                sch.unannotate(init, key)  # what a rule asks for is asked of the update
            self._same_kinds(sch, init, loops, kinds, at)
        return True

    def _same_kinds(self, sch: Schedule, init: BlockRV, loops: list, kinds: list, at: int) -> None:
        """Vector and unrolled loops of the update are so in the init too."""
        made = sch.get_loops(init)[at:]
        names = {sch.get(lp).loop_var.name: kind for lp, kind in zip(loops[at:], kinds[at:])}
        for loop in made:
            stmt = sch.get(loop)
            kind = names.get(stmt.loop_var.name.removesuffix("_init"))
            if kind is ForKind.VECTORIZED and loop is made[-1] and stmt.kind is ForKind.SERIAL:
                sch.vectorize(loop)
            elif kind is ForKind.UNROLLED and stmt.kind is ForKind.SERIAL:
                sch.unroll(loop)


def first_reduction_loop(sch: Schedule, block: BlockRV, loops: list) -> int | None:
    """The position of the outermost loop that a reduction iterator of the block depends on."""
    sref = sch.get_sref(block)
    realize = sch.state.realize_of(sref)
    values = [v for iv, v in zip(realize.block.iter_vars, realize.iter_values)
              if iv.iter_type == REDUCE]
    for position, loop in enumerate(loops):
        stmt = sch.get(loop)
        if type(stmt.extent) is IntImm and any(uses_var(v, stmt.loop_var) for v in values):
            return position
    return None

"""RewriteUnroll: carry out the annotation of AutoUnroll on the loops of each thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schedule import ScheduleError
from ...tir.op import as_int
from ...tir.stmt import ForKind
from ..schedule_rule.auto_unroll import UNROLL
from .common import leaf_blocks, root_block
from .postproc import Postproc

if TYPE_CHECKING:
    from ...schedule.schedule import Schedule


class RewriteUnroll(Postproc):
    """Unrolls innermost loops as long as their iterations together are no more than asked."""

    stage = "chosen"

    def apply(self, sch: Schedule) -> bool:
        """Always keeps the candidate."""
        root = root_block(sch)
        asked = sch.get(root).annotations.get(UNROLL)
        if asked is None:
            return True
        sch.unannotate(root, UNROLL)
        most = int(getattr(asked, "value", asked))
        for _, block in leaf_blocks(sch):
            steps = 1
            for loop in reversed(sch.get_loops(block)):
                stmt = sch.get(loop)
                extent = as_int(stmt.extent)
                if stmt.kind is ForKind.VECTORIZED:
                    continue
                if stmt.kind is not ForKind.SERIAL or extent is None or steps * extent > most:
                    break
                steps *= extent
                if extent > 1:
                    try:
                        sch.unroll(loop)
                    except ScheduleError:
                        break
        return True


__all__ = ["RewriteUnroll"]

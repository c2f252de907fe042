"""RewriteUnboundBlock: blocks that no rule has bound to threads get a thread for each element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dlight.gpu.threads import GPUMachine, bind_rest
from .postproc import Postproc

if TYPE_CHECKING:
    from ...schedule.schedule import Schedule


class RewriteUnboundBlock(Postproc):
    """As the default schedules do it (`mlc_lab/dlight/gpu/threads.py`)."""

    stage = "chosen"

    def apply(self, sch: Schedule) -> bool:
        """Always keeps the candidate."""
        if self.context is not None:
            bind_rest(sch, GPUMachine(self.context.target))
        return True


__all__ = ["RewriteUnboundBlock"]

"""get_producers: from a block to those that write what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..guards import is_block
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import BlockRV


@primitive("GetProducers", pure=True)
def get_producers(state: ScheduleState, block: StmtSRef) -> list[BlockRV]:
    """The blocks that write what a block reads."""
    is_block(block)
    scope = state.scope(state.scope_root(block))
    return [state.refs[b] for b in scope.producers(block.stmt)]

"""get_consumers: from a block to those that read what it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..guards import is_block
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import BlockRV


@primitive("GetConsumers", pure=True)
def get_consumers(state: ScheduleState, block: StmtSRef) -> list[BlockRV]:
    """The blocks that read what a block writes."""
    is_block(block)
    scope = state.scope(state.scope_root(block))
    return [state.refs[b] for b in scope.consumers(block.stmt)]

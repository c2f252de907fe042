"""get_producers: from a block to those that write what it reads."""

from __future__ import annotations

from ..guards import is_block
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("GetProducers", pure=True)
def get_producers(state: ScheduleState, block: StmtSRef) -> list[StmtSRef]:
    """The blocks that write what a block reads."""
    is_block(block)
    scope = state.scope(state.scope_root(block))
    return [state.refs[b] for b in scope.producers(block.stmt)]

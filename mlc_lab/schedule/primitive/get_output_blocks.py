"""get_output_blocks: the blocks whose results outlive a scope."""

from __future__ import annotations

from ..guards import is_block
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("GetOutputBlocks", pure=True)
def get_output_blocks(state: ScheduleState, scope_block: StmtSRef) -> list[StmtSRef]:
    """The blocks of a scope that write buffers which outlive it."""
    is_block(scope_block)
    local = set(scope_block.stmt.alloc_buffers)
    return [b for b in state.child_blocks(scope_block)
            if any(w.buffer not in local for w in b.stmt.writes)]

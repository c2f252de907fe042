"""get_output_blocks: the blocks whose results outlive a scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..guards import is_block
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import BlockRV


@primitive("GetOutputBlocks", pure=True)
def get_output_blocks(state: ScheduleState, scope_block: StmtSRef) -> list[BlockRV]:
    """The blocks inside a block, nested ones too, that write buffers which outlive their scope."""
    is_block(scope_block)
    out: list[BlockRV] = []

    def walk(scope: StmtSRef) -> None:
        local = set(scope.stmt.alloc_buffers)
        for block in state.child_blocks(scope):
            if any(w.buffer not in local for w in block.stmt.writes):
                out.append(block)
            walk(block)

    walk(scope_block)
    return out

"""get_child_blocks: from a block or loop to the blocks in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..guards import is_block_or_loop
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import BlockRV


@primitive("GetChildBlocks", pure=True, positional=True)
def get_child_blocks(state: ScheduleState, block_or_loop: StmtSRef) -> list[BlockRV]:
    """The blocks directly inside a block or loop, in program order."""
    is_block_or_loop(block_or_loop)
    return state.child_blocks(block_or_loop)

"""get_loops: from a block to the loops around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..guards import is_block
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import LoopRV


@primitive("GetLoops", pure=True)
def get_loops(state: ScheduleState, block: StmtSRef) -> list[LoopRV]:
    """The loops around a block in its scope, outermost first."""
    is_block(block)
    return [state.refs[loop.stmt] for loop in state.loops_above(block)]

"""Schedules: programs transformed primitive by primitive, each checked, recorded, replayable.

Read `primitive/split.py` first, then `state.py` (how a tree is replaced), `trace.py`, `guards.py`
(when a primitive is legal), `conflict.py` (which executions may not change their order),
`independence.py` (which iterations may) and `primitive/compute_at.py`.
"""

from .error import Refusal, ScheduleError
from .instruction import BlockRV, ExprRV, Instruction, InstructionKind, LoopRV
from .schedule import Schedule, Step
from .state import ScheduleDebugMask, ScheduleState, StmtSRef
from .trace import Trace

__all__ = ["BlockRV", "ExprRV", "Instruction", "InstructionKind", "LoopRV", "Refusal", "Schedule",
           "ScheduleDebugMask", "ScheduleError", "ScheduleState", "Step", "StmtSRef", "Trace"]

"""enter_postproc: where postprocessing begins in a trace."""

from __future__ import annotations

from ..instruction import primitive
from ..state import ScheduleState


@primitive("EnterPostproc")
def enter_postproc(state: ScheduleState) -> None:
    """Mark that what follows is postprocessing: a search drops it before it mutates a trace."""

"""ScheduleFn: the space that a function of the user's draws, with its random choices."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any, Callable

from ...schedule import Schedule, ScheduleError
from .space_generator import SpaceError, SpaceGenerator

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ...tir.function import PrimFunc

#: how often the choices of a space are drawn before it counts as one without a valid schedule
DRAWS = 32


class ScheduleFn(SpaceGenerator):
    """`sch_fn(sch)` schedules in place and returns None, the schedule, or a list of schedules."""

    def __init__(self, sch_fn: Callable[[Schedule], Any], sch_rules: Any = (),
                 postprocs: object = "from-target", mutator_probs: object = "from-target") -> None:
        if not callable(sch_fn):
            raise TypeError(f"ScheduleFn takes a function of a Schedule, not {sch_fn!r}")
        super().__init__(list(sch_rules) if not isinstance(sch_rules, str) else sch_rules,
                         postprocs, mutator_probs)
        self.sch_fn = sch_fn

    @property
    def description(self) -> str:
        """The function's name."""
        return f"ScheduleFn({getattr(self.sch_fn, '__qualname__', repr(self.sch_fn))})"

    def generate_design_space(self, mod: IRModule | PrimFunc, seed: int = -1) -> list[Schedule]:
        """Run the function. Raises SpaceError, with the line at fault, where it raises.

        Where a schedule is refused after random choices, others are drawn, up to `DRAWS` times.
        """
        for draw in range(DRAWS):
            sch = Schedule(mod, seed=seed if seed < 0 else (seed + draw * 7919) % 2**31 or 1,
                           debug_mask="none")
            try:
                result = self.sch_fn(sch)
            except ScheduleError as error:
                if draw + 1 < DRAWS and sch.trace.decisions:
                    continue
                raise SpaceError(self._explain(error, draw + 1)) from error
            except Exception as error:
                raise SpaceError(self._explain(error)) from error
            break
        made = [sch] if result is None else list(result) if isinstance(result, (list, tuple)) else [
            result]
        for item in made:
            if not isinstance(item, Schedule):
                raise SpaceError(
                    f"{self.description} returned a {type(item).__name__}: a space function "
                    "schedules in place and returns nothing, the Schedule, or a list of Schedules")
        if not made:
            raise SpaceError(f"{self.description} returned no schedule: the space is empty")
        return made

    def _explain(self, error: Exception, draws: int = 1) -> str:
        frames = traceback.extract_tb(error.__traceback__)
        code = getattr(self.sch_fn, "__code__", None)
        own = [f for f in frames if code is not None and f.filename == code.co_filename]
        where = f" at line {own[-1].lineno} ({own[-1].line})" if own else ""
        often = f" for each of {draws} draws of its choices, at last" if draws > 1 else ""
        return (f"the space function {self.description} raised {type(error).__name__}{often}"
                f"{where}:\n{error}")

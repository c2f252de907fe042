"""PostOrderApply: the space that schedule rules make, block by block, producers first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...schedule import Schedule, ScheduleError
from ...target import Target
from ..defaults import is_gpu
from ..postproc.common import leaf_blocks
from .space_generator import SpaceGenerator

if TYPE_CHECKING:
    from collections.abc import Callable
    from ...ir.module import IRModule
    from ...tir.function import PrimFunc

#: alternatives that are followed at most
_MOST = 64


def default_schedule(mod: Any, target: Any) -> Schedule | None:
    """The default schedule of a program; None where no rule fits."""
    from ...dlight.base import first_fitting
    from ...dlight.cpu import default_rules
    from ...dlight.gpu import default_rules as gpu_rules

    rules = gpu_rules() if is_gpu(Target(target)) else default_rules()
    return first_fitting(rules, mod["main"], target)


class PostOrderApply(SpaceGenerator):
    """Applies every rule to every block; where a rule offers alternatives, each is followed.

    Blocks are taken in the order in which results are produced, consumers after producers.
    `f_block_filter(block)` may leave blocks alone. With `with_default`, the program's default
    schedule is a candidate too: by default where the rules are those of the target.
    """

    def __init__(self, f_block_filter: Callable[..., Any] | None = None,
                 sch_rules: object = "from-target", postprocs: object = "from-target",
                 mutator_probs: object = "from-target", with_default: bool | None = None
                 ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.f_block_filter = f_block_filter
        self.with_default = isinstance(sch_rules, str) if with_default is None else with_default

    def generate_design_space(self, mod: IRModule | PrimFunc, seed: int = -1) -> list[Schedule]:
        """The alternatives that are left when all rules have seen all blocks."""
        schedules = [Schedule(mod, seed=seed, debug_mask="none")]
        names = [name for name, _ in leaf_blocks(schedules[0])]
        schedules[0].trace = type(schedules[0].trace)()
        for rule in self.sch_rules:
            for name in names:
                schedules = [made for sch in schedules for made in self._apply(rule, sch, name)]
                schedules = schedules[:_MOST]
        return schedules + self._default(mod)

    def _default(self, mod: IRModule | PrimFunc) -> list[Schedule]:
        """The default schedule of the program: one more candidate, without choices."""
        if not self.with_default:
            return []
        sch = default_schedule(mod, self.context.target if self.context is not None else "llvm")
        return [sch] if sch is not None else []

    def _apply(self, rule: Any, sch: Schedule, name: str) -> list[Schedule]:
        try:
            block = sch.get_block(name)
        except (ScheduleError, ValueError):
            return [sch]  # an earlier rule inlined it
        if self.f_block_filter is not None and not self.f_block_filter(sch.get(block)):
            return [sch]
        return rule.apply(sch, block)

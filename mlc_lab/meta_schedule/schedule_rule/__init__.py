"""Schedule rules: what may be done with one block of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .add_rfactor import AddRFactor
from .auto_inline import AutoInline
from .cross_block_fusion import CrossBlockFusion
from .inline_constant_scalars import InlineConstantScalars
from .multi_level_tiling import MultiLevelTiling, ReuseType
from .parallel_vectorize_unroll import ParallelizeVectorizeUnroll
from .random_compute_location import RandomComputeLocation
from .schedule_rule import PyScheduleRule, ScheduleRule

if TYPE_CHECKING:
    from ...target.target import Target


def for_cpu(target: Target | str | None) -> list[ScheduleRule]:
    """Those for CPUs, in the order in which they are tried at every block."""
    return [InlineConstantScalars(), AutoInline(), AddRFactor(), CrossBlockFusion(),
            MultiLevelTiling(), RandomComputeLocation(), ParallelizeVectorizeUnroll()]


create = ScheduleRule.create

__all__ = ["AddRFactor", "AutoInline", "CrossBlockFusion", "InlineConstantScalars",
           "MultiLevelTiling", "ParallelizeVectorizeUnroll", "PyScheduleRule",
           "RandomComputeLocation", "ReuseType", "ScheduleRule", "create", "for_cpu"]

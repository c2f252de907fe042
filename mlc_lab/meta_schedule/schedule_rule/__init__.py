"""Schedule rules: what may be done with one block of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .add_rfactor import AddRFactor
from .apply_custom_rule import ApplyCustomRule
from .auto_bind import AutoBind
from .auto_inline import AutoInline
from .auto_unroll import AutoUnroll
from .cross_block_fusion import CrossBlockFusion
from .cross_thread_reduction import CrossThreadReduction
from .inline_constant_scalars import InlineConstantScalars
from .multi_level_tiling import MultiLevelTiling, ReuseType
from .multi_level_tiling_gpu import MultiLevelTilingGPU
from .parallel_vectorize_unroll import ParallelizeVectorizeUnroll
from .random_compute_location import RandomComputeLocation
from .schedule_rule import PyScheduleRule, ScheduleRule

if TYPE_CHECKING:
    from ...target.target import Target


def for_cpu(target: Target | str | None) -> list[ScheduleRule]:
    """Those for CPUs, in the order in which they are tried at every block."""
    return [InlineConstantScalars(), AutoInline(), AddRFactor(), CrossBlockFusion(),
            MultiLevelTiling(), RandomComputeLocation(), ParallelizeVectorizeUnroll()]


def for_gpu(target: Target | str | None) -> list[ScheduleRule]:
    """Those for GPUs, in the order in which they are tried at every block."""
    return [InlineConstantScalars(), AutoInline(), MultiLevelTilingGPU(), CrossThreadReduction(),
            AutoBind(), AutoUnroll()]


create = ScheduleRule.create

__all__ = ["AddRFactor", "ApplyCustomRule", "AutoBind", "AutoInline", "AutoUnroll",
           "CrossBlockFusion", "CrossThreadReduction", "InlineConstantScalars", "MultiLevelTiling",
           "MultiLevelTilingGPU", "ParallelizeVectorizeUnroll", "PyScheduleRule",
           "RandomComputeLocation", "ReuseType", "ScheduleRule", "create", "for_cpu", "for_gpu"]

"""Schedule rules: what may be done with one block of a program."""

from __future__ import annotations

from typing import Any

from .auto_inline import AutoInline
from .inline_constant_scalars import InlineConstantScalars
from .multi_level_tiling import MultiLevelTiling
from .schedule_rule import PyScheduleRule, ScheduleRule


def for_cpu(target: Any) -> list[ScheduleRule]:
    """Those for CPUs, in the order in which they are tried at a block."""
    return [InlineConstantScalars(), AutoInline(), MultiLevelTiling()]


create = ScheduleRule.create

"""The rules that TVM has for a kind of target: the sketches of Ansor's paper.

`ms.ScheduleRule.create(kind)` gives them. What a search takes of itself (`defaults.py`) are others:
these know nothing of vector registers.
"""

from __future__ import annotations

from .defaults import is_gpu, target_of
from .schedule_rule import (
    AddRFactor, AutoBind, AutoInline, CrossThreadReduction, InlineConstantScalars, MultiLevelTiling,
    ParallelizeVectorizeUnroll, RandomComputeLocation, ReuseType, ScheduleRule,
)

_THREADS = (4, 8, 16, 32, 64, 128, 256, 512)


def rules_of(kind: str) -> list[ScheduleRule]:
    """The rules of "llvm", or of a kind of GPU, in the order in which they are tried."""
    if is_gpu(target_of(kind)):
        return [MultiLevelTiling("SSSRRSRS", ["blockIdx.x", "vthread.x", "threadIdx.x"], 64,
                                 [1, 2, 3, 4, 8, 16], ReuseType("must", [4], "shared"),
                                 ReuseType("must", [3], "local")),
                InlineConstantScalars(), AutoInline(), CrossThreadReduction(_THREADS),
                ParallelizeVectorizeUnroll(-1, -1, [0, 16, 64, 512, 1024], False), AutoBind()]
    return [InlineConstantScalars(), AutoInline(disallow_op=["tir.exp"]), AddRFactor(16),
            MultiLevelTiling("SSRSRS", reuse_write=ReuseType("may", [1, 2], "global")),
            ParallelizeVectorizeUnroll(16, 64, [0, 16, 64, 512]),
            RandomComputeLocation(reductions=True)]

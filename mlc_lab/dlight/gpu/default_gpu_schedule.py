"""DefaultGPUSchedule: every function that has no schedule gets threads, so that it runs on a GPU.

before::

    for i, j in T.grid(32, 40):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)

after `DefaultGPUSchedule()`, for a GPU of 1,024 threads a block::

    for i_j_fused_0 in T.thread_binding(2, thread="blockIdx.x"):
        for i_j_fused_1 in T.thread_binding(1024, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(32, (i_j_fused_0 * 1024 + i_j_fused_1) // 40)
                vj = T.axis.spatial(40, (i_j_fused_0 * 1024 + i_j_fused_1) % 40)
                T.where(i_j_fused_0 * 1024 + i_j_fused_1 < 1280)
                B[vi, vj] = A[vi, vj] + T.float32(1)

Where there are more elements than 256 blocks have threads, or it is not known how many, each thread
does several. It is the plainest schedule: `dlight` has better ones. Functions for a CPU are only
marked as done (`tir.is_scheduled`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.module import IRModule
from ...ir.transform import Pass, PassInfo
from ...schedule import Schedule
from ...target import Target
from ...target.limits import limits_of
from ...tir.function import PrimFunc
from ...tir.op import as_int
from ..base import SCHEDULED, is_scheduled
from ..stages import stages
from .threads import split_loops

if TYPE_CHECKING:
    from ...ir.transform import PassContext
    from ...schedule.instruction import BlockRV

_BLOCKS = 256  # of threads, where a thread does several elements


def DefaultGPUSchedule() -> Pass:
    """Give threads to every function that has no schedule, so that it runs on a GPU.

    ValueError where no target is set, by `with Target(...)` or by the attribute `target` of a
    function.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        out = mod.copy()
        for var, func in mod.functions.items():
            if isinstance(func, PrimFunc) and not is_scheduled(func):
                out.functions[var] = _scheduled(func).with_attr(SCHEDULED, True)
        return out

    run.__doc__ = DefaultGPUSchedule.__doc__
    return Pass(run, PassInfo("tir.DefaultGPUSchedule"))


def _scheduled(func: PrimFunc) -> PrimFunc:
    target = func.attrs.get("target") or Target.current(allow_none=True)
    if target is None:
        raise ValueError("DefaultGPUSchedule needs to know the GPU: put it in `with "
                         'Target("cuda"):`, or give functions their target by BindTarget')
    limits = limits_of(Target(target))
    if limits is None:  # no GPU
        return func
    sch = Schedule(IRModule({"main": func}))
    for stage in stages(sch):
        if not any(sch.get(loop).thread_binding is not None for loop in sch.get_loops(stage.rv)):
            _bind(sch, stage.rv, limits.threads)
    return sch.mod["main"]


def _bind(sch: Schedule, block: BlockRV, threads: int) -> None:
    """A thread for each element, or for several where there are many."""
    spatial, others = split_loops(sch, block)
    if spatial and others:
        sch.reorder(*spatial, *others)
    elif not spatial:
        spatial = [sch.add_unit_loop(others[0] if others else block)]
    fused = sch.fuse(*spatial)
    extent = as_int(sch.get(fused).extent)
    if extent is not None and extent <= _BLOCKS * threads:
        outer, inner = sch.split(fused, [None, min(extent, threads)])
    else:
        turn, outer, inner = sch.split(fused, [None, _BLOCKS, threads])
        sch.reorder(outer, inner, turn)
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")


__all__ = ["DefaultGPUSchedule"]

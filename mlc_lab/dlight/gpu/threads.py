"""What the rules for GPUs share: limits, and a thread for each element of a block.

Before::

    for i, k in T.grid(1000, 8):
        with T.block("C"):
            C[i] = C[i] + A[i, k]        # starts at 0

After `one_thread_each`::

    for i_0 in T.thread_binding(4, thread="blockIdx.x"):
        for i_1 in T.thread_binding(256, thread="threadIdx.x"):
            where(i_0 * 256 + i_1 < 1000)
            C[i] = 0
            for k in range(8):
                C[i] = C[i] + A[i, k]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...schedule import Schedule, ScheduleError
from ...target import Target
from ...target.limits import limits_of
from ...tir.expr import IterVar
from ...tir.functor import all_statements, uses_var
from ...tir.op import as_int
from ...tir.stmt import BlockRealize
from ..base import Machine
from ..stages import stages

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV, LoopRV

#: threads of a block, where the target allows as many
_THREADS = 256


class GPUMachine(Machine):
    """What rules ask about a GPU: how many threads a block gets, and its shared memory."""

    def __init__(self, target: Target) -> None:
        self.target = target
        limits = limits_of(target)
        assert limits is not None, f"{target} is no GPU"
        self.threads = min(_THREADS, limits.threads)
        self.shared_bytes = limits.shared_bytes


def realize_of(sch: Schedule, rv: BlockRV) -> BlockRealize:
    """The statement that says how a block's iterators follow from loops."""
    block = sch.get(rv)
    return next(s for s in all_statements(sch.mod["main"].body)
                if type(s) is BlockRealize and s.block is block)


def split_loops(sch: Schedule, rv: BlockRV) -> tuple[list[LoopRV], list[LoopRV]]:
    """The loops of a block: those of which each iteration stores elsewhere, and the others."""
    realize = realize_of(sch, rv)
    ordered = [value for iv, value in zip(realize.block.iter_vars, realize.iter_values)
               if iv.iter_type != IterVar.DataPar]
    spatial, others = [], []
    for loop in sch.get_loops(rv):
        var = sch.get(loop).loop_var
        (others if any(uses_var(v, var) for v in ordered) else spatial).append(loop)
    return spatial, others


def one_thread_each(sch: Schedule, rv: BlockRV, machine: GPUMachine) -> None:
    """A thread for each element that a block stores; what is summed, in the thread."""
    spatial, others = split_loops(sch, rv)
    if not spatial:
        loop = sch.add_unit_loop(others[0] if others else rv)
        sch.bind(loop, "threadIdx.x")
    else:
        if others:
            sch.reorder(*spatial, *others)
        fused = sch.fuse(*spatial) if len(spatial) > 1 else spatial[0]
        extent = as_int(sch.get(fused).extent)
        threads = machine.threads
        while extent is not None and threads > 32 and threads // 2 >= extent:
            threads //= 2
        outer, inner = sch.split(fused, [None, threads])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
    if others and sch.get(rv).init is not None:
        sch.decompose_reduction(rv, others[0])


def bind_rest(sch: Schedule, machine: GPUMachine, done: Any = ()) -> None:
    """A thread for each element of every block that is not in `done`, by name, and not inside of
    what is bound."""
    for stage in stages(sch):
        if stage.block.name_hint in done or any(
                sch.get(loop).thread_binding is not None for loop in sch.get_loops(stage.rv)):
            continue
        trial = sch.copy()
        try:
            one_thread_each(trial, stage.rv, machine)
        except ScheduleError:
            trial = sch.copy()
            loops = trial.get_loops(stage.rv)
            trial.bind(trial.add_unit_loop(loops[0] if loops else stage.rv), "threadIdx.x")
        sch.become(trial)


__all__ = ["GPUMachine", "bind_rest", "one_thread_each", "realize_of", "split_loops"]

"""Reduction: long sums and maxima of neighbours in memory, the threads of a block together.

Norms, softmax, means, products of a matrix and a vector. Threads that are neighbours load
neighbours, and combine what they have in shared memory.

Before::

    for i, k in T.grid(64, 1024):
        with T.block("C"):
            C[i] = C[i] + A[i, k]

After::

    for i in T.thread_binding(64, thread="blockIdx.x"):
        for k_0 in range(4):
            for k_1 in T.thread_binding(256, thread="threadIdx.x"):
                C[i] = C[i] + A[i, k_0 * 256 + k_1]
"""

from __future__ import annotations

from ...schedule import Schedule, ScheduleError
from ...tir.op import as_int
from ..base import KernelRule, Machine
from ..stages import Stage, memory_stride, stages, volume
from .threads import GPUMachine, bind_rest, split_loops

#: from so many terms on they are worth several threads
_LONG = 64
#: results from which on there is a thread for each, where each sum is short
_MANY = 1 << 16


class Reduction(KernelRule):
    """The threads of a block together for each result."""

    inlines = True

    def schedule(self, sch: Schedule, machine: Machine) -> bool:
        """Fits functions with a reduction whose neighbouring terms are neighbours in memory."""
        assert isinstance(machine, GPUMachine)
        found = [s for s in stages(sch) if is_long(s)]
        if not found:
            return False
        for stage in found:
            trial = sch.copy()
            try:
                threads_together(trial, stage, machine)
            except ScheduleError:
                continue
            sch.become(trial)
        bind_rest(sch, machine)
        return True


def is_long(stage: Stage) -> bool:
    """Whether a stage sums many neighbours."""
    if not stage.is_reduction:
        return False
    terms = volume(stage.extents[v] for v in stage.reduced)
    results = volume(stage.extents[v] for v in stage.spatial)
    if terms is not None and (terms < _LONG or (results or 0) >= _MANY and terms < 4 * _LONG):
        return False
    last = stage.reduced[-1]
    loads = stage.loads()
    return any(memory_stride(load, last) == 1 for load in loads) and all(
        memory_stride(load, last) in (0, 1) for load in loads)


def threads_together(sch: Schedule, stage: Stage, machine: GPUMachine) -> None:
    """A block of threads for each result. Raises ScheduleError where the reduction is of no kind
    that threads can share."""
    trial = sch.copy()
    trial.rfactor(trial.get_loops(stage.rv)[-1], 0)  # is it one of those that are known?
    spatial, others = split_loops(sch, stage.rv)
    sch.reorder(*spatial, *others)
    summed = sch.fuse(*others) if len(others) > 1 else others[0]
    terms, threads = as_int(sch.get(summed).extent), machine.threads
    while terms is not None and threads > 32 and threads > terms:
        threads //= 2
    _, inner = sch.split(summed, [None, threads])
    if spatial:
        sch.bind(sch.fuse(*spatial) if len(spatial) > 1 else spatial[0], "blockIdx.x")
    sch.bind(inner, "threadIdx.x")


__all__ = ["Reduction", "is_long", "threads_together"]

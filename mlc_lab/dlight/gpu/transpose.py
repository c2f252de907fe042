"""Transpose: tiles through shared memory, so that loads and stores are both of neighbours.

Rows of a tile are loaded by neighbouring threads, and its columns are stored by them. The rows in
shared memory are one element longer than the tile: else its columns lay in one bank.

Before::

    for i, j in T.grid(1024, 1024):
        with T.block("B"):
            B[i, j] = A[j, i]

After::

    for i_0 in T.thread_binding(64, thread="blockIdx.y"):
        for j_0 in T.thread_binding(64, thread="blockIdx.x"):
            A_shared[...] = A[...]       # 16 x 16 threads, neighbours along i
            B[...] = A_shared[...]       # neighbours along j
"""

from __future__ import annotations

from ...schedule import Schedule, ScheduleError
from ...tir.op import as_int
from ..base import KernelRule, Machine
from ..stages import Stage, memory_stride, stages
from ..transpose import Transpose as _OnCPU
from .threads import GPUMachine, bind_rest

_TILE = 16


class Transpose(KernelRule):
    """Tiles of shared memory for what reads across the direction in which it writes."""

    inlines = True

    def schedule(self, sch: Schedule, machine: Machine) -> bool:
        """Fits where a block copies a buffer that it reads along another dimension."""
        assert isinstance(machine, GPUMachine)
        done = False
        for stage in stages(sch):
            across = _OnCPU.across(stage)
            if across is None:
                continue
            trial = sch.copy()
            try:
                whole = _tile(trial, stage, across)
            except ScheduleError:
                continue
            if whole:
                sch.become(trial)
                done = True
        if done:
            bind_rest(sch, machine)
        return done


def _tile(sch: Schedule, stage: Stage, across: int) -> bool:
    """Tiles of one block; False where they are not whole."""
    var = stage.spatial[across]
    read = next(at for at, load in enumerate(stage.loads()) if memory_stride(load, var) == 1)
    loops = sch.get_loops(stage.rv)
    for loop in (loops[across], loops[-1]):
        if (as_int(sch.get(loop).extent) or 1) % _TILE:
            return False
    copy = sch.cache_read(stage.rv, read, "shared")
    loops = sch.get_loops(stage.rv)
    r0, r1 = sch.split(loops[across], [None, _TILE])
    c0, c1 = sch.split(loops[-1], [None, _TILE])
    others = loops[:across] + loops[across + 1:-1]
    sch.reorder(*others, r0, c0, r1, c1)
    if others:
        sch.bind(sch.fuse(*others) if len(others) > 1 else others[0], "blockIdx.z")
    sch.bind(r0, "blockIdx.y")
    sch.bind(c0, "blockIdx.x")
    sch.bind(r1, "threadIdx.y")
    sch.bind(c1, "threadIdx.x")
    sch.compute_at(copy, c0)
    inner = [loop for loop in sch.get_loops(copy)[-len(stage.spatial):]
             if as_int(sch.get(loop).extent) == _TILE]
    if len(inner) != 2:
        return False
    sch.bind(inner[0], "threadIdx.y")
    sch.bind(inner[1], "threadIdx.x")
    sch.storage_align(copy, 0, -2, _TILE, 1)
    return True


__all__ = ["Transpose"]

"""Matmul: products of matrices in tiles of shared memory, several results a thread.

A block of threads computes a tile of the result. For each piece of the sum it loads a tile of both
operands into shared memory together, and each thread adds to its results, which are registers. What
follows the product element by element is done to the registers.

Before::

    for i, j, k in T.grid(1024, 1024, 1024):
        with T.block("C"):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]

After, with tiles of 64 x 64 and 4 x 4 results a thread::

    for i_0 in T.thread_binding(16, thread="blockIdx.y"):
        for j_0 in T.thread_binding(16, thread="blockIdx.x"):
            for i_1 in T.thread_binding(16, thread="threadIdx.y"):
                for j_1 in T.thread_binding(16, thread="threadIdx.x"):
                    C_local[...] = 0
                    for k_0 in range(64):
                        A_shared[...] = A[...]      # together
                        B_shared[...] = B[...]
                        for k_1, i_2, j_2 in T.grid(16, 4, 4):
                            C_local[...] = C_local[...] + A_shared[...] * B_shared[...]
                    C[...] = C_local[...]

Extents that no tile divides are padded with zeros, in shared memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir import dtype as dt
from ...schedule import Schedule, ScheduleError
from ..base import KernelRule, Machine
from ..contraction import Roles
from ..stages import Stage, stages, volume
from .fetch import fetch_together
from .threads import GPUMachine, bind_rest

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV, LoopRV

#: terms of the sum that a tile in shared memory holds
_DEPTH = 16


class Matmul(KernelRule):
    """Tiles for a product of two matrices, or of batches of them."""

    inlines = True

    def schedule(self, sch: Schedule, machine: Machine) -> bool:
        """Fits functions with one product, with a row, a column and a term iterator."""
        assert isinstance(machine, GPUMachine)
        found = [s for s in stages(sch) if s.is_reduction]
        if len(found) != 1:
            return False
        stage = found[0]
        roles = Roles.of(stage)
        if roles is None or [len(roles.rows), len(roles.columns), len(roles.reduced)] != [1, 1, 1]:
            return False
        each = _results(stage, roles)
        if each is None:
            return False
        side = 16 if machine.threads >= 256 else 8
        element = dt.bytes_of(stage.stored.buffer.dtype)
        if 2 * side * each * _DEPTH * element > machine.shared_bytes:
            return False
        _tile(sch, stage, roles, side, each)
        bind_rest(sch, machine)
        return True


def _results(stage: Stage, roles: Any) -> int | None:
    """How many rows and columns of results a thread has; None where tiles do not pay."""
    rows, columns, terms = (stage.extents[v[0]] for v in (roles.rows, roles.columns,
                                                          roles.reduced))
    few = min(n for n in (rows, columns, 1 << 30) if n is not None)
    if few < 8 or (terms or _DEPTH) < 4:
        return None
    whole = volume(stage.extents.values())
    return 2 if few <= 32 or whole is not None and whole <= 1 << 20 else 4


def _tile(sch: Schedule, stage: Stage, roles: Any, side: int, each: int) -> None:
    """A tile of `side` x `side` threads, with `each` x `each` results each."""
    width = side * each
    rv = stage.rv
    sizes = {roles.rows[0]: width, roles.columns[0]: width, roles.reduced[0]: _DEPTH}
    order = [iv.var for iv in stage.block.iter_vars]
    if any((stage.extents[v] or 1) % n or stage.extents[v] is None for v, n in sizes.items()):
        sch.pad_einsum(rv, [sizes.get(v, 1) for v in order])
        for out in sch.get_consumers(rv):  # it leaves the padding out
            follow(sch, out)
    local = sch.cache_write(rv, 0, "local")
    follow(sch, local)
    loops = dict(zip(order, sch.get_loops(rv)))
    batch = [loops[v] for v in order if v not in sizes]
    i, j, k = (loops[v[0]] for v in (roles.rows, roles.columns, roles.reduced))
    i0, i1, i2 = sch.split(i, [None, side, each])
    j0, j1, j2 = sch.split(j, [None, side, each])
    k0, k1 = sch.split(k, [None, _DEPTH])
    sch.reorder(*batch, i0, j0, i1, j1, k0, k1, i2, j2)
    if batch:
        sch.bind(sch.fuse(*batch) if len(batch) > 1 else batch[0], "blockIdx.z")
    for loop, axis in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y"),
                       (j1, "threadIdx.x")):
        sch.bind(loop, axis)
    sch.reverse_compute_at(local, j1)
    for at in range(2):
        copy = sch.cache_read(rv, at, "shared")
        inline_into(sch, copy)
        sch.compute_at(copy, k0)
        fetch_together(sch, _below(sch, copy, k0), (("threadIdx.y", side), ("threadIdx.x", side)))
    sch.decompose_reduction(rv, k0)
    for loop in (i2, j2):
        sch.unroll(loop)


def _below(sch: Schedule, copy: BlockRV, outer: LoopRV) -> list[LoopRV]:
    """The loops of a copy inside of the one that it was put under."""
    loops = sch.get_loops(copy)
    at = next(n for n, loop in enumerate(loops) if sch.get(loop) is sch.get(outer))
    return loops[at + 1:]


def inline_into(sch: Schedule, copy: BlockRV) -> None:
    """What a copy copies, as padding, computed in the copy."""
    for rv in sch.get_producers(copy):
        if Stage(sch, rv).is_spatial:
            try:
                sch.compute_inline(rv)
            except ScheduleError:
                continue


def follow(sch: Schedule, local: BlockRV) -> None:
    """What follows element by element, done where results leave the registers."""
    while True:
        consumers = sch.get_consumers(local)
        if len(consumers) != 1:
            return
        try:
            sch.reverse_compute_inline(consumers[0])
        except ScheduleError:
            return


__all__ = ["Matmul", "follow", "inline_into"]

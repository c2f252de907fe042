"""Reduction: sums, maxima, means, norms, softmax, pooling, products of a matrix and a vector.

Stages that run over the same leading dimensions share those loops, so that a row is finished while
it is in the cache. A reduction fills vectors in one of two ways:

- along the output, where neighbours in memory belong to neighbouring results (a sum over rows,
  pooling): a vector of results is accumulated at once. Where they are few, each has several
  independent accumulators, which hide the latency of the add. Rows of a matrix that are longer
  than the registers hold are read whole, a few at a time, and added to sums that stay in the cache;
- along the reduction, where they belong to the same result (a sum over columns): each lane
  accumulates its part (`rfactor`), and the parts are added at the end. Several results are
  accumulated at once, which hides the latency too.

Before::

    for i, k in T.grid(128, 784):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0.0)
            C[vi] = C[vi] + W[vi, vk] * x[vk]

After, on vectors of eight (the blocks' bindings left out)::

    for i_0 in range(16):
        for k_0 in range(98):
            for i_1 in T.unroll(8):
                for k_1 in T.vectorized(8): C_rf[i, k_1] += W[i, k_0 * 8 + k_1] * ...
        for i_1, k_1 in T.grid(8, 8): C[i] += C_rf[i, k_1]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..machine.hardware import Hardware
from ..schedule import Schedule, ScheduleError
from ..tir.expr import BufferLoad, Var
from ..tir.functor import uses_var
from ..tir.op import as_int
from .base import Machine, KernelRule
from .stages import (
    Stage, memory_stride, schedule_elementwise, stages, volume,
)

if TYPE_CHECKING:
    from ..schedule.instruction import BlockRV

#: the processor that this is made for, whichever runs it: one program for all machines
_USUAL = Hardware()
#: independent vector accumulators: so many multiply-adds start until the first is done
_ACCUMULATORS = _USUAL.fma * _USUAL.latency
#: vectors of results that registers hold: rows of a matrix that are no longer are read whole
_REGISTERS = _USUAL.registers
#: rows of a matrix that are added at once to sums in the cache: the first that divides them
_DEPTHS = (8, 7, 6, 5, 4)
#: elements of float32 that the first cache holds: a matrix of no more is read from there
_CACHE = _USUAL.caches[0].size // 4
#: sums that are kept in it beside the rows that are added to them
_BLOCK = _CACHE // 4


class Reduction(KernelRule):
    """Shared outer loops, vectors along the output or along the reduction."""

    inlines = True

    def schedule(self, sch: Schedule, machine: Machine) -> bool:
        """Fits every function with a reduction."""
        found = stages(sch)
        if not any(stage.is_reduction for stage in found):
            return False
        work = [stage.work for stage in found if stage.work is not None]
        threads = machine.threads_pay(sum(work) if len(work) == len(found) else None)
        adders = {}  # the block of partial sums -> the block that adds them up
        split = set()  # names of the blocks whose partial sums are accumulators, not lanes
        for stage in found:
            parts = _attempt(sch, _split_over_lanes, stage.rv, machine)
            if parts is None:
                parts = _attempt(sch, _split_over_accumulators, stage.rv, machine)
                split |= set() if parts is None else {sch.get(parts).name_hint}
            if parts is not None:
                adders[sch.get(parts).name_hint] = stage.rv
        found = stages(sch)
        shared = _share_loops(sch, [stage.rv for stage in found])
        under = _attached(sch, found, shared)
        names_of_adders = {sch.get(rv).name_hint for rv in adders.values()}
        if shared and threads:
            shared = _parallelize(sch, found[-1].rv, shared)
        for rv in [stage.rv for stage in found]:
            name = sch.get(rv).name_hint
            if name in names_of_adders:
                continue
            if name in split:
                _attempt(sch, _accumulate_independently, rv, adders[name])
                continue
            below = shared if rv in under else 0
            if Stage(sch, rv).is_reduction:
                _attempt(sch, _accumulate, rv, below, machine, adders.get(name),
                         threads and not below)
            elif Stage(sch, rv).is_spatial:
                schedule_elementwise(sch, rv, machine, below, not below)
        return True


def _attempt(sch: Schedule, step: Any, *args: Any) -> Any:
    """Run a step that may be refused half way; then nothing of it stays, and it gives None."""
    trial = sch.copy()
    try:
        found = step(trial, *args)
    except ScheduleError:
        return None
    sch.become(trial)
    return found


# ------------------------------------------------------------------------------ shared loops


def _extents(sch: Schedule, rv: BlockRV) -> list[Any]:
    """The extents of the loops of the output around a block, up to its first sum."""
    stage = Stage(sch, rv)
    outputs, sums = _loops_by_kind(sch, stage, 0)
    out = []
    for loop in sch.get_loops(rv):
        if all(loop is not x for x, _ in outputs):
            break
        extent = sch.get(loop).extent
        out.append(as_int(extent) if as_int(extent) is not None else repr(extent))
    return out


def _share_loops(sch: Schedule, found: list[Any]) -> int:
    """Move the blocks under the leading loops they have in common; how many those are."""
    if len(found) < 2:
        return 0
    sizes = [_extents(sch, rv) for rv in found]
    depth = max(0, len(sizes[-1]) - 1)
    for size in sizes:
        depth = next((d for d in range(min(depth, len(size))) if size[d] != sizes[-1][d]),
                     min(depth, len(size)))
    if all(size == 1 for size in sizes[-1][:depth]):
        return 0
    loops = sch.get_loops(found[-1])
    for rv in reversed(found[:-1]):
        try:
            sch.compute_at(rv, loops[depth - 1])
        except ScheduleError:
            continue
    return depth


def _attached(sch: Schedule, found: list[Stage], shared: int) -> list[Any]:
    """The blocks that stand under the shared loops."""
    if not shared:
        return []
    loop = sch.get_sref(sch.get_loops(found[-1].rv)[shared - 1])
    return [stage.rv for stage in found
            if any(sch.get_sref(x) is loop for x in sch.get_loops(stage.rv))]


def _parallelize(sch: Schedule, rv: BlockRV, shared: int) -> int:
    """Fuse the shared loops and run them on all threads; gives how many loops they are then."""
    loops = sch.get_loops(rv)[:shared]
    sch.parallel(sch.fuse(*loops) if len(loops) > 1 else loops[0])
    return 1


# ------------------------------------------------------------------------------ one reduction


def _loops_by_kind(sch: Schedule, stage: Stage, below: int) -> tuple[list, list]:
    """The (loop, iterator) pairs of the block's own loops: those of the output, and the sums."""
    values = sch.state.realize_of(sch.get_sref(stage.rv)).iter_values
    bound = list(zip([iv.var for iv in stage.block.iter_vars], values))
    outputs, sums = [], []
    for loop in sch.get_loops(stage.rv)[below:]:
        var = sch.get(loop).loop_var
        users = [v for v, value in bound if uses_var(value, var)]
        if len(users) != 1:
            continue
        (sums if users[0] in stage.reduced else outputs).append((loop, users[0]))
    return outputs, sums


def _in_vectors(stage: Stage, var: Var, machine: Machine, store: bool = True) -> bool:
    """Whether all accesses are the same or neighbours for neighbours in `var`, of which there are
    enough for a vector."""
    extent = stage.extents[var]
    if extent is not None and extent < machine.widths(stage.stored.buffer.dtype)[-1]:
        return False
    strides = [memory_stride(load, var) for load in stage.loads()]
    if store:
        return memory_stride(_target(stage), var) == 1 and all(s in (0, 1) for s in strides)
    return all(s in (0, 1) for s in strides) and 1 in strides


def _target(stage: Stage) -> BufferLoad:
    return BufferLoad(stage.stored.buffer, stage.stored.indices)


def _split_over_lanes(sch: Schedule, rv: BlockRV, machine: Machine) -> Any:
    """Split a reduction along memory over the lanes of a vector (`rfactor`).

    Several results are accumulated side by side, in a vector each, or in two where a register goes
    to a value of each result; one alone takes four. Gives the block of the partial sums; None where
    the block is no such reduction.
    """
    stage = Stage(sch, rv)
    if not stage.is_reduction or stage.store is None:
        return None
    if stage.spatial and _in_vectors(stage, stage.spatial[-1], machine):
        return None
    _join_sums(sch, stage)
    stage = Stage(sch, rv)
    summed = stage.reduced[-1]
    extent = stage.extents[summed]
    # rfactor needs full vectors
    lanes = next((n for n in machine.widths(stage.stored.buffer.dtype)
                  if extent is not None and extent % n == 0), 0)
    if not lanes or extent is None or not _in_vectors(stage, summed, machine, store=False):
        return None
    several = any(stage.extents[v] != 1 for v in stage.spatial)
    width = lanes * (4 if not several else 2 if _reads_value_of_result(stage, summed) else 1)
    while extent % width:
        width //= 2
    sums = [x for x, v in zip(sch.get_loops(rv), stage.extents) if v in stage.reduced]
    return sch.rfactor(sch.split(sums[-1], [None, width])[1], len(stage.stored.indices))


def _reads_value_of_result(stage: Stage, summed: Var) -> bool:
    """Whether each term reads a value that belongs to its result, as a variance reads the mean."""
    return any(not any(uses_var(index, summed) for index in load.indices)
               and any(uses_var(index, v) for index in load.indices for v in stage.spatial)
               for load in stage.loads())


def _split_over_accumulators(sch: Schedule, rv: BlockRV, machine: Machine) -> Any:
    """Split a reduction over independent accumulators (`rfactor`), which hide the latency of the
    add.

    For a row of results in no more than four vectors, with many terms, whose number the number of
    accumulators divides. Gives the block of the partial sums; None where the block is no such
    reduction.
    """
    stage = Stage(sch, rv)
    if not stage.is_reduction or stage.store is None or not stage.spatial:
        return None
    along, last = stage.spatial[-1], stage.reduced[-1]
    size, terms = stage.extents[along], stage.extents[last]
    if size is None or terms is None or not _in_vectors(stage, along, machine) or any(
            stage.extents[v] != 1 for v in stage.spatial[:-1]):
        return None
    most = _ACCUMULATORS // -(-size // machine.lanes_within(stage.store.buffer.dtype, size))
    count = next((n for n in range(most, 1, -1) if terms % n == 0 and terms >= 4 * n), 0)
    if not count:
        return None
    loop = next(x for x, v in _loops_by_kind(sch, stage, 0)[1] if v is last)
    return sch.rfactor(sch.split(loop, [None, count])[1], 0)


def _accumulate_independently(sch: Schedule, parts: Any, adder: BlockRV) -> None:
    """Keep each partial sum in a vector register of its own, and add these at the end."""
    stage = Stage(sch, parts)
    outputs, sums = _loops_by_kind(sch, stage, 0)
    accumulator = next(x for x, v in outputs if v is stage.spatial[0])
    vector = next(x for x, v in outputs if v is stage.spatial[-1])
    others = [x for x, _ in outputs if x is not vector and x is not accumulator]
    sch.reorder(*others, *(x for x, _ in sums), accumulator, vector)
    sch.vectorize(vector)
    sch.unroll(accumulator)
    around = sch.get_loops(sch.decompose_reduction(parts, sums[0][0]))
    sch.vectorize(around[-1])
    sch.unroll(around[-2])
    outputs, sums = _loops_by_kind(sch, Stage(sch, adder), 0)
    accumulator, vector = sums[-1][0], outputs[-1][0]
    sch.reorder(accumulator, vector)
    sch.vectorize(vector)
    sch.unroll(accumulator)
    sch.vectorize(sch.get_loops(sch.decompose_reduction(adder, accumulator))[-1])


def _join_sums(sch: Schedule, stage: Stage) -> None:
    """Sums over dimensions that lie one after the other in memory become one."""
    loads = stage.loads()
    joined = [stage.reduced[-1]]
    for v in reversed(stage.reduced[:-1]):
        size = volume(stage.extents[x] for x in joined)
        if size is None or stage.extents[v] is None or not all(
                memory_stride(load, v) == size and memory_stride(load, joined[-1]) == 1
                for load in loads):
            break
        joined.insert(0, v)
    if len(joined) < 2:
        return
    order = [iv.var for iv in stage.block.iter_vars]
    if order[-len(joined):] != joined:
        return
    sizes = [stage.extents[v] for v in joined[1:]]

    def flat(*iters: Any) -> list[Any]:
        value = iters[-len(joined)]
        for it, size in zip(iters[len(iters) - len(joined) + 1:], sizes):
            value = value * size + it
        return [*iters[:-len(joined)], value]

    sch.transform_block_layout(stage.rv, flat)


def _accumulate(sch: Schedule, rv: BlockRV, below: int, machine: Machine, adder: BlockRV | None,
                threads: bool) -> None:
    """Accumulate a vector of neighbouring results at once, in a block whose first `below` loops are
    left alone. `threads`: run the outermost of the others on all threads.

    Where the vector are the lanes of sums, several results are accumulated side by side, and
    `adder`, the block that adds the lanes up, follows at once.
    """
    stage = Stage(sch, rv)
    outputs, sums = _loops_by_kind(sch, stage, below)
    if not sums or not outputs or stage.store is None:
        return
    along = next((x for x, v in outputs if memory_stride(_target(stage), v) == 1), None)
    extent = as_int(sch.get(along).extent) if along is not None else 1
    lanes = machine.lanes_within(stage.store.buffer.dtype, extent)
    # a gather of strided terms pays where the extent is known; else the program with its remainder
    # is long and no faster
    gathers = adder is None and any(
        memory_stride(load, v) not in (0, 1) for x, v in outputs if x is along
        for load in stage.loads())
    if along is None or (gathers and extent is None) or (extent is not None and extent < lanes):
        if threads:
            sch.parallel(outputs[0][0])
        return
    others = [x for x, _ in outputs if x is not along]
    streams = not below and adder is None and _reads_rows(stage, extent, lanes, sums)
    in_registers = streams and extent is not None and extent <= _REGISTERS * lanes and not threads
    cache_block = _block_in_cache(extent, lanes, machine.cores if threads else 1) if (
        extent is not None and streams and not in_registers) else 0
    sums = [x for x, _ in sums]
    if cache_block and extent is not None:
        width = _width(extent, lanes)
        outer, inner, vector = sch.split(along, [None, cache_block // width, width])
        rows_outer, row = sch.split(sums[0], [None, _depth(as_int(sch.get(sums[0]).extent))])
        sch.reorder(*others, outer, rows_outer, inner, row, vector)
        sch.unroll(row)
        sums, rows, others = [rows_outer], [], [*others, outer]
    elif adder is None:
        width = _ACCUMULATORS * lanes
        if gathers:  # loading its elements one by one takes longer than the latency of the add
            width = lanes
        elif extent is not None and (in_registers or extent % width):
            width = extent if in_registers or extent < width else 4 * lanes
        outer, vector = sch.split(along, [None, width])
        sch.reorder(*others, outer, *sums, vector)
        rows = []
        others = [*others, outer]
    else:
        vector, rows = along, []
        size = as_int(sch.get(others[-1]).extent) if others else 1
        if size is None or size > 1:
            outer, row = sch.split(others[-1], [None, _rows(size, (extent or lanes) // lanes)])
            others[-1:], rows = [outer], [row]
            sch.reorder(*others, *sums, *rows, vector)
        if rows and not below:
            sch.reverse_compute_at(adder, others[-1])
            _add_lanes(sch, adder)
    sch.vectorize(vector)
    for row in rows:
        sch.unroll(row)
    if threads and others:
        sch.parallel(others[0])
    around = sch.get_loops(sch.decompose_reduction(rv, sums[0]))
    sch.vectorize(around[-1])
    if rows:
        sch.unroll(around[-2])


def _rows(size: int | None, vectors: int) -> int:
    """How many of `size` results are accumulated at once, each in `vectors` vectors.

    A number that divides `size` is preferred: it leaves no remainder.
    """
    most = max(1, _ACCUMULATORS // vectors)
    if size is None or size <= most:
        return size or most
    return next((r for r in range(most, most // 2 - 1, -1) if size % r == 0), most)


def _depth(extent: int | None) -> int:
    """Rows that are added at once; 0 where none of `_DEPTHS` divides their number."""
    return next((d for d in _DEPTHS if extent is not None and extent % d == 0), 0)


def _reads_rows(stage: Stage, extent: int | None, lanes: int, sums: list) -> bool:
    """Whether what is summed are the rows of a matrix that is larger than the cache, each longer
    than the accumulators that hide the latency.

    Blocks of its columns would be read with a large stride, which memory delivers slower than whole
    rows.
    """
    if extent is None or len(sums) != 1 or extent <= _ACCUMULATORS * lanes or extent % lanes:
        return False
    terms = stage.extents[sums[0][1]]
    if terms is None or not _depth(terms) or terms * extent <= _CACHE:
        return False
    return any(memory_stride(load, sums[0][1]) == extent for load in stage.loads()
               if load.buffer is not stage.stored.buffer)


def _block_in_cache(extent: int, lanes: int, parts: int) -> int:
    """Results whose sums are kept in the cache while a few rows at a time are added to them."""
    width = _width(extent, lanes)
    most = max(width, min(_BLOCK, extent // parts))
    return max(w for w in range(width, most + 1, width) if extent % w == 0)


def _width(extent: int, lanes: int) -> int:
    """Neighbouring results to whose sums a few rows are added at once: four vectors, or fewer."""
    return lanes * next(n for n in (4, 2, 1) if extent % (n * lanes) == 0)


def _add_lanes(sch: Schedule, adder: BlockRV) -> None:
    """Result after result, the lanes of each in one loop, which is one addition of a vector."""
    lane, row = sch.get_loops(adder)[-2:]
    sch.reorder(row, lane)
    sch.unroll(row)
    sch.decompose_reduction(adder, lane)


__all__ = ["Reduction"]

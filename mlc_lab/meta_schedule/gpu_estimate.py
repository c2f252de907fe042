"""A time for a candidate of MultiLevelTilingGPU, from its tiles alone: it orders a search's first
candidates, of which nothing is measured yet.

The model is that of `observe/gpu/model.py`, with counts that follow from the tiles. A thread that
keeps `r` results does `r` products for each term of the sum, and loads for them, of each input, as
many elements as its results need. A block loads the inputs of its tile once for every step of the
outer reduced loop. Which threads of a warp meet in one bank of shared memory follows from how far
apart neighbouring threads read. What it leaves out, trees learn (`cost_model/tree_model.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from ..ir import dtype as dt
from ..observe.gpu.unrolled import IN_FLIGHT, UNROLLED
from ..observe.gpu.occupancy import occupancy
from ..schedule import Schedule, Trace
from ..schedule.error import ScheduleError
from ..target.gpus import gpu_of
from .analysis import BlockFacts, linear
from .gpu_tiles import Product, extent_of, tiles_of
from .schedule_rule.multi_level_tiling_gpu import is_product
from .postproc.common import leaf_blocks

if TYPE_CHECKING:
    from ..ir.module import IRModule
    from ..target.target import Target

#: registers that addresses and counters take, about; cycles of a barrier
_REGISTERS, _BARRIER = 32, 20
#: seconds, where the tiles say nothing
UNKNOWN = 1e-6
_BANKS, _LANE_BYTES = 32, 128


def product_of(mod: IRModule, target: Target) -> Product | None:
    """The product that a program is about; None where there is none, or more than one."""
    sch = Schedule(mod)
    found = []
    for _, block in leaf_blocks(sch):
        try:
            facts = BlockFacts(sch, block)
        except (ScheduleError, ValueError):
            return None
        if is_product(facts):
            found.append(facts)
    if len(found) != 1:
        return None
    facts = found[0]
    spatial = [a for a in facts.spatial if a.loop is not None]
    reduced = [a for a in facts.reduced if a.loop is not None]
    number = {a.var: at for at, a in enumerate([*spatial, *reduced])}
    inputs = []
    for read in facts.reads:
        dims = [linear(index, {}, facts.extents) for index in read.indices]
        inputs.append(tuple({number[v]: int(c) for v, c in (d or {}).items() if v in number}
                            for d in dims))
    return Product(tuple(a.extent for a in spatial), tuple(a.extent for a in reduced),
                   tuple(inputs), dt.bytes_of(facts.result.dtype), gpu_of(target))


def estimated_seconds(trace: Trace, product: Product | None) -> float:
    """The estimate for a trace with decisions; `UNKNOWN` for one that tiles no product."""
    tiles = tiles_of(trace, product)
    if product is None or tiles is None:
        return UNKNOWN
    unrolled = max((inst.args["candidates"][trace.decisions[at]]
                    for at, inst in enumerate(trace.insts)
                    if inst.kind.name == "SampleCategorical"
                    and trace.decisions.get(at) is not None), default=0)
    return _seconds(product, tiles.spatial, tiles.reduced, unrolled)


def _seconds(p: Product, spatial: list[list[int]], reduced: list[list[int]], unrolled: int
             ) -> float:
    gpu, mp = p.gpu, p.gpu.processor
    blocks, virtual, threads, inner = (math.prod(t[n] for t in spatial) for n in range(4))
    steps, depth = (math.prod(t[n] for t in reduced) for n in range(2))
    results, terms, warps = virtual * inner, steps * depth, -(-threads // gpu.warp)
    of_block = [t[1] * t[2] * t[3] for t in spatial] + [t[1] for t in reduced]
    together, rolled = _unrolled(spatial, reduced, virtual, unrolled)
    tiles = [[extent_of(d, of_block) for d in dims] for dims in p.inputs]
    elements = sum(math.prod(t) for t in tiles)
    loads = passes = 0  # for one step
    for dims, tile in zip(p.inputs, tiles):
        own = math.prod(extent_of(d, together) for d in dims) * rolled
        loads += own
        passes += own * _passes(p, dims, tile, spatial)
    held = occupancy(gpu, threads, min(_REGISTERS + results, 255), elements * p.nbytes)
    busiest = -(-blocks // gpu.processors)
    at_once = max(min(held.blocks, busiest), 1) * warps
    work = busiest * warps
    fetched = busiest * steps * elements
    copied = sum(-(-math.prod(t) // threads) for t in tiles)
    waits = (max(copied / IN_FLIGHT, 1) * gpu.l2_latency
             + max(loads / IN_FLIGHT, 1) * gpu.shared_latency)
    alone = terms * results + steps * (2 * _BARRIER + waits + passes - loads)
    cycles = max(
        work * terms * results * gpu.warp / mp.fp32,
        work * (terms * results + steps * loads) / mp.schedulers,
        work * steps * passes + fetched * p.nbytes * 2 / _LANE_BYTES,
        fetched * p.nbytes / gpu.l2_bytes_a_cycle,
        busiest * warps / at_once * alone)
    return cycles / gpu.clock


def _unrolled(spatial: list[list[int]], reduced: list[list[int]], virtual: int, most: int
              ) -> tuple[list[int], int]:
    """Of the loops of a thread those that are unrolled, so that what is loaded once is kept: the
    elements of each axis that they go over, and how often the loops around them run. `most` steps
    are unrolled by the schedule, and short loops by any compiler (`observe/gpu/unrolled.py`)."""
    sizes = [t[1] for t in spatial] + [1] * len(reduced)
    loops = [(len(spatial) + n, t[1]) for n, t in enumerate(reduced)]
    loops += [(n, t[3]) for n, t in enumerate(spatial)]
    written, left, rolled, whole = 1, virtual, 1, True
    for axis, extent in reversed(loops):
        whole = whole and written * extent <= most
        if whole:
            written *= extent
        elif rolled == 1 and left * extent <= UNROLLED:
            left *= extent
        else:
            rolled *= extent
            continue
        sizes[axis] *= extent
    return sizes, rolled


def _passes(p: Product, dims: tuple[dict[int, int], ...], tile: list[int],
            spatial: list[list[int]]) -> int:
    """Passes over the banks when the first warp reads an input in shared memory."""
    steps = [0] * len(p.spatial)  # elements from one thread to the next, along each axis
    stride = 1
    for dim, extent in zip(reversed(dims), reversed(tile)):
        for axis, c in dim.items():
            if axis < len(steps):
                steps[axis] += c * stride * spatial[axis][3]
        stride *= extent
    words = set()
    for lane in range(min(p.gpu.warp, math.prod(t[2] for t in spatial))):
        at, rest = 0, lane
        for axis in reversed(range(len(steps))):
            rest, own = divmod(rest, spatial[axis][2])
            at += own * steps[axis]
        words.add(at * p.nbytes // 4)
    return max(Counter(w % _BANKS for w in words).values())


__all__ = ["Product", "UNKNOWN", "estimated_seconds", "product_of"]

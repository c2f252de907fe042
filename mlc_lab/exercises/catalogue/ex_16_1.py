"""16.1  A schedule that is full on two different GPUs."""

from __future__ import annotations

import random

from ..exercise import Exercise, Values, Wrong, row
from .matrices import drawn, product

#: two GPUs of different shape
ONE, OTHER = "nvidia/geforce-rtx-2080-ti", "nvidia/nvidia-a100"


def answer(v: Values, side: int = 16, each: int = 2, depth: int = 16, fetch: bool = True) -> str:
    """The product in tiles of shared memory."""
    return f"""
local = sch.cache_write("{v.C}", 0, "local")
{v.loops} = sch.get_loops("{v.C}")
i_0, i_1, i_2 = sch.split(i, factors=[None, {side}, {each}])
j_0, j_1, j_2 = sch.split(j, factors=[None, {side}, {each}])
k_0, k_1 = sch.split(k, factors=[None, {depth}])
sch.reorder(i_0, j_0, i_1, j_1, k_0, k_1, i_2, j_2)
sch.reverse_compute_at(local, j_1)
sch.bind(i_0, "blockIdx.y")
sch.bind(j_0, "blockIdx.x")
sch.bind(i_1, "threadIdx.y")
sch.bind(j_1, "threadIdx.x")
{_tile(v.C, 0, side, fetch)}
{_tile(v.C, 1, side, fetch)}
sch.decompose_reduction("{v.C}", k_0)
"""


def _tile(out: str, operand: int, side: int, fetch: bool) -> str:
    """A copy of an operand's tile, loaded by all threads if `fetch`."""
    lines = [f'tile = sch.cache_read("{out}", {operand}, "shared")', "sch.compute_at(tile, k_0)"]
    if fetch:
        lines += ["down, along = sch.get_loops(tile)[-2:]",
                  f"_, y, x = sch.split(sch.fuse(down, along), factors=[None, {side}, {side}])",
                  'sch.bind(y, "threadIdx.y")', 'sch.bind(x, "threadIdx.x")']
    return "\n".join(lines)


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes; the requests of shared memory of tiles of 2 by 2 results, and their loading."""
    n, m, k = rng.choice([64, 96]), rng.choice([64, 96]), rng.choice([64, 128])
    return {"n": n, "m": m, "k": k, "most": n * m * k // 32 + n * m * k // 16 // 32,
            "plain": 2 * n * m * k // 32, **drawn(rng)}


EXERCISE = Exercise(
    id="16.1",
    title="Full on two cards",
    level=4,
    minutes=30,
    kind="schedule",
    statement="""\
A product of {n} by {k} times {k} by {m}. With one result a thread there are {plain} requests of
shared memory by warps to use what was loaded: two for each multiply-add of a warp. Write a schedule

- with at most {most} requests of shared memory in all, and
- which fills the multiprocessors of two cards: the RTX 2080 Ti (32 warps, 16 blocks, 64 KiB of
  shared memory, 65,536 registers) and the A100 (64 warps, 32 blocks, 164 KiB, as many registers).

You have no card: the rows are counted.""",
    draw=draw,
    program=lambda v: product(v.n, v.m, v.k, v.order, v.C),
    checks=lambda v: [
        row("equivalent", 1, "it computes the product", cases=1, nasty=False),
        row("gpu_counts", 1, "full on the RTX 2080 Ti", target=ONE, occupancy=1.0),
        row("gpu_counts", 2, "few requests of shared memory", target=ONE, shared=v.most,
            sectors=v.n * v.m * v.k // 8),
        row("gpu_counts", 2, "full on the A100, with as few requests", target=OTHER, occupancy=1.0,
            shared=v.most, sectors=v.n * v.m * v.k // 8),
    ],
    hints=(
        "Threads that compute 2 by 2 results load half as much from shared memory for each "
        "multiply-add. More results need more registers.",
        "64 warps share 65,536 registers: 32 for each thread. How many does the message of a row "
        "say that yours have? And 64 warps in blocks of 256 threads are 8 blocks.",
        "side = 16, 2 by 2 results a thread, tiles with a depth of 16: cache_write to local, "
        "cache_read to shared at k_0, the loops of the copies bound to all threads.",
    ),
    reference=answer,
    wrong=lambda v: [
        Wrong(answer(v, side=8, each=4), 4, "It is limited by registers"),
        Wrong(answer(v, each=1), 2, "requests of shared memory"),
        Wrong(answer(v, fetch=False), 2, "are asked for at most"),
        Wrong(f'sch.get_loops("{v.C}")', 1, "it cannot run on"),
    ],
)

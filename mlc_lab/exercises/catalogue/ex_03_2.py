"""03.2  Tiles that fit the cache: so many misses, and no more."""

from __future__ import annotations

import random

from ..exercise import Exercise, Values, Wrong, row
from .matrices import drawn, product

CACHES = "4K:8, 64K:16"


def tiled(v: Values, rows: int, columns: int, sums: int,
          order: str = "i0, j0, k0, i1, k1, j1") -> str:
    """A product in tiles, the loops in an order."""
    return f"""
{v.loops} = sch.get_loops("{v.C}")
i0, i1 = sch.split(i, factors=[None, {rows}])
j0, j1 = sch.split(j, factors=[None, {columns}])
k0, k1 = sch.split(k, factors=[None, {sums}])
sch.reorder({order})
"""


def draw(rng: random.Random) -> dict[str, object]:
    """The size of the matrices, names and loops; the bound is a part of the n³ steps."""
    n = rng.choice([72, 88, 104])
    return {"n": n, "bound": n ** 3 // 45, "kib": n * n * 4 // 1024, **drawn(rng)}


EXERCISE = Exercise(
    id="03.2",
    title="Fit the first cache",
    level=2,
    minutes=20,
    kind="schedule",
    statement="""\
The matrices of this product have {n} by {n} float32 numbers, about {kib} KiB each. The first cache
has 4 KiB: 64 lines of 64 bytes, 8 in a set.

Split and reorder the loops so that the product has at most {bound} misses in the first cache.
Factors need not divide {n}.""",
    draw=draw,
    program=lambda v: product(v.n, v.n, v.n, v.order, v.C),
    small=lambda v: {"n": 20},
    checks=lambda v: [
        row("equivalent", 1, "it computes the product", nasty=False, cases=1),
        row("counts", 2, f"at most {v.n ** 3 // 12:,} misses, one in 12 steps",
            misses=v.n ** 3 // 12, caches=CACHES),
        row("counts", 3, f"at most {v.bound:,} misses", misses=v.bound, caches=CACHES),
    ],
    hints=(
        "Which loop has to be innermost, so that B and {C} are used along their rows? That alone "
        "is not enough: with i outside, all of B passes by for each row of {C}.",
        "Split all three loops, and put the inner parts inside: a tile of A, of B and of {C} "
        "should fit 4 KiB together. Three tiles of t by t numbers have 12 t² bytes.",
        "t = 16: three tiles take 3 KiB, and a row of a tile is one line of the cache. "
        "sch.reorder(i0, j0, k0, i1, k1, j1).",
    ),
    reference=lambda v: tiled(v, 16, 16, 16),
    wrong=lambda v: [
        Wrong(f'{v.loops} = sch.get_loops("{v.C}")\nsch.reorder(i, k, j)', 3,
              "Reading B misses most"),
        Wrong(tiled(v, 8, 8, 8), 3, "are asked for at most"),
        Wrong(tiled(v, 32, 32, 32), 3, "are asked for at most"),
        Wrong(f'sch.get_loops("{v.C}")', 1, "a line of the cache has 64"),
    ],
)

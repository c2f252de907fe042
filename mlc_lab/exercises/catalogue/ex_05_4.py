"""05.4  The least traffic between a cache and what lies below it."""

from __future__ import annotations

import random

from ..exercise import Exercise, Values, Wrong, row
from .matrices import drawn, product

#: by KiB of the cache the rows and columns of a tile that takes half of it
TILES = {4: (16, 32), 8: (32, 32)}


def tiled(v: Values, rows: int, columns: int, sums: int, order: str) -> str:
    """A product in tiles."""
    return f"""
{v.loops} = sch.get_loops("{v.C}")
i_0, i_1 = sch.split(i, factors=[None, {rows}])
j_0, j_1 = sch.split(j, factors=[None, {columns}])
k_0, k_1 = sch.split(k, factors=[None, {sums}])
sch.reorder({order})
"""


def traffic(n: int, m: int, k: int, t: int, u: int) -> int:
    """Bytes that a tile of C of t by u, kept while k runs, moves: its rows of A and columns of B
    for each tile, and C in and out once."""
    return 4 * (n // t) * (m // u) * k * (t + u) + 2 * 4 * n * m


def draw(rng: random.Random) -> dict[str, object]:
    """A cache, and sizes that the tiles of the reference divide; the bounds are from the formula.
    Fully associative, so that only the size counts."""
    kib = rng.choice([4, 8])
    t, u = TILES[kib]
    n, m, k = t * rng.choice([3, 4, 5]), rng.choice([64, 96]), rng.choice([48, 64])
    least = traffic(n, m, k, t, u)
    return {"n": n, "m": m, "k": k, "good": least * 115 // 100, "some": 2 * least, "kib": kib,
            "numbers": 256 * kib, "t": t, "u": u, "caches": f"{kib}K:{16 * kib}, 256K:16",
            **drawn(rng)}


EXERCISE = Exercise(
    id="05.4",
    title="The least traffic",
    level=4,
    minutes=30,
    kind="schedule",
    statement="""\
A product of {n} by {k} times {k} by {m}, and a fully associative cache of {kib} KiB, which holds
{numbers} float32 numbers in lines of 16. Only its size counts here; there are no conflicts.

Schedule the product so that at most {good} bytes move between this cache and what lies below it,
both ways. (With at most {some} bytes there are points too.) Which matrix should stay in the cache,
and which should pass by?""",
    draw=draw,
    program=lambda v: product(v.n, v.m, v.k, v.order, v.C),
    small=lambda v: {"n": 24, "m": 40, "k": 20},
    checks=lambda v: [
        row("equivalent", 1, "it computes the product", cases=1, nasty=False),
        row("counts", 2, f"at most {v.some:,} bytes", bytes_moved=v.some, caches=v.caches),
        row("counts", 3, f"at most {v.good:,} bytes", bytes_moved=v.good, caches=v.caches),
    ],
    hints=(
        "Three square tiles that fill the cache are good, and there is something better. How often "
        "is each number of A read, if {C} is computed in tiles of t rows by u columns?",
        "A tile of {C} that stays in the cache while k runs needs of A only t numbers a step, and "
        "of B a row of u. So most of the cache may belong to {C}. The traffic of A and B goes with "
        "1/t + 1/u.",
        "A tile of {C} of {t} by {u} takes half of the cache, and leaves room for the lines of A "
        "and B: i_0, j_0, k, i_1, j_1, from the outside. u is a multiple of 16, for whole lines.",
    ),
    reference=lambda v: tiled(v, v.t, v.u, 1, "i_0, j_0, k_0, k_1, i_1, j_1"),
    wrong=lambda v: [
        Wrong(f'sch.get_loops("{v.C}")', 1, "are asked for at most. Reading"),
        Wrong(tiled(v, 16, 16, 16, "i_0, j_0, k_0, i_1, k_1, j_1"), 3, "bytes below L1"),
        Wrong(tiled(v, 4, 4, 4, "i_0, j_0, k_0, i_1, k_1, j_1"), 1, "bytes below L1"),
        Wrong(tiled(v, 48, 64, 1, "i_0, j_0, k_0, k_1, i_1, j_1"), 1, "misses most"),
    ],
)

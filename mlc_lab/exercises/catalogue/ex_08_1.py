"""08.1  A space that holds the good tile and little else."""

from __future__ import annotations

import functools
import random

from ...observe.counts import count_accesses
from ...schedule import Schedule
from ..exercise import Exercise, Values, Wrong, row
from .matrices import drawn, product

CACHES = "1K:4, 64K:16"


def program(v: Values):
    """A matrix product."""
    return product(v.n, v.m, v.k, v.order, v.C)


def tiled(v: Values, rows: str, columns: str, before: str = "",
          order: str = "i0, j0, k, i1, j1") -> str:
    """A schedule, with whatever stands for the two factors."""
    return f"""
{v.loops} = sch.get_loops("{v.C}")
{before}
i0, i1 = sch.split(i, {rows})
j0, j1 = sch.split(j, {columns})
sch.reorder({order})"""


@functools.cache
def best(n: int, m: int, k: int) -> tuple[int, int]:
    """The tile of a few that misses least."""
    def misses(tile: tuple[int, int]) -> int:
        sch = Schedule(product(n, m, k))
        i, j, k_ = sch.get_loops(sch.get_block("C"))
        i0, i1 = sch.split(i, [None, tile[0]])
        j0, j1 = sch.split(j, [None, tile[1]])
        sch.reorder(i0, j0, k_, i1, j1)
        return count_accesses(sch.mod, CACHES).level("L1").misses

    return min(((rows, 16) for rows in (2, 4, 8)), key=misses)


def good(v: Values) -> str:
    """The schedule that was found to be good."""
    return tiled(v, f"[None, {v.rows}]", f"[None, {v.columns}]")


def open_choices(v: Values) -> str:
    """A space of three programs."""
    return tiled(v, "[None, a]", "[None, b]", f"""
a = sch.sample_categorical([{v.rows // 2}, {v.rows}, {v.rows * 2}], [0.2, 0.6, 0.2])
b = {v.columns}""")


def values(rng: random.Random) -> dict:
    """Sizes, and the tile that is good for them."""
    n, m, k = (rng.choice([32, 48]) for _ in range(3))
    rows, columns = best(n, m, k)
    return {"n": n, "m": m, "k": k, "rows": rows, "columns": columns, "most": rng.choice([10, 12]),
            **drawn(rng)}


EXERCISE = Exercise(
    id="08.1",
    title="A small space",
    level=2,
    minutes=20,
    kind="space",
    statement="""\
Of this product of {n} by {k} and {k} by {m}, tiles of {rows} rows by {columns} columns are good,
with the loops in the order `i0, j0, k, i1, j1`: `i1` runs over the rows of a tile, `j1` over its
columns.

Write a schedule that leaves choices open (`sch.sample_perfect_tile`, `sch.sample_categorical`), a
space: the good tile is one of its programs, and there are at least 3 and at most {most} of them.
Eight trials of a random search find a program that misses the cache at most twice as often as the
good one.

The answer is read, not run: write calls on `sch`, one a line.""",
    draw=values,
    program=program,
    small=lambda v: {"n": 24, "m": 20, "k": 24},
    checks=lambda v: [
        row("equivalent", 1, "its programs compute the product", nasty=False, cases=1),
        row("space", 2, "the good tile is in it", contains=good(v)),
        row("space", 2, f"3 to {v.most} programs, all of them legal", least=3, most=v.most),
        row("search", 2, "eight trials find a good one", trials=8, good=good(v), within=2.0,
            runs=3, caches=CACHES),
    ],
    hints=(
        "Begin with the schedule that makes the good tile, and then leave open what you would not "
        "have known: the two factors.",
        "sample_perfect_tile(loop, n=2, max_innermost_factor=m) draws among all factors up to m, "
        "and most are too small to be good. sample_categorical(values, probabilities) draws among "
        "those that you name.",
        "a = sch.sample_categorical([{rows}, ...], [0.5, 0.5]), the same for the columns, then "
        "sch.split(i, [None, a]).",
    ),
    reference=open_choices,
    wrong=lambda v: [
        Wrong(good(v), 5, "leave a choice open with sch.sample_"),
        Wrong(open_choices(v) + "\nsch.sample_categorical([0, 4, 16, 64, 512], "
              "[0.2, 0.2, 0.2, 0.2, 0.2])", 5, "drawn blindly"),
        Wrong(tiled(v, "sch.sample_perfect_tile(i, n=2, max_innermost_factor=2)",
                    "sch.sample_perfect_tile(j, n=2, max_innermost_factor=2)"), 3,
              "none of those in the space"),
        Wrong(tiled(v, "[None, a]", "[None, 1]", f"""
a = sch.sample_categorical([1, 2, {v.rows}], [0.4, 0.4, 0.2])"""), 3, "none of those in the space"),
        Wrong(tiled(v, "[None, a]", f"[None, {v.columns}]", f"""
a = sch.sample_categorical([1, 2, {v.rows}], [0.4, 0.4, 0.2])""", "i0, j0, i1, j1, k"), 3,
              "none of those in the space"),
    ],
)

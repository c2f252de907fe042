"""05.5  A transposition in which both sides hit."""

from __future__ import annotations

import random

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row
from .matrices import RESULTS


def program(v: Values):
    """A is read along its rows, and its transpose written down its columns."""
    extent = {"i": v.n, "j": v.m}
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.m}), "float32"), {v.B}: T.Buffer(({v.m}, {v.n}), "float32")):
        for {v.loops} in T.grid({", ".join(str(extent[x]) for x in v.loops.split(", "))}):
            with T.block("{v.B}"):
                vi, vj = T.axis.remap("SS", [i, j])
                {v.B}[vj, vi] = A[vi, vj]
""")


def tiled(v: Values, rows: int, columns: int, order: str = "i_0, j_0, i_1, j_1") -> str:
    """The transposition in tiles."""
    return f"""
{v.loops} = sch.get_loops("{v.B}")
i_0, i_1 = sch.split(i, factors=[None, {rows}])
j_0, j_1 = sch.split(j, factors=[None, {columns}])
sch.reorder({order})
"""


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes that whole lines divide, and no power of two."""
    n, m = rng.sample([80, 112, 144], 2)
    return {"B": rng.choice(RESULTS), "loops": rng.choice(["i, j", "j, i"]),
            "n": n, "m": m, "caches": "4K:8, 64K:16", "bound": 2 * n * m // 16 * 6 // 5,
            "least": 2 * n * m // 16}


EXERCISE = Exercise(
    id="05.5",
    title="Transpose in tiles",
    level=2,
    minutes=15,
    kind="schedule",
    statement="""\
`{B}` becomes the transpose of `A`, {n} by {m} float32 numbers. A line has 64 bytes and the cache
4 KiB, 64 lines. However the two loops stand, one side goes along rows and the other down columns.

Schedule it so that there are at most {bound} misses; {least} are needed to see each line once.""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it transposes", cases=1),
        row("counts", 4, f"at most {v.bound:,} misses", misses=v.bound, caches=v.caches),
    ],
    hints=(
        "Each line of {B} that is written should still be in the cache when its next number comes. "
        "How many other lines are used in between?",
        "Split both loops, and put the inner parts inside: then only a tile of A and one of {B} "
        "are in use. How many numbers of a line does a tile use?",
        "Tiles of 16 by 16 use whole lines, 16 of A and 16 of {B}: reorder(i_0, j_0, i_1, j_1).",
    ),
    reference=lambda v: tiled(v, 16, 16),
    wrong=lambda v: [
        Wrong(f"{v.loops} = sch.get_loops('{v.B}')\nsch.reorder(i, j)", 1,
              f"Writing {v.B} misses most"),
        Wrong(f"{v.loops} = sch.get_loops('{v.B}')\nsch.reorder(j, i)", 1,
              "Reading A misses most"),
        Wrong(tiled(v, 4, 4), 1, "are asked for at most"),
    ],
)

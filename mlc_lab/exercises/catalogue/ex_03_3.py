"""03.3  A tile of sums that stays in registers."""

from __future__ import annotations

from ..exercise import Exercise, Values, Wrong, row
from .matrices import drawn, product


def program(v: Values):
    """A matrix product."""
    return product(v.n, v.m, v.k, v.order, v.C)


def tiled(v: Values, rows: int, columns: int, vectorized: bool = True, cached: bool = True) -> str:
    """A schedule with tiles of rows by columns."""
    inner = """
jv, jw = sch.split(j1, [None, 8])
sch.reorder(i0, j0, k, i1, jv, jw)
sch.unroll(i1)
sch.unroll(jv)
sch.vectorize(jw)""" if vectorized else """
sch.reorder(i0, j0, k, i1, j1)
sch.unroll(i1)"""
    cache = f"""
tile = sch.cache_write("{v.C}", 0, "local")
sch.reverse_compute_at(tile, j0)""" if cached else ""
    return f"""
{v.loops} = sch.get_loops("{v.C}")
i0, i1 = sch.split(i, [None, {rows}])
j0, j1 = sch.split(j, [None, {columns}]){inner}{cache}
sch.decompose_reduction("{v.C}", k)"""


EXERCISE = Exercise(
    id="03.3",
    title="Sums in registers",
    level=3,
    minutes=30,
    kind="schedule",
    statement="""\
A core of an AVX2 processor has 16 vector registers of 8 float32 each, and can begin two
multiply-adds in each cycle; each takes 4 cycles. So at least 8 sums that do not wait for each
other are needed, and all of them have to stay in registers.

Schedule the product ({n} by {k} times {k} by {m}) so that the inner loop over `k` keeps a tile of
{C} in registers: at least 8 multiply-adds of 256 bits an iteration, and nothing on the stack.""",
    draw=lambda rng: {"n": rng.choice([48, 72, 96]), "m": rng.choice([48, 64, 96]),
                      "k": rng.choice([32, 64]), **drawn(rng)},
    program=program,
    small=lambda v: {"n": 24, "m": 32, "k": 20},
    checks=lambda v: [
        row("equivalent", 2, "it computes the product", nasty=False, cases=1),
        row("machine_code", 2, "vectors of 256 bits", width=256, fma=1),
        row("machine_code", 3, "eight sums that do not wait for each other", fma=8, sums=8),
        row("machine_code", 3, "nothing on the stack", fma=8, spills=0),
    ],
    hints=(
        "Split i and j, and put k around the two inner loops: then each element of A and B that is "
        "loaded is used for several sums.",
        "The inner part of j is vectorized by 8, what is left of the tile is unrolled; a copy of "
        "the tile (cache_write, reverse_compute_at) and decompose_reduction keep the sums in "
        "registers.",
        "Tiles of 4 rows by 16 columns are 8 vectors of sums; with 2 vectors of B and one element "
        "of A they fit 16 registers.",
    ),
    reference=lambda v: tiled(v, 4, 16),
    wrong=lambda v: [
        Wrong(tiled(v, 4, 8), 7, "4 sums that do not wait for each other, 8 are asked for"),
        Wrong(tiled(v, 8, 24 if v.m % 24 == 0 else 32), 7, "registers do not suffice"),
        Wrong(f"{v.loops} = sch.get_loops('{v.C}')\nsch.vectorize(k)", 0, "vectorize"),
    ],
)

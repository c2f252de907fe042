"""02.3  A product in tiles that do not divide it: the block needs a predicate."""

from __future__ import annotations

import random

from ..exercise import Exercise, Values, Wrong, row


def text(v: Values, where: str, tiles: str = "", row_: str = "") -> str:
    """The product in tiles of rows, with a predicate."""
    guard = f"\n            T.where({where})" if where else ""
    return f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.k}), "float32"), B: T.Buffer(({v.k}, {v.m}), "float32"),
         C: T.Buffer(({v.n}, {v.m}), "float32")):
    for i_0, j, k, i_1 in T.grid({tiles or v.tiles}, {v.m}, {v.k}, {v.t}):
        with T.block("C"):{guard}
            vi = T.axis.spatial({v.n}, {row_ or f"i_0 * {v.t} + i_1"})
            vj, vk = T.axis.remap("SR", [j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes whose rows the tile does not divide."""
    t = rng.choice([4, 5, 6])
    n = t * rng.choice([2, 3]) + rng.randrange(1, t)
    m, k = rng.sample([5, 6, 7, 8, 9], 2)
    return {"t": t, "n": n, "m": m, "k": k, "tiles": -(-n // t), "rest": n % t, "whole": n // t}


EXERCISE = Exercise(
    id="02.3",
    title="Tiles that do not divide",
    level=2,
    minutes=15,
    kind="program",
    statement="""\
Write the product `C = A @ B`, {n} by {k} times {k} by {m}, so that it computes {t} rows at a time:
four loops `i_0`, `j`, `k`, `i_1` around a block `C`, where `i_1` goes over the {t} rows of a tile
and `i_0` over the tiles. {t} does not divide {n}.

The function is called `main`, its buffers `A`, `B` and `C` are float32, and each element of `C` is
computed once.""",
    draw=draw,
    checks=lambda v: [
        row("structure", 2, "the loops are as asked for",
            nest={"C": [v.tiles, v.m, v.k, v.t]}, iterators={"C": "SSR"}),
        row("equivalent", 3, "it computes the product"),
    ],
    hints=(
        "How many tiles of {t} rows are needed for {n} rows? The last one has {rest} rows, and "
        "its loop runs {t} times all the same.",
        "The block computes row i_0 * {t} + i_1. Where that is no row of C, the block must not "
        "run: T.where(...) says when it does, as the first line of the block.",
        "Loops over {tiles}, {m}, {k} and {t}; T.where(i_0 * {t} + i_1 < {n}); and "
        "vi = T.axis.spatial({n}, i_0 * {t} + i_1).",
    ),
    reference=lambda v: text(v, f"i_0 * {v.t} + i_1 < {v.n}"),
    wrong=lambda v: [
        Wrong(text(v, ""), 2, "the program stops"),
        Wrong(text(v, f"i_0 * {v.t} + i_1 <= {v.n}"), 2, "the program stops"),
        Wrong(text(v, "", str(v.whole)), 0, "no statement has written it"),
        Wrong(text(v, "", row_=f"T.min(i_0 * {v.t} + i_1, {v.n - 1})"), 2,
              f"C[{v.n - 1}, 0] is"),
    ],
)

"""05.1  Say the reuse distance before you count it."""

from __future__ import annotations

import functools
import random

import numpy as np

from ...observe import accesses
from ...script import from_source
from ..exercise import Exercise, Field, Values, Wrong, row

#: bytes of a line of the cache, and of a number
LINE, SIZE = 32, 4


def program(v: Values):
    """A matrix times a vector, in plain loops."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.m}), "float32"), x: T.Buffer(({v.m},), "float32"),
             y: T.Buffer(({v.n},), "float32")):
        for i, j in T.grid({v.n}, {v.m}):
            y[i] = y[i] + A[i, j] * x[j]
""")


def distances(v: Values) -> dict[str, int]:
    """The reuse distances that are asked for, from the accesses of the program; and the lines of a
    cache that keeps x."""
    return dict(_distances(v.n, v.m, v.row, v.column))


@functools.lru_cache(32)
def _distances(n: int, m: int, row_: int, column: int) -> tuple[tuple[str, int], ...]:
    trace = accesses(program(Values(n=n, m=m)))
    reuse = trace.reuse(line=LINE)
    buffers = [place.name for place in trace.places]
    kept = trace.buffer

    def of(name: str, i: int, j: int) -> np.ndarray:
        return np.flatnonzero((kept == buffers.index(name)) & ~trace.write
                              & (trace.values[:, 0] == i) & (trace.values[:, 1] == j))

    later = (kept == buffers.index("x")) & (trace.values[:, 0] > 0)
    return (("x", int(reuse[of("x", row_, 0)][0])),
            ("A", int(reuse[of("A", row_, column)][0])),
            ("y", int(reuse[of("y", row_, column)][0])),
            ("lines", int(reuse[later].max()) + 1))


def draw(rng: random.Random) -> dict[str, object]:
    """The sizes, in whole lines, and the element that is asked about."""
    per = LINE // SIZE
    lines = rng.choice(range(3, 11))
    return {"n": rng.choice([4, 5, 6]), "m": per * lines, "lines": lines, "row": rng.choice([1, 2]),
            "column": per * rng.randrange(1, lines) + rng.randrange(1, per)}


EXERCISE = Exercise(
    id="05.1",
    title="Say the reuse distance",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
The reuse distance of an access is the number of other lines that were used since its own line was
used last. The program below multiplies a matrix, {n} by {m}, with a vector. A line has 32 bytes,
which are 8 numbers, and each buffer begins with a line. A step reads `y[i]`, `A[i, j]` and `x[j]`,
in this order, and writes `y[i]`.

What are the reuse distances, and how many lines must a fully associative LRU cache have at least,
so that `x` is missed in row 0 only?""",
    draw=draw,
    program=program,
    fields=lambda v: [
        Field("x", f"Reuse distance of reading x[0] in row {v.row}"),
        Field("A", f"Reuse distance of reading A[{v.row}, {v.column}]"),
        Field("y", f"Reuse distance of reading y[{v.row}] in step j = {v.column}"),
        Field("lines", "Lines that the cache must have"),
    ],
    checks=lambda v: [
        row("prediction", 2, "x after a row", field="x", equals=lambda: distances(v)["x"],
            says=lambda: {
                v.lines - 1: f"those are the other lines of x; since then {v.lines} lines of A "
                "were used too, and the line of y",
                2 * v.lines - 1: "the line of A that this step reads was used since then too: it "
                "is read before x",
                v.m: "the distance counts lines, not numbers: a line has 8"}),
        row("prediction", 1, "A in its line", field="A", equals=lambda: distances(v)["A"],
            says={-1: f"A[{v.row}, {v.column - 1}] is in the same line and was read a step before",
                  0: "the lines of x and of y were used in between"}),
        row("prediction", 1, "y in its step", field="y", equals=lambda: distances(v)["y"],
            says={2: "y is written at the end of each step, and read first in the next: nothing "
                     "lies in between"}),
        row("prediction", 2, "lines of a cache that keeps x", field="lines",
            equals=lambda: distances(v)["lines"],
            says=lambda: {distances(v)["lines"] - 1:
                          "a cache of n lines finds what has a distance below n, not n itself"}),
    ],
    hints=(
        "Write down the lines that are used between the two uses, each once. x has {lines} lines, "
        "a row of A has {lines}, and y lies in one.",
        "Between the last use of x[0]'s line in a row and x[0] in the next: the other lines of x, "
        "the lines of A after the one it shared the first steps with, the line of y, and the first "
        "line of the next row of A.",
        "That is {lines} - 1 lines of x, {lines} - 1 of this row of A, one of the next, and y's. "
        "A cache of n lines finds exactly what has a distance below n.",
    ),
    reference=distances,
    wrong=lambda v: [
        Wrong({**distances(v), "x": v.lines - 1}, 4, "those are the other lines of x"),
        Wrong({**distances(v), "lines": distances(v)["lines"] - 1}, 4, "below n, not n itself"),
        Wrong({**distances(v), "A": -1, "y": 2}, 4, "is in the same line"),
        Wrong({**distances(v), "x": v.m}, 4, "counts lines, not numbers"),
    ],
)

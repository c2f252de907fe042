"""01.4  A slice of numpy is an index with something added to it."""

from __future__ import annotations

from ..exercise import Exercise, Values, Wrong, row


def text(v: Values, value: str, kinds: str = "SS", columns: str = "") -> str:
    """The program that stores a value."""
    columns = columns or str(v.w)
    return f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), C: T.Buffer(({v.n}, {v.w}), "float32")):
    for i, j in T.grid({v.n}, {columns}):
        with T.block("C"):
            vi, vj = T.axis.remap("{kinds}", [i, j])
            C[vi, vj] = {value}
"""


def draw(rng):
    """The size, and how far apart are the numbers that are subtracted."""
    m, d = rng.choice([9, 11, 13]), rng.choice([2, 3, 4])
    return {"n": rng.choice([5, 6, 7]), "m": m, "d": d, "w": m - d}


EXERCISE = Exercise(
    id="01.4",
    title="Slices as indices",
    level=1,
    minutes=10,
    kind="program",
    statement="""\
In numpy, `C = A[:, {d}:] - A[:, :-{d}]` subtracts from each number the one that stands {d} columns
to its left. `A` has {n} rows of {m} numbers, so `C` has {n} rows of {w}.

Write it as a tensor program: a function `main` of float32 buffers `A` ({n}, {m}) and
`C` ({n}, {w}), with two loops and one block.""",
    draw=draw,
    checks=lambda v: [
        row("structure", 1, "one block with two spatial iterators", blocks=1, iterators="SS"),
        row("equivalent", 3, "it computes what numpy computes"),
    ],
    hints=(
        "The loops go over the elements of C, not over those of A: {n} by {w}.",
        "A[:, {d}:] begins at column {d}: its element at column j is that of A at column j + {d}.",
        "So one of the two is read at A[vi, vj + {d}]. A[:, :-{d}] begins at column 0 and ends "
        "early: it is read at A[vi, vj].",
    ),
    reference=lambda v: text(v, f"A[vi, vj + {v.d}] - A[vi, vj]"),
    wrong=lambda v: [
        Wrong(text(v, f"A[vi, vj] - A[vi, vj - {v.d}]"), 1, "outside"),
        Wrong(text(v, f"A[vi, vj] - A[vi, vj + {v.d}]"), 1, "C[0, 0] is"),
        Wrong(text(v, f"A[vi, vj + {v.d}] - A[vi, vj]", columns=f"{v.w} - 1"), 1,
              "no statement has written it"),
    ],
)

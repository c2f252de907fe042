"""02.1  A strided convolution, as one block."""

from __future__ import annotations

import random

from ..exercise import Exercise, Values, Wrong, row


def text(v: Values, row_: str, column: str, kinds: str = "SSSRRR", init: bool = True) -> str:
    """The convolution, with X read at a row and a column."""
    start = """
            with T.init():
                Y[vo, vi, vj] = T.float32(0)""" if init else ""
    return f"""
@T.prim_func
def main(X: T.Buffer(({v.c}, {v.h}, {v.w}), "float32"),
         W: T.Buffer(({v.o}, {v.c}, {v.k}, {v.k}), "float32"),
         Y: T.Buffer(({v.o}, {v.rows}, {v.columns}), "float32")):
    for o, i, j, c, p, q in T.grid({v.o}, {v.rows}, {v.columns}, {v.c}, {v.k}, {v.k}):
        with T.block("Y"):
            vo, vi, vj, vc, vp, vq = T.axis.remap("{kinds}", [o, i, j, c, p, q]){start}
            Y[vo, vi, vj] = Y[vo, vi, vj] + X[vc, {row_}, {column}] * W[vo, vc, vp, vq]
"""


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes: of the image just so many rows and columns as the last window needs."""
    s, k = rng.choice([(2, 2), (2, 3), (3, 2), (3, 4)])
    rows, columns = rng.sample([4, 5, 6], 2)
    return {"s": s, "k": k, "rows": rows, "columns": columns, "c": rng.choice([2, 3]),
            "o": rng.choice([3, 4]), "h": (rows - 1) * s + k, "w": (columns - 1) * s + k}


EXERCISE = Exercise(
    id="02.1",
    title="A strided convolution",
    level=2,
    minutes=20,
    kind="program",
    statement="""\
A convolution lays a window of {k} by {k} on an image and adds up the products with its weights.
With a stride of {s} the window moves on by {s} rows or columns from one output to the next. The
image has {c} channels, the output has {o}, and there is no padding:

`Y[o, i, j]` = sum over `c`, `p`, `q` of `X[c, the row of p, the column of q] * W[o, c, p, q]`

Write it as a tensor program with one block: a function `main` of float32 buffers
`X` ({c}, {h}, {w}), `W` ({o}, {c}, {k}, {k}) and `Y` ({o}, {rows}, {columns}).""",
    draw=draw,
    checks=lambda v: [
        row("structure", 2, "one block, three spatial iterators and three reductions", blocks=1,
            iterators="SSSRRR"),
        row("equivalent", 4, "it computes the convolution"),
    ],
    hints=(
        "Six loops: o, i and j say which element of Y, and c, p and q which product. Which of "
        "them add to one element?",
        "The window of output row i begins at row i * {s} of the image. The reductions are c, p "
        "and q, so the kinds are SSSRRR; T.init() sets the sum to zero.",
        "X is read at X[vc, vi * {s} + vp, vj * {s} + vq].",
    ),
    reference=lambda v: text(v, f"vi * {v.s} + vp", f"vj * {v.s} + vq"),
    wrong=lambda v: [
        Wrong(text(v, "vi + vp", "vj + vq"), 2, "and should be"),
        Wrong(text(v, f"vi + vp * {v.s}", f"vj + vq * {v.s}"), 2,
              "outside" if (v.k - 1) * v.s + v.rows > v.h else "and should be"),
        Wrong(text(v, f"vi * {v.s} + vp", f"vj * {v.s} + vq", init=False), 2,
              "it was written last at o = 0"),
        Wrong(text(v, f"vi * {v.s} + vp", f"vj * {v.s} + vq", "SSSRRS"), 0,
              "the iterators of block Y are SSSRRS"),
    ],
)

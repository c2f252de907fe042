"""23.3  Softmax under a mask: no place looks ahead, and a row that sees nothing is no NaN."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from ..exercise import Exercise, Values, Wrong, row

#: what scores and weights may be called
NAMES = (("S", "P"), ("S", "W"), ("X", "Y"), ("A", "P"))


def text(v: Values, mask: str = "", start: str = 'T.min_value("float32")', less: str = "- M[vi]",
         seen: str = "D[vi] > T.float32(0)") -> str:
    """The program, or one that forgets something."""
    mask = mask or f"vj <= vi and vi - vj < {v.window}"
    low, score = 'T.min_value("float32")', f"{v.S}[vi, vj] * T.float32({v.scale})"
    weight = f"T.exp({score} {less}) / D[vi]"
    if seen:
        weight = f"T.if_then_else({seen}, {weight}, T.float32(0))"
    return f"""
@T.prim_func
def main({v.S}: T.Buffer(({v.n}, {v.n}), "float32"), {v.P}: T.Buffer(({v.n}, {v.n}), "float32")):
    M = T.alloc_buffer(({v.n},), "float32")
    D = T.alloc_buffer(({v.n},), "float32")
    for i, j in T.grid({v.n}, {v.n}):
        with T.block("M"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                M[vi] = {start}
            M[vi] = T.max(M[vi], T.if_then_else({mask}, {score}, {low}))
    for i, j in T.grid({v.n}, {v.n}):
        with T.block("D"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                D[vi] = T.float32(0)
            D[vi] = D[vi] + T.if_then_else({mask}, T.exp({score} {less}), T.float32(0))
    for i, j in T.grid({v.n}, {v.n}):
        with T.block("{v.P}"):
            vi, vj = T.axis.remap("SS", [i, j])
            {v.P}[vi, vj] = T.if_then_else({mask}, {weight}, T.float32(0))
"""


def large(arrays: Sequence[np.ndarray]) -> str:
    """Scores whose powers of e are no float32."""
    arrays[0][...] = 4000 * arrays[0] - 1000
    return "the scores of the input are in the thousands"


def hidden(v: Values):
    """Scores of which one row sees nothing but -inf."""
    def change(arrays: Sequence[np.ndarray]) -> str:
        arrays[0][v.row, : v.row + 1] = -np.inf
        arrays[0][v.n - 1, v.n - 1] = -np.inf
        return f"row {v.row} of the input sees no finite score"
    return change


def draw(rng: random.Random) -> dict[str, object]:
    """Names and sizes."""
    (S, P), window = rng.choice(NAMES), rng.choice([3, 4, 5])
    n = rng.choice([7, 8, 9, 10])
    return {"S": S, "P": P, "n": n, "window": window, "scale": rng.choice([0.25, 0.5, 0.125]),
            "row": rng.randrange(1, n - 1)}


EXERCISE = Exercise(
    id="23.3",
    title="Softmax under a mask",
    level=3,
    minutes=30,
    kind="program",
    statement="""\
`{S}` has the scores of {n} places of a text: `{S}[i, j]` says how well the query of place `i` fits
the key of place `j`. A place sees itself and the {window} - 1 places before it, and no others: `j`
is at most `i`, and `i - j` is less than {window}.

Write a function `main` of float32 buffers `{S}` ({n}, {n}) and `{P}` ({n}, {n}) that makes the
weights of each row: of what a place sees, the softmax of `{S}[i, j] * {scale}`; of what it does not
see, 0. Scores may be in the thousands, so that `exp` of one is no float32. Some may be -inf: such a
place has the weight 0, and where all that a place sees is -inf, the whole row is 0.""",
    draw=draw,
    checks=lambda v: [
        row("equivalent", 3, "the weights of what is seen", nasty=False, cases=2),
        row("equivalent", 2, "scores in the thousands", nasty=False, cases=1, given=large),
        row("equivalent", 2, "a row that sees nothing but -inf", nasty=False, cases=1,
            given=hidden(v)),
    ],
    hints=(
        "Three blocks: the maximum of what a row sees, the sum of exp(score - maximum), the "
        "weights. The mask is a condition on vi and vj: T.if_then_else(condition, a, b).",
        "A maximum over nothing has to be a number from which -inf can be subtracted: begin with "
        'T.min_value("float32"), the least number that is not infinite. What is not seen counts as '
        "that in the maximum, and as 0 in the sum.",
        "vj <= vi and vi - vj < {window} is what is seen. If a row sees nothing but -inf its sum "
        "is 0, and 0 / 0 is NaN: divide only where the sum is greater than 0.",
    ),
    reference=text,
    wrong=lambda v: [
        Wrong(text(v, mask="vj <= vi"), 0, "and should be"),
        Wrong(text(v, less=""), 3, "the scores of the input are in the thousands"),
        Wrong(text(v, seen=""), 5, "of the input sees no finite score"),
        Wrong(text(v, mask=f"vj < vi and vi - vj < {v.window}"), 0, "and should be"),
    ],
)

"""01.1  From numpy to loops: a first tensor program, written by hand."""

from __future__ import annotations

from ..exercise import Exercise, Values, Wrong, row


def text(v: Values, index: str, declared: str = "float32") -> str:
    """The program, with B read at `index`."""
    return f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "{declared}"), B: T.Buffer(({v.m},), "{declared}"),
         C: T.Buffer(({v.n}, {v.m}), "{declared}")):
    for i, j in T.grid({v.n}, {v.m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + B[{index}]
"""


EXERCISE = Exercise(
    id="01.1",
    title="A broadcast addition",
    level=1,
    minutes=10,
    kind="program",
    statement="""\
In numpy, `C = A + B` adds a row `B` of {m} numbers to each of the {n} rows of `A`.

Write it as a tensor program: a function `main` of float32 buffers `A` ({n}, {m}), `B` ({m},) and
`C` ({n}, {m}), with two loops and one block.""",
    draw=lambda rng: {"n": rng.choice([6, 12, 20]), "m": rng.choice([5, 7, 9])},
    checks=lambda v: [
        row("structure", 1, "one block with two spatial iterators", blocks=1,
            iterators="SS"),
        row("equivalent", 3, "it computes what numpy computes"),
    ],
    hints=(
        "Begin with the signature: three T.Buffer parameters. A block stands in two loops.",
        'T.axis.remap("SS", [i, j]) makes both iterators of the block spatial: each element of C '
        "is computed by itself.",
        "B has one axis, and the same row of it is added to each row of A: it is read at B[vj].",
    ),
    reference=lambda v: text(v, "vj"),
    wrong=lambda v: [
        Wrong(text(v, f"vi % {v.m}"), 1, "C[0, 1] is"),
        Wrong(text(v, "vj", "float64"), 1, "float64; asked for: A: "),
        Wrong(text(v, "vj").replace("SS", "SR"), 3, "the iterators of block C are SR"),
    ],
)

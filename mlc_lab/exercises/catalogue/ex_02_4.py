"""02.4  A program with one wrong line, which is to be found and mended."""

from __future__ import annotations

import random

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row

#: a right line, and what stands there instead
BUGS = (
    ("S[vi] = S[vi] + A[vi, vk] * A[vi, vk]", "S[vi] = S[vi] + A[vk, vi] * A[vk, vi]"),
    ("S[vi] = T.float32(0)", "S[vi] = T.float32(1)"),
    ("S[vi] = S[vi] + A[vi, vk] * A[vi, vk]", "S[vi] = S[vi] + A[vi, vk] * A[vk, vi]"),
    ("for i, k in T.grid({n}, {n}):", "for i, k in T.grid({n}, {n} - 1):"),
    ("ui = T.axis.spatial({n}, i)", "ui = T.axis.spatial({n}, i // 2)"),
    ("Y[ui, uj] = A[ui, uj] / (S[ui] + T.float32({c}))",
     "Y[ui, uj] = A[ui, uj] / (S[uj] + T.float32({c}))"),
)
TEXT = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({n}, {n}), "float32"), Y: T.Buffer(({n}, {n}), "float32")):
        S = T.alloc_buffer(({n},), "float32")
        for i, k in T.grid({n}, {n}):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + A[vi, vk] * A[vi, vk]
        for i, j in T.grid({n}, {n}):
            with T.block("Y"):
                ui = T.axis.spatial({n}, i)
                uj = T.axis.spatial({n}, j)
                Y[ui, uj] = A[ui, uj] / (S[ui] + T.float32({c}))
"""


def right(v: Values) -> str:
    """The program as it should be."""
    return _filled(TEXT, v)


def broken(v: Values, number: int | None = None) -> str:
    """The program with one of the mistakes; by default that of the variant."""
    good, bad = BUGS[v.bug if number is None else number]
    return _filled(TEXT.replace(good, bad), v)


def _filled(text: str, v: Values) -> str:
    """A text with the numbers of the variant."""
    return text.replace("{n}", str(v.n)).replace("{c}", str(v.c))


def draw(rng: random.Random) -> dict[str, object]:
    """The size, what is added, and which line is wrong."""
    return {"n": rng.choice([6, 7, 8, 9]), "c": rng.choice([1, 2, 3, 4]),
            "bug": rng.randrange(len(BUGS))}


EXERCISE = Exercise(
    id="02.4",
    title="One line is wrong",
    level=2,
    minutes=15,
    kind="program",
    statement="""\
This program is to divide each number of `A`, {n} by {n}, by the sum of the squares in its row and
{c}: `Y = A / ((A * A).sum(1, keepdims=True) + {c})`. One of its lines is wrong.

Hand in the program with that line mended. Leave its two blocks as they are otherwise.""",
    draw=draw,
    program=lambda v: from_source(broken(v)),
    checks=lambda v: [
        row("structure", 1, "two blocks, of their right kinds", blocks=2,
            iterators={"S": "SR", "Y": "SS"}),
        row("equivalent", 4, "it computes what it should"),
    ],
    hints=(
        "Hand in the program as it is: you are told an element of Y that is wrong, and "
        "which iteration has written it.",
        "Ask of block S: does each S[vi] begin at zero, once? Are all {n} squares of the row "
        "added, and is it the row? Of block Y: which row does it write, and whose sum does it "
        "divide by?",
        "It is one of: the start of the sum, the index of a factor, the extent of a loop, the "
        "binding of an iterator, the index of S.",
    ),
    reference=right,
    wrong=lambda v: [
        Wrong(broken(v), 1, "and should be"),
        Wrong(broken(v, (v.bug + 1) % len(BUGS)), 1, "and should be"),
        Wrong(right(v).replace(f"(S[ui] + T.float32({v.c}))", "S[ui]"), 1, "Y[0, 0] is"),
    ],
)

"""22.3  A softmax in one pass: a maximum that is mended as it goes."""

from __future__ import annotations

import random

from ...script import from_source
from ..checks.lowered import keeps
from ..exercise import Exercise, Values, Wrong, row
from .matrices import RESULTS

CACHES = "512:8"
#: bytes that may be kept: some numbers, and perhaps a block of sixteen
KEPT = 128


def program(v: Values):
    """The same in four blocks, for which all scores of a row are needed first."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.m}), "float32"), V: T.Buffer(({v.m},), "float32"),
             {v.Y}: T.Buffer(({v.n},), "float32")):
        S = T.alloc_buffer(({v.n}, {v.m}))
        M = T.alloc_buffer(({v.n},))
        total = T.alloc_buffer(({v.n},))
        for i, j in T.grid({v.n}, {v.m}):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = A[vi, vj] * T.float32({v.c}) - T.float32({v.d})
        for i, j in T.grid({v.n}, {v.m}):
            with T.block("M"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    M[vi] = T.float32("-inf")
                M[vi] = T.max(M[vi], S[vi, vj])
        for i, j in T.grid({v.n}, {v.m}):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] = total[vi] + T.exp(S[vi, vj] - M[vi])
        for i, j in T.grid({v.n}, {v.m}):
            with T.block("{v.Y}"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    {v.Y}[vi] = T.float32(0)
                {v.Y}[vi] = {v.Y}[vi] + T.exp(S[vi, vj] - M[vi]) / total[vi] * V[vj]
""")


def online(v: Values, start: str = '"-inf"', mended: str = "T.exp(largest[0] - new[0])",
           shift: str = "new[0]", passes: int = 1) -> str:
    """The recurrence. `start` of the maximum, what `mended` the sums, by what scores are shifted;
    in two `passes`, the first of which finds the maximum."""
    score = f"A[i, j] * T.float32({v.c}) - T.float32({v.d})"
    first = f"""
        for j in range({v.m}):
            largest[0] = T.max(largest[0], {score})""" if passes == 2 else ""
    return f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), V: T.Buffer(({v.m},), "float32"),
         {v.Y}: T.Buffer(({v.n},), "float32")):
    largest = T.alloc_buffer((1,))
    new = T.alloc_buffer((1,))
    mend = T.alloc_buffer((1,))
    power = T.alloc_buffer((1,))
    total = T.alloc_buffer((1,))
    mixed = T.alloc_buffer((1,))
    for i in range({v.n}):
        largest[0] = T.float32({start})
        total[0] = T.float32(0)
        mixed[0] = T.float32(0){first}
        for j in range({v.m}):
            new[0] = T.max(largest[0], {score})
            mend[0] = {mended}
            power[0] = T.exp({score} - {shift})
            total[0] = total[0] * mend[0] + power[0]
            mixed[0] = mixed[0] * mend[0] + power[0] * V[j]
            largest[0] = new[0]
        {v.Y}[i] = mixed[0] / total[0]
"""


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes, and scores that lie far below zero."""
    return {"n": rng.choice([3, 4, 5]), "m": rng.choice([192, 208, 224, 240]),
            "c": rng.choice([4, 6, 8, 10]), "d": rng.choice([150, 200, 250, 300]),
            "Y": rng.choice(RESULTS), "kept": KEPT}


EXERCISE = Exercise(
    id="22.3",
    title="Softmax in one pass",
    level=4,
    minutes=40,
    kind="program",
    statement="""\
Each row of `A`, {n} by {m}, gives scores, `S = {c} * A - {d}`, which lie far below zero. Their
softmax weighs the numbers of `V`: `{Y}[i] = sum_j softmax(S[i])[j] * V[j]`.

Here it is in four blocks, and each row is gone through three times, since the largest score must be
known first. Write it in one pass over the row, with a maximum and sums that are mended as it goes:

- at most {kept} bytes are kept: no row of scores is ever whole;
- and `A` and `V` come into a cache of 512 bytes once for each row, which a second pass over a row
  would double.

Blocks or plain loops, as you like; a number that is kept is a buffer such as
`total = T.alloc_buffer((1,))`.""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 3, "it computes the same", nasty=False, cases=2),
        row("own", 3, f"{KEPT} bytes at most",
            by=lambda a, x: keeps(a.mod, KEPT, lowered=False)),
        row("counts", 3, "one pass", of_reference=1.2, caches=CACHES),
    ],
    hints=(
        "The lesson does it in numpy for blocks of keys. With one key in a block the products of "
        "matrices become products of numbers.",
        "When a score is larger than all before it, every term so far has to be multiplied by "
        "exp(old maximum - new maximum): the sum of the powers, and the sum that V is mixed into.",
        "For each j: new = max(largest, s); mend = exp(largest - new); power = exp(s - new); then "
        "total = total * mend + power, and mixed = mixed * mend + power * V[j]. Begin with minus "
        "infinity: scores around -{d} are less than zero.",
    ),
    reference=online,
    wrong=lambda v: [
        Wrong(program(v).script(), 3, "are asked for at most. They are"),
        Wrong(online(v, mended="T.float32(1)"), 0, "and should be"),
        Wrong(online(v, start="0"), 0, "is nan, and should be"),
        Wrong(online(v, passes=2), 6, "Reading A misses most"),
    ],
)

"""19.3  A product with a vector: eight sums out of one, and few loads."""

from __future__ import annotations

import random

from ...observe.why import inner_facts
from ...script import from_source
from ..answers import Answer
from ..checks.machine_code import PROCESSOR
from ..checks.work import too_large
from ..exercise import Exercise, Values, Variant, Wrong, row
from ..result import Found

RESULTS = ("c", "d", "p", "q", "y", "z")
#: loads for each multiply-add, at most
LOADS = 1.25


def program(v: Values):
    """Each row of A times a vector."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.k}), "float32"), x: T.Buffer(({v.k},), "float32"),
             {v.y}: T.Buffer(({v.n},), "float32")):
        for {v.order[0]}, {v.order[1]} in T.grid({", ".join(str(
            {"i": v.n, "k": v.k}[name]) for name in v.order)}):
            with T.block("{v.y}"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    {v.y}[vi] = T.float32(0)
                {v.y}[vi] = {v.y}[vi] + A[vi, vk] * x[vk]
""")


def schedule(v: Values, rows: int, vectors: int = 1) -> str:
    """A tile of some rows, each with some vectors of partial sums."""
    lanes = 8 * vectors
    several = """
j, l = sch.split(l, factors=[None, 8])
sch.unroll(j)""" if vectors > 1 else ""
    return f"""
{", ".join(v.order)} = sch.get_loops("{v.y}")
sch.reorder(i, k)
k_0, k_1 = sch.split(k, factors=[None, {lanes}])
partial = sch.rfactor(k_1, 0)
i_0, i_1 = sch.split(sch.get_loops("{v.y}")[0], factors=[None, {rows}])
sch.compute_at(partial, i_0, preserve_unit_loops=True)
l, r, step = sch.get_loops(partial)[-3:]
sch.reorder(step, r, l){several}
sch.unroll(r)
sch.vectorize(l)
sch.decompose_reduction(partial, step)
"""


def plain(v: Values) -> str:
    """The loop over k in vectors, which a reduction forbids."""
    return f'{", ".join(v.order)} = sch.get_loops("{v.y}")\nsch.vectorize(k)'


def few_loads(answer: Answer, variant: Variant) -> Found:
    """Whether the inner loop loads little for what it computes."""
    assert answer.mod is not None
    problem = too_large(answer.mod)
    if problem:
        return Found(False, problem)
    facts = inner_facts(answer.mod, target=PROCESSOR)
    if not facts["fma"]:
        return Found(False, "there is no multiply-add in the inner loop",
                     {"assembly": facts["text"]})
    each = facts["loads"] / facts["fma"]
    if each > LOADS:
        why = ("each element of x is used for one row only" if each >= 1.75 else
               "more rows could share what is loaded of x")
        return Found(False, f"the inner loop has {facts['loads']} loads for {facts['fma']} "
                     f"multiply-adds, {each:.3g} for each; {LOADS} are asked for at most: {why}",
                     {"assembly": facts["text"]})
    return Found(True, f"{facts['loads']} loads for {facts['fma']} multiply-adds")


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes that tiles of 8 rows divide, the order of loops, and the name of the result."""
    return {"n": rng.choice([32, 48, 64, 96]), "k": rng.choice([1024, 1536, 2048]),
            "y": rng.choice(RESULTS), "order": rng.choice(["ik", "ki"])}


EXERCISE = Exercise(
    id="19.3",
    title="Eight sums out of one",
    level=3,
    minutes=30,
    kind="schedule",
    statement="""\
A matrix of {n} by {k} is multiplied by a vector. Each row is one sum, a chain of {k} multiply-adds,
and a compiler may not take it apart. You may: `rfactor` says that partial sums are allowed.

An AVX2 processor has 16 vector registers of 8 floats. A multiply-add takes 4 cycles there, and two
can start in each. Schedule the product so that the inner loop has

- vectors of 256 bits,
- at least 8 sums that do not wait for each other, and nothing on the stack, and
- at most 1.25 loads for each multiply-add: of its two factors one has to be shared.""",
    draw=draw,
    program=program,
    small=lambda v: {"n": 16, "k": 64},
    checks=lambda v: [
        row("equivalent", 2, "it computes the product", nasty=False, cases=1),
        row("machine_code", 1, "vectors of 256 bits", width=256, fma=1),
        row("machine_code", 3, "eight sums that do not wait for each other", fma=8, sums=8),
        row("machine_code", 2, "nothing on the stack", fma=8, spills=0),
        row("own", 2, "at most 1.25 loads for each multiply-add", by=few_loads),
    ],
    hints=(
        "The loop over k can be neither parallel nor in vectors as it is. Split it: the inner part "
        "becomes partial sums by rfactor, and these do not wait for each other.",
        "Eight vectors of one row are enough sums, but then both factors are loaded for each. A "
        "tile of several rows shares what is loaded of x: split i, compute_at the partial sums, "
        "and put their loop over k outside of the rows of the tile.",
        "Split k by 8, rfactor(k_1, 0), split i by 8, compute_at; then reorder the loops of the "
        "partial sums: k, rows, lanes; unroll the rows, vectorize the lanes, and "
        "decompose_reduction at k.",
    ),
    reference=lambda v: schedule(v, 8),
    wrong=lambda v: [
        Wrong(schedule(v, 1, 8), 8, "each element of x is used for one row only"),
        Wrong(schedule(v, 4), 7, "4 sums that do not wait for each other, 8 are asked for"),
        Wrong(schedule(v, 16), 5, "registers do not suffice"),
        Wrong(plain(v), 0, "vectorize"),
    ],
)

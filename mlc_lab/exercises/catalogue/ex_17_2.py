"""17.2  Strips of rows of which nothing is left but loops: no condition, and no second copy."""

from __future__ import annotations

import random
from collections import Counter

from ...script import from_source
from ...tir.op import as_int
from ..answers import Answer
from ..checks.lowered import conditions, keeps, stores, until
from ..checks.structure import loops_of
from ..checks.work import too_large
from ..exercise import Exercise, Values, Variant, Wrong, row
from ..result import Found
from .matrices import RESULTS

#: rows, and the only strip of a middling size that divides them
ROWS = ((44, 11), (45, 9), (50, 10), (63, 9), (66, 11), (70, 10), (75, 15), (78, 13), (98, 14))


def program(v: Values):
    """Squares, and the sums of their rows."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.m}), "float32"), {v.C}: T.Buffer(({v.n},), "float32")):
        {v.Y} = T.alloc_buffer(({v.n}, {v.m}), "float32")
        for i, k in T.grid({v.n}, {v.m}):
            with T.block("{v.Y}"):
                vi, vk = T.axis.remap("SS", [i, k])
                {v.Y}[vi, vk] = A[vi, vk] * A[vi, vk]
        for i, k in T.grid({v.n}, {v.m}):
            with T.block("{v.C}"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    {v.C}[vi] = T.float32(0)
                {v.C}[vi] = {v.C}[vi] + {v.Y}[vi, vk]
""")


def schedule(v: Values, strip: int, moved: bool = True, decomposed: bool = True) -> str:
    """Strips of some rows; perhaps without what makes them small, or takes the condition away."""
    return f"""
i, k = sch.get_loops("{v.C}")
i_0, i_1 = sch.split(i, factors=[None, {strip}])
""" + f'sch.compute_at("{v.Y}", i_0)\n' * moved + (
        f'sch.decompose_reduction("{v.C}", k)\n' * decomposed)


def few_strips(answer: Answer, variant: Variant) -> Found:
    """Whether the loop around the sums goes over few enough strips, and squares are kept."""
    assert answer.mod is not None
    v, blocks = variant.values, loops_of(answer.mod)
    if v.Y not in blocks:
        return Found(False, f"there is no block {v.Y}: its strips are to be kept")
    loops = blocks.get(f"{v.C}_update") or blocks.get(v.C)
    if not loops:
        return Found(False, "there is no loop around the sums")
    count = as_int(loops[0].extent) or 0
    if count > v.strips:
        return Found(False, f"the outermost loop around the sums has {count} iterations; "
                     f"{v.strips} are asked for at most")
    return Found(True, f"{count} strips")


def unasked(answer: Answer, variant: Variant) -> Found:
    """Whether no condition is left once loops are cut."""
    assert answer.mod is not None
    problem = too_large(answer.mod)
    if problem:
        return Found(False, problem)
    left = conditions(until(answer.mod, "LoopPartition"))
    if not left:
        return Found(True)
    start = [text for text in left if "==" in text]
    why = ("it asks for the start of a sum: T.init, unless decompose_reduction has made a block "
           "of its own of it" if start else
           "it comes from the predicate of a block, T.where, and no pass could prove it")
    return Found(False, "this condition is left when the program is lowered: "
                 f"{(start or left)[0]}; {why}")


def once(answer: Answer, variant: Variant) -> Found:
    """Whether no loop was copied to get rid of a condition."""
    assert answer.mod is not None
    problem = too_large(answer.mod)
    if problem:
        return Found(False, problem)
    have = Counter(stores(until(answer.mod, "LoopPartition")))
    before = Counter(stores(until(answer.mod, "Simplify")))
    more = [name for name in have if have[name] > before[name]]
    if more:
        return Found(False, f"{more[0]} is written by {have[more[0]]} statements after "
                     f"LoopPartition and by {before[more[0]]} before: the last strip sticks out, "
                     "so it has become a loop of its own")
    return Found(True)


def draw(rng: random.Random) -> dict[str, object]:
    """Rows, and bounds that one divisor of them fits."""
    n, strip = rng.choice(ROWS)
    m = rng.choice([16, 24, 32])
    squares, sums = rng.sample(RESULTS, 2)
    return {"n": n, "m": m, "strip": strip, "Y": squares, "C": sums,
            "most": 4 * m * (strip + 1), "strips": -(-n // (strip - 1))}


EXERCISE = Exercise(
    id="17.2",
    title="Nothing left to ask",
    level=2,
    minutes=20,
    kind="schedule",
    statement="""\
Make the squares `{Y}` strip by strip, where the sums need them. What counts is the program that
`lower` makes of it:

- of `{Y}` at most {most} bytes are kept, and there are at most {strips} strips;
- no condition is left after `LoopPartition`;
- and that pass has nothing to cut: each statement stands there once.

There are {n} rows of {m} numbers.""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the same", cases=1, nasty=False),
        row("own", 2, f"{v.most} bytes at most", by=lambda a, x: keeps(a.mod, x.values.most)),
        row("own", 1, f"{v.strips} strips at most", by=few_strips),
        row("own", 2, "no condition is left", by=unasked),
        row("own", 2, "each statement stands once", by=once),
    ],
    hints=(
        "Look at the stages: mlc_lab.lower(sch.mod, until=\"LoopPartition\").show(). Which "
        "condition is left, and which part of the schedule does it come from?",
        "A strip that sticks out has a predicate, and LoopPartition pays for it with a second copy "
        "of the loops. The start of a sum is a condition too, as long as it is T.init.",
        "Strips of {strip} rows: split, compute_at into the loop over strips, and "
        "decompose_reduction at the loop over k.",
    ),
    reference=lambda v: schedule(v, v.strip),
    wrong=lambda v: [
        Wrong(schedule(v, v.strip, decomposed=False), 6, "it asks for the start of a sum"),
        Wrong(schedule(v, v.strip - 1), 6, "the last strip sticks out"),
        Wrong(schedule(v, v.strip, moved=False), 6, "are asked for at most. They are"),
        Wrong(schedule(v, 1), 7, "the outermost loop around the sums has"),
    ],
)

"""17.3  Lower a program by hand: no blocks, flat memory, no condition."""

from __future__ import annotations

import random

from ...script import from_source
from ...tir.stmt import Block
from ..answers import Answer
from ..checks.lowered import conditions, dimensions, keeps
from ..checks.structure import statements
from ..exercise import Exercise, Values, Variant, Wrong, row
from ..result import Found
from .matrices import RESULTS


def program(v: Values):
    """Strips of rows, of which the last sticks out: each is scaled, then its rows are added up."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.m}), "float32"), B: T.Buffer(({v.m},), "float32"),
             {v.C}: T.Buffer(({v.n},), "float32")):
        {v.Y} = T.alloc_buffer(({v.n}, {v.m}), "float32")
        for i_0 in range({v.whole + 1}):
            for i_1, k in T.grid({v.strip}, {v.m}):
                with T.block("{v.Y}"):
                    T.where(i_0 * {v.strip} + i_1 < {v.n})
                    vi = T.axis.spatial({v.n}, i_0 * {v.strip} + i_1)
                    vk = T.axis.spatial({v.m}, k)
                    {v.Y}[vi, vk] = A[vi, vk] * B[vk]
            for i_1, k in T.grid({v.strip}, {v.m}):
                with T.block("{v.C}"):
                    T.where(i_0 * {v.strip} + i_1 < {v.n})
                    vi = T.axis.spatial({v.n}, i_0 * {v.strip} + i_1)
                    vk = T.axis.reduce({v.m}, k)
                    with T.init():
                        {v.C}[vi] = T.float32({v.start})
                    {v.C}[vi] = {v.C}[vi] + {v.Y}[vi, vk] * {v.Y}[vi, vk]
""")


def flat(v: Values, rest: bool = True, size: int | None = None, asked: bool = False) -> str:
    """The program by hand. `rest`: whether the last strip is done; `size` of the buffer; `asked`:
    with conditions in place of a loop of its own for the last strip."""
    C, m, n, strip = v.C, v.m, v.n, v.strip

    def loops(rows: int, row: str, indent: int, condition: str = "") -> str:
        pad = " " * indent
        guard, more = (f"{pad}    if {condition}:\n", "    ") if condition else ("", "")
        inner = pad + "    " + more
        return (f"{pad}for i in range({rows}):\n{guard}{inner}for k in range({m}):\n"
                f"{inner}    F[i * {m} + k] = A_1[({row}) * {m} + k] * B[k]\n"
                f"{pad}for i in range({rows}):\n{guard}{inner}{C}[{row}] = T.float32({v.start})\n"
                f"{inner}for k in range({m}):\n"
                f"{inner}    {C}[{row}] = {C}[{row}] + F[i * {m} + k] * F[i * {m} + k]\n")

    whole = loops(strip, f"s * {strip} + i", 8,
                  f"s * {strip} + i < {n}" if asked else "")
    last = loops(n - v.whole * strip, f"{v.whole * strip} + i", 4) if rest and not asked else ""
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "float32"), B: T.Buffer(({m},), "float32"),
         {C}: T.Buffer(({n},), "float32")):
    A_1 = T.decl_buffer(({n * m},), data=A.data)
    {v.Y} = T.allocate([{size or strip * m}], "float32", "global")
    F = T.decl_buffer(({size or strip * m},), data={v.Y})
    for s in range({v.whole + 1 if asked else v.whole}):
{whole}{last}"""


def without_blocks(answer: Answer, variant: Variant) -> Found:
    """Whether nothing is left that only blocks have."""
    assert answer.mod is not None
    for stmt in statements(answer.mod):
        if type(stmt) is Block and (stmt.iter_vars or stmt.name_hint != "root"):
            return Found(False, f"block {stmt.name_hint} is still there: put its bindings where "
                         "its iterators stand")
    return Found(True)


def one_dimension(answer: Answer, variant: Variant) -> Found:
    """Whether all memory is flat."""
    assert answer.mod is not None
    for name, count in dimensions(answer.mod).items():
        if count > 1:
            return Found(False, f"{name} has {count} indices: declare its memory once more, with "
                         "one dimension")
    return Found(True)


def nothing_asked(answer: Answer, variant: Variant) -> Found:
    """Whether the program has no condition."""
    assert answer.mod is not None
    left = conditions(answer.mod)
    if left:
        return Found(False, f"it still asks {left[0]}: cut the loop where the answer is known, "
                     "and write its end as a loop of its own")
    return Found(True)


def draw(rng: random.Random) -> dict[str, object]:
    """A strip, whole strips and a rest, names, and the number that sums begin with."""
    strip, whole = rng.choice([4, 5, 6, 7]), rng.choice([2, 3, 4])
    squares, sums = rng.sample([name for name in RESULTS if name != "P"], 2)
    n, m = strip * whole + rng.randint(2, strip - 1), rng.choice([6, 8, 9, 10])
    return {"strip": strip, "whole": whole, "n": n, "m": m, "Y": squares, "C": sums,
            "start": rng.choice([1, 2, 3]), "most": 4 * strip * m, "rest": n - strip * whole}


EXERCISE = Exercise(
    id="17.3",
    title="Lower it by hand",
    level=3,
    minutes=30,
    kind="program",
    statement="""\
This program makes `{Y}` in strips of {strip} rows, and the last strip sticks out. Be the compiler:
write the program that computes the same

- without blocks: loops and statements alone;
- in flat memory: each access has one index (`A_1 = T.decl_buffer((..., ), data=A.data)` is `A` once
  more, with one dimension; `T.allocate([...], "float32", "global")` is memory of your own, as
  `lower` prints it);
- with at most {most} bytes for `{Y}`, of which a strip is alive at once;
- and without a condition: `LoopPartition` would cut the loop too.

Do it by hand first, then compare with the stages of `mlc_lab.lower`: what is left there that you
have not?""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 2, "it computes the same"),
        row("own", 1, "without blocks", by=without_blocks),
        row("own", 1, "flat memory", by=one_dimension),
        row("own", 2, f"{v.most} bytes at most",
            by=lambda a, x: keeps(a.mod, x.values.most, lowered=False)),
        row("own", 2, "no condition", by=nothing_asked),
    ],
    hints=(
        "In the order of the passes: bindings in the place of iterators, a smaller {Y}, then one "
        "index in place of two, then the loop over strips is cut.",
        "{whole} strips are whole. The last one has {rest} rows, and is a copy of the loops behind "
        "them. Within a strip, {Y} begins anew with row 0.",
        "Element (i, k) of the strip is at i * {m} + k of {Y}; of A it is at "
        "(i_0 * {strip} + i) * {m} + k. The sum of a row begins with {start} before the loop over "
        "k, and not in it.",
    ),
    reference=flat,
    wrong=lambda v: [
        Wrong(flat(v, rest=False), 0, "no statement has written it"),
        Wrong(flat(v, asked=True), 6, "cut the loop where the answer is known"),
        Wrong(flat(v, size=v.n * v.m), 6, "are asked for at most. They are"),
        Wrong(program(v).script(), 2, "put its bindings where its iterators stand"),
    ],
)

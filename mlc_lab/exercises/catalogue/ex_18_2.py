"""18.2  Strips that overlap are bound so that they may run in parallel."""

from __future__ import annotations

import itertools
import random

from ...arith import Analyzer
from ...ir.module import IRModule
from ...observe.typed_text import TextReader
from ...script import from_source
from ...tir.functor import substitute
from ...tir.op import as_int, const
from ...tir.stmt import BlockRealize
from ..answers import Answer
from ..checks.structure import loops_of, statements
from ..exercise import Exercise, Values, Variant, Wrong, row
from ..result import Found
from .matrices import RESULTS


def text(v: Values, strips: int, rows: int, where: bool = True, kind: str = "range",
         weight: int | None = None) -> str:
    """The program with so many strips, of so many rows each; perhaps without its predicate; with
    another weight of the upper digit."""
    place = (f"j * {weight or v.strips} + i" if v.apart else f"i * {weight or v.rows} + j")
    return f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), {v.C}: T.Buffer(({v.n},), "float32")):
    for i in {kind}({strips}):
        for j, k in T.grid({rows}, {v.m}):
            with T.block("{v.C}"):
""" + f"                T.where({place} < {v.n})\n" * where + f"""\
                vi = T.axis.spatial({v.n}, {place})
                vk = T.axis.reduce({v.m}, k)
                with T.init():
                    {v.C}[vi] = T.float32(0)
                {v.C}[vi] = {v.C}[vi] + A[vi, vk] * T.float32({v.c})
"""


def given(v: Values) -> str:
    """The program as it is given: the lower digit goes one too far."""
    return text(v, v.strips + v.apart, v.rows + 1 - v.apart)


def right(v: Values) -> str:
    """The program as it should be."""
    return text(v, v.strips, v.rows, kind="T.parallel")


def row_of(v: Values, i: int, j: int) -> int:
    """The row that step j of strip i is to compute."""
    return j * v.strips + i if v.apart else i * v.rows + j


def of_strips(answer: Answer, variant: Variant) -> Found:
    """Whether each iteration of the two outer loops computes the row that it should."""
    assert answer.mod is not None
    v = variant.values
    loops = loops_of(answer.mod).get(v.C, [])
    realize = next((s for s in statements(answer.mod) if type(s) is BlockRealize
                    and s.block.name_hint == v.C), None)
    extents = [as_int(loop.extent) for loop in loops]
    if realize is None or extents[:2] != [v.strips, v.rows]:
        have = ", ".join(map(str, extents)) or "none"
        return Found(False, f"the loops around block {v.C} are {have}; asked for: {v.strips}, "
                     f"{v.rows}, any")
    spatial = [value for iv, value in zip(realize.block.iter_vars, realize.iter_values)
               if iv.iter_type == 0]
    if len(spatial) != 1 or not spatial[0].dtype.startswith("int"):
        return Found(False, f"block {v.C} should have one spatial iterator, the row")
    simplify = Analyzer().simplify
    zero = {loop.loop_var: const(0, loop.loop_var.dtype) for loop in loops[2:]}
    for i, j in itertools.product(range(v.strips), range(v.rows)):
        at = {loop.loop_var: const(n, loop.loop_var.dtype) for loop, n in zip(loops, (i, j))}
        value, runs = (as_int(simplify(substitute(e, {**zero, **at})))
                       for e in (spatial[0], realize.predicate))
        if runs != 0 and value != row_of(v, i, j):
            return Found(False, f"step {j} of strip {i} computes row {value}, and should compute "
                         f"row {row_of(v, i, j)}")
    return Found(True)


def in_parallel(answer: Answer, variant: Variant) -> Found:
    """Whether the strips may run at once: what the schedule says to the outermost loop."""
    assert answer.mod is not None
    v = variant.values
    marked = any("T.parallel(" in line for line in answer.mod.script().split("\n"))
    error = TextReader({}, _serial(answer.mod)).read(f'sch.parallel(sch.get_loops("{v.C}")[0])'
                                                     ).error
    if error:
        says = error["message"].split("\n\n")
        return Found(False, f"the strips may not run in parallel, by the rule {error['rule']}: "
                     f"{says[0]}", {"text": "\n".join(says[1:2])})
    return Found(marked, "" if marked else "the strips may run in parallel, and "
                 "their loop is still a serial one")


def _serial(mod: IRModule) -> IRModule:
    """A program without parallel loops."""
    found = from_source(mod.script().replace("T.parallel(", "T.serial("))
    assert isinstance(found, IRModule)
    return found


def draw(rng: random.Random) -> dict[str, object]:
    """Strips that do not divide the rows: rows that lie together, or that lie apart."""
    strips, rows = rng.choice([3, 4, 5]), rng.choice([5, 6, 7, 8])
    apart = rng.random() < 0.5
    n = strips * rows - rng.randint(1, (strips if apart else rows) - 1)
    C = rng.choice(RESULTS)
    return {"strips": strips, "rows": rows, "apart": apart, "n": n, "m": rng.choice([3, 4, 6]),
            "C": C, "c": rng.choice([2, 3, 5]),
            **{f"rows_{i}": ", ".join(str(row) for j in range(rows) if (
                row := j * strips + i if apart else i * rows + j) < n) for i in (0, 1)},
            "place": f"j * {strips} + i" if apart else f"i * {rows} + j",
            "digit": "i" if apart else "j", "extent": strips if apart else rows}


EXERCISE = Exercise(
    id="18.2",
    title="Strips that do not overlap",
    level=3,
    minutes=20,
    kind="program",
    statement="""\
This program adds up rows, strip by strip. Run in order its results are right, and yet
`sch.parallel` refuses the loop over strips.

Hand in the program with {strips} strips of up to {rows} rows that run in parallel (`T.parallel`).
Strip 0 has the rows {rows_0}, strip 1 the rows {rows_1}, and so on, in this order. There are {n}
rows, so they do not come out even. Keep the three loops, strips outside, then the rows of a strip,
and the block with its two iterators.""",
    draw=draw,
    program=lambda v: from_source(given(v)),
    checks=lambda v: [
        row("equivalent", 2, "it computes the same"),
        row("structure", 1, "a row and a sum", blocks=1, iterators={v.C: "SR"}),
        row("own", 2, f"{v.strips} strips of {v.rows} rows", by=of_strips),
        row("own", 3, "the strips may run in parallel", by=in_parallel),
    ],
    hints=(
        "Try sch.parallel on the program as it is: the refusal names two iterations that clash. "
        "Put their numbers into the binding of vi.",
        "vi is a number of two digits. A digit may have as many values as the weight of the one "
        "above it says, and not one more.",
        "The binding {place} is right, if {digit} goes to {extent}. The predicate stays: the "
        "numbers up to {n} are fewer than {strips} * {rows}.",
    ),
    reference=right,
    wrong=lambda v: [
        Wrong(given(v), 3, "the strips may not run in parallel, by the rule"),
        Wrong(text(v, v.strips, v.rows, where=False), 0, "the program stops"),
        Wrong(text(v, v.strips, v.rows), 5, "their loop is still a serial one"),
        Wrong(text(v, v.strips, v.rows, kind="T.parallel",
                   weight=(v.strips if v.apart else v.rows) + 1), 0, "no statement has written it"),
    ],
)

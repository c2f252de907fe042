"""01.2  The order of loops decides how often the cache misses."""

from __future__ import annotations

import itertools
import random

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row
from .matrices import RESULTS

#: how the matrices may lie in memory, by the loop along which two of them do: the indices of A, B
#: and the result; the best order; what goes along that loop, what stays, what is used again
LAYOUTS: dict[str, dict] = {
    "j": {"A": "ik", "B": "kj", "C": "ij", "best": "ikj",
          "one": "{C}[i, j]", "two": "B[k, j]", "stays": "A[i, k]", "again": "{C}"},
    "i": {"A": "ki", "B": "jk", "C": "ji", "best": "jki",
          "one": "{C}[j, i]", "two": "A[k, i]", "stays": "B[j, k]", "again": "{C}"},
    "k": {"A": "ik", "B": "jk", "C": "ij", "best": "ijk",
          "one": "A[i, k]", "two": "B[j, k]", "stays": "{C}[i, j]", "again": "A"},
}
#: orders that are better than the worst and not the best, and what misses most in the first of them
OTHERS = {"j": ("ijk", "B", "kij"), "i": ("jik", "A", "kji"), "k": ("ikj", "B", "jik")}


def program(v: Values):
    """A matrix product whose loops stand in an order that another one is far better than."""
    a, b, c = (", ".join("v" + x for x in LAYOUTS[v.inner][name]) for name in "ABC")
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.n}), "float32"), B: T.Buffer(({v.n}, {v.n}), "float32"),
             {v.C}: T.Buffer(({v.n}, {v.n}), "float32")):
        for {', '.join(v.order)} in T.grid({v.n}, {v.n}, {v.n}):
            with T.block("{v.C}"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    {v.C}[{c}] = T.float32(0)
                {v.C}[{c}] = {v.C}[{c}] + A[{a}] * B[{b}]
""")


def ordered(v: Values, order: str) -> str:
    """The schedule that puts the loops in an order."""
    return f"{', '.join(v.order)} = sch.get_loops(\"{v.C}\")\nsch.reorder({', '.join(order)})"


def draw(rng: random.Random) -> dict[str, object]:
    """The size, how the matrices lie, a name, and an order that has another loop inside."""
    inner, out = rng.choice(sorted(LAYOUTS)), rng.choice(RESULTS)
    layout = LAYOUTS[inner]
    orders = ["".join(p) for p in itertools.permutations("ijk") if p[2] != inner]
    return {"n": rng.choice([48, 64, 80]), "order": rng.choice(orders), "inner": inner,
            "outer": layout["best"][0], "right": ", ".join(layout["best"]), "C": out,
            "best": layout["best"],
            **{name: layout[name].format(C=out) for name in ("one", "two", "stays", "again")}}


EXERCISE = Exercise(
    id="01.2",
    title="Loops in the best order",
    level=1,
    minutes=10,
    kind="schedule",
    statement="""\
This matrix product of {n} by {n} runs its loops in the order {order}, from the outside. A cache of
2 KiB with lines of 64 bytes is much smaller than a matrix. Look at the indices: not every matrix
lies in memory as you may be used to.

Put the three loops in the order in which the cache misses least. Say with `sch.reorder(...)` which
is outside, which is inside.""",
    draw=draw,
    program=program,
    small=lambda v: {"n": 20},
    checks=lambda v: [
        row("equivalent", 1, "it computes the product", nasty=False, cases=1),
        row("counts", 3, "no more misses than the best order has", of_reference=1.0,
            caches="2K:8, 64K:16"),
        row("structure", 1, "one primitive suffices", most_steps=1),
    ],
    hints=(
        "A line of the cache holds 16 numbers that stand side by side. Which loop goes along a row "
        "of two of the matrices?",
        "With {inner} innermost, {one} and {two} go through memory one number a step, and {stays} "
        "stays where it is.",
        "Of the two orders with {inner} inside, the one with {outer} outermost uses a row of "
        "{again} again and again: sch.reorder({right}).",
    ),
    reference=lambda v: ordered(v, v.best),
    wrong=lambda v: [
        Wrong(ordered(v, OTHERS[v.inner][0]), 2, f"Reading {OTHERS[v.inner][1]} misses most"),
        Wrong(ordered(v, v.order), 2, "a line of the cache has 64"),
        Wrong(ordered(v, OTHERS[v.inner][2]), 2, "misses"),
    ],
)

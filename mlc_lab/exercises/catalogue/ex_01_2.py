"""01.2  The order of loops decides how often the cache misses."""

from __future__ import annotations

import itertools

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row

ORDERS = ["".join(p) for p in itertools.permutations("ijk")]


def program(v: Values):
    """A matrix product whose loops stand in one of the slow orders."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.n}), "float32"), B: T.Buffer(({v.n}, {v.n}), "float32"),
             C: T.Buffer(({v.n}, {v.n}), "float32")):
        for {', '.join(v.order)} in T.grid({v.n}, {v.n}, {v.n}):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")


def ordered(v: Values, order: str) -> str:
    """The schedule that puts the loops in an order."""
    return f"{', '.join(v.order)} = sch.get_loops(\"C\")\nsch.reorder({', '.join(order)})"


EXERCISE = Exercise(
    id="01.2",
    title="Loops in the best order",
    level=1,
    minutes=10,
    kind="schedule",
    statement="""\
This matrix product of {n} by {n} runs its loops in the order {order}, from the outside. A cache of
2 KiB with lines of 64 bytes is much smaller than a matrix.

Put the three loops in the order in which the cache misses least. Say with `sch.reorder(...)` which
is outside, which is inside.""",
    draw=lambda rng: {"n": rng.choice([48, 64, 80]), "order": rng.choice(["jki", "kji"])},
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the product", nasty=False, cases=1),
        row("counts", 3, "no more misses than the best order has", of_reference=1.0,
            caches="2K:8, 64K:16"),
        row("structure", 1, "one primitive suffices", most_steps=1),
    ],
    hints=(
        "A line of the cache holds 16 numbers that stand side by side. Which loop goes along a row "
        "of C and of B?",
        "With j innermost, C[i, j] and B[k, j] go through memory one number a step, and A[i, k] "
        "stays where it is.",
        "Of the two orders with j inside, the one with i outermost uses a row of C again and "
        "again: sch.reorder(i, k, j).",
    ),
    reference=lambda v: ordered(v, "ikj"),
    wrong=lambda v: [
        Wrong(ordered(v, "ijk"), 2, "Reading B misses most"),
        Wrong(ordered(v, v.order), 2, "a line of the cache has 64"),
        Wrong(ordered(v, "kij"), 2, "misses"),
    ],
)

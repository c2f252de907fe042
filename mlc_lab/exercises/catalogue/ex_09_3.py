"""09.3  Which features decide?"""

from __future__ import annotations

import random

from ..exercise import Exercise, Field, Values, Wrong, row
from ..measured import TIMES, features

REASONS = ("its vectors are not full", "too few sums are under way",
           "its registers do not suffice", "it loads more for each sum")
#: what each of them is about
_ABOUT = {
    REASONS[0]: "a register holds 8 numbers, and it has at least 8 columns",
    REASONS[1]: "it has enough sums that do not wait for each other: at least four vectors",
    REASONS[2]: "it asks for no more than 16 registers",
    REASONS[3]: "what it loads is not what makes it slow",
}


def reason(tile: tuple[int, int]) -> str:
    """What makes a tile slow, by its features: the first that holds."""
    f = features(*tile)
    if f["columns"] < 8:
        return REASONS[0]
    if f["registers"] > 16:
        return REASONS[2]
    return REASONS[1] if f["sums"] < 4 else REASONS[3]


def draw(rng: random.Random) -> dict:
    """A slow tile of each of two kinds, a tile whose registers are counted, three to order."""
    few = rng.choice([(1, 8), (1, 16), (2, 8)])
    many = rng.choice([(4, 64), (8, 32), (16, 16), (8, 64)])
    counted = rng.choice([(4, 16), (2, 32), (8, 8), (4, 8)])
    half = rng.choice([(4, 4), (8, 4)])
    return {"few": few, "many": many, "half": half, "counted": counted, **{
        name: f"{t[0]} x {t[1]}" for name, t in (("a", few), ("b", many), ("c", half),
                                                 ("d", counted))}}


def order(v: Values) -> list[str]:
    """Tiles from the fastest on."""
    tiles = (v.few, v.many, v.counted)
    return [f"{r} x {c}" for r, c in sorted(tiles, key=TIMES.__getitem__)]


def reference(v: Values) -> dict:
    """All fields."""
    return {"registers": features(*v.counted)["registers"], "why_a": reason(v.few),
            "why_b": reason(v.many), "why_c": reason(v.half), "order": order(v)}


def why(name: str, tile: tuple[int, int]):
    """A row that asks what makes a tile slow."""
    f = features(*tile)
    told = (f"{f['columns']} columns, {f['sums']} vectors of sums, {f['registers']} registers: "
            f"{reason(tile)}")
    return row("prediction", 1, f"why {tile[0]} x {tile[1]} is slow", field=name,
               equals=reason(tile), why=told,
               says={r: f"look again: {about}" for r, about in _ABOUT.items()
                     if r != reason(tile)})


EXERCISE = Exercise(
    id="09.3",
    title="Which features decide?",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
A product of 128 by 128 is made in tiles of rows by columns. The columns are vectorized, the rows
unrolled; the sums of a tile stay in registers over all of `k`, if they fit. There are 16
registers of 8 float32. Two multiply-adds begin in each cycle, each takes 4 cycles.

Each step of `k` loads the columns of `B` (a register for each 8 of them), and multiplies them with
one element of `A` after the other, which is spread over a register of its own.

The tiles are {a}, {b}, {c} and {d}. Say it before you measure it.""",
    draw=draw,
    fields=lambda v: [
        Field("registers", f"How many registers does the inner loop of {v.d} ask for: for the "
              "sums, the row of B, and the one element of A?"),
        Field("why_a", f"What is it above all that makes {v.a} slow?", "choice", REASONS),
        Field("why_b", f"What is it above all that makes {v.b} slow?", "choice", REASONS),
        Field("why_c", f"What is it above all that makes {v.c} slow?", "choice", REASONS),
        Field("order", "From the fastest to the slowest:", "order",
              tuple(f"{r} x {c}" for r, c in sorted((v.few, v.many, v.counted)))),
    ],
    checks=lambda v: [
        row("prediction", 1, f"registers of {v.d}", field="registers",
            equals=features(*v.counted)["registers"],
            why=f"{features(*v.counted)['sums']} of sums, {features(*v.counted)['loads']} of B, "
                "1 of A",
            says={features(*v.counted)["sums"]: "these are the sums alone; what they are made of "
                                                "is in registers, too",
                  v.counted[0] * v.counted[1]: "a register holds 8 numbers"}),
        why("why_a", v.few), why("why_b", v.many), why("why_c", v.half),
        row("prediction", 1, "the order", field="order", equals=order(v),
            why=", ".join(f"{r} x {c}: {TIMES[r, c]} us" for r, c in sorted(
                (v.few, v.many, v.counted), key=TIMES.__getitem__))),
    ],
    hints=(
        "For each tile count the vectors of sums: rows times columns, by 8. Then what else has to "
        "be in a register at the same time.",
        "A tile has three ways to be slow: vectors that are half empty, sums that wait for each "
        "other, and more values than registers.",
        "{d} has rows * columns / 8 registers of sums, columns / 8 of B and one of A. Fewer than "
        "four vectors of sums wait for each other; more than 16 registers go to the stack.",
    ),
    reference=reference,
    wrong=lambda v: [
        Wrong({**reference(v), "registers": features(*v.counted)["sums"]}, 4,
              "these are the sums alone"),
        Wrong({**reference(v), "why_a": REASONS[2]}, 4, "it asks for no more than 16 registers"),
        Wrong({**reference(v), "why_b": REASONS[1]}, 4, "it has enough sums"),
        Wrong({**reference(v), "order": order(v)[::-1]}, 4, "not "),
    ],
)

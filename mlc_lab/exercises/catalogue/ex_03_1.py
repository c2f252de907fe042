"""03.1  Schedule a program until it is a given one."""

from __future__ import annotations

import random

from ...observe.typed_text import TextReader
from ..exercise import Exercise, Values, Wrong, row
from .matrices import product_and_relu


def program(v: Values):
    """The product and relu that is scheduled."""
    return product_and_relu(v.n, v.m, v.k)


def schedule(v: Values, first: int | None = None, last: str | None = None, at: str = "j_0") -> str:
    """The schedule that makes the goal, or one that differs in a factor, the last step, or where
    the relu is computed."""
    return f"""
i, j, k = sch.get_loops("Y")
i_0, i_1 = sch.split(i, factors=[None, {first or v.rows}])
j_0, j_1 = sch.split(j, factors=[None, {v.columns}])
sch.reorder({v.outer}, k, i_1, j_1)
sch.reverse_compute_at("C", {at if at != "j_0" else v.outer.split(", ")[1]})
{last or f"sch.{v.kind}({v.loop})"}
"""


def goal(v: Values):
    """The program to be reached."""
    return TextReader({}, program(v)).read(schedule(v)).mod


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes, tiles, the order of the outer loops, and what becomes of an inner one."""
    rows, columns = rng.choice([2, 4]), rng.choice([4, 8])
    kind, loop = rng.choice([("vectorize", "j_1"), ("unroll", "i_1"), ("unroll", "j_1")])
    drawn = {"rows": rows, "columns": columns, "n": rows * rng.choice([3, 5]),
             "m": columns * rng.choice([2, 3]), "k": rng.choice([6, 7, 10]),
             "outer": rng.choice(["i_0, j_0", "j_0, i_0"]), "kind": kind, "loop": loop}
    made = goal(Values(**drawn))
    assert made is not None
    return {**drawn, "goal": made.script()}


EXERCISE = Exercise(
    id="03.1",
    title="Reach a given program",
    level=2,
    minutes=20,
    kind="schedule",
    statement="""\
Schedule the product and relu until it is this program, but for the names of its loops:

```python
{goal}
```

Six primitives at most; look-ups such as `get_loops` do not count.""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the same", cases=1),
        row("structure", 3, "the loops around block Y are those of the goal",
            nest={"Y": _nest(v)}),
        row("structure", 3, "it is the program that is asked for", matches=goal(v)),
        row("structure", 1, "six primitives at most", most_steps=6),
    ],
    hints=(
        "Compare the loops around block Y, from the outside, with those that you have: which of "
        "them were split, by how much, and in what order do they stand?",
        "Rows are split by {rows} and columns by {columns}; then reorder({outer}, k, i_1, j_1). "
        "Block C has moved into the second loop: which primitive moves a consumer to its producer?",
        'reverse_compute_at("C", ...) at the second loop from the outside, and sch.{kind}({loop}).',
    ),
    reference=schedule,
    wrong=lambda v: [
        Wrong(schedule(v, first=3 * v.rows), 2, "the loops around block Y are"),
        Wrong(schedule(v, last="sch.parallel(i_0)"), 2, "asked for:"),
        Wrong(schedule(v).replace('sch.reverse_compute_at("C", ', "(").replace(
            "(i_0)", "").replace("(j_0)", ""), 5, "wanted: "),
        Wrong(schedule(v, at="k"), 0, "reduction is finished"),
    ],
)


def _nest(v: Values) -> list[object]:
    """The loops around block Y in the goal."""
    extent = {"i_0": v.n // v.rows, "j_0": v.m // v.columns}
    inner = {"i_1": str(v.rows), "j_1": str(v.columns)}
    word = {"vectorize": "vectorized", "unroll": "unrolled"}[v.kind]
    inner[v.loop] = f"{word} {inner[v.loop]}"
    return [*(extent[name] for name in v.outer.split(", ")), v.k, inner["i_1"], inner["j_1"]]

"""04.2  The shortest trace from one program to another."""

from __future__ import annotations

import random

from ...observe.typed_text import TextReader
from ..exercise import Exercise, Values, Wrong, row
from .matrices import product

#: how the inner loop is bound in the goal
KINDS = ("vectorize", "unroll")


def detour(v: Values) -> str:
    """The trace that is given: it goes a long way."""
    return f"""
i, j, k = sch.get_loops("C")
i_0, i_1 = sch.split(i, factors=[None, {v.t}])
i_2 = sch.fuse(i_0, i_1)
j_0, j_1 = sch.split(j, factors=[None, {v.t * v.u}])
j_2, j_3 = sch.split(j_1, factors=[None, {v.t}])
j_4 = sch.fuse(j_0, j_2)
sch.reorder(k, j_4, i_2, j_3)
sch.reorder({v.order.replace('j_0', 'j_4').replace('i', 'i_2')}, j_3)
sch.{v.kind}(j_3)
"""


def short(v: Values, factor: int | None = None, more: str = "") -> str:
    """Three primitives that do the same."""
    return f"""
i, j, k = sch.get_loops("C")
j_0, j_1 = sch.split(j, factors=[None, {factor or v.t}])
{more}sch.reorder({v.order}, j_1)
sch.{v.kind}(j_1)
"""


def goal(v: Values):
    """The program that the given trace makes."""
    return TextReader({}, product(v.n, v.m, v.k)).read(detour(v)).mod


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes, and the order of the outer loops."""
    t, u = rng.choice([4, 8]), rng.choice([2, 3])
    drawn = {"t": t, "u": u, "n": t * rng.choice([3, 5]), "m": t * u * rng.choice([2, 3]),
             "k": rng.choice([6, 7, 10]), "kind": rng.choice(KINDS),
             "order": rng.choice(["i, k, j_0", "k, j_0, i", "j_0, k, i", "k, i, j_0"])}
    return {**drawn, "text": detour(Values(**drawn)).strip("\n")}


EXERCISE = Exercise(
    id="04.2",
    title="The shortest trace",
    level=2,
    minutes=15,
    kind="schedule",
    statement="""\
This trace of eight primitives brings a product, {n} by {k} times {k} by {m}, to another form:

```python
{text}
```

Find the shortest trace that leads to the same program, but for the names of loops.""",
    draw=draw,
    program=lambda v: product(v.n, v.m, v.k),
    checks=lambda v: [
        row("equivalent", 1, "it computes the product", nasty=False, cases=1),
        row("structure", 3, "it is the program that is asked for", matches=goal(v)),
        row("structure", 1, "it takes five primitives at most", matches=goal(v), most_steps=5),
        row("structure", 2, "it is the shortest trace", matches=goal(v), most_steps=3),
    ],
    hints=(
        "Which steps are undone by later ones? Apply the trace and look at the program: how many "
        "loops does it have, and which were split?",
        "A split and a fuse of its two parts is no change. Of two reorders of the same loops the "
        "last one counts.",
        "Split j by {t}, reorder once to {order}, j_1, and {kind} the last loop.",
    ),
    reference=short,
    wrong=lambda v: [
        Wrong(detour(v), 4, "8 primitives; 5 suffice"),
        Wrong(short(v, v.t * v.u), 1, "wanted: "),
        Wrong(short(v).replace(f"sch.{v.kind}(j_1)", ""), 1, "wanted: "),
        Wrong(short(v, more="sch.reorder(k, i)\n"), 5, "4 primitives; 3 suffice"),
    ],
)

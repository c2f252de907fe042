"""04.3  A trace that fits other shapes too."""

from __future__ import annotations

import random

from ..checks.traces import programs
from ..exercise import Exercise, Values, Wrong, row
from .matrices import product


def text(v: Values, i: str, j: str, k: str) -> str:
    """The trace with the factors of each split."""
    return f"""
i, j, k = sch.get_loops("C")
i_0, i_1 = sch.split(i, factors=[{i}])
j_0, j_1 = sch.split(j, factors=[{j}])
k_0, k_1 = sch.split(k, factors=[{k}])
sch.reorder(i_0, j_0, k_0, i_1, k_1, j_1)
sch.vectorize(j_1)
"""


def given(v: Values) -> str:
    """The trace as it was written for one shape."""
    return text(v, f"{v.n // v.t}, {v.t}", f"{v.m // v.u}, {v.u}", f"{v.parts}, {v.k // v.parts}")


def draw(rng: random.Random) -> dict[str, object]:
    """The tile, how many parts k has, and three shapes."""
    t, u = rng.choice([3, 4, 6]), rng.choice([4, 8])
    parts = rng.choice([2, 3])
    n, m, k = ([x * y for y in rng.sample([2, 3, 4, 5], 3)] for x in (t, u, parts))
    drawn = {"t": t, "u": u, "parts": parts, "n": n[0], "m": m[0], "k": k[0],
             "others": [(n[x], m[x], k[x]) for x in (1, 2)]}
    one, two = drawn["others"]
    return {**drawn, "text": given(Values(**drawn)).strip("\n"),
            "shapes": " and ".join(f"{a} by {c} times {c} by {b}" for a, b, c in (one, two))}


EXERCISE = Exercise(
    id="04.3",
    title="A trace for other shapes",
    level=3,
    minutes=20,
    kind="schedule",
    statement="""\
This trace makes tiles of {t} rows and {u} columns of a product of {n} by {k} times {k} by {m}, and
cuts the sum into {parts} parts, each of the same length:

```python
{text}
```

Change it so that the same trace also fits products of {shapes}: tiles of {t} by {u} there too, and
{parts} parts of the sum, however long. No block may need a predicate.""",
    draw=draw,
    program=lambda v: product(v.n, v.m, v.k),
    checks=lambda v: [
        row("equivalent", 1, "it computes the product", nasty=False, cases=1),
        row("structure", 1, "the loops of the given shape are those of the given trace",
            nest={"C": [v.n // v.t, v.m // v.u, v.parts, v.t, v.k // v.parts, f"vectorized {v.u}"]},
            no_predicate=True),
        row("trace", 4, "it fits the other shapes", on=programs(v.others, product),
            nest={"C": [None, None, v.parts, v.t, None, f"vectorized {v.u}"]}, no_predicate=True),
    ],
    hints=(
        "Which numbers of the trace belong to the tile, and which follow from the shape {n} by {k} "
        "by {m}? The latter have to go.",
        "One factor of a split may be None: it becomes what is left. For the tiles that is the "
        "outer factor. Of k not the length of a part is given, but the number of parts.",
        "factors=[None, {t}], factors=[None, {u}], factors=[{parts}, None].",
    ),
    reference=lambda v: text(v, f"None, {v.t}", f"None, {v.u}", f"{v.parts}, None"),
    wrong=lambda v: [
        Wrong(given(v), 2, "on the product of"),
        Wrong(text(v, f"None, {v.t}", f"None, {v.u}", f"None, {v.k // v.parts}"), 2,
              "on the product of"),
        Wrong(text(v, f"{v.n // v.t}, None", f"None, {v.u}", f"{v.parts}, None"), 2,
              "on the product of"),
    ],
)

"""04.1  Change the decisions of a trace until nothing needs a predicate."""

from __future__ import annotations

import random

from ...observe.typed_text import TextReader
from ..exercise import Exercise, Values, Wrong, row
from .matrices import product


def text(v: Values, first: int, second: int, third: int, *, of: str = "") -> str:
    """The trace, with decisions: numbers of candidates."""
    def sampled(candidates: list[int], chosen: int) -> str:
        probs = [round(1 / len(candidates), 3)] * len(candidates)
        return f"sch.sample_categorical({candidates}, {probs}, decision={chosen})"

    return f"""
i, j, k = sch.get_loops("C")
rows = {sampled(v.rows, first)}
i_0, i_1 = sch.split(i, factors=[None, rows])
columns = {sampled(v.columns, second)}
j_0, j_1 = sch.split(j, factors=[None, columns])
inner = {of or sampled(v.inner, third)}
j_2, j_3 = sch.split(j_1, factors=[None, inner])
sch.reorder(i_0, j_0, j_2, k, i_1, j_3)
"""


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes, and candidates of which one divides what is split."""
    a, b = rng.choice([(5, 7), (7, 5)])
    unit = rng.choice([4, 6])
    n, m = a * rng.choice([4, 8]), b * unit * rng.choice([2, 3])
    rows = [a, *rng.sample([x for x in (3, 6, 9, 11, 12) if n % x], 4)]
    columns = [b * unit, *rng.sample([x for x in (9, 10, 11, 13, 16, 18, 22) if m % x], 4)]
    inner = [b, *rng.sample([x for x in range(2, 12) if (b * unit) % x], 4)]
    for candidates in (rows, columns, inner):
        rng.shuffle(candidates)
    right = [x.index(y) for x, y in ((rows, a), (columns, b * unit), (inner, b))]
    start = [rng.choice([n for n in range(5) if n != at]) for at in right]
    drawn = {"n": n, "m": m, "k": rng.choice([9, 10, 12]), "rows": rows, "columns": columns,
             "inner": inner, "right": right, "start": start}
    return {**drawn, "text": text(Values(**drawn), *start).strip("\n")}


def given(v: Values):
    """The trace that the exercise starts from."""
    found = TextReader({}, product(v.n, v.m, v.k)).read(text(v, *v.start))
    assert found.sch is not None
    return found.sch.trace


EXERCISE = Exercise(
    id="04.1",
    title="Decisions without a predicate",
    level=2,
    minutes=15,
    kind="schedule",
    statement="""\
This trace splits the rows of a product ({n} by {k} times {k} by {m}) once and its columns twice:

```python
{text}
```

A decision of `sample_categorical` is the number of the candidate that was chosen, from 0. With
these decisions factors do not divide, and the block needs `T.where`. Hand in the trace with other
decisions, and nothing else changed, so that no predicate is needed.""",
    draw=draw,
    program=lambda v: product(v.n, v.m, v.k),
    checks=lambda v: [
        row("equivalent", 1, "it computes the product", nasty=False, cases=1),
        row("trace", 1, "only decisions are changed", like=given(v)),
        row("structure", 4, "nothing needs a predicate", no_predicate=True),
    ],
    hints=(
        "A split needs no predicate if its factor divides the extent of the loop. What are the "
        "extents of i, of j, and of j_1?",
        "i has {n} iterations, j has {m}. j_1 has as many as the second decision says, so choose "
        "that first. Count candidates from 0.",
        "Which of {rows} divides {n}, which of {columns} divides {m}, and which of {inner} divides "
        "that? There is one of each.",
    ),
    reference=lambda v: text(v, *v.right),
    wrong=lambda v: [
        Wrong(text(v, *v.start), 2, "block C has a predicate: T.where("),
        Wrong(text(v, v.right[0], v.right[1], v.start[2]), 2, "block C has a predicate: T.where("),
        Wrong(text(v, *v.right, of="1"), 5, "instruction "),
        Wrong(text(v, max(v.rows), *v.right[1:]), 0, "sample_categorical"),
    ],
)

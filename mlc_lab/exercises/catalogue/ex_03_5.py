"""03.5  A schedule that is refused, and one more primitive that makes it legal."""

from __future__ import annotations

import random

from ...observe.typed_text import TextReader
from ..checks.traces import steps_of
from ..exercise import Exercise, Values, Wrong, row
from .matrices import product_and_relu

#: the step that is refused, its loops before, and the primitive that is missing
CASES = (
    ("i_0, k, j_0, i_1, j_1", 'sch.reverse_compute_at("C", j_0)', "sch.reorder(j_0, k)",
     "reverse_compute_at", "reduction is finished"),
    ("k, i_0, j_0, i_1, j_1", 'sch.decompose_reduction("Y", j_0)', "sch.reorder(i_0, j_0, k)",
     "decompose_reduction", "init runs once"),
    ("i_0, k, j_0, i_1, j_1", "f = sch.fuse(i_0, j_0)", "sch.reorder(j_0, k)",
     "fuse", "loops are adjacent"),
    ("k, j_0, i_0, i_1, j_1", 'sch.reverse_compute_at("C", i_0)', "sch.reorder(j_0, i_0, k)",
     "reverse_compute_at", "reduction is finished"),
)
REASONS = {
    "reverse_compute_at": "block C would read sums that are not finished",
    "decompose_reduction": "the sums would be set to zero again and again",
    "fuse": "another loop stands between the two",
}


def lines(v: Values, more: str = "", at: int = 0, refused: bool = True) -> str:
    """The schedule, with a line more before the refused one, or after so many lines."""
    order, step = CASES[v.case][:2]
    text = ['i, j, k = sch.get_loops("Y")',
            f"i_0, i_1 = sch.split(i, factors=[None, {v.rows}])",
            f"j_0, j_1 = sch.split(j, factors=[None, {v.columns}])",
            f"sch.reorder({order})", "sch.vectorize(j_1)", *[step] * refused]
    if more:
        text.insert(at or 5, more)
    return "\n".join(text)


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes, and which step is refused."""
    rows, columns, case = rng.choice([3, 4, 5]), rng.choice([4, 8]), rng.randrange(len(CASES))
    drawn = {"rows": rows, "columns": columns, "n": rows * rng.choice([2, 3]),
             "m": columns * rng.choice([2, 3]), "k": rng.choice([5, 6, 9]), "case": case}
    return {**drawn, "text": lines(Values(**drawn)), "step": CASES[case][1],
            "rule": CASES[case][4], "reason": REASONS[CASES[case][3]],
            "loops": CASES[case][0], "last": CASES[case][2]}


def given(v: Values) -> list[str]:
    """The given steps, of a schedule in which the last one is legal, without the one that makes it
    so."""
    sch = TextReader({}, product_and_relu(v.n, v.m, v.k)).read(lines(v, CASES[v.case][2])).sch
    assert sch is not None
    steps = steps_of(sch.trace)
    return [*steps[:-2], steps[-1]]


EXERCISE = Exercise(
    id="03.5",
    title="One more step makes it legal",
    level=2,
    minutes=15,
    kind="schedule",
    statement="""\
The last line of this schedule is refused:

```python
{text}
```

Put one more primitive into it so that it is legal, and leave the lines that are there.""",
    draw=draw,
    program=lambda v: product_and_relu(v.n, v.m, v.k),
    checks=lambda v: [
        row("equivalent", 1, "it computes the same", cases=1),
        row("trace", 3, "the given steps are all there", keeps=given(v)),
        row("structure", 1, "one primitive more, and no other", most_steps=6),
    ],
    hints=(
        "Hand it in as it is: the refusal names its rule. It would be broken since {reason}.",
        "The loops stand in the order {loops}. Where would k have to stand for {step} to be legal?",
        "{last} before the last line puts k inside.",
    ),
    reference=lambda v: lines(v, CASES[v.case][2]),
    wrong=lambda v: [
        Wrong(lines(v), 0, CASES[v.case][4]),
        Wrong(lines(v, refused=False), 2, f"not in its place: {CASES[v.case][3]}("),
        Wrong(lines(v, CASES[v.case][2]).replace(f"[None, {v.rows}]", "[None, 2]"), 2,
              "this step is not there"),
        Wrong(lines(v, "sch.unroll(i_1)"), 0, CASES[v.case][4]),
        Wrong(lines(v, "sch.unroll(i_1)\n" + CASES[v.case][2]), 4, "7 primitives; 6 suffice"),
    ],
)

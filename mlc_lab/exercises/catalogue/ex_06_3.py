"""06.3  The order of calls decides how much memory is held."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row


def lines(v: Values) -> dict[str, str]:
    """The calls of the model by the names of their results."""
    found = {}
    for at in range(v.parts):
        found[f"wide{at}"] = f"R.matmul(x, w{at})"
        found[f"sum{at}"] = f"R.{v.reduction}(wide{at}, axis=[1])"
    total = "sum0"
    for at in range(1, v.parts):
        name = "y" if at == v.parts - 1 else f"total{at}"
        found[name] = f"R.add({total}, sum{at})"
        total = name
    return found


def text(v: Values, order: Sequence[str], changed: dict[str, str] | None = None) -> str:
    """The model with its calls in an order."""
    calls = {**lines(v), **(changed or {})}
    weights = ", ".join(f'w{at}: R.Tensor(({v.n}, {v.m}), "float32")' for at in range(v.parts))
    body = "\n".join(f"            {name} = {calls[name]}" for name in order)
    return f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({v.b}, {v.n}), "float32"), {weights}) -> R.Tensor(({v.b},), "float32"):
        with R.dataflow():
{body}
            R.output(y)
        return y
"""


def given(v: Values) -> list[str]:
    """The order that the exercise starts from: all that is wide first."""
    return sorted(lines(v), key=lambda name: (not name.startswith("wide"), name.startswith("y")))


def best(v: Values) -> list[str]:
    """Each wide result is summed at once, and each sum is added at once."""
    order = ["wide0", "sum0"]
    for at in range(1, v.parts):
        order += [f"wide{at}", f"sum{at}", "y" if at == v.parts - 1 else f"total{at}"]
    return order


def half(v: Values) -> list[str]:
    """Two wide results at a time."""
    return ["wide0", "wide1", *[n for n in best(v) if n not in ("wide0", "wide1")]]


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes; a wide result is the largest by far."""
    values = Values(b=rng.choice([8, 12, 16]), n=rng.choice([5, 6, 7]),
                    m=rng.choice([64, 96, 128]), parts=rng.choice([3, 4]),
                    reduction=rng.choice(["sum", "max"]))
    wide = values.b * values.m * 4
    return {**vars(values), "wide": wide, "bound": wide + 3 * max(64, values.b * 4),
            "text": text(values, given(values)).strip("\n")}


EXERCISE = Exercise(
    id="06.3",
    title="An order that holds less",
    level=2,
    minutes=15,
    kind="program",
    statement="""\
Each `wide` result of this model takes {wide} bytes:

```python
{text}
```

Memory is planned so that a result whose last use is over gives its place to a later one. Put the
calls in another order, so that all intermediate results take at most {bound} bytes. The calls
themselves stay as they are.""",
    draw=draw,
    program=lambda v: from_source(text(v, given(v))),
    checks=lambda v: [
        row("equivalent", 2, "it computes the model", cases=2),
        row("graph", 1, "no call more",
            calls={"relax.matmul": v.parts, f"relax.{v.reduction}": v.parts,
                   "relax.add": v.parts - 1}, kernels=3 * v.parts - 1),
        row("graph", 3, f"at most {v.bound:,} bytes", planned=v.bound),
    ],
    hints=(
        "When is a wide result needed for the last time? Until then its memory cannot be used "
        "for another one.",
        "A wide result is needed by one call only. Put that call right after the one that makes "
        "it: then the next wide result takes the same place.",
        "wide0, sum0, wide1, sum1, the sum of both, wide2, sum2, and so on.",
    ),
    reference=lambda v: text(v, best(v)),
    wrong=lambda v: [
        Wrong(text(v, given(v)), 3, "Most is held where these are still needed: wide0"),
        Wrong(text(v, half(v)), 3, "once memory is planned"),
        Wrong(text(v, best(v), {"sum1": f"R.{v.reduction}(wide0, axis=[1])"}), 0,
              "no points: the program computes something else"),
        Wrong(text(v, [n for n in best(v) if n != "sum1"]), 0, "sum1"),
    ],
)

"""03.4  Ten steps: which of them are legal? The schedule itself knows."""

from __future__ import annotations

import functools
import random
from typing import Any

from ...observe.typed_text import TextReader
from ..exercise import Exercise, Field, Values, Wrong, row
from .matrices import product_and_relu

N, M, K = 16, 24, 32
CHOICES = ("legal", "refused")
#: steps after `i, j, k = sch.get_loops("Y")`; {f} is a factor that divides, {g} one that does not
STEPS = (
    "sch.parallel(k)", "sch.vectorize(k)", "sch.vectorize(j)", "sch.unroll(k)", "sch.parallel(i)",
    "sch.reorder(k, i, j)", "sch.fuse(i, j)", "sch.fuse(i, k)", "sch.fuse(j, i)",
    'sch.reverse_compute_at("C", k)', 'sch.reverse_compute_at("C", j)',
    'sch.reverse_compute_at("C", i)', 'sch.compute_at("Y", sch.get_loops("C")[1])',
    'sch.compute_inline("Y")', 'sch.reverse_compute_inline("C")', 'sch.compute_inline("C")',
    'sch.decompose_reduction("Y", i)', 'sch.decompose_reduction("Y", k)',
    "sch.split(i, factors=[None, {g}])", "sch.split(i, factors=[2, {g}])",
    "sch.split(k, factors=[None, {f}])", "sch.rfactor(k, 0)", "sch.rfactor(j, 0)",
    'sch.cache_read("Y", 2, "global")', 'sch.cache_read("Y", 1, "global")',
    'sch.set_scope("C", 0, "shared")', 'sch.set_scope("Y", 0, "shared")',
    'sch.reorder(k, i, j)\nsch.decompose_reduction("Y", i)',
    'sch.reorder(i, k, j)\nsch.reverse_compute_at("C", i)',
    'sch.reorder(i, k, j)\nsch.reverse_compute_at("C", j)',
    'sch.reverse_compute_at("C", i)\nsch.reorder(i, k, j)',
    'sch.decompose_reduction("Y", k)\nsch.parallel(k)',
    'sch.reverse_compute_at("C", j)\nsch.parallel(j)',
)


@functools.lru_cache(256)
def tried(step: str) -> dict[str, Any] | None:
    """Why a step is refused, or None: it is tried."""
    return TextReader({}, product_and_relu(N, M, K)).read(
        'i, j, k = sch.get_loops("Y")\n' + step).error


def verdict(step: str) -> str:
    """Whether a step is legal."""
    return CHOICES[tried(step) is not None]


def told(step: str) -> str:
    """What to tell those who are wrong about a step."""
    error = tried(step)
    if error is None:
        return "it is legal: the schedule does it, and the program computes the same"
    return f"it is refused by the rule: {error['rule']}. " + error["message"].split("\n\n")[0]


def draw(rng: random.Random) -> dict[str, object]:
    """Ten steps, five of them legal."""
    f, g = rng.choice([4, 8]), rng.choice([3, 5, 7])
    steps = [step.replace("{f}", str(f)).replace("{g}", str(g)) for step in STEPS]
    chosen = [step for choice in CHOICES
              for step in rng.sample([s for s in steps if verdict(s) == choice], 5)]
    rng.shuffle(chosen)
    listing = "\n\n".join(f"step {n}\n\n```python\n{step}\n```"
                          for n, step in enumerate(chosen, 1))
    return {"listing": listing, "steps": chosen}


def reference(v: Values) -> dict[str, str]:
    """What the schedule says to each step."""
    return {f"step_{n}": verdict(step) for n, step in enumerate(v.steps, 1)}


def turned(v: Values, which: str) -> dict[str, str]:
    """An answer that is wrong about the steps of a kind."""
    return {name: which if is_ != which else is_ for name, is_ in reference(v).items()}


EXERCISE = Exercise(
    id="03.4",
    title="Legal or not?",
    level=2,
    minutes=20,
    kind="prediction",
    statement="""\
Each of these ten steps is tried on the product and relu below, from the beginning, after
`i, j, k = sch.get_loops("Y")`. Which are legal? Of two lines the second is meant; the first is
done. Say it before you try it.

{listing}""",
    draw=draw,
    program=lambda v: product_and_relu(N, M, K),
    fields=lambda v: [Field(f"step_{n}", step.split("\n")[-1], "choice", CHOICES)
                      for n, step in enumerate(v.steps, 1)],
    checks=lambda v: [
        row("prediction", 1, f"step {n}: {step.splitlines()[-1]}", field=f"step_{n}",
            equals=lambda step=step: verdict(step),
            about=lambda step=step: dict.fromkeys(CHOICES, told(step)))
        for n, step in enumerate(v.steps, 1)],
    hints=(
        "Loops i and j compute other elements of Y; the iterations of k add to one. What "
        "runs at once, and what may be read before it is finished?",
        "Half of the ten are refused. k may not be parallel or vectorized. Nothing may read Y "
        "while k still adds to it, so no block may move into k. A block with a reduction cannot be "
        "put into an expression.",
        "Loops are fused only if one stands directly in the other. Factors have to cover the "
        "extent. The start of a sum has to come before all loops that drive the sum. C is a "
        "parameter: a caller has its memory. Y has two inputs, number 0 and number 1.",
    ),
    reference=reference,
    wrong=lambda v: [
        Wrong(turned(v, "legal"), 5, "it is refused by the rule: "),
        Wrong(turned(v, "refused"), 5, "it is legal: the schedule does it"),
        Wrong({"step_1": reference(v)["step_1"]}, 1, "nothing was filled in"),
    ],
)

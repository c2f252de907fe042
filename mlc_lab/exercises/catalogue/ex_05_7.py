"""05.7  The step that costs: chosen in the list of a schedule's steps, or in the stepper."""

from __future__ import annotations

import functools
import random

from ...observe.counts import count_accesses
from ..exercise import Exercise, Field, Values, Wrong, row
from ..pictures import Picture, steps
from .matrices import product

SIZES = (48, 64, 40)
CACHES = "4K:8, 64K:16"

#: splits before and after the step that costs, without the last
SPLITS = 5


def listing(v: Values) -> Picture:
    """The steps as a picture, with their recording."""
    return _listing(v.schedule)


@functools.lru_cache(64)
def _listing(schedule: str) -> Picture:
    return steps(product(*SIZES), schedule)


@functools.lru_cache(64)
def misses(schedule: str) -> tuple[int, ...]:
    """The misses of the first level before the first step, and after each."""
    recording = _listing(schedule).source
    counts = [count_accesses(mod, CACHES, threads=1).level("L1").misses
              for mod in recording.modules]
    return tuple(counts[step.after] for step in recording.steps)


def worst(v: Values) -> int:
    """The step that adds most misses, from 1."""
    found = misses(v.schedule)
    return max(range(1, len(found)), key=lambda n: found[n] - found[n - 1])


def told(v: Values) -> dict[str, str]:
    """What to tell of each step."""
    found = misses(v.schedule)
    return {f"step {n}": f"step {n} takes the misses from {found[n - 1]:,} to {found[n]:,}"
            for n in range(1, len(found))}


def other(v: Values, after: bool) -> str:
    """A step before the one at fault, or after it."""
    n = worst(v)
    return f"step {n + 1 if after else n - 1}"


def draw(rng: random.Random) -> dict[str, object]:
    """A good order first; then splits, and among them an order that is bad."""
    made = ['i, j, k = sch.get_loops("C")', "sch.reorder(i, k, j)"]
    loops = ["i", "k", "j"]
    before = rng.randrange(SPLITS + 1)  # splits before the bad order
    for at in range(SPLITS + 1):
        if at == before:  # all loops of i go inside
            loops.sort(key=lambda name: name[0] == "i")
            made.append(f"sch.reorder({', '.join(loops)})")
        if at < SPLITS:
            name = rng.choice([loop for loop in loops if loop[0] != "j" and len(loop) < 5])
            factor = rng.choice([2, 4]) if len(name) == 1 else 2
            made.append(f"{name}_0, {name}_1 = sch.split({name}, factors=[None, {factor}])")
            where = loops.index(name)
            loops[where:where + 1] = [f"{name}_0", f"{name}_1"]
    made.append(f"j_0, j_1 = sch.split(j, factors=[None, {rng.choice([8, 16])}])")
    return {"schedule": "\n".join(made)}


EXERCISE = Exercise(
    id="05.7",
    title="The step that costs",
    level=2,
    minutes=10,
    kind="prediction",
    statement="""\
These steps schedule a product of matrices, 48 by 64 by 40 numbers of float32. A cache of 4 KiB has
lines of 64 bytes. One of the steps adds more misses than any other: which?

Look at the program after each step in the stepper, or work it out from the list.""",
    draw=draw,
    fields=lambda v: [Field("step", "The step that adds most misses", "choice",
                            picture=listing(v))],
    checks=lambda v: [row("prediction", 3, "the step that adds most misses", field="step",
                          equals=lambda: f"step {worst(v)}", about=lambda: told(v),
                          why=lambda: told(v)[f"step {worst(v)}"])],
    hints=(
        "A split alone leaves the order in which elements are touched as it was. So it is about "
        "the steps that put loops in another order.",
        "The loop inside of all others decides how the program goes through memory: along rows of "
        "B and C while it is j, down columns once it is i.",
        "Look for the reorder after which a loop of i is the innermost one.",
    ),
    reference=lambda v: {"step": f"step {worst(v)}"},
    wrong=lambda v: [
        Wrong({"step": other(v, False)}, 0, "takes the misses from"),
        Wrong({"step": other(v, True)}, 0, "takes the misses from"),
        Wrong({}, 0, "nothing was filled in"),
        Wrong("steps 1-2", 0, "one place is asked for"),
    ],
)

"""10.1  Where to spend 100 trials."""

from __future__ import annotations

import random

from ..exercise import Exercise, Field, Values, Wrong, row
from ..result import Found

TRIALS, STEP = 100, 20
#: the kernel that is slow and hard to better, the one that is called often and gains long, and the
#: one that is soon as good as it gets
NAMES = ("first", "second", "third")


def draw(rng: random.Random) -> dict:
    """Curves of three kernels: the best time after so many trials."""
    shares = {"first": [1.0, 0.97, 0.95, 0.94, 0.935, 0.93],
              "second": [1.0, 0.78, 0.60, 0.48, 0.42, 0.41],
              "third": [1.0, 0.50, 0.48, 0.475, 0.47, 0.47]}
    start = {"first": rng.randrange(380, 460, 10), "second": rng.randrange(90, 120, 5),
             "third": rng.randrange(50, 70, 5)}
    curves = {name: [round(start[name] * share) for share in shares[name]] for name in NAMES}
    calls = {"first": 1, "second": rng.choice([4, 5]), "third": rng.choice([2, 3])}
    names = dict(zip(NAMES, rng.sample(["conv2d", "dense", "pool", "layer_norm", "gelu"], 3)))
    told = {f"{what}{at}": value for at, n in enumerate(NAMES, 1) for what, value in (
        ("name", names[n]), ("calls", calls[n]), ("curve", ", ".join(map(str, curves[n]))))}
    return {"curves": curves, "calls": calls, "names": names, **told}


def total(v: Values, spent: tuple[int, ...]) -> int:
    """Microseconds of the model after so many steps of trials for each kernel."""
    return sum(v.calls[n] * v.curves[n][k] for n, k in zip(NAMES, spent))


def best(v: Values) -> tuple[int, ...]:
    """The steps with the least time."""
    count = TRIALS // STEP
    return min(((a, b, count - a - b) for a in range(count + 1) for b in range(count + 1 - a)),
               key=lambda spent: total(v, spent))


def spent_in(answer) -> tuple[list[int], str]:
    """Trials of each kernel, in the order of the fields, or why they are none."""
    trials = []
    for name, value in answer.values.items():
        if value is None:
            return [], f"nothing was filled in for {name}; 0 is an answer too"
        if value not in range(0, TRIALS + STEP, STEP):
            return [], (f"the trials of {name} are a multiple of {STEP} up to {TRIALS}, not "
                        f"{value}: the curve says nothing of others")
        trials.append(int(value))
    if sum(trials) > TRIALS:
        return [], f"these are {sum(trials)} trials, and there are {TRIALS}"
    return trials, ""


def judged(of_gain: float):
    """Whether so much of the gain that is possible is reached."""
    def by(answer, variant):
        v = variant.values
        trials, problem = spent_in(answer)
        if problem:
            return Found(False, problem)
        spent = tuple(t // STEP for t in trials)
        before, have, least = (total(v, s) for s in ((0, 0, 0), spent, best(v)))
        told = f"the model takes {have:,} us; {before:,} without tuning, {least:,} at best"
        if before - have >= of_gain * (before - least):
            return Found(True, told)
        gains = {v.names[n]: v.calls[n] * (v.curves[n][k] - v.curves[n][k + 1])
                 for n, k in zip(NAMES, spent) if k < TRIALS // STEP}
        name = max(gains, key=gains.__getitem__)
        return Found(False, f"{told}. {STEP} more trials of {name} save {gains[name]} us: the "
                     "calls of a kernel times what one call gains")
    return by


def as_answer(v: Values, spent: tuple[int, ...]) -> dict[str, int]:
    """Trials by kernel."""
    return {v.names[n]: k * STEP for n, k in zip(NAMES, spent)}


EXERCISE = Exercise(
    id="10.1",
    title="Where to spend 100 trials",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
A model calls three kernels. Searches were recorded: after 0, 20, 40, 60, 80 and 100 trials, the
best program of a kernel takes so many microseconds:

- `{name1}`, calls in the model: {calls1}. {curve1}
- `{name2}`, calls in the model: {calls2}. {curve2}
- `{name3}`, calls in the model: {calls3}. {curve3}

You have 100 trials for all of them, in steps of 20. Where do you spend them, so that the model as
a whole is fastest?""",
    draw=draw,
    fields=lambda v: [Field(v.names[n], f"Trials for {v.names[n]}") for n in NAMES],
    checks=lambda v: [
        row("own", 1, "half of the gain that is possible", by=judged(0.5)),
        row("own", 3, "all of the gain that is possible", by=judged(1.0)),
    ],
    hints=(
        "A kernel that takes long is not the one that gains most. What does each step of 20 trials "
        "save?",
        "A step saves what one call gains, times the calls. Take the step that saves most, then "
        "the next one.",
        "Here each curve gains less and less, so taking the best step five times is right: write "
        "down the differences of each curve, times its calls, and take the five largest.",
    ),
    reference=lambda v: as_answer(v, best(v)),
    wrong=lambda v: [
        Wrong(as_answer(v, (5, 0, 0)), 0, "the calls of a kernel times what one call gains"),
        Wrong(as_answer(v, (0, 0, 5)), 0, f"20 more trials of {v.names['second']} save"),
        Wrong(as_answer(v, (2, 2, 1)), 1, "more trials of"),
        Wrong(as_answer(v, (2, 2, 2)), 0, "these are 120 trials"),
        Wrong(dict(zip(v.names.values(), (33, 33, 34))), 0, "the curve says nothing of others"),
        Wrong({v.names["second"]: 100}, 0, "0 is an answer too"),
    ],
)

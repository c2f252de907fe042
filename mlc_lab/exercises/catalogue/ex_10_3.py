"""10.3  What a faster kernel does for the model."""

from __future__ import annotations

import random
from fractions import Fraction

from ..exercise import Exercise, Field, Values, Wrong, row

NAMES = ("attention", "linear", "norm")


def draw(rng: random.Random) -> dict:
    """A profile: time of a call, calls, and how much faster each kernel could become."""
    while True:
        v = Values(times={"attention": rng.choice([300, 320, 360]), "linear": rng.choice([40, 50]),
                          "norm": rng.choice([10, 12])},
                   calls={"attention": 1, "linear": rng.choice([12, 16]),
                          "norm": rng.choice([8, 12])},
                   could={"attention": rng.choice([2, 3]), "linear": 2, "norm": 10})
        saves = sorted(saved(v, n) for n in NAMES)
        if saves[-1] > 1.15 * saves[-2]:  # clearly one
            break
    told = {f"{what}{at}": value for at, n in enumerate(NAMES, 1) for what, value in (
        ("name", n), ("time", v.times[n]), ("calls", v.calls[n]), ("could", v.could[n]))}
    return {**vars(v), **told}


def total(v: Values) -> int:
    """Microseconds of the model."""
    return sum(v.times[n] * v.calls[n] for n in NAMES)


def saved(v: Values, name: str) -> Fraction:
    """Microseconds that a kernel saves once it is as fast as it could be."""
    return v.times[name] * v.calls[name] * (1 - Fraction(1, v.could[name]))


def speedup(v: Values, name: str) -> float:
    """How many times as fast the model becomes by one kernel."""
    return float(total(v) / (total(v) - saved(v, name)))


def limit(v: Values, name: str) -> float:
    """The same, if the kernel took no time at all."""
    return total(v) / (total(v) - v.times[name] * v.calls[name])


def why_not(v: Values, name: str) -> str:
    """Why a kernel is not the one to begin with."""
    share = 100 * v.times[name] * v.calls[name] / total(v)
    return (f"{name} has {share:.0f} % of the time, and saves {float(saved(v, name)):.0f} us of "
            "it, however much faster it becomes than others")


def reference(v: Values) -> dict:
    """All fields."""
    return {"first": max(NAMES, key=lambda n: saved(v, n)),
            "linear": round(speedup(v, "linear"), 3), "limit": round(limit(v, "attention"), 3),
            "order": sorted(NAMES, key=lambda n: -saved(v, n))}


EXERCISE = Exercise(
    id="10.3",
    title="What a faster kernel does for the model",
    level=1,
    minutes=10,
    kind="prediction",
    statement="""\
A model was profiled; nothing else takes time.

- `{name1}`: {time1} us a call, calls: {calls1}, could become {could1} times as fast
- `{name2}`: {time2} us a call, calls: {calls2}, could become {could2} times as fast
- `{name3}`: {time3} us a call, calls: {calls3}, could become {could3} times as fast

"Twice as fast" is half of the time. Numbers count with a deviation of 1 %.""",
    draw=draw,
    fields=lambda v: [
        Field("first", "Which kernel do you tune first?", "choice", NAMES),
        Field("order", "All three, the one that saves most time of the model first:", "order",
              NAMES),
        Field("linear", f"linear becomes {v.could['linear']} times as fast. How many times as fast "
              "is the model?"),
        Field("limit", "attention takes no time at all any more. How many times as fast is the "
              "model?"),
    ],
    checks=lambda v: [
        row("prediction", 1, "the kernel to begin with", field="first",
            equals=reference(v)["first"],
            why=", ".join(f"{n} saves {float(saved(v, n)):.0f} us" for n in NAMES),
            says={n: why_not(v, n) for n in NAMES if n != reference(v)["first"]}),
        row("prediction", 1, "the order", field="order", equals=reference(v)["order"],
            why=", ".join(f"{n} saves {float(saved(v, n)):.0f} us" for n in NAMES)),
        row("prediction", 2, "the model with a faster linear", field="linear", within=0.01,
            equals=speedup(v, "linear"),
            why=f"{total(v)} us become {float(total(v) - saved(v, 'linear')):.0f} us",
            says={v.could["linear"]: "the rest of the model is not faster"}),
        row("prediction", 1, "the limit of what attention can do", field="limit", within=0.01,
            equals=limit(v, "attention"),
            why=f"of {total(v)} us, {total(v) - v.times['attention']} us stay"),
    ],
    hints=(
        "The time of a kernel is that of a call times its calls.",
        "A kernel that becomes s times as fast saves 1 - 1/s of its time. A kernel that is small "
        "in the model saves little, however much faster it becomes.",
        "The model is (old time) / (old time - what is saved) times as fast. That is Amdahl's law.",
    ),
    reference=reference,
    wrong=lambda v: [
        Wrong({**reference(v), "first": "norm"}, 4, "however much faster"),
        Wrong({**reference(v), "linear": v.could["linear"]}, 3, "the rest of the model"),
        Wrong({**reference(v), "limit": limit(v, "linear")}, 4, "is too"),
        Wrong({"first": reference(v)["first"]}, 1, "nothing was filled in"),
    ],
)

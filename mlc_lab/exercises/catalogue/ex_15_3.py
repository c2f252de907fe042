"""15.3  Say how long the way of a sum is, by one thread and by many."""

from __future__ import annotations

import random

from ..exercise import Exercise, Field, Values, Wrong, row


def truth(v: Values) -> dict[str, object]:
    """What is asked for."""
    return {"one": v.n - 1, "own": v.n // v.threads - 1, "tree": v.levels,
            "best": str(max(v.choices))}


def draw(rng: random.Random) -> dict[str, object]:
    """A length, and how many threads share the sum."""
    levels = rng.choice([5, 6, 7])
    threads = 1 << levels
    n = threads * rng.choice([8, 16, 32])
    return {"n": n, "threads": threads, "levels": levels, "each": n // threads,
            "choices": (8, 16, 32, threads * 2)}


EXERCISE = Exercise(
    id="15.3",
    title="The longest way of a sum",
    level=1,
    minutes=10,
    kind="prediction",
    statement="""\
A row of {n} floats is summed. With {threads} threads each first adds up {each} elements of its own;
then the sums of the threads are combined in pairs, and those in pairs again, until one is left.

An addition can begin when both of its operands are there. Count the additions that have to wait for
each other.""",
    draw=draw,
    fields=lambda v: [
        Field("one", "One thread: additions one after the other"),
        Field("own", f"{v.threads} threads: additions in each thread's own part"),
        Field("tree", f"{v.threads} threads: additions one after the other when they are combined"),
        Field("best", "With how many threads is the longest way shortest?", "choice",
              tuple(str(c) for c in v.choices)),
    ],
    checks=lambda v: [
        row("prediction", 1, "one thread", field="one", equals=lambda: truth(v)["one"],
            says={v.n: "the first element is not added to anything"}),
        row("prediction", 1, "each thread's part", field="own", equals=lambda: truth(v)["own"],
            says={v.each: "the first element of a part is not added to anything"}),
        row("prediction", 2, "the combination", field="tree", equals=lambda: truth(v)["tree"],
            says={v.threads - 1: "so many additions there are, but those of one level do not wait "
                                 "for each other"}),
        row("prediction", 1, "the number of threads", field="best",
            equals=lambda: truth(v)["best"],
            about={"8": "each part is long then: twice the threads halve it, and cost one level"}),
    ],
    hints=(
        "To add up m numbers one after the other takes m - 1 additions.",
        "In pairs, {threads} sums become half as many at each level. How many levels are there?",
        "2 to the power of {levels} is {threads}. Twice as many threads: the part is half as long, "
        "and there is one level more.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "tree": v.threads - 1}, 3, "do not wait for each other"),
        Wrong({**truth(v), "one": v.n, "own": v.each}, 3, "not added to anything"),
        Wrong({**truth(v), "best": "8"}, 4, "cost one level"),
    ],
)

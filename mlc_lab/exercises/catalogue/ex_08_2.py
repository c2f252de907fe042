"""08.2  A random search of one's own."""

from __future__ import annotations

import itertools
import random

from ...workers.confined import Stopped
from ..exercise import Exercise, Values, Wrong, row
from ..result import Found

PRELUDE = """
def call(names, name, choices, trials, seed):
    return names[name](choices, lambda decision: ask("measure", list(decision)), trials, seed)
"""
#: searches that are looked at, by their seeds
SEEDS = (1, 2, 3)


class Watched:
    """Measures decisions of a space whose times are made up, and keeps what was measured."""

    def __init__(self, v: Values, table: int, trials: int) -> None:
        self.choices = spaces(v)[table]
        generator = random.Random(f"{v.salt} {table}")
        self.times = {d: round(generator.uniform(10, 99), 3)
                      for d in itertools.product(*self.choices)}
        self.trials, self.measured = trials, []

    def __call__(self, decision: list) -> float:
        key = tuple(decision)
        if key not in self.times:
            raise Stopped(f"measure({decision!r}): that is no decision of the space; it has one of "
                          f"each of {self.choices}")
        if len(self.measured) == self.trials:
            raise Stopped(f"it measures more than {self.trials} times: measurements are what a "
                          "search pays with")
        self.measured.append(key)
        return self.times[key]


def spaces(v: Values) -> list[list[list[int]]]:
    """Choices of three spaces: factors of loops, and how far to unroll."""
    return [[[1, 2, 4, 8, v.top], [1, 4, 16], [0, 16]], [[2, 3, 6], [1, 2, 4, 8, v.top]],
            [[v.top * n for n in range(1, 41)]]]


def runs(v: Values, call):
    """The searches: what each measured, and what it gave back."""
    for table in range(len(spaces(v))):
        for seed in SEEDS:
            watched = Watched(v, table, v.trials)
            found = call("search", watched.choices, v.trials, seed, ask={"measure": watched})
            yield watched, found


def best(v: Values):
    """It gives back the best of what it measured."""
    def by(call):
        for watched, found in runs(v, call):
            if len(watched.measured) < v.trials:
                return Found(False, f"it measured {len(watched.measured)} programs and may measure "
                             f"{v.trials}: trials that are left over find nothing")
            right = min(watched.measured, key=watched.times.__getitem__)
            if not isinstance(found, list) or tuple(found) not in watched.times:
                return Found(False, f"it returned {str(found)[:60]}, which is no decision: one of "
                             f"each of {watched.choices}")
            if watched.times[tuple(found)] > watched.times[right]:
                return Found(False, f"it returned {found} with {watched.times[tuple(found)]} us; "
                             f"of what it measured, {list(right)} took {watched.times[right]} us")
        return Found(True, f"the best of {v.trials} measurements, in each search")
    return by


def distinct(v: Values):
    """It measures nothing twice."""
    def by(call):
        for watched, _ in runs(v, call):
            twice = next((d for d in watched.measured if watched.measured.count(d) > 1), None)
            if twice is not None:
                return Found(False, f"{list(twice)} was measured {watched.measured.count(twice)} "
                             "times: a trial that is spent on what is known already is lost")
        return Found(True, "each measurement is of another program")
    return by


def seeded(v: Values):
    """The seed alone decides what is drawn, and is used."""
    def by(call):
        first = [tuple(w.measured) for w, _ in runs(v, call)]
        again = [tuple(w.measured) for w, _ in runs(v, call)]
        if first != again:
            return Found(False, "the same seed measured other programs when it was run again: draw "
                         "with random.Random(seed), which nothing else draws from")
        of_first, of_second = first[-len(SEEDS):][:2]
        if of_first == of_second:
            return Found(False, f"seeds {SEEDS[0]} and {SEEDS[1]} measured the same programs: the "
                         "seed is not used")
        return Found(True, "the same seed, the same search")
    return by


def text(draw: str, keep: str = "time < best[0]", generator: str = "random.Random(seed)") -> str:
    """A search."""
    return f"""
import itertools, random

def search(choices, measure, trials, seed):
    rng = {generator}
    every = list(itertools.product(*choices))
    best = None
    {draw}
        time = measure(decision)
        if best is None or {keep}:
            best = (time, decision)
    return best[1]
"""


EXERCISE = Exercise(
    id="08.2",
    title="A random search of one's own",
    level=2,
    minutes=20,
    kind="function",
    statement="""\
A space is given as the choices of each decision, such as `[[1, 2, 4], [0, 16]]`: a program is one
of each, as `[4, 16]`.

Write `def search(choices, measure, trials, seed)`. It draws {trials} (`trials`) programs at
random, calls `measure(decision)` for each, which gives its time in microseconds, and returns the
decision that was fastest. A program is measured once at most. All that is random follows from
`seed`, so that a search can be run again. Every space here has more programs than there are
trials.""",
    draw=lambda rng: {"trials": rng.choice([8, 10, 12]), "top": rng.choice([16, 32]),
                      "salt": rng.randrange(1000)},
    checks=lambda v: [
        row("function", 2, "it returns the best that it has measured", prelude=PRELUDE, by=best(v),
            decides=True),
        row("function", 1, "nothing is measured twice", prelude=PRELUDE, by=distinct(v)),
        row("function", 1, "it is random, and the seed decides", prelude=PRELUDE, by=seeded(v)),
    ],
    hints=(
        "Keep the best time and its decision while you go; the last one that you drew is not it.",
        "random.Random(seed) is a generator of your own. What was drawn before can be kept in a "
        "set of tuples, and drawn anew.",
        "itertools.product(*choices) are all programs, and random.Random(seed).sample(list, "
        "trials) draws so many of a list, each once.",
    ),
    reference=lambda v: text("for decision in rng.sample(every, trials):"),
    wrong=lambda v: [
        Wrong(text("for decision in rng.sample(every, trials):", "True"), 0, "of what it measured"),
        Wrong(text("for _ in range(trials):\n        decision = rng.choice(every)"), 3,
              "a trial that is spent on what is known"),
        Wrong(text("for decision in every[:trials]:"), 3, "seed is not used"),
        Wrong(text("for decision in every:"), 0, "measurements are what a search pays with"),
        Wrong(text("for decision in rng.sample(every, trials):",
                   generator="random.Random()"), 3, "the same seed measured other programs"),
    ],
)

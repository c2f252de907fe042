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
#: what a measurement gives, and which is best
GIVES = ("the time that it took", "the speed that it reached")
BEST = {GIVES[0]: "the shortest times come first", GIVES[1]: "the highest speeds come first"}
#: searches that are looked at, by their seeds
SEEDS = (1, 2, 3)


class Watched:
    """Measures decisions of a space whose times are made up, and keeps what was measured."""

    def __init__(self, v: Values, table: int, trials: int) -> None:
        self.choices = spaces(v)[table]
        generator = random.Random(f"{v.salt} {table}")
        self.best = max if v.gives == GIVES[1] else min
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
    """It gives back the best of what it measured, the very best first."""
    def by(call):
        for watched, found in runs(v, call):
            if len(watched.measured) < v.trials:
                return Found(False, f"it measured {len(watched.measured)} programs and may measure "
                             f"{v.trials}: trials that are left over find nothing")
            if not isinstance(found, list) or len(found) != v.keep or not all(
                    isinstance(one, list) and _key(one) in watched.times for one in found):
                return Found(False, f"it returned {str(found)[:60]}, and {v.keep} decisions are "
                             f"asked for, each one of each of {watched.choices}")
            left = list(watched.measured)
            for place, one in enumerate(map(_key, found), 1):
                if one not in left:
                    return Found(False, f"{list(one)} is at place {place} of what it returned, and "
                                 "was not measured so often")
                right = watched.best(left, key=watched.times.__getitem__)
                if watched.times[one] != watched.times[right]:
                    return Found(False, f"at place {place} it returned {list(one)}, measured as "
                                 f"{watched.times[one]}; of what it measured, {list(right)} has "
                                 f"{watched.times[right]}; measure gives {v.gives}")
                left.remove(one)
        return Found(True, f"the best of {v.trials} measurements, in each search")
    return by


def _key(decision: list) -> tuple:
    """A decision by which its time is found; none for a list of something else."""
    return tuple(decision) if all(type(n) is int for n in decision) else ()


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


def text(v: Values, draw: str, order: str = "", generator: str = "random.Random(seed)") -> str:
    """A search; `order`: how what was measured is put in order."""
    order = order or ("found.sort(reverse=True)" if v.gives == GIVES[1] else "found.sort()")
    return f"""
import itertools, random

def search(choices, measure, trials, seed):
    rng = {generator}
    every = list(itertools.product(*choices))
    found = []
    {draw}
        found.append((measure(decision), decision))
    {order}
    return [list(decision) for _, decision in found[:{v.keep}]]
"""


def draw(rng: random.Random) -> dict[str, object]:
    """What is measured, how many are returned, and what the spaces are."""
    gives = rng.choice(GIVES)
    return {"gives": gives, "best": BEST[gives], "keep": rng.choice([2, 3, 4]),
            "trials": rng.choice([8, 10, 12]), "top": rng.choice([16, 32]),
            "salt": rng.randrange(1000)}


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
random, calls `measure(decision)` for each, which gives {gives}, and returns a list of the {keep}
decisions that were best: {best}. A program is measured once at most. All that is random follows
from `seed`, so that a search can be run again. Every space here has more programs than there are
trials.""",
    draw=draw,
    checks=lambda v: [
        row("function", 2, "it returns the best that it has measured", prelude=PRELUDE, by=best(v),
            decides=True),
        row("function", 1, "nothing is measured twice", prelude=PRELUDE, by=distinct(v)),
        row("function", 1, "it is random, and the seed decides", prelude=PRELUDE, by=seeded(v)),
    ],
    hints=(
        "Keep all that measure gave, each with its decision, and put them in order at the end. "
        "Which way round, if measure gives {gives}?",
        "random.Random(seed) is a generator of your own. What was drawn before can be kept in a "
        "set of tuples, and drawn anew.",
        "itertools.product(*choices) are all programs, and random.Random(seed).sample(list, "
        "trials) draws so many of a list, each once.",
    ),
    reference=lambda v: text(v, "for decision in rng.sample(every, trials):"),
    wrong=lambda v: [
        Wrong(text(v, "for decision in rng.sample(every, trials):", "pass"), 0,
              "of what it measured"),
        Wrong(text(v, "for _ in range(trials):\n        decision = rng.choice(every)"), 3,
              "a trial that is spent on what is known"),
        Wrong(text(v, "for decision in every[:trials]:"), 3, "seed is not used"),
        Wrong(text(v, "for decision in every:"), 0, "measurements are what a search pays with"),
        Wrong(text(v, "for decision in rng.sample(every, trials):",
                   generator="random.Random()"), 3, "the same seed measured other programs"),
    ],
)

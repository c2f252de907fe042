"""08.3  How large a space is, and how many trials it wants."""

from __future__ import annotations

import math

from ..checks.space import tilings
from ..exercise import Exercise, Field, Values, Wrong, row


def sizes(v: Values) -> tuple[int, int, int]:
    """Programs of one loop's tile, of the whole space, and trials for nine in ten."""
    one = len(list(tilings(v.n, 2, v.inner)))
    both = one * len(list(tilings(v.m, 3)))
    return one, both, math.ceil(math.log(0.1) / math.log(1 - 1 / one))


def reference(v: Values) -> dict[str, int]:
    """All three."""
    return dict(zip(("one", "both", "trials"), sizes(v)))


EXERCISE = Exercise(
    id="08.3",
    title="How many programs are in a space?",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
A loop `i` of {n} iterations and a loop `j` of {m} are tiled by

`a = sch.sample_perfect_tile(i, n=2, max_innermost_factor={inner})`

`b = sch.sample_perfect_tile(j, n=3, max_innermost_factor=0)`

(0 is no bound). Each draws one of all lists of factors whose product is the extent, all of them
equally likely; `[2, 3]` and `[3, 2]` are two.

A random search draws `a` anew in each trial, and does not remember what it drew.""",
    draw=lambda rng: {"n": rng.choice([48, 72, 80, 96]), "inner": rng.choice([8, 12, 16]),
                      "m": rng.choice([64, 128, 256])},
    fields=lambda v: [
        Field("one", f"How many values can a have (two factors of {v.n}, the last at most "
              f"{v.inner})?"),
        Field("both", "How many programs has the space of a and b together?"),
        Field("trials", "One value of a is the good one. After how many trials has it been drawn "
              "at least once with a probability of 90 % or more?"),
    ],
    checks=lambda v: [
        row("prediction", 1, "choices of a", field="one", equals=sizes(v)[0],
            why=f"one for each divisor of {v.n} up to {v.inner}",
            says={v.inner: f"not every number up to {v.inner} divides {v.n}",
                  len(list(tilings(v.n, 2))): f"the bound counts: the last factor is at most "
                                              f"{v.inner}"}),
        row("prediction", 2, "programs of the space", field="both", equals=sizes(v)[1],
            why="the choices of a times those of b: they are independent",
            says={sizes(v)[0] + len(list(tilings(v.m, 3))): "choices that are independent multiply",
                  sizes(v)[0] * len(list(tilings(v.m, 2))): "b has three factors, not two"}),
        row("prediction", 2, "trials for nine in ten", field="trials", equals=sizes(v)[2],
            why="each trial misses it with the probability (N-1)/N, all t with the power t of "
                "that, which is 0.1 at most",
            says={math.ceil(0.9 * sizes(v)[0]): "that would be so if nothing were drawn twice",
                  sizes(v)[0]: "after as many trials as there are choices it has been drawn with a "
                               "probability of only about 63 %: others are drawn twice"}),
    ],
    hints=(
        "A tile of two factors is decided by the last one: which numbers can it be?",
        "{m} is a power of two, 2^e: three factors share e twos among them. And choices that are "
        "independent of each other multiply.",
        "With N values of a, t trials all miss the good one with the probability (1 - 1/N)^t. The "
        "smallest t for which that is at most 0.1 is log(0.1) / log(1 - 1/N), rounded up.",
    ),
    reference=reference,
    wrong=lambda v: [
        Wrong({**reference(v), "one": len(list(tilings(v.n, 2)))}, 4, "the bound counts"),
        Wrong({**reference(v), "both": sizes(v)[0] + len(list(tilings(v.m, 3)))}, 3,
              "choices that are independent multiply"),
        Wrong({**reference(v), "trials": sizes(v)[0]}, 3, "about 63 %"),
        Wrong({"one": sizes(v)[0]}, 1, "nothing was filled in"),
    ],
)

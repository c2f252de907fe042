"""16.3  Say how large the space of a product's tiles is, and what the limits leave."""

from __future__ import annotations

import functools
import random
from math import comb

from ..exercise import Exercise, Field, Values, Wrong, row


def truth(v: Values) -> dict[str, int]:
    """What is asked for."""
    return {"one": v.ways, "both": v.ways * v.ways, "left": _left(v.power, v.least, v.most)}


@functools.lru_cache(64)
def _left(power: int, least: int, most: int) -> int:
    """Pairs of splits whose threads are 2 to the power of `least` to that of `most`: of powers of
    two, by the exponents."""
    ways = [sum(1 for block in range(power - t + 1)
                for _ in range(power - t - block + 1)) for t in range(power + 1)]
    return sum(ways[a] * ways[b] for a in range(power + 1) for b in range(power + 1)
               if least <= a + b <= most)


def draw(rng: random.Random) -> dict[str, object]:
    """The size of a product, a power of two, and the limits."""
    power, least, most = rng.choice([5, 6, 7, 8]), rng.choice([5, 6]), rng.choice([8, 9, 10])
    return {"least": least, "most": most, "fewest": 1 << least, "threads": f"{1 << most:,}",
            "power": power, "n": 1 << power, "ways": comb(power + 3, 3),
            "numbers": (power + 1) ** 4, "three": comb(power + 2, 2)}


EXERCISE = Exercise(
    id="16.3",
    title="A space of tiles",
    level=3,
    minutes=20,
    kind="prediction",
    statement="""\
A product of {n} by {n} results is scheduled for a GPU. The loops `i` and `j`, {n} iterations each,
are split into four: blocks, virtual threads, threads, and the elements of a thread. The four
factors multiply to {n}, which is 2 to the power of {power}.

The search takes blocks of at most {threads} threads, and leaves out less than {fewest}. The threads
of a block are those of `i` times those of `j`.""",
    draw=draw,
    fields=lambda v: [
        Field("one", "Ways to split i into four factors"),
        Field("both", "Ways to split i and j"),
        Field("left", f"Of these, with {v.fewest} to {v.threads} threads a block"),
    ],
    checks=lambda v: [
        row("prediction", 1, "one loop", field="one", equals=lambda: truth(v)["one"],
            says={v.numbers: "the factors have to multiply to the extent: the last follows from "
                             "the others",
                  v.three: "that is for three factors"}),
        row("prediction", 1, "both loops", field="both", equals=lambda: truth(v)["both"],
            says={2 * v.ways: "each way of i goes with each way of j"}),
        row("prediction", 2, "what the limits leave", field="left",
            equals=lambda: truth(v)["left"],
            says={v.ways * v.ways: "with one thread for i and one for j a block has one thread"}),
    ],
    hints=(
        "A factor is a power of two. So four exponents add up to {power}: in how many ways?",
        "Put {power} balls into four boxes: choose where 3 walls stand among {power} + 3 places.",
        "With t the exponent of the threads, the other three exponents add up to {power} - t: "
        "({power} - t + 1) ({power} - t + 2) / 2 ways. Multiply for i and j, and add up the pairs "
        "whose exponents together are {least} to {most}; a few lines of Python do it.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "one": v.numbers}, 3, "the last follows"),
        Wrong({**truth(v), "both": 2 * v.ways}, 3, "goes with each way of j"),
        Wrong({**truth(v), "left": v.ways * v.ways}, 2, "a block has one thread"),
    ],
)

"""04.4  How many points has a space of schedules?"""

from __future__ import annotations

import functools
import random

from ...schedule.primitive.sample_perfect_tile import sample_tile
from ..exercise import Exercise, Field, Values, Wrong, row
from .matrices import product

#: draws that show all points of a sampled tile, which are fewer than 60
DRAWS = 3000


@functools.lru_cache(256)
def points(extent: int, parts: int, most: int) -> int:
    """How many tiles there are, counted from what the lab samples."""
    rng = random.Random(0)
    return len({tuple(sample_tile(rng, extent, parts, most)) for _ in range(DRAWS)})


def draw(rng: random.Random) -> dict[str, object]:
    """Extents, and how large the last factor may be."""
    n, m = rng.sample([24, 32, 36, 40, 48, 54, 56], 2)
    most = rng.choice([6, 8])
    return {"n": n, "m": m, "k": rng.choice([16, 20]), "most": most, "text": f"""\
i, j, k = sch.get_loops("C")
a_0, a_1 = sch.sample_perfect_tile(i, n=2, max_innermost_factor={n})
b_0, b_1 = sch.sample_perfect_tile(j, n=2, max_innermost_factor={most})
c_0, c_1, c_2 = sch.sample_perfect_tile(k, n=3, max_innermost_factor=0)"""}


def counted(v: Values) -> dict[str, int]:
    """The points of each line, and of the space."""
    i, j, k = points(v.n, 2, v.n), points(v.m, 2, v.most), points(v.k, 3, 0)
    return {"i": i, "j": j, "k": k, "all": i * j * k}


def unbounded(v: Values) -> int:
    """The points of j, had its last factor no bound."""
    return points(v.m, 2, v.m)


EXERCISE = Exercise(
    id="04.4",
    title="The size of a space",
    level=2,
    minutes=10,
    kind="prediction",
    statement="""\
A stochastic schedule of a product ({n} by {k} times {k} by {m}) samples how its loops are split:

```python
{text}
```

The factors of `sample_perfect_tile` multiply to the extent of the loop, and the last one is at most
`max_innermost_factor` (with 0 it has no bound). Among how many choices does each line choose, and
how many points has the space?""",
    draw=draw,
    program=lambda v: product(v.n, v.m, v.k),
    fields=lambda v: [
        Field("i", "Choices for i, in two factors"), Field("j", "Choices for j, in two factors"),
        Field("k", "Choices for k, in three factors"), Field("all", "Points of the space")],
    checks=lambda v: [
        row("prediction", 1, "choices for i", field="i", equals=lambda: counted(v)["i"],
            why=f"as many as {v.n} has divisors"),
        row("prediction", 1, "choices for j", field="j", equals=lambda: counted(v)["j"],
            why=f"as many as {v.m} has divisors up to {v.most}",
            says=lambda: {unbounded(v): "some of these have a last factor larger than "
                          f"{v.most}"}),
        row("prediction", 1, "choices for k", field="k", equals=lambda: counted(v)["k"],
            says=lambda: {points(v.k, 2, 0): "these are the ways into two factors; here are "
                          "three"}),
        row("prediction", 2, "points of the space", field="all",
            equals=lambda: counted(v)["all"],
            says=lambda: {sum(list(counted(v).values())[:3]):
                          "the choices are independent: each of i goes with each of j and of k"}),
    ],
    hints=(
        "Two factors whose product is {n}: the second one says it all. How many numbers divide "
        "{n}?",
        "For j count only the divisors of {m} that are at most {most}. For k take each divisor of "
        "{k} as the first factor, and count the ways to split what is left "
        "in two.",
        "The lines choose independently of each other: the numbers of choices are "
        "multiplied.",
    ),
    reference=counted,
    wrong=lambda v: [
        Wrong({**counted(v), "j": unbounded(v)}, 4, "have a last factor larger than"),
        Wrong({**counted(v), "all": sum(list(counted(v).values())[:3])}, 3,
              "the choices are independent"),
        Wrong({**counted(v), "k": points(v.k, 2, 0)}, 4, "the ways into two factors"),
    ],
)

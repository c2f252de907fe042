"""09.2  A mutator: one decision of a good trace is changed a little."""

from __future__ import annotations

import math
import random

from ..exercise import Exercise, Values, Wrong, row
from ..result import Found

#: where a prime factor may move, which factor has a bound, what is returned where nothing can move
MOVES = ("to any other place", "to a place beside it")
BOUNDED = {"factors[0]": 0, "factors[-1]": -1}
NOTHING = ("list(factors)", "None")
#: two places that are beside each other
BESIDE = "a, b = rng.choice([(n + d, n + 1 - d) for n in range(len(new) - 1) for d in (0, 1)])"
#: how many mutations of a tile are looked at
SEEDS = 120


def tiles(v: Values) -> list[list[int]]:
    """Decisions that are mutated."""
    rng = random.Random(v.salt)
    near = [v.extent // 12, 12]  # the factor that has a bound is near it
    out = [near if v.at else near[::-1], [1, 1]]  # of a loop of one iteration nothing can move
    for extent in (v.extent, 60, 7):
        for parts in (2, 3, 4):
            left, tile = extent, []
            for _ in range(parts - 1):
                choices = [d for d in range(1, left + 1) if left % d == 0]
                tile.append(rng.choice(choices))
                left //= tile[-1]
            if left > v.most:  # one factor has a bound
                tile[0], left = tile[0] * left, 1
            out.append([*tile, left] if v.at else [left, *tile[::-1]])
    return out


def neighbours(v: Values, tile: list[int], beside: bool) -> set[tuple[int, ...]]:
    """All that one move of a prime factor leads to; `beside`: to a place beside its own."""
    found = set()
    for a, factor in enumerate(tile):
        for p in (d for d in range(2, factor + 1) if factor % d == 0):
            if any(p % q == 0 for q in range(2, p)):
                continue
            for b in range(len(tile)):
                if a != b and (abs(a - b) == 1 or not beside):
                    new = list(tile)
                    new[a] //= p
                    new[b] *= p
                    if new[v.at] <= v.most:
                        found.add(tuple(new))
    return found


def judged(v: Values, what: str):
    """Look at mutations: "legal", "small" or "all"."""
    def by(call):
        for tile in tiles(v):
            near, met = neighbours(v, tile, v.beside), set()
            for seed in range(SEEDS if what == "all" else 8):
                new = call("mutate", tile, v.most, seed)
                told = f"mutate({tile}, {v.most}, {seed}) gave {str(new)[:60]}"
                problem = illegal(v, tile, new, near)
                if problem:
                    return Found(False, f"{told}; {problem}")
                if not near:
                    break
                if what == "small" and tuple(new) in neighbours(v, tile, False) - near:
                    return Found(False, f"{told}; the prime factor was moved farther than to the "
                                 "place beside its own")
                if what == "small" and tuple(new) not in near:
                    return Found(False, f"{told}; more than one prime factor was moved. A small "
                                 "step keeps most of what made the trace good")
                met.add(tuple(new))
            if what == "all" and len(near) <= 6 and not near <= met:
                missing = list(min(near - met))
                return Found(False, f"{SEEDS} mutations of {tile} never gave {missing}: what a "
                             "mutator cannot reach a search never finds")
        return Found(True)
    return by


def illegal(v: Values, tile: list[int], new, near: set) -> str:
    """What is wrong with a mutation."""
    if not near:
        right = None if v.nothing == NOTHING[1] else tile
        return "" if new == right else f"there is no such move, so {right} is asked for"
    if not isinstance(new, list) or not all(type(n) is int and n > 0 for n in new):
        return "a list of whole numbers from 1 is asked for"
    if len(new) != len(tile):
        return f"it has {len(new)} factors, not {len(tile)}"
    if math.prod(new) != math.prod(tile):
        return f"the product is {math.prod(new)}, and the loop has {math.prod(tile)} iterations"
    if new[v.at] > v.most:
        return f"{v.bounded} is larger than {v.most}"
    if new == tile:
        return "nothing has changed: the trial is lost on a program that is known"
    return ""


def text(v: Values, choice: str, beside: bool | None = None) -> str:
    """A mutator that tries moves until one is legal."""
    beside = v.beside if beside is None else beside
    pair = BESIDE if beside else "a, b = rng.sample(range(len(new)), 2)"
    return f"""
import random

def mutate(factors, most, seed):
    rng = random.Random(seed)
    for _ in range(1000):
        new = list(factors)
        {pair}
        if new[a] == 1:
            continue
        {choice}
        new[a] //= p
        new[b] *= p
        if new[{v.at}] <= most:
            return new
    return {v.nothing}
"""


def draw(rng: random.Random) -> dict[str, object]:
    """The loop, the bound, and the rules of a move."""
    moves, bounded = rng.choice(MOVES), rng.choice(sorted(BOUNDED))
    return {"moves": moves, "beside": moves == MOVES[1], "bounded": bounded,
            "at": BOUNDED[bounded], "nothing": rng.choice(NOTHING),
            "extent": rng.choice([48, 72, 96, 108]), "most": rng.choice([12, 16]),
            "salt": rng.randrange(1000)}


PRIME = "p = rng.choice([d for d in range(2, new[a] + 1) if new[a] % d == 0 and " \
        "all(d % q for q in range(2, d))])"


EXERCISE = Exercise(
    id="09.2",
    title="A mutator",
    level=3,
    minutes=25,
    kind="function",
    statement="""\
A loop of {extent} iterations is tiled by a list of factors whose product is {extent}, such as
`[{extent}, 1]`. An evolutionary search changes good tiles a little, and looks whether they are
better.

Write `def mutate(factors, most, seed)`: it returns another list, in which one prime factor has
moved {moves}: `[4, 3]` becomes `[2, 6]` or `[12, 1]`. The product stays, and
`{bounded}` is `most` ({most}) at most. Each such move can come out, by the seed. Where there is
none, `{nothing}` is returned. Lists have two to four factors.""",
    draw=draw,
    checks=lambda v: [
        row("function", 2, "legal, and another tile", by=judged(v, "legal"), decides=True),
        row("function", 2, "one prime factor moves", by=judged(v, "small")),
        row("function", 1, "every move can come out", by=judged(v, "all")),
    ],
    hints=(
        "Draw two places. What may be taken away from the first, so that both stay whole numbers?",
        "A prime p that divides the first factor: divide the one by p, multiply the other by p. If "
        "{bounded} becomes too large, draw again.",
        "List all moves (from, to, prime) that are legal, and let random.Random(seed).choice take "
        "one; if there is none, return {nothing}.",
    ),
    reference=lambda v: text(v, PRIME),
    wrong=lambda v: [
        Wrong(text(v, "p = rng.choice([d for d in range(2, new[a] + 1) if new[a] % d == 0])"), 3,
              "more than one prime factor was moved"),
        Wrong(text(v, "p = 2"), 0, "the product is"),
        Wrong(text(v, PRIME).replace(f"if new[{v.at}] <= most:", "if True:"), 0,
              f"{v.bounded} is larger than"),
        Wrong("def mutate(factors, most, seed):\n    return factors", 0, "nothing has changed"),
        Wrong(text(v, PRIME, beside=False), 3, "farther than to the place beside") if v.beside else
        Wrong(text(v, PRIME).replace("rng.sample(range(len(new)), 2)",
                                     "rng.choice([(i, i + 1) for i in range(len(new) - 1)] + "
                                     "[(len(new) - 1, 0)])"), 4, "a search never finds"),
    ],
)

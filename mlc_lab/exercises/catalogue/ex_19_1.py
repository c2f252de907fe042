"""19.1  Latency and throughput: how many sums, how many cycles, which tile."""

from __future__ import annotations

import random

from ..exercise import Exercise, Field, Values, Wrong, row

#: tiles, rows by vectors
TILES = ((1, 4), (1, 8), (1, 12), (2, 2), (2, 4), (2, 6), (3, 2), (3, 4), (4, 2), (4, 3), (4, 4),
         (4, 6), (5, 2), (6, 2), (6, 4), (8, 2), (8, 3), (10, 2), (10, 3))


def cycles(chains: int, steps: int, latency: int, units: int) -> int:
    """When the last step of all chains is done: each starts a step when the one before is done,
    and in each cycle at most so many start as there are units."""
    ready, done, cycle = [0] * chains, [0] * chains, 0
    while min(done) < steps:
        waiting = [n for n in range(chains) if done[n] < steps and ready[n] <= cycle]
        for n in sorted(waiting, key=lambda n: done[n])[:units]:
            ready[n], done[n] = cycle + latency, done[n] + 1
        cycle += 1
    return max(ready)


def registers(rows: int, vectors: int) -> int:
    """Those of a tile: its sums, a row of vectors of B, and one element of A in all lanes."""
    return rows * vectors + vectors + 1


def loads(rows: int, vectors: int) -> float:
    """Loads for each multiply-add of a tile."""
    return (rows + vectors) / (rows * vectors)


def possible(tile: tuple[int, int], needed: int, of: int) -> bool:
    """Whether a tile has enough sums, and registers suffice for it."""
    return tile[0] * tile[1] >= needed and registers(*tile) <= of


def called(tile: tuple[int, int]) -> str:
    """A tile, as the choices have it."""
    return f"{tile[0]} x {tile[1]}"


def best(v: Values) -> str:
    """The tile with the fewest loads of those that are possible."""
    return called(min((t for t in v.tiles if possible(t, v.needed, v.of)), key=lambda t: loads(*t)))


def truth(v: Values) -> dict[str, object]:
    """What is asked for."""
    return {"needed": v.needed, "cycles": cycles(v.chains, v.steps, v.latency, v.units),
            "share": 100 * v.chains / v.needed, "tile": best(v)}


def about(v: Values) -> dict[str, str]:
    """Why each tile is not the best."""
    return {called(t): f"it has {t[0] * t[1]} sums, and {v.needed} are needed"
            if t[0] * t[1] < v.needed else
            f"it takes {registers(*t)} registers, and there are {v.of}"
            if registers(*t) > v.of else
            f"it is possible, but has {loads(*t):.2f} loads for each multiply-add; another that is "
            "possible has fewer" for t in v.tiles}


def draw(rng: random.Random) -> dict[str, object]:
    """A core, sums that do not keep it busy, and five tiles, of which two are possible, one has
    too few sums, and one needs too many registers."""
    latency, units = rng.choice([3, 4, 5, 6]), 2
    needed, of = latency * units, rng.choice([16, 32])
    fits = [t for t in TILES if possible(t, needed, of)]
    first = rng.choice(fits)
    second = rng.choice([t for t in fits if abs(loads(*t) - loads(*first)) > 0.02])
    few = rng.choice([t for t in TILES if t[0] * t[1] < needed])
    large = rng.choice([t for t in TILES if registers(*t) > of])
    tiles = [first, second, few, large]
    rng.shuffle(tiles)
    return {"latency": latency, "units": units, "needed": needed, "of": of,
            "chains": rng.choice([n for n in range(3, needed) if n not in (latency, needed // 2)]),
            "steps": rng.randint(5, 12), "tiles": tiles}


EXERCISE = Exercise(
    id="19.1",
    title="Enough to do",
    level=1,
    minutes=15,
    kind="prediction",
    statement="""\
In a core a multiply-add takes {latency} cycles, and {units} can start in each cycle. There are {of}
vector registers. Answer with a pencil.

A tile of `rows` by `vectors` keeps a sum for each of its rows and vectors. In each step it
also needs, in registers, the `vectors` vectors of `B` and one element of `A` that is spread over a
register; and it loads `rows` + `vectors` times.""",
    draw=draw,
    fields=lambda v: [
        Field("needed", "Sums that have to be under way to keep the core busy"),
        Field("cycles", f"Cycles until {v.chains} sums of {v.steps} multiply-adds each are done, "
                        "the first begins in cycle 0"),
        Field("share", f"Percent of the peak that {v.chains} long sums reach"),
        Field("tile", "The tile that is best: enough sums, no spills, and then as few loads for "
                      "each multiply-add as possible", "choice",
              tuple(called(t) for t in v.tiles)),
    ],
    checks=lambda v: [
        row("prediction", 1, "sums that are needed", field="needed",
            equals=lambda: truth(v)["needed"],
            says={v.latency: f"so many keep one unit busy, and there are {v.units}"}),
        row("prediction", 2, "cycles", field="cycles", equals=lambda: truth(v)["cycles"],
            why="a sum takes its steps one after the other; the last one to begin ends last",
            says={v.latency * v.steps: f"so long takes one sum; of {v.chains} only {v.units} can "
                                       "begin in the first cycle",
                  v.latency * v.steps * v.chains: "that is one sum after the other: they need not "
                                                  "wait for each other"}),
        row("prediction", 1, "the share of the peak", field="share",
            equals=lambda: truth(v)["share"], within=0.02,
            says={100: f"that takes {v.needed} sums"}),
        row("prediction", 2, "the tile", field="tile", equals=lambda: truth(v)["tile"],
            about=lambda: about(v)),
    ],
    hints=(
        "One sum starts a multiply-add every {latency} cycles. How many others fit in between, on "
        "{units} units?",
        "All sums go on in step: each takes {steps} times {latency} cycles from its own beginning. "
        "Sum number n (from 0) begins in cycle n / {units}, rounded down.",
        "Needed: {latency} * {units}; the share is {chains} of these. A tile takes rows * vectors "
        "+ vectors + 1 registers, and loads (rows + vectors) / (rows * vectors) times for each "
        "multiply-add.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "needed": v.latency, "cycles": v.latency * v.steps}, 3,
              "can begin in the first cycle"),
        Wrong({**truth(v), "share": 100, "cycles": v.latency * v.steps * v.chains}, 3,
              "they need not wait for each other"),
        Wrong({**truth(v), "tile": next(called(t) for t in v.tiles if registers(*t) > v.of)}, 4,
              "registers, and there are"),
        Wrong({**truth(v), "tile": next(called(t) for t in v.tiles if t[0] * t[1] < v.needed)}, 4,
              "are needed"),
    ],
)

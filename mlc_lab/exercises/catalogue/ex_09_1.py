"""09.1  A cost model that ranks recorded measurements."""

from __future__ import annotations

import random

from ..exercise import Exercise, Values, Wrong, row
from ..measured import TIMES, features, rank_correlation
from ..result import Found


def draw(rng: random.Random) -> dict:
    """Which tiles are shown, and which are kept for the marks: of each size some; and in which
    order features come."""
    tiles = list(TIMES)
    shown = sorted(rng.sample(tiles, 9))
    names = list(features(1, 4))
    rng.shuffle(names)
    return {"names": names, "order": ", ".join(f"`{name}`" for name in names),
            "shown": shown, "kept": [t for t in tiles if t not in shown],
            "table": ", ".join(f"`{r} x {c}`: {TIMES[r, c]}" for r, c in shown)}


def scores(v: Values, call) -> list[float] | Found:
    """What the model says of the tiles that were kept, or why that is nothing."""
    out = []
    for tile in v.kept:
        given = [features(*tile)[name] for name in v.names]
        score = call("predict", given)
        if isinstance(score, bool) or not isinstance(score, (int, float)):
            return Found(False, f"predict({given}) gave {str(score)[:60]}, no number")
        out.append(float(score))
    return out


def ranked(v: Values, least: float):
    """Whether the order is about that of the measurements."""
    def by(call):
        have = scores(v, call)
        if isinstance(have, Found):
            return have
        speed = [1 / TIMES[t] for t in v.kept]
        reached = rank_correlation(have, speed)
        if reached >= least:
            return Found(True, f"rank correlation {reached:.2f}")
        return Found(False, f"rank correlation {reached:.2f}, {least} is asked for. "
                     + worst(v, have)
                     + (". More is faster: is the sign right?" if reached < -0.3 else ""))
    return by


def worst(v: Values, have: list[float]) -> str:
    """The two tiles whose order is most wrong."""
    pairs = [(TIMES[b] / TIMES[a], a, b) for i, a in enumerate(v.kept) for j, b in enumerate(v.kept)
             if have[i] <= have[j] and TIMES[a] < TIMES[b]]
    if not pairs:
        return ""
    _, a, b = max(pairs)
    (x, y), (fast, slow) = (f"{r} x {c}" for r, c in (a, b)), (features(*t) for t in (a, b))
    return (f"It ranks {y} no lower than {x}: {TIMES[b]} us with {slow['registers']} registers and "
            f"sums in {slow['sums']} vectors, against {TIMES[a]} us with {fast['registers']} and "
            f"{fast['sums']}")


def first(v: Values):
    """Whether a fast tile is among the first three."""
    def by(call):
        have = scores(v, call)
        if isinstance(have, Found):
            return have
        order = sorted(range(len(have)), key=lambda n: -have[n])[:3]
        fastest = min(v.kept, key=lambda t: TIMES[t])
        chosen = min((v.kept[n] for n in order), key=lambda t: TIMES[t])
        near = TIMES[chosen] <= 1.1 * TIMES[fastest]
        return Found(near, f"the fastest of the three that it ranks first takes "
                     f"{TIMES[chosen]} us, the fastest of all {TIMES[fastest]} us")
    return by


REFERENCE = """
def predict(f):
    NAMES = f
    full = min(columns, 8) / 8                       # the part of each vector that is used
    speed = full * min(sums, 4)                      # more sums do not wait for each other
    if registers > 16:                               # the rest goes to the stack and back
        speed /= 1 + registers / 32
    return speed - loads / 100 - scalar_loads / 100
"""


def reference(v: Values) -> str:
    """A model of two things that make a tile slow."""
    return REFERENCE.replace("NAMES", ", ".join(v.names))


def at(v: Values, name: str) -> str:
    """A feature by its place."""
    return f"f[{v.names.index(name)}]"


EXERCISE = Exercise(
    id="09.1",
    title="A cost model",
    level=3,
    minutes=30,
    kind="function",
    statement="""\
A product of 128 by 128 was measured in tiles of some rows by some columns; the columns are
vectorized, the rows unrolled, in registers of 8 numbers, of which there are 16. Microseconds:

{table}.

Write `def predict(f)`, which gives a number for a tile: the larger, the faster. `f` is a list of
six features: {order}, in this order. `registers` are the vector registers that the inner loop asks
for, `sums` the vectors of sums that do not wait for each other, `loads` the vectors loaded in each
step of `k`, and `scalar_loads` the single numbers. Marks are made on the other 16 tiles: by the
rank correlation of what you predict with the speed that was measured (1: the same order, 0: no
relation).""",
    draw=draw,
    checks=lambda v: [
        row("function", 1, "better than chance: a rank correlation of 0.4", by=ranked(v, 0.4)),
        row("function", 2, "a good model: a rank correlation of 0.8", by=ranked(v, 0.8)),
        row("function", 1, "a fast tile is among the first three", by=first(v)),
    ],
    hints=(
        "Look at tiles of one row: what does each doubling of the columns do? And where does it "
        "stop? The same for tiles of 8 columns.",
        "Two things make a tile slow: too few sums under way (each multiply-add waits for the one "
        "before it), and more registers than the 16 that there are.",
        "min(sums, 4) * min(columns, 8) / 8 is about the speed as long as registers <= 16; beyond, "
        "divide by something that grows with registers.",
    ),
    reference=reference,
    wrong=lambda v: [
        Wrong(f"def predict(f):\n    return {at(v, 'rows')} * {at(v, 'columns')}", 0, "It ranks"),
        Wrong(reference(v).replace("return speed", "return -speed"), 0, "is the sign right?"),
        Wrong("def predict(f):\n    return 'fast'", 0, "no number"),
        Wrong(f"TIMES = {({t: TIMES[t] for t in v.shown})}\ndef predict(f):\n"
              f"    return -TIMES[{at(v, 'rows')}, {at(v, 'columns')}]", 0, "line 3: KeyError: ("),
    ],
)

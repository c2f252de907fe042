"""14.3  Say what a tile in shared memory saves, and what it costs."""

from __future__ import annotations

import random

from ..exercise import Exercise, Field, Values, Wrong, row


def truth(v: Values) -> dict[str, int]:
    """What is asked for."""
    return {"times": v.n // v.tile, "loads": 2 * v.n * v.n * (v.n // v.tile),
            "shared": 2 * v.tile * v.deep * 4, "barriers": 2 * (v.n // v.deep)}


def draw(rng: random.Random) -> dict[str, int]:
    """A product and its tiles."""
    n, tile = rng.choice([256, 512, 1024]), rng.choice([32, 64])
    deep = rng.choice([8, 16])
    return {"n": n, "tile": tile, "deep": deep, "steps": n // deep, "half": n * n * (n // tile),
            "naive": 2 * n * n * n}


EXERCISE = Exercise(
    id="14.3",
    title="What a tile saves",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
Two square matrices of {n} by {n} floats are multiplied. Each block of threads computes a tile of
{tile} by {tile} results. It goes along `k` in steps of {deep}: the threads load {tile} by {deep}
elements of `A` and {deep} by {tile} of `B` into shared memory, wait, multiply, and wait again
before the next step. Nothing is fetched ahead.""",
    draw=draw,
    fields=lambda v: [
        Field("times", "How often is an element of A loaded from global memory, in all?"),
        Field("loads", "Elements of A and B that are loaded, in all"),
        Field("shared", "Bytes of shared memory that a block needs"),
        Field("barriers", "Barriers that a block meets"),
    ],
    checks=lambda v: [
        row("prediction", 2, "how often an element is loaded", field="times",
            equals=lambda: truth(v)["times"],
            says={v.n: "so often without a tile: once for each result of its row",
                  1: "each block loads for itself, and several blocks need the same row of A"}),
        row("prediction", 1, "elements in all", field="loads", equals=lambda: truth(v)["loads"],
            says={v.half: "that is A alone; B is loaded as often",
                  v.naive: "that is what the product without tiles loads"}),
        row("prediction", 1, "shared memory", field="shared", equals=lambda: truth(v)["shared"],
            says={2 * v.tile * v.deep: "a float has 4 bytes"}),
        row("prediction", 1, "barriers", field="barriers", equals=lambda: truth(v)["barriers"],
            says={v.steps: "that is one a step: one comes after the loading, and one before the "
                           "next"}),
    ],
    hints=(
        "Which blocks need an element of A? Those whose tiles lie in its row of results.",
        "In a row of {n} results there are {n} / {tile} tiles. Each of their blocks loads the "
        "element once.",
        "All elements of A and B, 2 * {n} * {n}, so often each. Shared memory holds {tile} * "
        "{deep} floats of A and as many of B. There are {steps} steps with two barriers each.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "times": v.n, "loads": v.naive}, 2, "without a tile"),
        Wrong({**truth(v), "loads": v.half}, 4, "that is A alone"),
        Wrong({**truth(v), "shared": 2 * v.tile * v.deep, "barriers": v.steps}, 3,
              "one before the next"),
    ],
)

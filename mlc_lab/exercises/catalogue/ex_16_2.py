"""16.2  What a card allows, before anything is measured: a roofline by hand."""

from __future__ import annotations

import random
from typing import Any

from ...target import Target
from ...target.gpus import gpu_of
from ..exercise import Exercise, Field, Values, Wrong, row

CARDS = ("nvidia/geforce-rtx-2080-ti", "nvidia/nvidia-t4", "nvidia/nvidia-a100",
         "nvidia/geforce-rtx-3090")
LIMITS = ("arithmetic", "memory")


def truth(v: Values) -> dict[str, Any]:
    """Least microseconds of arithmetic and of memory, which is longer, and the tile at which
    they are equal."""
    arithmetic = 2 * v.n ** 3 / (2 * v.processors * v.lanes * v.mhz * 1e6) * 1e6
    memory = (2 * v.n ** 3 // v.tile * 4 + 4 * v.n ** 2) / (v.bandwidth * 1e9) * 1e6
    return {"arithmetic": arithmetic, "memory": memory,
            "limit": "arithmetic" if arithmetic > memory else "memory"}


def draw(rng: random.Random) -> dict[str, object]:
    """A card, a size, and a tile that makes memory or arithmetic the limit, but not nearly both."""
    card = gpu_of(Target(rng.choice(CARDS)))
    return {"card": card.name, "processors": card.processors, "lanes": card.processor.fp32,
            "mhz": round(card.clock / 1e6), "bandwidth": round(card.bandwidth / 1e9),
            "n": rng.choice([1024, 2048]), "tile": rng.choice([8, 16, 256])}


EXERCISE = Exercise(
    id="16.2",
    title="A roofline by hand",
    level=2,
    minutes=20,
    kind="prediction",
    statement="""\
The `{card}` has {processors} multiprocessors with {lanes} lanes for float32, each of which does a
multiply-add in a cycle, at {mhz} MHz. Its memory delivers {bandwidth} GB/s (10^9 bytes).

A product of two matrices of {n} by {n} float32 is computed in tiles of {tile} by {tile}: each
element of A and of B is loaded {n} / {tile} times from memory, and each of C is stored once. No
cache helps.

Say the least time in microseconds that each part needs (5 percent more or less count as right),
and which of them is the limit.""",
    draw=draw,
    fields=lambda v: [
        Field("arithmetic", "Least time of the arithmetic, in microseconds"),
        Field("memory", "Least time of the memory, in microseconds"),
        Field("limit", "What is the limit?", "choice", LIMITS),
    ],
    checks=lambda v: [
        row("prediction", 2, "arithmetic", field="arithmetic", within=0.05,
            equals=lambda: truth(v)["arithmetic"],
            says=lambda: {round(2 * truth(v)["arithmetic"]):
                          "a multiply-add is one operation of a lane, and there are n * n * n"}),
        row("prediction", 2, "memory", field="memory", within=0.05,
            equals=lambda: truth(v)["memory"],
            says=lambda: {round(truth(v)["memory"] / 4): "a float32 has 4 bytes",
                          round(truth(v)["memory"] / 2): "A and B are both loaded"}),
        row("prediction", 1, "the limit", field="limit", equals=lambda: truth(v)["limit"],
            about={"memory": "the longer of the two times is the limit",
                   "arithmetic": "the longer of the two times is the limit"}),
    ],
    hints=(
        "How many multiply-adds has the product, and how many does the card do in a microsecond?",
        "{n} * {n} * {n} multiply-adds; {processors} * {lanes} * {mhz} in a microsecond. Bytes: "
        "A has {n} * {n} elements of 4 bytes, each loaded {n} / {tile} times; B too.",
        "memory: (2 * {n} * {n} * {n} / {tile} * 4 + {n} * {n} * 4) / ({bandwidth} * 1000) "
        "microseconds.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "arithmetic": round(2 * truth(v)["arithmetic"])}, 3,
              "there are n * n * n"),
        Wrong({**truth(v), "memory": round(truth(v)["memory"] / 4)}, 3, "has 4 bytes"),
        Wrong({**truth(v), "limit": next(x for x in LIMITS if x != truth(v)["limit"])}, 4,
              "the longer of the two"),
        Wrong({**truth(v), "memory": round(truth(v)["memory"] / 2)}, 3, "both loaded"),
    ],
)

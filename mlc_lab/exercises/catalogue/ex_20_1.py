"""20.1  Say what the busiest thread has to do, before a parallel loop is written."""

from __future__ import annotations

import random

from ..exercise import Exercise, Field, Values, Wrong, row


def pieces(iterations: int, threads: int) -> list[range]:
    """The contiguous pieces of a parallel loop, one a thread."""
    ends = [t * iterations // threads for t in range(threads + 1)]
    return [range(a, b) for a, b in zip(ends, ends[1:])]


def truth(v: Values) -> dict[str, int]:
    """What is asked for."""
    rows = [sum(i + 1 for i in piece) for piece in pieces(v.n, v.threads)]
    pairs = [sum((i + 1) + (v.n - i) for i in piece) for piece in pieces(v.n // 2, v.threads)]
    return {"first": rows[0], "last": rows[-1], "pairs": max(pairs),
            "tiles": max(map(len, pieces(v.tiles, v.threads)))}


def draw(rng: random.Random) -> dict[str, int]:
    """A triangle that the threads divide, and tiles that they do not."""
    threads = rng.choice([3, 4, 5, 6, 8])
    n = 2 * threads * rng.choice([4, 5, 6, 8])
    whole = rng.choice([1, 2, 3])
    return {"threads": threads, "n": n, "each": n // threads, "middle": n // 2,
            "whole": whole, "tiles": whole * threads + rng.randint(1, threads - 1)}


EXERCISE = Exercise(
    id="20.1",
    title="What the busiest thread does",
    level=1,
    minutes=10,
    kind="prediction",
    statement="""\
Row `i` of a triangle has `i + 1` elements to add, for `i` from 0 to {n} - 1. The loop over the
rows is parallel: its iterations are divided among {threads} threads in contiguous pieces of equal
length, the first rows to the first thread, and no thread takes over work of another.

In a second program an iteration of the parallel loop does two rows, `i` and `{n} - 1 - i`; that
loop has {middle} iterations. In a third one the parallel loop goes over {tiles} tiles, which all
take equally long.""",
    draw=draw,
    fields=lambda v: [
        Field("first", "Elements that the first thread adds, of the loop over rows"),
        Field("last", "Elements that the last thread adds, of the loop over rows"),
        Field("pairs", "Elements that a thread adds, of the loop over pairs of rows"),
        Field("tiles", f"Tiles of the busiest of {v.threads} threads"),
    ],
    checks=lambda v: [
        row("prediction", 1, "the first thread", field="first", equals=lambda: truth(v)["first"],
            says={v.each: "that is how many rows it has",
                  v.each * (v.each - 1) // 2: "row i has i + 1 elements, not i"}),
        row("prediction", 2, "the last thread", field="last", equals=lambda: truth(v)["last"],
            says={v.each: "that is how many rows it has",
                  v.n * (v.n + 1) // 2 // v.threads:
                      "that would be an equal share: its rows are the longest ones"}),
        row("prediction", 1, "pairs of rows", field="pairs", equals=lambda: truth(v)["pairs"],
            says={v.n + 1: "that is what one pair has; a thread has several"}),
        row("prediction", 1, "tiles", field="tiles", equals=lambda: truth(v)["tiles"],
            says={v.whole: "so many each, and some are left over: somebody has one more"}),
    ],
    hints=(
        "Which rows does the first thread have, and which the last? Each has {each} of them.",
        "The rows 0 to {each} - 1 have 1, 2, ..., {each} elements. The last thread's rows end with "
        "the one of {n} elements. The sum of numbers that follow each other is the mean of the "
        "first and the last, times how many there are.",
        "A pair has {n} + 1 elements, whichever it is, and a thread has {middle} / {threads} of "
        "them. For the tiles: {tiles} / {threads}, rounded up.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "last": v.n * (v.n + 1) // 2 // v.threads}, 3, "an equal share"),
        Wrong({**truth(v), "first": v.each * (v.each - 1) // 2, "pairs": v.n + 1}, 3,
              "a thread has several"),
        Wrong({**truth(v), "tiles": v.whole}, 4, "somebody has one more"),
        Wrong({"first": v.each, "last": v.each}, 0, "how many rows it has"),
    ],
)

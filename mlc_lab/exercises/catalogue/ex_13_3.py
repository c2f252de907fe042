"""13.3  Say which threads have nothing to do, where the sizes do not divide."""

from __future__ import annotations

import random

from ...script import from_source
from ..exercise import Exercise, Field, Values, Wrong, row


def program(v: Values):
    """A vector that is copied by blocks that it does not fill."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n},), "float32"), B: T.Buffer(({v.n},), "float32")):
        for b in T.thread_binding({v.blocks}, thread="blockIdx.x"):
            for t in T.thread_binding({v.threads}, thread="threadIdx.x"):
                if b * {v.threads} + t < {v.n}:
                    B[b * {v.threads} + t] = A[b * {v.threads} + t]
""")


def truth(v: Values) -> dict[str, int]:
    """What is asked for."""
    return {"blocks": v.blocks, "idle": v.blocks * v.threads - v.n,
            "mixed": int(v.n % 32 > 0), "asleep": (v.blocks * v.threads - v.n) // 32}


def draw(rng: random.Random) -> dict[str, int]:
    """A block size, and a length that leaves some warps idle and one half full."""
    threads = rng.choice([128, 192, 256])
    whole = rng.randint(3, 9)
    n = whole * threads + 32 * rng.randint(1, threads // 32 - 2) + rng.randint(1, 31)
    return {"n": n, "threads": threads, "blocks": whole + 1, "whole": whole,
            "warps": threads // 32}


EXERCISE = Exercise(
    id="13.3",
    title="Threads with nothing to do",
    level=1,
    minutes=10,
    kind="prediction",
    statement="""\
A vector of {n} floats is copied by blocks of {threads} threads, one element each. A thread whose
element is past the end does nothing; the condition is in the program.

A warp is 32 threads that follow each other, and a block is {warps} warps.""",
    draw=draw,
    program=program,
    fields=lambda v: [
        Field("blocks", "Blocks that are started"),
        Field("idle", "Threads that do nothing"),
        Field("mixed", "Warps in which some threads copy and some do nothing"),
        Field("asleep", "Warps in which no thread copies"),
    ],
    checks=lambda v: [
        row("prediction", 1, "blocks", field="blocks", equals=lambda: truth(v)["blocks"],
            says={v.whole: "so many are full; the rest of the vector needs one more"}),
        row("prediction", 1, "threads with nothing to do", field="idle",
            equals=lambda: truth(v)["idle"],
            says={0: f"{v.n} is no multiple of {v.threads}"}),
        row("prediction", 1, "warps that diverge", field="mixed",
            equals=lambda: truth(v)["mixed"],
            says={0: f"{v.n} is no multiple of 32: the vector ends inside of a warp"}),
        row("prediction", 2, "warps with nothing to do", field="asleep",
            equals=lambda: truth(v)["asleep"],
            says={truth(v)["asleep"] + 1: "the warp in which the vector ends copies something"}),
    ],
    hints=(
        "The blocks together have at least as many threads as the vector has elements.",
        "Threads with nothing to do: the blocks times {threads}, less {n}. All are in the last "
        "block, at its end.",
        "Divide them by 32, rounded down: so many warps have none that copies. The rest of that "
        "division is in the warp in which the vector ends.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "blocks": v.whole}, 4, "needs one more"),
        Wrong({**truth(v), "asleep": truth(v)["asleep"] + 1}, 3, "copies something"),
        Wrong({**truth(v), "mixed": 0, "idle": 0}, 3, "ends inside of a warp"),
    ],
)

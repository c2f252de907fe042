"""20.3  One sum by several threads, whose partial sums keep away from each other's lines."""

from __future__ import annotations

import math
import random

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row

#: what the sum may be called, and its block
NAMES = ("s", "d", "e", "r", "t", "m")
#: what is added up, of A and B at vk
TERMS = ("A[vk] * B[vk]", "(A[vk] + B[vk])", "(A[vk] - B[vk])", "T.max(A[vk], B[vk])",
         "T.min(A[vk], B[vk])")


def program(v: Values):
    """A sum over two vectors."""
    s = v.s
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n},), "float32"), B: T.Buffer(({v.n},), "float32"),
             {s}: T.Buffer((1,), "float32")):
        T.func_attr({{"tir.noalias": True}})
        for i, k in T.grid(1, {v.n}):
            with T.block("{s}"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    {s}[vi] = T.float32(0)
                {s}[vi] = {s}[vi] + {v.term}
""")


def answer(v: Values, apart: str = "own", parts: int | None = None, last: str = "") -> str:
    """Partial sums, "own": each in memory of its own until it is done, or "padded": each in a line
    of its own, or neither."""
    held = {"own": '\nown = sch.cache_write(partial, 0, "local")\n'
                   "sch.reverse_compute_at(own, sch.get_loops(partial)[1])",
            "padded": "\nsch.storage_align(partial, 0, 0, 16, 0)", "": ""}[apart]
    return f"""
i, k = sch.get_loops("{v.s}")
part, rest = sch.split(k, factors=[{parts or v.threads}, None])
partial = sch.rfactor(part, 0){held}
sch.parallel(sch.get_loops(partial)[{last or 1}])
"""


def draw(rng: random.Random) -> dict[str, object]:
    """What is added up, by how many threads."""
    threads = rng.choice([3, 4, 6, 8])
    n = threads * 8 * rng.choice([32, 48, 64])
    return {"s": rng.choice(NAMES), "term": rng.choice(TERMS), "threads": threads, "n": n,
            "percent": math.ceil(100 / threads) + 2,
            "most": 4 * threads}


EXERCISE = Exercise(
    id="20.3",
    title="Partial sums kept apart",
    level=3,
    minutes=20,
    kind="schedule",
    statement="""\
One sum over {n} elements, for {threads} threads. No loop can be parallel as it stands. Write a
schedule with which

- the busiest thread has at most {percent} % of all loads and stores, with what one thread does
  alone at the end, and
- lines of the cache (64 bytes) move from thread to thread at most {most} times: a partial sum
  may be written to a line that the threads share once, when it is done, but not at each addition.

Another order of additions changes the last digits; that is no mistake.""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the sum", cases=2),
        row("threads", 2, f"at most {v.percent} % for the busiest thread", threads=v.threads,
            share=v.percent / 100),
        row("threads", 3, f"lines move at most {v.most} times", threads=v.threads,
            moves=v.most),
    ],
    hints=(
        "A loop that adds up into one element cannot be parallel. Which primitive makes partial "
        "sums, each with an element of its own?",
        "Split k into {threads} parts and give the outer loop to sch.rfactor: in the block that it "
        "makes the loop over the parts is spatial. But the partial sums lie side by side in one "
        "line. Either each is held in memory of its own while it grows, or they are moved apart.",
        'partial = sch.rfactor(part, 0); own = sch.cache_write(partial, 0, "local"); '
        "sch.reverse_compute_at(own, sch.get_loops(partial)[1]); then make that loop parallel. Or "
        "sch.storage_align(partial, 0, 0, 16, 0) instead of the two.",
    ),
    reference=answer,
    wrong=lambda v: [
        Wrong(answer(v, apart=""), 3, "are written by one thread and used by another one"),
        Wrong(answer(v, parts=2), 4, "the busiest of"),
        Wrong(f'sch.parallel(sch.get_loops("{v.s}")[1])', 0, "parallel"),
        Wrong(answer(v, last="2"), 0, "parallel"),
    ],
)

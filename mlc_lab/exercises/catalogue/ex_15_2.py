"""15.2  Say the rounds, the barriers and the chain of a sum across threads."""

from __future__ import annotations

import functools
import random

from ...observe.gpu.counts import count_gpu
from ...script import from_source
from ..exercise import Exercise, Field, Values, Wrong, row


#: a target that does not say that its lanes are in step
_NO_SHUFFLES = "metal -max_threads_per_block=512"


def program(v: Values):
    """Sums of rows; the threads of a block share a row. Each takes a stretch of it."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.rows}, {v.n}), "float32"), S: T.Buffer(({v.rows},), "float32")):
        T.func_attr({{"tir.noalias": True}})
        for i in T.thread_binding({v.rows}, thread="blockIdx.x"):
            for t in T.thread_binding({v.threads}, thread="threadIdx.x"):
                for k in range({v.each}):
                    with T.block("S"):
                        vi = T.axis.spatial({v.rows}, i)
                        vk = T.axis.reduce({v.n}, t * {v.each} + k)
                        with T.init():
                            S[vi] = T.float32(0)
                        S[vi] = S[vi] + A[vi, vk]
""")


def truth(v: Values) -> dict[str, int]:
    """What is asked for: sectors and barriers as counted, the chain by its length."""
    sectors, barriers = _counted(v.rows, v.threads, v.each)
    return {"barriers": barriers, "chain": v.each + v.rounds, "sectors": sectors}


@functools.lru_cache(32)
def _counted(rows: int, threads: int, each: int) -> tuple[int, int]:
    values = Values(rows=rows, threads=threads, each=each, n=threads * each)
    (k,) = count_gpu(program(values), _NO_SHUFFLES)
    return round(k.site("A").sectors_a_request), k.barriers


def draw(rng: random.Random) -> dict[str, object]:
    """Threads, and how many numbers each has."""
    threads, each = rng.choice([64, 128, 256, 512]), rng.choice([2, 4, 16])
    return {"rows": 4, "threads": threads, "each": each, "n": threads * each,
            "rounds": threads.bit_length() - 1}


EXERCISE = Exercise(
    id="15.2",
    title="Rounds of a tournament",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
A block of {threads} threads adds up a row of {n} numbers. Each thread adds a stretch of {each}
neighbours in a register, and puts its sum into shared memory. Then they add by halves, with a
barrier before each round, and one more before all threads read the result. (So it is done on a
device without shuffles.)""",
    draw=draw,
    program=program,
    fields=lambda v: [
        Field("barriers", "Barriers that a block meets"),
        Field("chain", "Longest chain of additions, one after the other (the first one is to 0)"),
        Field("sectors", "Sectors that a request of A takes"),
    ],
    checks=lambda v: [
        row("prediction", 1, "barriers", field="barriers", equals=lambda: truth(v)["barriers"],
            says={v.rounds: "and one before the result is read by all threads",
                  v.threads: "a round halves what is left: it takes log2 of the threads"}),
        row("prediction", 2, "the chain", field="chain", equals=lambda: truth(v)["chain"],
            says={v.each: f"that is what a thread does alone; {v.rounds} rounds follow",
                  v.n: "that would be one thread; here they add at the same time",
                  v.rounds: f"each thread has added {v.each} numbers before the first round"}),
        row("prediction", 2, "sectors", field="sectors", equals=lambda: truth(v)["sectors"],
            says={4: "that would be neighbours in neighbouring lanes; here the next lane is "
                     f"{v.each} numbers further on"} if v.each > 1 else {}),
    ],
    hints=(
        "A round halves the number of threads that have a sum. How many rounds until one is left?",
        "log2({threads}) = {rounds} rounds. A thread has made {each} additions before the first. "
        "For the sectors: in one step of k, which numbers do lanes 0, 1, 2, ... load?",
        "Lane t loads number t * {each} + k: 32 lanes, {each} numbers apart. A sector has 8 "
        "numbers.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "barriers": v.rounds}, 4, "before the result is read"),
        Wrong({**truth(v), "chain": v.each}, 3, "does alone"),
        Wrong({**truth(v), "sectors": 4}, 3, "further on"),
        Wrong({**truth(v), "chain": v.n}, 3, "at the same time"),
    ],
)

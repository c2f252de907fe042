"""13.1  Say how many sectors a warp asks for, before they are counted."""

from __future__ import annotations

import functools
import random

from ...observe.gpu.counts import count_gpu
from ...script import from_source
from ..checks.gpu_counts import GPU
from ..exercise import Exercise, Field, Values, Wrong, row


def program(v: Values):
    """A block of threads in two dimensions, and three buffers that it walks in three ways."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.rows}, {v.long}), "float32"),
             B: T.Buffer(({v.wide}, {v.rows}), "float32"),
             C: T.Buffer(({v.rows}, {v.wide}), "float32")):
        for b in T.thread_binding({v.blocks}, thread="blockIdx.x"):
            for y in T.thread_binding({v.high}, thread="threadIdx.y"):
                for x in T.thread_binding({v.wide}, thread="threadIdx.x"):
                    C[b * {v.high} + y, x] = A[b * {v.high} + y, x * {v.stride}] + \\
                        B[x, b * {v.high} + y]
""")


def sectors(v: Values) -> dict[str, int]:
    """Sectors a request, by buffer."""
    return dict(_sectors(v.wide, v.high, v.stride))


@functools.lru_cache(32)
def _sectors(wide: int, high: int, stride: int) -> tuple[tuple[str, int], ...]:
    (k,) = count_gpu(program(Values(**_sizes(wide, high, stride))), GPU)
    sites = {"A": k.site("A"), "B": k.site("B"), "C": k.site("C", write=True)}
    return tuple((name, round(s.sectors_a_request)) for name, s in sites.items())


def _sizes(wide: int, high: int, stride: int) -> dict[str, int]:
    return {"wide": wide, "high": high, "stride": stride, "long": wide * stride, "blocks": 4,
            "rows": 4 * high, "of_warp": 32 // wide}


def draw(rng: random.Random) -> dict[str, int]:
    """The shape of a block, a warp of which has several rows, and a stride."""
    wide = rng.choice([8, 16])
    return _sizes(wide, rng.choice([8, 16, 32]), rng.choice([2, 3, 4, 5, 6]))


EXERCISE = Exercise(
    id="13.1",
    title="What a warp asks for",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
Blocks of {wide} by {high} threads: `threadIdx.x` goes to {wide}, `threadIdx.y` to {high}. The
threads of a block are numbered with `x` first, and 32 that follow each other are a warp. A sector
has 32 bytes, and each buffer begins with one.

How many sectors does a request of a whole warp take, for each of the three buffers?""",
    draw=draw,
    program=program,
    fields=lambda v: [
        Field("A", f"Loading A[..., x * {v.stride}]"),
        Field("B", "Loading B[x, ...]"),
        Field("C", "Storing C[..., x]"),
    ],
    checks=lambda v: [
        row("prediction", 2, "A, with a stride", field="A", equals=lambda: sectors(v)["A"],
            says={4: "that would be a stride of one: here a sector holds fewer floats that are "
                     "wanted",
                  32: f"a sector has 8 floats, and with a stride of {v.stride} some are wanted by "
                      "the next lanes"}),
        row("prediction", 2, "B, down its columns", field="B", equals=lambda: sectors(v)["B"],
            says={32: f"the warp has {v.of_warp} rows of threads: y and y + 1 are neighbours in B, "
                      "and share a sector",
                  4: "neighbours in x are in different rows of B"}),
        row("prediction", 1, "C, along its rows", field="C", equals=lambda: sectors(v)["C"],
            says={1: "128 bytes are stored, and a sector has 32"}),
    ],
    hints=(
        "Which threads are in one warp? With x up to {wide}, a warp has {of_warp} values of y.",
        "Write down the addresses for one y: {wide} of them, how far apart? How many of 32 bytes "
        "do they touch? Then think of the other values of y: are they in the same sectors?",
        "A: {wide} floats with a stride of {stride} span {wide} * {stride} * 4 bytes, and the rows "
        "of A are apart. B: each x is a row of B of its own, and the y are neighbours in it.",
    ),
    reference=sectors,
    wrong=lambda v: [
        Wrong({**sectors(v), "B": 32}, 3, "share a sector"),
        Wrong({**sectors(v), "A": 4}, 3, "stride of one"),
        Wrong({"A": 32, "B": 4, "C": 4}, 1, "in different rows of B"),
        Wrong({**sectors(v), "C": 1}, 4, "a sector has 32"),
    ],
)

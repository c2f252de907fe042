"""23.2  The product of a step: a row times a matrix of parameters, each of them brought once."""

from __future__ import annotations

import random

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row

#: what the result may be called, and its block
RESULTS = ("y", "q", "h", "z", "u", "o", "p", "s", "t", "g", "v", "r")
CACHES = "8K:8, 128K:8"


def program(v: Values):
    """A row times a matrix."""
    y = v.y
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(x: T.Buffer(({v.k},), "float32"), W: T.Buffer(({v.k}, {v.n}), "float32"),
             {y}: T.Buffer(({v.n},), "float32")):
        T.func_attr({{"tir.noalias": True}})
        for j, k in T.grid({v.n}, {v.k}):
            with T.block("{y}"):
                vj, vk = T.axis.remap("SR", [j, k])
                with T.init():
                    {y}[vj] = T.float32(0)
                {y}[vj] = {y}[vj] + x[vk] * W[vk, vj]
""")


def answer(v: Values, sums: int | None = None, end: bool = True) -> str:
    """Vectors of sums in registers, and k around them."""
    return f"""
j, k = sch.get_loops("{v.y}")
tile, vector, lane = sch.split(j, factors=[None, {sums or v.sums}, 8])
sch.reorder(tile, k, vector, lane)
sch.unroll(vector)
sch.vectorize(lane)
""" + f'sch.decompose_reduction("{v.y}", k)\n' * end


def draw(rng: random.Random) -> dict[str, object]:
    """Names and sizes, and how many sums there are to be: tiles of them divide the columns."""
    sums = rng.choice([8, 10, 12])
    n, k = 8 * sums * rng.choice([4, 5, 6]), rng.choice([288, 384, 416, 480])
    least = 4 * (n * k + n + k)
    return {"y": rng.choice(RESULTS), "sums": sums, "n": n, "k": k, "least": least,
            "most": int(1.05 * least)}


EXERCISE = Exercise(
    id="23.2",
    title="A row times the parameters",
    level=3,
    minutes=25,
    kind="schedule",
    statement="""\
A step that writes one token multiplies one row `x` of {k} numbers with a matrix `W` of parameters,
{k} by {n}. Each parameter is used once, so no schedule can do better than to bring each of them
once, and to keep up with the memory that brings them. As it stands, the inner loop goes down a
column of `W`. Write a schedule with which

- at most {most} bytes move below the first cache (8 KiB): the arrays have {least}, and
- an AVX2 processor has vectors of 256 bits in the inner loop, and at least {sums} sums that do not
  wait for each other, with nothing on the stack.""",
    draw=draw,
    program=program,
    small=lambda v: {"n": 8 * v.sums * 2, "k": 12},
    checks=lambda v: [
        row("equivalent", 1, "it computes the product", nasty=False, cases=1),
        row("counts", 2, "each parameter is brought once", bytes_moved=v.most, caches=CACHES),
        row("machine_code", 1, "vectors of 256 bits", width=256, fma=1),
        row("machine_code", 2, f"{v.sums} sums that do not wait for each other", width=256,
            sums=v.sums, spills=0),
    ],
    hints=(
        "Along which of its two axes does W lie side by side in memory? The inner loop should walk "
        "there. And where are the sums while k goes on?",
        "Split j into tiles of {sums} vectors of 8 numbers. The loop over the tiles is the "
        "outermost, k stands around a tile, and the {sums} vectors of sums stay in registers.",
        "sch.split(j, factors=[None, {sums}, 8]), reorder to tile, k, vector, lane; unroll the "
        "vectors, vectorize the lanes; decompose_reduction at k takes the zeros out of the loop.",
    ),
    reference=answer,
    wrong=lambda v: [
        Wrong(f'sch.get_loops("{v.y}")', 1, "bytes below L1"),
        Wrong(answer(v, sums=1), 2, "sums that do not wait for each other"),
        Wrong(f'j, k = sch.get_loops("{v.y}")\nsch.reorder(k, j)\n'
              "sch.vectorize(sch.split(j, factors=[None, 8])[1])\n", 4,
              "sums that do not wait for each other"),
        Wrong(answer(v, end=False), 4, "sums that do not wait for each other"),
    ],
)

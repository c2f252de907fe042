"""15.1  A long sum by many blocks: rfactor, and two kernels."""

from __future__ import annotations

import random

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row

#: what the sum may be called, and its block
NAMES = ("S", "D", "E", "N", "P", "Y")


def program(v: Values):
    """The scalar product of two vectors."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n},), "float32"), B: T.Buffer(({v.n},), "float32"),
             {v.S}: T.Buffer((1,), "float32")):
        T.func_attr({{"tir.noalias": True}})
        for i, k in T.grid(1, {v.n}):
            with T.block("{v.S}"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    {v.S}[vi] = T.float32(0)
                {v.S}[vi] = {v.S}[vi] + A[vk] * B[vk]
""")


def answer(v: Values, split: str = "[None, 128]", thread: int = 1, parts: int | None = None,
           final: str = 'sch.bind(i, "blockIdx.x")\nsch.bind(k_0, "threadIdx.x")') -> str:
    """The sum in parts, a block for each."""
    return f"""
k_0, k_1 = sch.split(sch.get_loops("{v.S}")[1], factors=[{parts or v.parts}, None])
partial = sch.rfactor(k_0, 0)
i, k_0, k_1 = sch.get_loops(partial)
sch.bind(k_0, "blockIdx.x")
sch.bind(sch.split(k_1, factors={split})[{thread}], "threadIdx.x")
i, k_0 = sch.get_loops("{v.S}")
{final}
"""


ONE_BLOCK = """
i, k = sch.get_loops("{S}")
sch.bind(i, "blockIdx.x")
sch.bind(sch.split(k, factors=[None, 256])[1], "threadIdx.x")
"""


def draw(rng: random.Random) -> dict[str, object]:
    """A name, a length, and how many threads there are to be; the sectors are those of the vectors,
    and some for the partial sums."""
    parts, each = rng.choice([(16, 1024), (16, 2048), (32, 512), (32, 1024)])
    n = parts * each
    return {"S": rng.choice(NAMES), "n": n, "parts": parts, "threads": parts * 128,
            "most": n // 4 + 2 * parts + 8}


EXERCISE = Exercise(
    id="15.1",
    title="A sum by many blocks",
    level=3,
    minutes=25,
    kind="schedule",
    statement="""\
The scalar product of two vectors of {n} numbers. Blocks cannot wait for each other, so a sum that
many of them share is made by two kernels: one makes a partial sum in each block, one adds these up.

Write a schedule with

- two kernels at most, the larger one with {threads} threads at least, and
- {most} sectors at most: both vectors once, along memory, and the partial sums.""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the product", cases=2, nasty=False),
        row("gpu_counts", 2, f"{v.threads:,} threads in one of two kernels", kernels=2,
            threads=v.threads),
        row("gpu_counts", 3, f"at most {v.most:,} sectors", kernels=2, sectors=v.most,
            threads=v.threads),
    ],
    hints=(
        "sch.rfactor(loop, 0) makes partial sums: a block for which the loop is spatial, and the "
        "old block, which adds them up.",
        "Split k into {parts} parts, rfactor the outer loop. In the new block the parts become "
        "blockIdx.x. The rest of k is split again, so that threads share it: which half of that "
        "split is threadIdx.x?",
        "The inner one: factors=[None, 128]. The old block needs threads too: i is blockIdx.x, and "
        "the loop over the parts threadIdx.x.",
    ),
    reference=answer,
    wrong=lambda v: [
        Wrong(ONE_BLOCK.format(S=v.S), 1, "256 threads at once"),
        Wrong(answer(v, split="[128, None]", thread=0), 3, "has the largest part"),
        Wrong(answer(v, final=""), 1, "it cannot run on"),
        Wrong(answer(v, split="[None, 32]"), 1, "threads at once"),
    ],
)

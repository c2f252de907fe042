"""13.2  The loop that walks along memory becomes threadIdx.x."""

from __future__ import annotations

import random

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row

#: what the result may be called, and its block
RESULTS = ("Y", "D", "O", "P", "Q", "Z")


def program(v: Values):
    """Each channel is multiplied by a factor of its own; the loops do not follow the layout."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer(({v.n}, {v.c}, {v.w}), "float32"), S: T.Buffer(({v.c},), "float32"),
             {v.Y}: T.Buffer(({v.n}, {v.c}, {v.w}), "float32")):
        T.func_attr({{"tir.noalias": True}})
        for {v.loops} in T.grid({', '.join(str(getattr(v, x)) for x in v.order)}):
            with T.block("{v.Y}"):
                vn, vw, vc = T.axis.remap("SSS", [n, w, c])
                {v.Y}[vn, vc, vw] = X[vn, vc, vw] * S[vc]
""")


def answer(v: Values, order: str = "n, c, w", threads: int = 128, more: str = "") -> str:
    """The loops in an order, fused, and cut into blocks of threads."""
    return f"""
{v.loops} = sch.get_loops("{v.Y}")
sch.reorder({order})
block, thread = sch.split(sch.fuse({order}), factors=[None, {threads}])
sch.bind(block, "blockIdx.x")
sch.bind(thread, "threadIdx.x"){more}
"""


def of_neighbours(v: Values) -> str:
    """Each thread does four neighbours."""
    return f"""
{v.loops} = sch.get_loops("{v.Y}")
sch.reorder(n, c, w)
block, thread, inner = sch.split(sch.fuse(n, c, w), factors=[None, 128, 4])
sch.bind(block, "blockIdx.x")
sch.bind(thread, "threadIdx.x")
"""


def draw(rng: random.Random) -> dict[str, object]:
    """Loops, and sizes that blocks of threads divide. A warp stays in one channel."""
    order = rng.choice(["nwc", "wnc", "wcn", "cwn"])  # w has to go inside
    n, c, w = rng.choice([4, 8]), rng.choice([16, 24, 40]), rng.choice([64, 96, 128])
    return {"n": n, "c": c, "w": w, "Y": rng.choice(RESULTS), "order": order,
            "loops": ", ".join(order), "most": n * c * w // 4 + n * c * w // 32}


EXERCISE = Exercise(
    id="13.2",
    title="Which loop is threadIdx.x?",
    level=2,
    minutes=15,
    kind="schedule",
    statement="""\
`X` has {n} images of {c} channels of {w} numbers, and each channel is multiplied by a factor of its
own. Make a kernel for a GPU of it: bind loops to `blockIdx.x` and `threadIdx.x`, so that

- a multiprocessor (16 blocks and 32 warps at most) is full, and
- all warps together ask for {most} sectors at most. That is the least: a load of `X` and a store of
  `{Y}` take 4 sectors a warp, and the factor is the same for all lanes.""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the same", cases=1, nasty=False),
        row("gpu_counts", 2, "a full multiprocessor", occupancy=1.0),
        row("gpu_counts", 3, f"at most {v.most:,} sectors", sectors=v.most),
    ],
    hints=(
        "Neighbours in threadIdx.x are neighbours in a warp. Which of the three iterators has its "
        "neighbours side by side in memory?",
        "reorder puts w innermost; fuse makes one loop of all three; split cuts it into blocks of "
        "threads. How many threads, so that 32 warps are reached with 16 blocks?",
        "sch.reorder(n, c, w), then sch.split(sch.fuse(n, c, w), factors=[None, 128]), and bind "
        "the two loops.",
    ),
    reference=answer,
    wrong=lambda v: [
        Wrong(answer(v, "n, w, c"), 3, "The load of X has the largest part"),
        Wrong(answer(v, threads=32), 4, "It is limited by blocks"),
        Wrong(of_neighbours(v), 3, "are asked for at most"),
        Wrong(f'sch.get_loops("{v.Y}")', 1, "it cannot run on"),
    ],
)

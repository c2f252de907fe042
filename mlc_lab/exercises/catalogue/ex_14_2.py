"""14.2  A matrix is turned by way of shared memory, without conflicts."""

from __future__ import annotations

import random

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row

#: what the result may be called, and its block
RESULTS = ("B", "D", "O", "P", "Q", "Z")


def program(v: Values):
    """Columns become rows, and each row gets a number added."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.m}), "float32"), S: T.Buffer(({v.m},), "float32"),
             {v.B}: T.Buffer(({v.m}, {v.n}), "float32")):
        T.func_attr({{"tir.noalias": True}})
        for i, j in T.grid({v.m}, {v.n}):
            with T.block("{v.B}"):
                vi, vj = T.axis.remap("SS", [i, j])
                {v.B}[vi, vj] = {"S[vi] + A[vj, vi]" if v.number else "A[vj, vi] + S[vi]"}
""")


TILES = """
i, j = sch.get_loops("{B}")
i_0, i_1 = sch.split(i, factors=[None, 32])
j_0, j_1 = sch.split(j, factors=[None, 32])
sch.reorder(i_0, j_0, i_1, j_1)
"""
COPY = """
tile = sch.cache_read("{B}", {number}, "shared")
sch.compute_at(tile, j_0)
"""
FETCH = """
down, along = sch.get_loops(tile)[-2:]
sch.bind(along, "threadIdx.x")
sch.bind(sch.split(down, factors=[None, 8])[1], "threadIdx.y")
"""
THREADS = """
sch.bind(i_0, "blockIdx.y")
sch.bind(j_0, "blockIdx.x")
sch.bind(j_1, "threadIdx.x")
sch.bind(sch.split(i_1, factors=[None, 8])[1], "threadIdx.y")
"""


def made(v: Values, *parts: str) -> str:
    """A schedule of some parts."""
    return "".join(parts).replace("{B}", v.B).replace("{number}", str(v.number))


def padded(offset: int) -> str:
    """Rows of the tile that have `offset` floats more."""
    return f"sch.storage_align(tile, 0, 0, 32, {offset})\n"


def draw(rng: random.Random) -> dict[str, object]:
    """A name, which input A is, and sizes in whole tiles; the sectors are the least possible."""
    n, m = rng.choice([64, 96, 128]), rng.choice([64, 96, 160])
    return {"B": rng.choice(RESULTS), "number": rng.choice([0, 1]), "n": n, "m": m,
            "most": n * m // 4 + n * m // 32}


EXERCISE = Exercise(
    id="14.2",
    title="Turn it on the table",
    level=3,
    minutes=25,
    kind="schedule",
    statement="""\
`A` has {n} rows of {m} numbers; its columns become rows, and each gets a number of `S` added. Make
a kernel for a GPU of it that

- asks for {most} sectors at most, loads and stores together: 4 for each load of `A` and store of
  `{B}` by a warp, and one for the number of `S`, and
- has no bank conflicts, and no two threads that clash.""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the same", cases=1, nasty=False),
        row("gpu_counts", 3, f"at most {v.most:,} sectors", sectors=v.most),
        row("gpu_counts", 2, "no conflicts and no races", sectors=v.most, conflicts=0, races=True),
    ],
    hints=(
        "A warp has to walk along rows both of A and of {B}. So something has to lie between the "
        "load and the store: a tile in shared memory.",
        "cache_read, compute_at into a loop of tiles, and bind the loops of the copy to the same "
        "threads as the loops of the block, so that threadIdx.x goes along a row of A. Then count "
        "the conflicts.",
        "sch.storage_align(tile, 0, 0, 32, 1) gives the rows of the tile a length that leaves 1 "
        "when it is divided by 32.",
    ),
    reference=lambda v: made(v, TILES, COPY, FETCH, padded(1), THREADS),
    wrong=lambda v: [
        Wrong(made(v, TILES, THREADS), 1, "The load of A has the largest part"),
        Wrong(made(v, TILES, COPY, THREADS), 1, "sectors of global memory"),
        Wrong(made(v, TILES, COPY, FETCH, THREADS), 4, "each 32 passes over the banks"),
        Wrong(made(v, TILES, COPY, FETCH, padded(2), THREADS), 4, "each 2 passes over the banks"),
    ],
)

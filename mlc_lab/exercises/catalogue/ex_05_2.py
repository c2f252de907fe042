"""05.2  Conflict misses, cured by padding."""

from __future__ import annotations

import random

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row

#: what the matrix may be called
NAMES = ("M", "D", "H", "P", "Q", "Z")
#: what the first block computes of an element
MAPS = ("A[vi, vj] * A[vi, vj]", "T.max(A[vi, vj], T.float32(0))", "A[vi, vj] + T.float32(1)")


def program(v: Values):
    """A matrix is made row by row, and summed column by column."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.n}), "float32"), Y: T.Buffer(({v.n},), "float32")):
        {v.M} = T.alloc_buffer(({v.n}, {v.n}), "float32")
        for i, j in T.grid({v.n}, {v.n}):
            with T.block("{v.M}"):
                vi, vj = T.axis.remap("SS", [i, j])
                {v.M}[vi, vj] = {MAPS[v.map]}
        for j, i in T.grid({v.n}, {v.n}):
            with T.block("Y"):
                vj, vi = T.axis.remap("SR", [j, i])
                with T.init():
                    Y[vj] = T.float32(0)
                Y[vj] = Y[vj] + {v.M}[vi, vj]
""")


def draw(rng: random.Random) -> dict[str, object]:
    """A name, the size, a power of two, and a cache whose sets a column does not fit, but its
    lines do."""
    n, kib = rng.choice([(64, 8), (128, 16)])
    ways = rng.choice([4, 8])
    return {"M": rng.choice(NAMES), "n": n, "kib": kib, "ways": ways,
            "map": rng.randrange(len(MAPS)), "caches": f"{kib}K:{ways}, 256K:8",
            "row": 4 * n, "lines": 16 * kib,
            "sets": 16 * kib // ways, "bound": n * n // 4, "apart": n // 16,
            "met": 16 * kib // ways // (n // 16)}


EXERCISE = Exercise(
    id="05.2",
    title="Padding against conflicts",
    level=3,
    minutes=20,
    kind="schedule",
    statement="""\
The matrix `{M}` has {n} rows of {n} float32 numbers. It is written row by row and read down its
columns, in a cache of {kib} KiB: {sets} sets of {ways} ways, lines of 64 bytes. A column lies in
{n} lines, and the cache has {lines}: they would fit.

Yet they are missed again and again. Give the rows of `{M}` another distance, so that there are at
most {bound} misses, and leave the loops as they are.
`sch.storage_align(block, 0, axis, factor, offset)` says that from one position of an axis to the
next there are a multiple of `factor` numbers, plus `offset`, in the buffer that a block writes.""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the same", cases=1, nasty=False),
        row("structure", 1, "padded, and the loops as they were", uses=("storage_align",),
            nest={v.M: [v.n, v.n], "Y": [v.n, v.n]}, most_steps=1),
        row("counts", 4, f"at most {v.bound:,} misses", misses=v.bound, caches=v.caches),
    ],
    hints=(
        "Row to row it is {row} bytes, {apart} lines. Which of the {sets} sets does a column meet?",
        "It meets every {apart}th set: {met} sets of {ways} ways for {n} lines. With a distance "
        "that is no multiple of a power of two lines it meets them all.",
        'Half a line more suffices: sch.storage_align("{M}", 0, 0, 16, 8) makes rows begin a '
        "multiple of 16 numbers, plus 8, apart.",
    ),
    reference=lambda v: f'sch.storage_align("{v.M}", 0, 0, 16, 8)',
    wrong=lambda v: [
        Wrong("", 1, f"Reading {v.M} misses most"),
        Wrong(f'sch.storage_align("{v.M}", 0, 0, {2 * v.n}, {v.n})', 2, "a line of the cache"),
        Wrong(f'sch.storage_align("{v.M}", 0, 0, 16, 0)', 2, "are asked for at most"),
        Wrong('j, i = sch.get_loops("Y")\nsch.reorder(i, j)', 5, "storage_align was not used"),
    ],
)

"""22.2  Attention for a few queries at a time, with few misses."""

from __future__ import annotations

import random

from ...script import from_source
from ..checks.lowered import keeps
from ..exercise import Exercise, Values, Wrong, row
from .matrices import RESULTS

CACHES = "8K:8, 128K:8"


def program(v: Values):
    """Scores, the largest of each row, powers, their sums, and the weighted values."""
    n, m, w, S, E, Y = v.queries, v.keys, v.width, v.S, v.E, v.Y
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(Q: T.Buffer(({n}, {w}), "float32"), K: T.Buffer(({m}, {w}), "float32"),
             V: T.Buffer(({m}, {w}), "float32"), {Y}: T.Buffer(({n}, {w}), "float32")):
        {S} = T.alloc_buffer(({n}, {m}))
        largest = T.alloc_buffer(({n},))
        {E} = T.alloc_buffer(({n}, {m}))
        total = T.alloc_buffer(({n},))
        for i, j, k in T.grid({n}, {m}, {w}):
            with T.block("{S}"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    {S}[vi, vj] = T.float32(0)
                {S}[vi, vj] += Q[vi, vk] * K[vj, vk]
        for i, j in T.grid({n}, {m}):
            with T.block("largest"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    largest[vi] = T.float32("-inf")
                largest[vi] = T.max(largest[vi], {S}[vi, vj])
        for i, j in T.grid({n}, {m}):
            with T.block("{E}"):
                vi, vj = T.axis.remap("SS", [i, j])
                {E}[vi, vj] = T.exp({S}[vi, vj] - largest[vi])
        for i, j in T.grid({n}, {m}):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] += {E}[vi, vj]
        for i, j, k in T.grid({n}, {w}, {m}):
            with T.block("{Y}"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    {Y}[vi, vj] = T.float32(0)
                {Y}[vi, vj] += {E}[vi, vk] / total[vi] * V[vk, vj]
""")


def schedule(v: Values, rows: int, values: str = "k, r, j", keys: str = "j, r, k") -> str:
    """Fused for some rows at a time; the loops of both products inside of them in an order."""
    fused = "".join(f'sch.compute_at("{name}", outer, preserve_unit_loops=True)\n'
                    for name in ("total", v.E, "largest", v.S))
    return f"""
outer, inner = sch.split(sch.get_loops("{v.Y}")[0], factors=[None, {rows}])
{fused}r, j, k = sch.get_loops("{v.Y}")[-3:]
sch.reorder({values})
r, j, k = sch.get_loops("{v.S}")[-3:]
sch.reorder({keys})
"""


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes, how many rows fit, and names."""
    rows, keys = rng.choice([4, 8]), rng.choice([192, 208, 224])
    queries = 32
    return {"rows": rows, "queries": queries, "keys": keys, "width": 16,
            "S": rng.choice(["scores", "logits", "S"]), "E": rng.choice(["powers", "E", "P"]),
            "Y": rng.choice([name for name in RESULTS if name not in "PQ"]),
            "most": 4 * rows * (2 * keys + 2),
            "once": queries * keys * 16 // 16 * 2 * 5 // 4}


EXERCISE = Exercise(
    id="22.2",
    title="Attention, a few queries at a time",
    level=3,
    minutes=30,
    kind="schedule",
    statement="""\
Attention of {queries} queries over {keys} keys, {width} wide, in five blocks. Fuse them, so that
`{S}` and `{E}` are never whole, and mind the first cache, which has 8 KB; `K` and `V` do not fit
into it.

- At most {most} bytes of intermediate results are kept once the program is lowered.
- The first cache misses at most {once} times: then `K` and `V` pass by once for each query.
- And at most a tenth more often than with our schedule, in which several queries share each pass
  over `K`, and each pass over `V`.""",
    draw=draw,
    program=program,
    small=lambda v: {"queries": 16, "keys": 12},
    checks=lambda v: [
        row("equivalent", 1, "it computes attention", nasty=False, cases=1),
        row("own", 3, f"{v.most} bytes at most", by=lambda a, x: keeps(a.mod, x.values.most)),
        row("counts", 2, "K and V once for each query", misses=v.once, caches=CACHES),
        row("counts", 3, "queries share them", of_reference=1.1, caches=CACHES),
    ],
    hints=(
        "All five blocks have a loop over queries. Split that of {Y}, and move the other four into "
        "the outer part, the last one first.",
        "In {Y} the innermost loop goes down a column of V: which one goes along its rows? And "
        "the loop over the rows of a tile has to be inside of that over keys, in {S} and in {Y}, "
        "or each row passes over all of K and V by itself.",
        "{rows} queries at a time: compute_at total, {E}, largest, {S} (preserve_unit_loops=True). "
        "Inside, order the loops of {Y} as keys, rows, width, and those of {S} as keys, rows, and "
        "the sum.",
    ),
    reference=lambda v: schedule(v, v.rows),
    wrong=lambda v: [
        Wrong(schedule(v, v.rows, "r, j, k", "r, j, k"), 4, "Reading V misses most"),
        Wrong(schedule(v, v.rows, "r, k, j", "r, j, k"), 6, "misses most"),
        Wrong(schedule(v, 2 * v.rows), 6, "are asked for at most. They are"),
        Wrong(schedule(v, v.rows // 2), 6, "misses most"),
    ],
)

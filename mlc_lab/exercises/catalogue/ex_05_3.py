"""05.3  Conflict misses, cured by packing."""

from __future__ import annotations

import random

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row
from .matrices import RESULTS


def program(v: Values):
    """The product; which factor stands first decides which input of the block B is."""
    a, b = "A[vi, vk]", "B[vk, vj]"
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.k}), "float32"), B: T.Buffer(({v.k}, {v.m}), "float32"),
             {v.C}: T.Buffer(({v.n}, {v.m}), "float32")):
        for i, j, k in T.grid({v.n}, {v.m}, {v.k}):
            with T.block("{v.C}"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    {v.C}[vi, vj] = T.float32(0)
                {v.C}[vi, vj] = {v.C}[vi, vj] + {f"{a} * {b}" if v.number else f"{b} * {a}"}
""")


def tiled(out: str, more: str = "", t: int = 16, order: str = "i_0, j_0, k_0, i_1, k_1, j_1"
          ) -> str:
    """The product in tiles, and what else is done."""
    return f"""
i, j, k = sch.get_loops("{out}")
i_0, i_1 = sch.split(i, factors=[None, {t}])
j_0, j_1 = sch.split(j, factors=[None, {t}])
k_0, k_1 = sch.split(k, factors=[None, {t}])
sch.reorder({order})
{more}
"""


def packed(v: Values, loop: str = "k_0", t: int = 16) -> str:
    """The tiles, and a copy of those of B in a loop."""
    return tiled(v.C, f'packed = sch.cache_read("{v.C}", {v.number}, "global")\n'
                 f"sch.compute_at(packed, {loop})", t)


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes; the rows of B have a length that is a power of two."""
    n, k = rng.choice([48, 64, 80]), rng.choice([48, 64, 80])
    ways, out = rng.choice([4, 8]), rng.choice(RESULTS)
    return {"C": out, "number": rng.choice([0, 1]), "n": n, "k": k, "m": 64, "ways": ways,
            "bound": n * k, "sets": 64 // ways,
            "caches": f"4K:{ways}, 64K:16", "text": tiled(out).strip("\n")}


EXERCISE = Exercise(
    id="05.3",
    title="Packing against conflicts",
    level=3,
    minutes=20,
    kind="schedule",
    statement="""\
A product of {n} by {k} times {k} by {m} is computed in tiles of 16 by 16:

```python
{text}
```

Three tiles take 3 KiB, and the cache has 4 KiB ({sets} sets of {ways} ways, lines of 64 bytes).
Still there are many misses: the rows of `B` lie 256 bytes apart, so the 16 lines of a tile of `B`
meet few sets.

Copy each tile of `B` to where it is contiguous, before it is used, so that there are at most
{bound} misses in all.""",
    draw=draw,
    program=program,
    small=lambda v: {"n": 24, "m": 32, "k": 20},
    checks=lambda v: [
        row("equivalent", 1, "it computes the product", cases=1, nasty=False),
        row("structure", 1, "B is copied", uses=("cache_read",)),
        row("counts", 4, f"at most {v.bound:,} misses", misses=v.bound, caches=v.caches),
    ],
    hints=(
        "cache_read makes a copy of what a block reads; B is its input number {number}. A copy of "
        "all of B has the same rows, so that is not enough.",
        "compute_at moves the copy into a loop, where it makes only what is needed there. Inside "
        "which loop is that one tile of B?",
        'packed = sch.cache_read("{C}", {number}, "global"), then sch.compute_at(packed, k_0).',
    ),
    reference=lambda v: packed(v),
    wrong=lambda v: [
        Wrong(tiled(v.C), 1, "sch.cache_read was not used"),
        Wrong(tiled(v.C, f'sch.cache_read("{v.C}", {v.number}, "global")'), 2, "misses most"),
        Wrong(packed(v, t=8), 2, "are asked for at most"),
        Wrong(packed(v, "k_1"), 2, "misses most"),
    ],
)

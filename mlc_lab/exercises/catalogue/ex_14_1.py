"""14.1  Say the passes over the banks, and what shared memory does to the occupancy."""

from __future__ import annotations

import functools
import random

from ...observe.gpu.counts import count_gpu
from ...script import from_source
from ..checks.gpu_counts import GPU
from ..exercise import Exercise, Field, Values, Wrong, row

LIMITS = ("warps", "blocks", "registers", "shared memory")


def program(v: Values):
    """A table that is filled along its rows, and read down a column and with a stride."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.rows}, {v.long}), "float32"),
             B: T.Buffer(({v.grid}, {v.threads}), "float32"),
             C: T.Buffer(({v.grid}, {v.threads}), "float32")):
        for b in T.thread_binding({v.grid}, thread="blockIdx.x"):
            for t in T.thread_binding({v.threads}, thread="threadIdx.x"):
                S = T.decl_buffer(({v.rows * v.long},), "float32", scope="shared")
                for r in range({v.rows}):
                    if t < {v.long}:
                        S[r * {v.long} + t] = A[r, t]
                B[b, t] = S[t % 32 * {v.long} + t // 32]
                C[b, t] = S[t % 32 * {v.stride}]
""")


def truth(v: Values) -> dict[str, object]:
    """What is asked for, as counted."""
    return dict(_truth(v.rows, v.long, v.threads, v.stride))


@functools.lru_cache(32)
def _truth(rows: int, long: int, threads: int, stride: int) -> tuple[tuple[str, object], ...]:
    (k,) = count_gpu(program(Values(rows=rows, long=long, threads=threads, stride=stride, grid=4)),
                     GPU)
    column, walk = (s for s in k.sites if s.scope == "shared" and not s.write)
    return (("column", round(column.passes / column.requests)),
            ("stride", round(walk.passes / walk.requests)),
            ("blocks", k.occupancy.blocks), ("limit", k.occupancy.limit))


def draw(rng: random.Random) -> dict[str, object]:
    """A table that limits the occupancy, with rows that share a factor with 32."""
    rows, threads = rng.choice([(96, 64), (128, 64), (96, 128), (128, 128)])
    long = rng.choice([34, 36, 40, 48])
    return {"rows": rows, "threads": threads, "long": long, "grid": 4, "stride": rng.choice([3, 5]),
            "bytes": rows * long * 4, "warps": threads // 32, "by_warps": 32 * 32 // threads}


EXERCISE = Exercise(
    id="14.1",
    title="Passes over the banks",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
Each block has {threads} threads and a table `S` of {rows} rows with {long} floats, {bytes} bytes.
Each warp reads it twice: lane `t` reads row `t` of one column, `S[t * {long} + c]`; and with a
stride, `S[t * {stride}]`.

There are 32 banks, each a float wide. A multiprocessor has 64 KiB of shared memory and holds up to
32 warps and 16 blocks. (Registers are no limit here.)""",
    draw=draw,
    program=program,
    fields=lambda v: [
        Field("column", "Passes over the banks for the column"),
        Field("stride", f"Passes over the banks for S[t * {v.stride}]"),
        Field("blocks", "Blocks that a multiprocessor holds at once"),
        Field("limit", "What allows no more?", "choice", LIMITS),
    ],
    checks=lambda v: [
        row("prediction", 2, "a column", field="column", equals=lambda: truth(v)["column"],
            says={32: f"it would be 32 if {v.long} were a multiple of 32: so the lanes meet "
                      "several banks",
                  1: f"only an odd length of the rows is free of conflicts, and {v.long} is even"}),
        row("prediction", 1, "an odd stride", field="stride", equals=lambda: truth(v)["stride"],
            says={v.stride: f"{v.stride} has no divisor in common with 32: all lanes meet "
                            "different banks"}),
        row("prediction", 1, "blocks", field="blocks", equals=lambda: truth(v)["blocks"],
            says={v.by_warps: f"that is what the warps allow; {v.by_warps} tables of {v.bytes:,} "
                              "bytes do not fit into 64 KiB"}),
        row("prediction", 1, "the limit", field="limit", equals=lambda: truth(v)["limit"],
            about={"warps": f"the blocks that fit have {v.warps} warps each: count them"}),
    ],
    hints=(
        "The float at place p is in bank p mod 32. Write down {long} * t mod 32 for t = 0, 1, 2, "
        "... until it repeats.",
        "It repeats after 32 / d steps, where d is the greatest common divisor of {long} and 32. "
        "So how many lanes meet in one bank?",
        "d lanes meet in one bank, at different places: d passes. An odd stride has d = 1. Blocks: "
        "65536 / {bytes}, rounded down, or what 32 warps and 16 blocks allow, if that is less.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "column": 32}, 3, "were a multiple of 32"),
        Wrong({**truth(v), "column": 1}, 3, "only an odd length"),
        Wrong({**truth(v), "stride": v.stride}, 4, "no divisor in common with 32"),
        Wrong({**truth(v), "blocks": v.by_warps, "limit": "warps"}, 3, "do not fit into 64 KiB"),
    ],
)

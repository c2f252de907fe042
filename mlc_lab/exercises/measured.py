"""Measurements that exercises quote: a matrix product in tiles, 128 by 128 by 128, float32.

Tiles of `rows` by `columns`, the loops in the order i0, j0, k, i1, j1, i1 unrolled and j1
vectorized, compiled for AVX2 (16 registers of 8 float32); microseconds, the least of 35 runs on one
core of a desktop processor. They were taken once: a mark must not depend on a clock.
"""

from __future__ import annotations

import functools

from ..machine import hardware_of
from ..meta_schedule.features import stores_of
from ..schedule import Schedule
from ..script import from_source

#: the processor of the measurements
TARGET = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell --num-cores=1"
#: (rows, columns) -> microseconds
TIMES = {
    (1, 4): 437.8, (1, 8): 218.9, (1, 16): 127.0, (1, 32): 75.4, (1, 64): 77.3,
    (2, 4): 255.2, (2, 8): 127.6, (2, 16): 72.7, (2, 32): 86.5, (2, 64): 95.3,
    (4, 4): 148.3, (4, 8): 74.7, (4, 16): 79.7, (4, 32): 148.5, (4, 64): 197.0,
    (8, 4): 156.6, (8, 8): 77.9, (8, 16): 156.3, (8, 32): 189.0, (8, 64): 207.5,
    (16, 4): 222.6, (16, 8): 148.2, (16, 16): 186.4, (16, 32): 206.5, (16, 64): 232.7,
}
_TEXT = """
@T.prim_func
def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"),
         C: T.Buffer((128, 128), "float32")):
    for i, j, k in T.grid(128, 128, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def tiled(rows: int, columns: int) -> Schedule:
    """The program that was measured."""
    sch = Schedule(from_source(_TEXT))
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, rows])
    j0, j1 = sch.split(j, [None, columns])
    sch.reorder(i0, j0, k, i1, j1)
    sch.unroll(i1)
    sch.vectorize(j1)
    return sch


@functools.cache
def features(rows: int, columns: int) -> dict[str, int]:
    """What the cost model sees of a tile: the registers that the inner loop asks for, vectors of
    sums that do not wait for each other, loads of vectors and of single numbers in each step of
    k."""
    store = max(stores_of(tiled(rows, columns).mod["main"], hardware_of(TARGET)),
                key=lambda s: s.registers)
    return {"rows": rows, "columns": columns, "registers": int(store.registers),
            "sums": int(store.accumulators), "loads": int(store.loads),
            "scalar_loads": int(store.scalar_loads)}


def rank_correlation(a: list[float], b: list[float]) -> float:
    """Spearman's: 1 where both have the same order, -1 the opposite; equal values share a rank."""
    x, y = _ranks(a), _ranks(b)
    mean = (len(a) - 1) / 2
    above = sum((p - mean) * (q - mean) for p, q in zip(x, y))
    size = sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y)
    return above / size ** 0.5 if size else 0.0


def _ranks(values: list[float]) -> list[float]:
    return [sum(w < v for w in values) + (sum(w == v for w in values) - 1) / 2 for v in values]


__all__ = ["TARGET", "TIMES", "features", "rank_correlation", "tiled"]

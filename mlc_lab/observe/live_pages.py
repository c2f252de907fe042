"""Ready-made pages of choices: schedules of well-known programs with their numbers left open.

    mlc_lab.explore_live("transpose")
    mlc_lab.explore_live(mod)           # of any program: its largest block in tiles

Each page is a function that makes a schedule; `PAGES` names them. The sizes are such that the
misses of a state are counted in a fraction of a second.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..schedule import Schedule, ScheduleError
from ..schedule.open_number import divisors, live
from ..script import from_source
from ..tir.expr import IterVar
from ..tir.op import as_int
from .live_pages_parallel import PROSE as PARALLEL_SUM
from .live_pages_parallel import parallel_sum


def matrix_product(n: int = 128) -> Schedule:
    """A product in tiles: how many rows and columns of the result the inner loops hold, how long a
    part of the sum they take, and in which order the loops run."""
    sch = Schedule(from_source(f"""
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), B: T.Buffer(({n}, {n}), "float32"),
         C: T.Buffer(({n}, {n}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i, j, k in T.grid({n}, {n}, {n}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""))
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, factors=[None, live("rows", 4)])
    j0, j1 = sch.split(j, factors=[None, live("columns", 16)])
    k0, k1 = sch.split(k, factors=[None, live("part of the sum", 16)])
    sch.reorder(i0, j0, k0, k1, i1, j1)
    sch.vectorize(j1)
    sch.unroll(i1)
    sch.decompose_reduction(sch.get_block("C"), k0)
    return sch


def transpose(n: int = 512) -> Schedule:
    """A transposition in tiles: as it stands it reads along rows and writes along columns."""
    sch = Schedule(from_source(f"""
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), B: T.Buffer(({n}, {n}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i, j in T.grid({n}, {n}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj, vi] = A[vi, vj]
"""))
    i, j = sch.get_loops(sch.get_block("B"))
    i0, i1 = sch.split(i, factors=[None, live("rows", 1)])
    j0, j1 = sch.split(j, factors=[None, live("columns", 1)])
    sch.reorder(i0, j0, i1, j1)
    return sch


def stencil(n: int = 256) -> Schedule:
    """Two steps of a five-point stencil: each tile of the second needs a rim of the first, which is
    computed where it is used, or before."""
    m = n + 4
    sch = Schedule(from_source(f"""
@T.prim_func
def main(A: T.Buffer(({m}, {m}), "float32"), C: T.Buffer(({n}, {n}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    B = T.alloc_buffer(({n + 2}, {n + 2}))
    for i, j in T.grid({n + 2}, {n + 2}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = (A[vi + 1, vj + 1] + A[vi, vj + 1] + A[vi + 2, vj + 1] + A[vi + 1, vj]
                         + A[vi + 1, vj + 2]) * T.float32(0.2)
    for i, j in T.grid({n}, {n}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = (B[vi + 1, vj + 1] + B[vi, vj + 1] + B[vi + 2, vj + 1] + B[vi + 1, vj]
                         + B[vi + 1, vj + 2]) * T.float32(0.2)
"""))
    i, j = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, factors=[None, live("rows", 16)])
    j0, j1 = sch.split(j, factors=[None, live("columns", 64)])
    sch.reorder(i0, j0, i1, j1)
    sch.compute_at(sch.get_block("B"), j0)
    sch.vectorize(sch.get_loops(sch.get_block("C"))[-1])
    return sch


def convolution(channels: int = 16, size: int = 30) -> Schedule:
    """A convolution 3 x 3: how many channels and columns of the result the inner loops hold."""
    out = size - 2
    sch = Schedule(from_source(f"""
@T.prim_func
def main(X: T.Buffer(({channels}, {size}, {size}), "float32"),
         W: T.Buffer(({channels}, {channels}, 3, 3), "float32"),
         Y: T.Buffer(({channels}, {out}, {out}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for f, y, x, c, r, s in T.grid({channels}, {out}, {out}, {channels}, 3, 3):
        with T.block("Y"):
            vf, vy, vx, vc, vr, vs = T.axis.remap("SSSRRR", [f, y, x, c, r, s])
            with T.init():
                Y[vf, vy, vx] = T.float32(0)
            Y[vf, vy, vx] = Y[vf, vy, vx] + X[vc, vy + vr, vx + vs] * W[vf, vc, vr, vs]
"""))
    f, y, x, c, r, s = sch.get_loops(sch.get_block("Y"))
    f0, f1 = sch.split(f, factors=[None, live("channels", 4)])
    x0, x1 = sch.split(x, factors=[None, live("columns", 14)])
    sch.reorder(f0, y, x0, c, r, s, f1, x1)
    sch.vectorize(x1)
    sch.unroll(f1)
    sch.decompose_reduction(sch.get_block("Y"), c)
    return sch


def softmax(rows: int = 128, columns: int = 512) -> Schedule:
    """A softmax in four passes over each row, fused or one after the other."""
    sch = Schedule(from_source(f"""
@T.prim_func
def main(X: T.Buffer(({rows}, {columns}), "float32"), Y: T.Buffer(({rows}, {columns}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    largest = T.alloc_buffer(({rows},))
    powers = T.alloc_buffer(({rows}, {columns}))
    total = T.alloc_buffer(({rows},))
    for i, k in T.grid({rows}, {columns}):
        with T.block("largest"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                largest[vi] = T.float32("-inf")
            largest[vi] = T.max(largest[vi], X[vi, vk])
    for i, j in T.grid({rows}, {columns}):
        with T.block("powers"):
            vi, vj = T.axis.remap("SS", [i, j])
            powers[vi, vj] = T.exp(X[vi, vj] - largest[vi])
    for i, k in T.grid({rows}, {columns}):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + powers[vi, vk]
    for i, j in T.grid({rows}, {columns}):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = powers[vi, vj] / total[vi]
"""))
    i, j = sch.get_loops(sch.get_block("Y"))
    i0, i1 = sch.split(i, factors=[None, live("rows", 1)])
    sch.compute_at(sch.get_block("total"), i0)
    sch.compute_at(sch.get_block("powers"), i0)
    sch.compute_at(sch.get_block("largest"), i0)
    sch.vectorize(sch.split(j, factors=[None, live("lanes", 8, [4, 8, 16, 32])])[1])
    return sch


def attention(queries: int = 64, keys: int = 256, size: int = 32) -> Schedule:
    """Attention in tiles of rows: scores, softmax and the sum of values of some rows at a time, so
    that what lies between them stays in the cache. The keys come as columns."""
    n, m, d = queries, keys, size
    sch = Schedule(from_source(f"""
@T.prim_func
def main(Q: T.Buffer(({n}, {d}), "float32"), K: T.Buffer(({d}, {m}), "float32"),
         V: T.Buffer(({m}, {d}), "float32"), Y: T.Buffer(({n}, {d}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    scores = T.alloc_buffer(({n}, {m}))
    largest = T.alloc_buffer(({n},))
    powers = T.alloc_buffer(({n}, {m}))
    total = T.alloc_buffer(({n},))
    mixed = T.alloc_buffer(({n}, {d}))
    for i, j, k in T.grid({n}, {m}, {d}):
        with T.block("scores"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                scores[vi, vj] = T.float32(0)
            scores[vi, vj] = scores[vi, vj] + Q[vi, vk] * K[vk, vj]
    for i, j in T.grid({n}, {m}):
        with T.block("largest"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                largest[vi] = T.float32("-inf")
            largest[vi] = T.max(largest[vi], scores[vi, vj])
    for i, j in T.grid({n}, {m}):
        with T.block("powers"):
            vi, vj = T.axis.remap("SS", [i, j])
            powers[vi, vj] = T.exp(scores[vi, vj] - largest[vi])
    for i, j in T.grid({n}, {m}):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + powers[vi, vj]
    for i, j, k in T.grid({n}, {d}, {m}):
        with T.block("mixed"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                mixed[vi, vj] = T.float32(0)
            mixed[vi, vj] = mixed[vi, vj] + powers[vi, vk] * V[vk, vj]
    for i, j in T.grid({n}, {d}):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = mixed[vi, vj] / total[vi]
"""))
    i, _ = sch.get_loops(sch.get_block("Y"))
    i0, _ = sch.split(i, factors=[None, live("rows", 4)])
    for name in ("mixed", "total", "powers", "largest", "scores"):
        sch.compute_at(sch.get_block(name), i0, preserve_unit_loops=True)
    for name in ("scores", "mixed"):
        rows, columns, part = sch.get_loops(sch.get_block(name))[-3:]
        c0, c1 = sch.split(columns, factors=[None, live(f"columns of {name}", 16)])
        sch.reorder(c0, part, rows, c1)
        sch.vectorize(c1)
        sch.decompose_reduction(sch.get_block(name), part)
    sch.vectorize(sch.split(sch.get_loops(sch.get_block("powers"))[-1], factors=[None, 8])[1])
    return sch


#: loops of a program that are tiled, and the size of a tile to begin with
_TILED, _TILE = 3, 16


def opened(mod: Any) -> Schedule:
    """A schedule of any program: the loops of its largest block in tiles, whose sizes are left
    open, and the innermost one in vectors; as far as that is legal.

    Raises ValueError where no loop can be split.
    """
    sch = Schedule(mod)
    root = sch.get_block("root")

    def work(block: Any) -> int:
        return math.prod(as_int(sch.get(loop).extent) or 1 for loop in sch.get_loops(block))

    blocks = [b for b in sch.get_child_blocks(root) if sch.get_loops(b)]
    if not blocks:
        raise ValueError("this program has no block in a loop: there is nothing to choose")
    block = max(blocks, key=work)
    spatial = {iv.var for iv in sch.get(block).iter_vars if iv.iter_type == IterVar.DataPar}
    bound = {value for iv, value in zip(sch.get(block).iter_vars,
                                        sch.state.realize_of(sch.get_sref(block)).iter_values)
             if iv.var in spatial}
    outer: list[Any] = []
    inner: list[Any] = []
    lanes: Any = None
    for loop in sch.get_loops(block)[-_TILED:]:
        stmt = sch.get(loop)
        extent = as_int(stmt.extent)
        if extent is None or extent < 2:
            continue
        start = max(n for n in divisors(extent) if n <= _TILE)
        with contextlib.suppress(ScheduleError):
            a, b = sch.split(loop, factors=[None, live(f"tile of {stmt.loop_var.name}", start)])
            outer.append(a)
            inner.append(b)
            lanes = b if stmt.loop_var in bound else lanes
    if not outer:
        raise ValueError("no loop of this program can be split: there is nothing to choose")
    order = [*outer, *(x for x in inner if x is not lanes), *([lanes] if lanes is not None else [])]
    with contextlib.suppress(ScheduleError):
        sch.reorder(*order)
        if lanes is not None:
            sch.vectorize(lanes)
    return sch


@dataclass(frozen=True)
class Page:
    """A page that is ready: what makes its schedule, or those of several forms of a program; what
    these differ in; the text above it."""

    make: Callable[[], Schedule | dict[str, Schedule]]
    form: str = "form"
    prose: str = ""


PAGES: dict[str, Page] = {
    "matrix product": Page(matrix_product), "transpose": Page(transpose), "stencil": Page(stencil),
    "convolution": Page(convolution), "softmax": Page(softmax), "attention": Page(attention),
    "parallel sum": Page(parallel_sum, "chunks", PARALLEL_SUM),
}

__all__ = ["PAGES", "Page", "attention", "convolution", "matrix_product", "opened", "softmax",
           "stencil", "transpose"]

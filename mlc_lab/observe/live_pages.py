"""Ready-made pages of choices: schedules of well-known programs with their numbers left open.

    mlc_lab.explore_live("transpose")
    mlc_lab.explore_live(mod)           # of any program: its largest block in tiles

Each page is a function that makes a schedule; `PAGES` names them. The sizes are such that the
misses of a state are counted in a fraction of a second.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..ir.module import IRModule
from ..schedule import Schedule, ScheduleError
from ..schedule.open_number import divisors, live
from ..script import from_source
from ..tir.expr import IterVar
from ..tir.function import PrimFunc
from ..tir.op import as_int
from .live_pages_parallel import PROSE as PARALLEL_SUM
from .live_pages_parallel import parallel_sum
from .live_pages_softmax import ATTENTION, SOFTMAX
from .live_pages_softmax import attention, online_attention, online_softmax, softmax


def matrix_product(n: int = 128) -> Schedule:
    """A product in tiles: how many rows and columns of the result the inner loops hold, how long a
    part of the sum they take, in which order the loops run, how wide the vectors are, and whether
    the tile of B is packed."""
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
    j1, lanes = sch.split(j1, factors=[None, live("lanes", 16, [4, 8, 16, 32])])
    sch.reorder(i0, j0, k0, k1, i1, j1, lanes)
    sch.vectorize(lanes)
    sch.unroll(i1)
    sch.unroll(j1)
    packed = sch.cache_read(sch.get_block("C"), 1, "global")
    sch.compute_at(packed, k0)
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


_CONVOLUTION = (
    "A convolution 3 x 3 of 16 channels, {live:channels} channels and {live:columns} columns of "
    "the result at a time. The image comes as channels, rows, columns (NCHW). cache_read makes a "
    "copy of it, or of the weights, that transform_layout lays out with the channels last (NHWC). "
    "Which layout is right depends on what lies in a vector: neighbours in memory should be "
    "neighbours in the vector. Form: {live:form}.")


def convolution(channels: int = 16, size: int = 42) -> dict[str, Schedule]:
    """A convolution 3 x 3: how many channels and columns of the result the inner loops hold, which
    of the two lie in vectors, and the layouts that fit: copies of X, W and Y are laid out anew."""
    return {"vectors of columns": _convolution(channels, size, False),
            "vectors of channels": _convolution(channels, size, True)}


def _convolution(channels: int, size: int, by_channels: bool) -> Schedule:
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
    block = sch.get_block("Y")
    f, y, x, c, r, s = sch.get_loops(block)
    f0, f1 = sch.split(f, factors=[None, live("channels", 8)])
    x0, x1 = sch.split(x, factors=[None, live("columns", 8)])
    inner = [x1, f1] if by_channels else [f1, x1]
    sch.reorder(f0, y, x0, c, r, s, *inner)
    sch.vectorize(inner[1])
    sch.unroll(inner[0])
    image = sch.cache_read(block, 0, "global")
    sch.transform_layout(image, ("write", 0), lambda c, y, x: (y, x, c))
    weights = sch.cache_read(block, 1, "global")
    sch.transform_layout(weights, ("write", 0), lambda f, c, r, s: (c, r, s, f))
    if by_channels:
        result = sch.cache_write(block, 0, "global")
        sch.transform_layout(result, ("read", 0), lambda f, y, x: (y, x, f))
        sch.reverse_compute_at(result, y)
    sch.decompose_reduction(block, c)
    return sch


#: loops of a program that are tiled, and the size of a tile to begin with
_TILED, _TILE = 3, 16


def opened(mod: Any) -> Schedule:
    """A schedule of any program: the loops of its largest block in tiles, whose sizes are left
    open, and the innermost one in vectors; as far as that is legal.

    Raises ValueError where no loop can be split.
    """
    if isinstance(mod, IRModule) and not any(type(f) is PrimFunc for f in mod.functions.values()):
        raise ValueError("this module has no tensor program: of a graph, take one of the functions "
                         "that relax.transform.LegalizeOps() makes of it")
    sch = Schedule(mod)
    try:
        root = sch.get_block("root")
    except ScheduleError as error:
        if error.rule != "block_exists":
            raise
        raise ValueError("this program has no block: there is nothing to choose") from None

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
        unknown = [loop for loop in sch.get_loops(block) if as_int(sch.get(loop).extent) is None]
        raise ValueError("no loop of this program can be split: there is nothing to choose" + (
            f"; how long loop {sch.get(unknown[0]).loop_var.name} is, is known when it runs: give "
            "its buffers fixed shapes, as func.specialize does" if unknown else ""))
    order = [*outer, *(x for x in inner if x is not lanes), *([lanes] if lanes is not None else [])]
    with contextlib.suppress(ScheduleError):
        sch.reorder(*order)
        if lanes is not None:
            sch.vectorize(lanes)
    return sch


@dataclass(frozen=True)
class Page:
    """A page that is ready: what makes its schedule, or those of several forms of a program; what
    these differ in; the text above it; what is chosen at first, where the schedule says something
    else."""

    make: Callable[[], Schedule | dict[str, Schedule]]
    form: str = "form"
    prose: str = ""
    begin: Mapping[str, Any] = field(default_factory=dict)


#: what a page says first: what it shows, what can be moved, and what to look for
_PRODUCT = (
    "C = A B, each of 128 x 128 numbers, in tiles of {live:rows} rows and {live:columns} columns "
    "of C, {live:part of the sum} steps of the sum at a time. The tile of B is packed by "
    "cache_read. Drag a number, here or below: when does each number that came into L1 serve more "
    "often, and when are there more sums than vector registers?")
_TRANSPOSE = (
    "B is A with rows and columns exchanged. Along a row one line of the cache has 16 numbers, "
    "down a column each number lies in another line. In tiles of {live:rows} rows and "
    "{live:columns} columns a line is used whole before it leaves. Which tiles are too small for "
    "that, and which too large?")
_STENCIL = (
    "Two steps of a stencil of five points, in tiles of {live:rows} rows and {live:columns} "
    "columns. With compute_at the first step is computed for each tile where it is used: its "
    "edges more than once, but it is still in the cache. For which tiles is that worth it?")
_SOFTMAX = (
    "Softmax of each row, in vectors of {live:lanes} numbers. With compute_at all passes go over "
    "{live:rows} rows before the next ones begin, and find them in the cache. Switch one off: how "
    "often does memory deliver the same row?")
_ATTENTION = (
    "Scores, softmax and the sum of values of {live:rows} queries at a time: with compute_at what "
    "lies between them stays in the cache. The scores are computed in vectors of {live:columns of "
    "scores} columns. Switch a compute_at off: what has to come from farther away?")

PAGES: dict[str, Page] = {
    "matrix product": Page(matrix_product, prose=_PRODUCT),
    "transpose": Page(transpose, prose=_TRANSPOSE), "stencil": Page(stencil, prose=_STENCIL),
    "convolution": Page(convolution, prose=_CONVOLUTION,
                        begin={"cache_read X": False, "cache_read W": False}),
    "softmax": Page(softmax, prose=_SOFTMAX), "attention": Page(attention, prose=_ATTENTION),
    "online softmax": Page(online_softmax, prose=SOFTMAX),
    "online attention": Page(online_attention, prose=ATTENTION),
    "parallel sum": Page(parallel_sum, "chunks", PARALLEL_SUM,
                         {"chunks": 4, "compute_at sums": False}),
}

__all__ = ["PAGES", "Page", "attention", "convolution", "matrix_product", "opened", "softmax",
           "stencil", "transpose"]

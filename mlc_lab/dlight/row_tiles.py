"""Row tiles: a convolution and the pooling that follows it, cut into tiles of rows that overlap.

A tile is some rows of the pooled result and the rows of the convolution which those need. Each
stage of the tile gets a dimension of its own for the tiles, so that all of them can run under one
loop, with room for the rows of one tile only. Before, in one dimension::

    for y in range(56):            C[y] = ...                       # convolution
    for y in range(57):            E[y] = T.if_then_else(y >= 1, C[y - 1], -inf)
    for y, k in T.grid(28, 3):     R[y] = max(R[y], E[y * 2 + k])   # pooling

After, with tiles of seven pooled rows, which need fifteen rows of the convolution::

    for t, r in T.grid(4, 15):     C[t, r] = ... of row max(t * 14 - 1, 0) + r
    for t, r in T.grid(4, 15):     E[t, r] = T.if_then_else(t * 14 + r >= 1, C[t, ...], -inf)
    for t, y, k in T.grid(4, 7, 3):  R[t * 7 + y] = max(R[t * 7 + y], E[t, y * 2 + k])

The rows in which two tiles overlap are computed twice. A tile at the border that would begin
outside of the image is shifted inwards, so that no row needs a condition: Halide's `ShiftInwards`
(J. Ragan-Kelley et al., "Halide: A Language and Compiler for Optimizing Parallelism, Locality, and
Recomputation in Image Processing Pipelines", PLDI 2013, of which this is the sliding tile).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

from ..arith import Analyzer
from ..tir import op as O
from ..tir.buffer import Buffer
from ..tir.expr import Add, BufferLoad, IntImm, IterVar, Max, PrimExpr, Range, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, substitute
from ..tir.op import as_int
from ..tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, SeqStmt, Stmt, seq,
)
from .stages import Stage, strided_by

if TYPE_CHECKING:
    from collections.abc import Sequence

#: pooled rows in a tile: at most so many, and at least so many where a tile overlaps the next
_MOST, _FEWEST = 10, 4


@dataclass
class Window:
    """How a pooling reads rows: row `y * stride + k * dilation` for `k` below `size`."""

    load: BufferLoad
    stride: int
    dilation: int
    size: int

    @property
    def span(self) -> int:
        """The rows from the first to the last that one result reads."""
        return (self.size - 1) * self.dilation + 1

    @staticmethod
    def of(stage: Stage) -> "Window | None":
        """The window of a pooling of images, rows before columns innermost; None: no pooling."""
        if not stage.is_reduction or stage.store is None or not _is_identity(stage):
            return None
        load = _pooled(stage)
        if load is None or len(load.indices) != 4 or len(stage.reduced) != 2:
            return None
        found = []
        for index, out, k in zip(load.indices[2:], stage.spatial[2:], stage.reduced):
            stride, dilation = strided_by(index, out), strided_by(index, k)
            size = stage.extents[k]
            if stride is None or dilation is None or size is None or stage.extents[out] is None:
                return None
            if stride < 1 or as_int(Analyzer().simplify(index - out * stride - k * dilation)) != 0:
                return None
            found.append(Window(load, stride, dilation, size))
        if any(i is not v for i, v in zip(load.indices[:2], stage.spatial[:2])):
            return None
        return found[0]


def _is_identity(stage: Stage) -> bool:
    """Whether a stage of four dimensions stores at its iterators, in their order."""
    indices = stage.stored.indices
    return (len(indices) == len(stage.spatial) == 4 and None not in stage.extents.values()
            and all(i is v for i, v in zip(indices, stage.spatial)))


def _pooled(stage: Stage) -> BufferLoad | None:
    """What a stage takes the maximum or the sum of."""
    value = stage.stored.value
    if not isinstance(value, (Max, Add)):
        return None
    for own, other in ((value.a, value.b), (value.b, value.a)):
        if (type(own) is BufferLoad and own.buffer is stage.stored.buffer
                and type(other) is BufferLoad and other.buffer is not own.buffer):
            return other
    return None


def rows_in_tile(pooled: int, window: Window) -> int | None:
    """How many pooled rows a tile has: a divisor of all of them; None where none is sensible.

    Few, so that a tile stays in the cache, and where tiles overlap not so few that the rows that
    are computed twice weigh.
    """
    fewest = _FEWEST if window.span > window.stride else 2
    fits = [n for n in range(fewest, _MOST + 1) if pooled % n == 0 and n < pooled]
    return max(fits, default=None)


@dataclass
class Tiles:
    """The rows of the tiles.

    Attributes
    ----------
    count : int
        Tiles.
    pooled : int
        Pooled rows in one.
    rows : int
        Rows of the convolution in one.
    step : int
        Rows from one tile's first to the next one's.
    top : int
        Rows of padding above the first.
    extent : int
        Rows of the convolution in all.
    """

    count: int
    pooled: int
    rows: int
    step: int
    top: int
    extent: int

    @staticmethod
    def of(conv: Stage, pad: Stage | None, pool: Stage) -> "Tiles | None":
        """The tiles for a pooling; None where it cannot be cut into tiles."""
        window, top = Window.of(pool), 0
        if window is None:
            return None
        pooled = pool.size(pool.spatial[2])
        if pad is not None:
            load = pad.loads()[0]
            v = pad.spatial[2]
            top = as_int(Analyzer().simplify(v - load.indices[2]))
        each = rows_in_tile(pooled, window)
        if each is None or top is None or top < 0:
            return None
        rows = (each - 1) * window.stride + window.span
        made = Tiles(pooled // each, each, rows, each * window.stride, top,
                     conv.size(conv.spatial[2]))
        return made if rows <= made.extent else None

    def start(self, t: PrimExpr) -> PrimExpr:
        """The first row of the convolution in tile `t`, shifted inwards at the borders."""
        first = t * self.step - self.top
        if self.top:
            first = O.max(first, IntImm(t.dtype, 0))
        if (self.count - 1) * self.step - self.top + self.rows > self.extent:
            first = O.min(first, IntImm(t.dtype, self.extent - self.rows))
        return first

    def first_padded(self, t: PrimExpr) -> PrimExpr:
        """The first row of tile `t` in the padded image."""
        return t * self.step

    def first_pooled(self, t: PrimExpr) -> PrimExpr:
        """The first pooled row of tile `t`."""
        return t * self.pooled


def tile_rows(func: PrimFunc, found: list[Stage], conv: list[Stage], pad: Stage | None,
              pool: list[Stage], tiles: Tiles) -> PrimFunc:
    """The function with its last stages cut into tiles of rows.

    `found` are all stages in order: what stands before, then `conv` (the convolution and the stage
    that finishes its elements), `pad` where there is one, and `pool` (the pooling and the stages
    that finish its elements; the last one's result is the function's).
    """
    origins: dict[Buffer, tuple[Buffer, Callable]] = {}

    def tiled(stage: Stage, rows: int, origin: Callable) -> None:
        buffer = stage.stored.buffer
        shape = list(buffer.shape)
        shape[2] = IntImm(shape[2].dtype, rows)
        shape.insert(1, IntImm(shape[2].dtype, tiles.count))
        new = buffer.replace(shape=tuple(shape), data=buffer.data.with_name(buffer.data.name))
        origins[buffer] = new, origin

    for stage in conv:
        tiled(stage, tiles.rows, tiles.start)
    if pad is not None:
        tiled(pad, tiles.rows, tiles.first_padded)
    for stage in pool[:-1]:
        tiled(stage, tiles.pooled, tiles.first_pooled)
    cut = {stage.block.name_hint: (tiles.rows, tiles.start, False) for stage in conv}
    if pad is not None:
        cut[pad.block.name_hint] = (tiles.rows, tiles.first_padded, True)
    cut.update({s.block.name_hint: (tiles.pooled, tiles.first_pooled, False) for s in pool})
    root = func.root
    assert type(root.body) is SeqStmt
    new = [part if stage.block.name_hint not in cut
           else _cut(stage.block, tiles.count, *cut[stage.block.name_hint], origins)
           for part, stage in zip(root.body.seq, found)]
    allocated = [origins[b][0] if b in origins else b for b in root.alloc_buffers]
    root = root.replace(body=seq(*new), alloc_buffers=tuple(allocated))
    return func.replace(body=func.body.replace(block=root))


def _cut(block: Block, count: int, rows: int, first: Callable, pads: bool, origins: dict
         ) -> Stmt:
    """The nest of loops of a stage with a dimension for the tiles and `rows` rows in each."""
    old = block.iter_vars[2]
    index = old.var.dtype
    tile, row = Var(f"{_stem(block)}t", index), old.var.with_name(old.var.name)
    move = _Move(tile, origins)
    table = {old.var: first(tile) + row}
    body = move.visit(substitute(block.body, table))
    init = None if block.init is None else move.visit(substitute(block.init, table))
    iters = list(block.iter_vars)
    iters[2] = IterVar(Range(IntImm(index, 0), IntImm(index, rows)), row, 0)
    iters.insert(1, IterVar(Range(IntImm(index, 0), IntImm(index, count)), tile, 0))
    reads = [move.region(region, table, pads) for region in block.reads]
    writes = [move.region(region, table, False) for region in block.writes]
    new = block.replace(iter_vars=tuple(iters), body=body, init=init, reads=tuple(reads),
                        writes=tuple(writes))
    loops = [Var("t" if iv.var is tile else iv.var.name.removeprefix("v_"), index) for iv in iters]
    nest: Stmt = BlockRealize(loops, True, new)
    for loop, iv in reversed(list(zip(loops, iters))):
        nest = For(loop, 0, iv.dom.extent, ForKind.SERIAL, nest)
    return nest


def _stem(block: Block) -> str:
    return "v_" if block.iter_vars[0].var.name.startswith("v_") else ""


class _Move(Mutator):
    """Accesses of buffers that are cut into tiles, as accesses of one tile."""

    def __init__(self, tile: Var, origins: dict) -> None:
        super().__init__()
        self.tile, self.origins, self.analyzer = tile, origins, Analyzer()

    def _indices(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> tuple[Buffer, list]:
        new, origin = self.origins[buffer]
        row = self.analyzer.simplify(indices[2] - origin(self.tile))
        return new, [indices[0], self.tile, indices[1], row, *indices[3:]]

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        node = super().visit_BufferLoad(node)
        if node.buffer not in self.origins:
            return node
        return BufferLoad(*self._indices(node.buffer, node.indices))

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        node = super().visit_BufferStore(node)
        if node.buffer not in self.origins:
            return node
        buffer, indices = self._indices(node.buffer, node.indices)
        return BufferStore(buffer, node.value, indices)

    def region(self, region: BufferRegion, table: dict, pads: bool) -> BufferRegion:
        """A region after the cut. Padding reads nothing outside of the image, but its indices go
        there: all rows and columns of the tile are said to be read."""
        ranges = [Range.from_min_extent(self.analyzer.simplify(substitute(r.min, table)), r.extent)
                  for r in region.region]
        if region.buffer not in self.origins:
            return BufferRegion(region.buffer, tuple(ranges))
        buffer, mins = self._indices(region.buffer, [r.min for r in ranges])
        extents = [r.extent for r in ranges]
        extents.insert(1, IntImm(self.tile.dtype, 1))
        if pads:
            mins[3:] = [IntImm(self.tile.dtype, 0)] * 2
            extents[3:] = buffer.shape[3:]
        return BufferRegion(buffer, tuple(map(Range.from_min_extent, mins, extents)))


__all__ = ["Tiles", "Window", "rows_in_tile", "tile_rows"]

"""PooledContraction: a convolution and the pooling of its result, as one kernel.

The kernel works in tiles of pooled rows (`row_tiles.py`). Under the loop over tiles the convolution
computes the rows that the tile needs, scheduled as `contraction.py` does; then each of its channels
is padded, pooled and written. What the convolution gives never exists as a whole: the room for one
tile is used for all, and it stays in the cache.

Before::

    for n, f, y, x, rc, ry, rx in T.grid(1, 64, 112, 112, 3, 7, 7): C[n, f, y, x] += ...
    for n, f, y, x in T.grid(1, 64, 112, 112):                      X[n, f, y, x] = relu(C[...])
    for n, f, y, x in T.grid(1, 64, 114, 114):                      E[n, f, y, x] = padded X
    for n, f, y, x, ry, rx in T.grid(1, 64, 56, 56, 3, 3):          R[n, f, y, x] max= E[...]

After::

    for t in T.parallel(7):             # eight pooled rows, seventeen rows of the convolution
        for j_0 in range(119):          # its panels and register tiles
            ...
            for f_0 in range(11): ...   # C and X, [f, 17 * 112]
        for f in range(64):
            for y, x in T.grid(17, 114): E[y, x] = padded X
            for y in range(8): ...      # R, a row of results at once
"""

from __future__ import annotations

from typing import Any

from ..ir.dtype import bits_of
from ..ir.module import IRModule
from ..machine.vectors import WIDEST
from ..schedule import Schedule
from ..tir.function import PrimFunc
from ..tir.op import as_int
from ..tir.stmt import BlockRealize, For, SeqStmt
from .base import Machine, KernelRule, Start
from .contraction import Roles, fill_then_copy, schedule_contraction, schedule_others, worthwhile
from .row_tiles import Tiles, Window, rows_in_tile, tile_rows
from .stages import Stage, inline_cheap, schedule_elementwise, stages

#: results of a row that are pooled at once, where they do not fill vectors: at most so many
_VECTORS = 8
#: convolutions of smaller images are not pooled at once
_PIXELS = 64


class PooledContraction(KernelRule):
    """A convolution under the row tiles of the pooling that follows it; see the file's text.

    Parameters
    ----------
    pack : bool
        Whether the convolution's operand may be packed, as for `Contraction`.
    """

    def __init__(self, pack: bool = True) -> None:
        self.pack = pack

    def variants(self) -> list[KernelRule]:
        """With packing, then without: the primitives refuse to pack some shapes."""
        return [self, PooledContraction(pack=False)] if self.pack else [self]

    def begin(self, start: Start) -> Schedule | None:
        """The function cut into tiles, or None where the rule does not fit it."""
        cut = _cut(start) if _reductions(start.func) == 2 else None
        return Schedule(IRModule({"main": cut})) if cut is not None else None

    def schedule(self, sch: Schedule, machine: Machine) -> bool:
        """Schedule a function that `tile_rows` has cut."""
        chain = _chain(stages(sch))
        if chain is None:
            return False
        conv, roles = chain.conv[0], Roles.of(chain.conv[0])
        if roles is None or not worthwhile(conv, roles, machine.lanes(conv.stored.buffer.dtype)):
            return False
        for stage in chain.before:
            if stage.pads:
                fill_then_copy(sch, stage.rv)
        schedule_contraction(sch, conv, roles, machine, self.pack)
        tile = sch.get_loops(conv.rv)[1]
        bound = sch.state.realize_of(sch.get_sref(chain.conv[-1].rv)).iter_values
        if bound[1] is not sch.get(tile).loop_var:  # the tiles are not outermost
            return False
        if chain.pad is not None:
            sch.reverse_compute_at(chain.pad.rv, tile)
        for stage in chain.pool:
            sch.reverse_compute_at(stage.rv, tile)
        _pool(sch, chain, machine)
        schedule_others(sch, machine)
        return True


class _Chain:
    """The stages by what they do: `before`, `conv` with what finishes it, `pad`, `pool` with what
    finishes it."""

    def __init__(self, before: list[Stage], conv: list[Stage], pad: Stage | None,
                 pool: list[Stage]) -> None:
        self.before, self.conv, self.pad, self.pool = before, conv, pad, pool


def _chain(found: list[Stage]) -> _Chain | None:
    """The stages in their parts; None where there is something else too."""
    at = [i for i, stage in enumerate(found) if stage.is_reduction]
    if len(at) != 2:
        return None
    conv, between, pool = found[at[0]], found[at[0] + 1:at[1]], found[at[1]:]
    pad = between.pop() if between and between[-1].pads else None
    if len(between) > 1 or any(not s.is_spatial for s in (*between, *pool[1:])):
        return None
    return _Chain(found[:at[0]], [conv, *between], pad, pool)


def _reductions(func: PrimFunc) -> int:
    """How many blocks of a function have an init: cheap to ask, before a schedule is made."""
    body = getattr(getattr(func.body, "block", None), "body", None)
    return sum(map(_reduces, body.seq if type(body) is SeqStmt else (body,)))


def _reduces(nest: Any) -> bool:
    while type(nest) is For:
        nest = nest.body
    return type(nest) is BlockRealize and nest.block.init is not None


def _cut(start: Start) -> PrimFunc | None:
    """The function in row tiles; None where it is no convolution with a pooling after it."""
    sch = start.plain.copy()
    raw = stages(sch)
    at = [i for i, stage in enumerate(raw) if stage.is_reduction]
    if len(at) != 2 or Window.of(raw[at[1]]) is None:
        return None
    last = next((s for s in reversed(raw[at[0]:at[1]]) if not s.pads), None)
    if last is None:
        return None
    inline_cheap(sch, keep={last.block.name_hint})
    chain = _chain(stages(sch))
    if chain is None or not _fits(chain):
        return None
    if len(chain.conv) == 1:  # what the tiles of registers are written to
        sch.cache_write(chain.conv[0].rv, 0, "global")
        chain = _chain(stages(sch))
        if chain is None:
            return None
    tiles = Tiles.of(chain.conv[0], chain.pad, chain.pool[0])
    found = stages(sch)
    whole = sch.mod["main"]
    parts = whole.root.body
    if tiles is None or type(parts) is not SeqStmt or len(parts.seq) != len(found):
        return None
    return tile_rows(whole, found, chain.conv, chain.pad, chain.pool, tiles)


def _fits(chain: _Chain) -> bool:
    """Whether each stage of the chain reads the one before it, element by element or in windows."""
    line = [*chain.conv, *([chain.pad] if chain.pad is not None else []), *chain.pool]
    if not _is_convolution(chain.conv[0]):
        return False
    for before, stage in zip(line, line[1:]):
        loads = [load for load in stage.loads() if load.buffer is before.stored.buffer]
        if stage.store is None or len(stage.spatial) != 4 or not loads:
            return False
        if any(i is not v for i, v in zip(stage.store.indices, stage.spatial)):
            return False
        finishes = stage in chain.conv or stage in chain.pool[1:]
        if finishes and any(i is not v for load in loads
                            for i, v in zip(load.indices, stage.spatial)):
            return False
    inner = [stage.stored.buffer for stage in line[:-1]]
    reads = [load.buffer for stage in line for load in stage.loads() if load.buffer in inner]
    return len(set(reads)) == len(inner) and (chain.pad is None or len(chain.pad.loads()) == 1)


def _is_convolution(stage: Stage) -> bool:
    """Whether a stage is a contraction that gives images: rows and columns innermost, which move
    the same operand, and channels that move the other one."""
    if not stage.is_reduction or stage.store is None or len(stage.spatial) != 4:
        return False
    if None in stage.extents.values() or any(
            i is not v for i, v in zip(stage.store.indices, stage.spatial)):
        return False
    roles = Roles.of(stage)
    if roles is None or stage.spatial[1] not in roles.rows:
        return False
    return all(v in roles.columns or stage.extents[v] == 1 for v in stage.spatial[2:])


def _is_pooling(found: list[Stage]) -> bool:
    """Whether the stages of a kernel are a pooling that can be cut into tiles of rows."""
    pools = [stage for stage in found if stage.is_reduction]
    if len(pools) != 1:
        return False
    pool, at = pools[0], found.index(pools[0])
    window = Window.of(pool)
    if window is None or at > 1 or any(not s.is_spatial for s in found[at + 1:]):
        return False
    each = rows_in_tile(pool.size(pool.spatial[2]), window)
    load = window.load
    if at == 1:
        if not found[0].pads or len(found[0].loads()) != 1:
            return False
        load = found[0].loads()[0]
    rows = as_int(load.buffer.shape[2])
    return each is not None and rows is not None and (
        (each - 1) * window.stride + window.span <= rows)


def pools_convolution(conv: PrimFunc, pool: PrimFunc) -> bool:
    """Whether a kernel of two others, one after the other, is one that the rule schedules: a
    convolution of NCHW images of many pixels, and a pooling with tiles of rows."""
    if _reductions(conv) != 1 or _reductions(pool) != 1:
        return False
    found = stages(Schedule(IRModule({"main": conv})))
    if not found[-1].is_reduction or not _is_convolution(found[-1]):
        return False
    last = found[-1]
    if last.size(last.spatial[2]) * last.size(last.spatial[3]) < _PIXELS:
        return False
    roles = Roles.of(last)
    if roles is None or not worthwhile(last, roles, WIDEST // bits_of(last.stored.buffer.dtype)):
        return False
    return _is_pooling(stages(Schedule(IRModule({"main": pool}))))


# ------------------------------------------------------------------------------ pooling a tile


def _pool(sch: Schedule, chain: _Chain, machine: Machine) -> None:
    """The padding and the pooling of a tile, channel by channel, rows of results in vectors."""
    pool = chain.pool[0].rv
    channel = sch.get_loops(pool)[2]
    if chain.pad is not None:
        sch.compute_at(chain.pad.rv, channel)
        sch.vectorize(sch.get_loops(chain.pad.rv)[-1])
    for stage in chain.pool[1:]:
        sch.reverse_compute_at(stage.rv, channel)
        schedule_elementwise(sch, stage.rv, machine, 3, False)
    column, ry, rx = sch.get_loops(pool)[-3:]
    lanes = machine.lanes(chain.pool[0].stored.buffer.dtype)
    extent = as_int(sch.get(column).extent)
    assert extent is not None, "a pooling that is tiled has constant extents"
    width = lanes if extent % lanes == 0 else _VECTORS * lanes
    if extent > width:
        column = sch.split(column, [None, width])[1]
    sch.reorder(ry, rx, column)
    sch.vectorize(column)
    sch.vectorize(sch.get_loops(sch.decompose_reduction(pool, ry))[-1])


__all__ = ["PooledContraction", "pools_convolution"]

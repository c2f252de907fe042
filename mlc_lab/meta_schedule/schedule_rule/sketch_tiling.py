"""The tiling of a given structure, as Ansor and TVM have it: "SSRSRS", for example.

Every loop over elements (S) is split into as many parts as the structure has S, every loop that
reduces (R) into as many as it has R, by perfect tiles of any sizes; the parts are put in the order
of the structure. Results may be written to a cache first, whose copy out is at the tile of one of
the levels, and inputs may be copied to a cache at one.

Before, with `structure="SRS"`::

    for i, j, k in T.grid(64, 64, 64):
        C[i, j] = C[i, j] + A[i, k] * B[k, j]

After, with tiles of 8 x 4::

    for i_0, j_0, k, i_1, j_1 in T.grid(8, 16, 64, 8, 4):
        C[...] = C[...] + A[...] * B[...]

Lianmin Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning"
(OSDI 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ...ir import dtype as dt
from ...schedule import ScheduleError
from ...schedule.guards import REDUCE, SPATIAL
from ...tir.functor import free_vars
from ...tir.op import as_int, is_const_int

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV, LoopRV
    from ...schedule.schedule import Schedule
    from ...tir.stmt import Block

#: threads that run in step, and bytes that one of them loads at once
_WARP, _AT_ONCE = 32, 16
#: the annotation of a block that is tiled
STRUCTURE = "meta_schedule.tiling_structure"


@dataclass(frozen=True)
class Reuse:
    """Where tiles are copied: `req` is "no", "may" or "must"; levels count from 1."""

    req: str = "no"
    levels: Sequence[int] = ()
    scope: str = "global"

    @staticmethod
    def of(given: Any, name: str, structure: str) -> "Reuse":
        """From None, a ReuseType or its dict. ValueError where it makes no sense."""
        if given is None:
            return Reuse()
        get = given.get if isinstance(given, dict) else lambda key: getattr(given, key, None)
        found = Reuse(str(get("req")), tuple(int(n) for n in get("levels") or ()),
                      str(get("scope")))
        if found.req not in ("no", "may", "must") or any(
                not 1 <= n <= len(structure) for n in found.levels):
            raise ValueError(f'{name}= has a req of "no", "may" or "must", and levels from 1 to '
                             f"{len(structure)}, the length of the structure; got {found}")
        return found


def has_trivial_loops(sch: Schedule, block: BlockRV) -> bool:
    """Whether each iterator of a block is a loop, in order."""
    realize = sch.state.realize_of(sch.get_sref(block))
    loops = [sch.get(loop).loop_var for loop in sch.get_loops(block)]
    return len(loops) == len(realize.iter_values) and all(
        value is var for value, var in zip(realize.iter_values, loops))


def wants_tiles(sch: Schedule, block: BlockRV) -> bool:
    """Whether a reduction reads something more than once, and is not tiled already."""
    stmt: Block = sch.get(block)
    if STRUCTURE in stmt.annotations or len(stmt.writes) != 1 or not stmt.reads or not any(
            iv.iter_type == REDUCE for iv in stmt.iter_vars) or not has_trivial_loops(sch, block):
        return False
    spatial = [iv.var for iv in stmt.iter_vars
               if iv.iter_type == SPATIAL and not is_const_int(iv.dom.extent, 1)]
    written = stmt.writes[0].buffer
    unused, seen = 0, set()
    for region in stmt.reads:
        if region.buffer is written:
            continue
        if region.buffer in seen or any(as_int(r.extent) is None for r in region.region):
            return False
        seen.add(region.buffer)
        used = {v for r in region.region for v in free_vars(r.min)}
        unused += sum(v not in used for v in spatial)
    return unused > 0


class Form(NamedTuple):
    """How a block is tiled: `most` is the longest innermost tile, `binds` the axes of threads of
    the first letters, `lengths` what may be copied to a cache at once, `threads` the most that a
    block of threads has."""

    structure: str
    most: int = 0
    binds: Sequence[str] = ()
    write: Reuse = Reuse()
    read: Reuse = Reuse()
    lengths: Sequence[int] = ()
    threads: int = 0


def tiled(sch: Schedule, block: BlockRV, form: Form) -> list[Schedule]:
    """The alternatives: without a cache of results, and with one at each of the levels."""
    sch.annotate(block, STRUCTURE, form.structure)
    tiles = _tile(sch, block, form)
    out = []
    for made in _with_write_cache(sch, block, tiles, form.write):
        out += _with_read_caches(made, block, tiles, form)
    return out


def _tile(sch: Schedule, block: BlockRV, form: Form) -> list[list[LoopRV]]:
    """The loops of each letter of the structure."""
    tiles: list[list[LoopRV]] = [[] for _ in form.structure]
    places = {SPATIAL: [n for n, c in enumerate(form.structure) if c == "S"],
              REDUCE: [n for n, c in enumerate(form.structure) if c == "R"]}
    elements = [as_int(iv.dom.extent) for iv in sch.get(block).iter_vars
                if iv.iter_type == SPATIAL]
    for loop, iv in zip(sch.get_loops(block), sch.get(block).iter_vars):
        where = places.get(iv.iter_type, [])
        parts = [loop]
        if len(where) > 1:
            parts = sch.split(loop, sch.sample_perfect_tile(loop, len(where), form.most))
        for place, part in zip(where, parts):
            tiles[place].append(part)
    sch.reorder(*[loop for level in tiles for loop in level])
    for level, axis in enumerate(form.binds):
        fused = sch.fuse(*tiles[level])
        sch.bind(fused, axis)
        tiles[level] = [fused]
    if form.threads:
        many = None not in elements and prod(n or 0 for n in elements) > 2 * _WARP
        sch.annotate(block, "meta_schedule.thread_extent_low_inclusive", _WARP if many else 1)
        sch.annotate(block, "meta_schedule.thread_extent_high_inclusive", form.threads)
    return tiles


def _with_write_cache(sch: Schedule, block: BlockRV, tiles: list[list[LoopRV]], write: Reuse
                      ) -> list[Schedule]:
    if write.req == "no":
        return [sch]
    out = []
    consumers = sch.get_consumers(block) if write.req == "may" else []
    ready = len(consumers) == 1 and _copies_out(sch.get(consumers[0]))
    for level in write.levels:
        own = sch.copy()
        try:
            copy = consumers[0] if ready else own.cache_write(block, 0, write.scope)
            own.reverse_compute_at(copy, tiles[level - 1][-1], preserve_unit_loops=True)
        except (ScheduleError, IndexError):
            continue  # no loops at this level, or what follows cannot be computed there
        out.append(own)
    return [*out, sch] if write.req == "may" or not out else out


def _copies_out(stmt: Block) -> bool:
    """Whether a block computes each element from elements of what it reads that are in the same
    order: from that at the same place, and perhaps from one of each row."""
    if len(stmt.writes) != 1 or any(iv.iter_type != SPATIAL for iv in stmt.iter_vars):
        return False
    order = [r.min for r in stmt.writes[0].region]
    for region in stmt.reads:
        at = [r.min for r in region.region]
        places = [next((n for n, o in enumerate(order) if o is index), -1) for index in at
                  if not is_const_int(index)]
        if -1 in places or places != sorted(set(places)):
            return False
    return True


def _with_read_caches(sch: Schedule, block: BlockRV, tiles: list[list[LoopRV]], form: Form
                      ) -> list[Schedule]:
    read = form.read
    if read.req == "no":
        return [sch]
    out = []
    for level in read.levels:
        own = sch.copy()
        try:
            for position, region in enumerate(own.get(block).reads):
                if any(w.buffer is region.buffer for w in own.get(block).writes):
                    continue
                copy = own.cache_read(block, position, read.scope, [block])
                own.compute_at(copy, tiles[level - 1][-1], preserve_unit_loops=True)
                own.fuse(*own.get_loops(copy)[-len(region.region):])
                lengths = [n for n in form.lengths
                           if n * dt.bytes_of(region.buffer.dtype) <= _AT_ONCE]
                if lengths:
                    own.annotate(copy, "meta_schedule.cooperative_fetch", own.sample_categorical(
                        lengths, [round(1 / len(lengths), 4)] * len(lengths)))
        except (ScheduleError, IndexError):
            continue
        out.append(own)
    return out or [sch]


__all__ = ["STRUCTURE", "Form", "Reuse", "has_trivial_loops", "tiled", "wants_tiles"]

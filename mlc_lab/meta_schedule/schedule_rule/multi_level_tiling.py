"""MultiLevelTiling: loops of products and convolutions, tiled for registers and caches.

For a block that sums products and reads something repeatedly, with spatial axes S (the vector axis
v, along which the result's neighbours lie, first) and reduced axes R, the loops become

    S0  S1  R  S2     or, where much is summed,     S0  R0  S1  R1  S2

S2 is the tile of the result that stays in registers while the innermost R runs: vectors along v
times a few elements of the axes along which an input is reused; it is unrolled. S0 and S1 are
tiles for the caches. The extents of S2 are sampled from what can fit the registers and need not
divide the axis; S0 and S1 are perfect tiles of the rest.

An input that moves with v in one dimension is offered packed as well (the annotation
`meta_schedule.pack`, carried out by the postprocessor RewriteLayout): copied into panels as wide as
the tile, so that the sum reads it in one stream. What follows elementwise (bias, activation) is
computed on each tile. Where the result might overlap an input (no `tir.noalias`), the tile is
summed in a buffer of its own and then written, or it could not stay in registers.

After Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008), and the
tiling of Zheng et al., "Ansor" (OSDI 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ...machine.hardware import hardware_of
from ...schedule import ScheduleError
from ...target.limits import limits_of
from ...tir import op
from ..analysis import BlockFacts, needs_tiling, packable, reused_along, vector_axis
from ..packed_reads import KEY
from ..postproc.common import is_output, is_spatial
from .schedule_rule import ScheduleRule
from .sketch_tiling import Form, Reuse, tiled, wants_tiles

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule

#: sums longer than this are offered split in two, so that a panel fits the first cache
_SPLIT_SUM = 1024
#: values of `meta_schedule.pack`: not packed, packed at the root, packed in the outermost tile of v
PACK = (0, 1, 2)


class ReuseType(NamedTuple):
    """TVM's words for where tiles are copied to: `req` is "no", "may" or "must"."""

    req: str
    levels: Sequence[int]
    scope: str

    def as_dict(self) -> dict[str, Any]:
        """The same as a dict."""
        return {"req": self.req, "levels": list(self.levels), "scope": self.scope}


class MultiLevelTiling(ScheduleRule):
    """See the file's text.

    Parameters
    ----------
    structure: such as "SSRSRS" tiles by it, as TVM does (see `sketch_tiling.py`), with the further
        arguments of TVM; without one the tiling is that of the file's text.
    tile_binds: axes of threads for the loops of the first letters, fused.
    reuse_read, reuse_write: where inputs and results are cached (`ReuseType`).
    vector_load_lens: elements that a thread may load at once for a cache of an input.
    max_innermost_factor: of the perfect tiles.
    pack: whether packed inputs are offered.
    fuse_consumer: whether an elementwise consumer is computed tile by tile.
    filter_fn: `filter_fn(sch, block)` says which blocks are tiled, in place of what is worth it.
    """

    def __init__(self, structure: str | None = None, tile_binds: Any = None,
                 max_innermost_factor: int | None = 64, vector_load_lens: Any = None,
                 reuse_read: Any = None, reuse_write: Any = None, pack: bool = True,
                 fuse_consumer: bool = True,
                 filter_fn: Callable[[Schedule, BlockRV], bool] | None = None) -> None:
        self.filter_fn = filter_fn
        if structure is not None and (not structure or set(structure) - set("SR")):
            raise ValueError(f"structure={structure!r}: it is a word of the letters S (loops over "
                             "elements) and R (loops that reduce), such as \"SSRSRS\"")
        self.structure, self.max_innermost_factor = structure, max_innermost_factor
        self.tile_binds = list(tile_binds or ())
        self.vector_load_lens = list(vector_load_lens or ())
        self.reuse_read = Reuse.of(reuse_read, "reuse_read", structure or "")
        self.reuse_write = Reuse.of(reuse_write, "reuse_write", structure or "")
        self.pack, self.fuse_consumer = pack, fuse_consumer

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """The alternatives: packed or not, the sum split or not; or those of the structure."""
        if self.structure is not None:
            return self._of_structure(sch, block)
        facts = BlockFacts(sch, block)
        if not (needs_tiling(facts) if self.filter_fn is None else self.filter_fn(sch, block)):
            return [sch]
        vector = vector_axis(facts)
        if vector is None:
            return [sch]
        total = 1
        for axis in facts.reduced:
            total *= axis.extent
        packed = bool(packable(facts, vector)) if self.pack else False
        out = []
        for split in (True, False) if total > _SPLIT_SUM and packed else (False,):
            own = sch.copy() if split else sch
            try:
                self._tile(own, block, BlockFacts(own, block), packed, split)
            except ScheduleError:
                continue
            out.append(own)
        return out or [sch]

    def _of_structure(self, sch: Schedule, block: BlockRV) -> list[Any]:
        if not (wants_tiles(sch, block) if self.filter_fn is None else self.filter_fn(sch, block)):
            return [sch]
        own = sch.copy()
        try:
            return list(tiled(own, block, Form(
                self.structure or "", self.max_innermost_factor or 0, self.tile_binds,
                self.reuse_write, self.reuse_read, self.vector_load_lens,
                self._threads() if self.tile_binds else 0)))
        except ScheduleError:
            return [sch]

    def _threads(self) -> int:
        limits = limits_of(self.context.target) if self.context is not None else None
        return 0 if limits is None else limits.threads

    # ------------------------------------------------------------------ one alternative

    def _tile(self, sch: Schedule, block: BlockRV, facts: BlockFacts, packed: bool, split: bool
              ) -> None:
        vector = vector_axis(facts)
        assert vector is not None
        hw = hardware_of(self.context.target if self.context else None)
        lanes = hw.lanes(facts.result.dtype)
        consumer = self._consumer(sch, block)
        rows = [a for a in facts.spatial if a is not vector and reused_along(facts, a)]
        rows.sort(key=lambda a: -min(a.extent, 64))
        tiles: dict[int, Any] = {}
        tiles[id(vector)] = self._categorical(sch, vector_candidates(vector.extent, lanes, hw))
        for number, axis in enumerate(rows[:2]):
            most = hw.registers - 2 if number == 0 else 4
            tiles[id(axis)] = self._categorical(sch, row_candidates(axis.extent, most, number))
        outer, middle, inner = [], [], []
        batch = [a for a in facts.spatial if a is not vector and a not in rows]
        for axis in [*batch, vector, *(a for a in facts.spatial if a in rows)]:
            loop, tile = axis.loop, tiles.get(id(axis))
            if tile is not None and loop is not None:
                loop, last = sch.split(loop, factors=[None, tile])
                inner.append((axis, last))
            if loop is None:
                continue
            if op.as_int(sch.get(loop).extent) == 1 or axis in batch:
                outer.append(loop)
                continue
            a, b = sch.sample_perfect_tile(loop, n=2, max_innermost_factor=0)
            first, second = sch.split(loop, factors=[a, b])
            outer.append(first)
            middle.append(second)
        sums_out, sums_in = [], []
        longest = max(facts.reduced, key=lambda a: a.extent)
        for axis in facts.reduced:
            if split and axis is longest:
                a, b = sch.sample_perfect_tile(axis.loop, n=2, max_innermost_factor=0)
                first, second = sch.split(axis.loop, factors=[a, b])
                sums_out.append(first)
                sums_in.append(second)
            else:
                sums_in.append(axis.loop)
        inner.sort(key=lambda pair: pair[0] is vector)
        sch.reorder(*outer, *sums_out, *middle, *sums_in, *(lp for _, lp in inner))
        for axis, loop in inner:
            sch.vectorize(loop) if axis is vector else sch.unroll(loop)
        if packed:
            where = sch.sample_categorical(list(PACK), [0.2, 0.5, 0.3])
            sch.annotate(block, KEY, where)
        if consumer is not None and not split:
            self._fuse(sch, consumer, (middle or outer)[-1])

    def _categorical(self, sch: Schedule, candidates: list[tuple[int, float]]) -> Any:
        total = sum(w for _, w in candidates)
        return sch.sample_categorical([c for c, _ in candidates],
                                      [round(w / total, 4) for _, w in candidates])

    def _consumer(self, sch: Schedule, block: BlockRV) -> Any:
        """The one elementwise consumer of the block, made if arguments may overlap; or None."""
        if not self.fuse_consumer:
            return None
        if is_output(sch, block):
            attrs = sch.state.func_of(sch.get_sref(block)).attrs
            if int(getattr(attrs.get("tir.noalias", 0), "value", attrs.get("tir.noalias", 0))):
                return None
            return sch.cache_write(block, 0, "global")
        consumers = sch.get_consumers(block)
        if len(consumers) != 1 or not is_spatial(sch.get(consumers[0])):
            return None
        if len(sch.get_producers(consumers[0])) != 1:
            return None
        return consumers[0]

    def _fuse(self, sch: Any, consumer: Any, loop: Any) -> None:
        try:
            sch.reverse_compute_at(consumer, loop, preserve_unit_loops=True)
        except ScheduleError:
            return
        last = sch.get_loops(consumer)[-1]
        extent = op.as_int(sch.get(last).extent)
        if extent is not None and 1 < extent <= 128:
            try:
                sch.vectorize(last)
            except ScheduleError:
                pass


def vector_candidates(extent: int, lanes: int, hw: Any) -> list[tuple[int, float]]:
    """Widths of the register tile with weights: whole vectors, dividing the axis if any do."""
    most = 4 if hw.registers <= 16 else 6
    widths = [n * lanes for n in range(1, most + 1) if n * lanes <= extent]
    good = [w for w in widths if extent % w == 0]
    if good:
        weight = {1: 0.5, 2: 2.0, 3: 1.0, 4: 1.0}
        return [(w, weight.get(w // lanes, 0.5)) for w in good]
    if widths:
        return [(w, 1.0) for w in widths[:3]]
    return [(extent, 1.0)]


def row_candidates(extent: int, most: int, number: int) -> list[tuple[int, float]]:
    """Heights of the register tile with their weights. They need not divide the axis."""
    from ...schedule.primitive.sample_perfect_tile import divisors

    if number:
        return [(d, 3.0 if d == 1 else 1.0) for d in divisors(extent) if d <= most] or [(1, 1.0)]
    sizes = {d for d in divisors(extent) if d <= most}
    sizes |= {n for n in (4, 5, 6, 7, 8, 10, 12, 14) if n <= min(most, extent)}
    return [(n, 1.0 if n < 3 else 2.0) for n in sorted(sizes)]

"""Contraction: products of matrices, dense layers, convolutions, and batches of those.

All of them are sums of products of two operands, and differ in which iterators move which operand:

    batch      move both operands and the result
    rows       move the operand whose elements are repeated over a vector
    columns    move the operand that is read in vectors; the result's innermost dimension is one
    reduced    are summed over

Register blocking: a tile of rows x columns of the result stays in the vector registers while the
sum runs (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
Packing: a panel of the vector operand, as wide as the tile, is first copied so that the sum reads
it with unit stride; for a convolution that copy is the part of im2col that the tile needs. Where
the operand can be read in vectors as it lies and is little used, it is not packed. What follows
(bias, activation) is computed on each tile as it is done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..schedule import Schedule, ScheduleError
from ..tir.expr import Add, BufferLoad, Cast, Mul, Var
from ..tir.functor import pre_order, uses_var
from ..tir.op import as_int
from .base import Machine, KernelRule
from .stages import (
    Stage, memory_stride, schedule_elementwise, stages, volume,
)

if TYPE_CHECKING:
    from ..schedule.instruction import BlockRV

#: a panel is packed when it is read for at least so many tiles of rows
_PACK_FROM = 3
#: columns that a last tile may lack and is computed as a whole all the same: one in so many
_TO_SPARE = 25
#: rows of an image of at least so many vectors are tiled one by one, without packing
_LONG_ROW = 6
#: a panel is copied in vectors along the rows of an image when those have so many elements
_RUN = 4


@dataclass
class Roles:
    """The iterators of a contraction by what they move; see the file's text."""

    batch: list[Var]
    rows: list[Var]
    columns: list[Var]
    reduced: list[Var]
    vector: BufferLoad
    scalar: BufferLoad

    @staticmethod
    def of(stage: Stage) -> "Roles | None":
        """The roles in a block; None where it is no contraction."""
        if not stage.is_reduction or stage.store is None:
            return None
        operands = _operands(stage)
        if operands is None:
            return None
        a, b = operands
        moves = {v: (_moves(a, v), _moves(b, v)) for v in stage.extents}
        wide = [v for v in stage.spatial if stage.extents[v] != 1]
        only_a = [v for v in wide if moves[v] == (True, False)]
        only_b = [v for v in wide if moves[v] == (False, True)]
        if not only_a or not only_b or any(moves[v] == (False, False) for v in wide):
            return None
        inner = _innermost(stage, wide)
        if inner in only_a:
            a, b, only_a, only_b = b, a, only_b, only_a
        elif inner not in only_b:
            return None
        rest = [v for v in stage.spatial if v not in only_a and v not in only_b]
        return Roles(rest, only_a, only_b, stage.reduced, b, a)


def _moves(load: BufferLoad, var: Var) -> bool:
    return any(uses_var(index, var) for index in load.indices)


def _innermost(stage: Stage, wide: list[Var]) -> Var | None:
    """The iterator along which the result's neighbours lie."""
    target = BufferLoad(stage.stored.buffer, stage.stored.indices)
    return next((v for v in wide if memory_stride(target, v) == 1), None)


def _operands(stage: Stage) -> tuple[BufferLoad, BufferLoad] | None:
    """The two loads of ``C = C + a * b``, casts and constant factors allowed."""
    value = stage.stored.value
    if type(value) is not Add or type(value.a) is not BufferLoad:
        return None
    product = value.b
    while type(product) is Cast:
        product = product.value
    if value.a.buffer is not stage.stored.buffer or type(product) is not Mul:
        return None
    loads = [[n for n in pre_order(side) if type(n) is BufferLoad]
             for side in (product.a, product.b)]
    if any(len(side) != 1 for side in loads) or loads[0][0].buffer is loads[1][0].buffer:
        return None
    return loads[0][0], loads[1][0]


class Contraction(KernelRule):
    """Register tiles over packed panels; see the file's text.

    Parameters
    ----------
    pack : bool
        Whether the vector operand may be packed.
    """

    inlines = True

    def __init__(self, pack: bool = True) -> None:
        self.pack = pack

    def variants(self) -> list[KernelRule]:
        """With packing, then without: the primitives refuse to pack some shapes."""
        return [self, Contraction(pack=False)] if self.pack else [self]

    def schedule(self, sch: Schedule, machine: Machine) -> bool:
        """Fits functions with exactly one contraction, whatever stands around it."""
        found = [(s, Roles.of(s)) for s in stages(sch) if s.is_reduction]
        if len(found) != 1:
            return False
        stage, roles = found[0]
        if roles is None:
            return False
        lanes = machine.lanes(stage.stored.buffer.dtype)
        if not worthwhile(stage, roles, lanes):
            return False
        for other in stages(sch):
            if other.pads:
                fill_then_copy(sch, other.rv)
        schedule_contraction(sch, stage, roles, machine, self.pack)
        schedule_others(sch, machine)
        return True


def schedule_contraction(sch: Schedule, stage: Stage, roles: Roles, machine: Machine,
                         pack: bool) -> None:
    """Register tiles for one contraction, its panels if `pack`, and what follows it attached."""
    lanes = machine.lanes(stage.stored.buffer.dtype)
    plan = _Plan(stage, roles, lanes, machine, pack)
    tile = _canonical(sch, stage, roles, plan)
    _tile(sch, stage.rv, tile, plan, machine)


def schedule_others(sch: Schedule, machine: Machine) -> None:
    """Vectors and threads for padding, and what else stands on its own.

    Where a step is refused, the stage keeps the loops it has then, and the rest its schedule.
    """
    for stage in stages(sch):
        if _untouched(sch, stage):
            try:
                schedule_elementwise(sch, stage.rv, machine)
            except ScheduleError:
                continue


def worthwhile(stage: Stage, roles: Roles, lanes: int) -> bool:
    """Whether register tiles help: a product with few rows whose columns do not lie in vectors is
    better summed in vectors along the reduction."""
    rows = volume(stage.extents[v] for v in roles.rows)
    columns = volume(stage.extents[v] for v in roles.columns)
    if columns is not None and columns < lanes // 2:
        return False
    unit = memory_stride(roles.vector, roles.columns[-1]) == 1
    return unit or rows is None or rows >= lanes


def fill_then_copy(sch: Schedule, rv: BlockRV) -> None:
    """Padding as a fill and a copy, both of which are vectors without conditions."""
    try:
        sch.decompose_padding(rv, sch.get_loops(rv)[0])
    except ScheduleError:
        return


class _Plan:
    """Sizes: the tile, whether to pack, and whether the columns become one dimension."""

    def __init__(self, stage: Stage, roles: Roles, lanes: int, machine: Machine,
                 pack: bool) -> None:
        rows = stage.extents[roles.rows[-1]]
        all_rows = volume(stage.extents[v] for v in roles.rows)
        last = roles.columns[-1]
        unit = memory_stride(roles.vector, last) == 1
        simple = sum(_moves(roles.vector, v) for v in roles.reduced) <= 1
        tall = all_rows is None or all_rows >= _PACK_FROM * 4
        extent = stage.extents[last]
        long = unit and not simple and extent is not None and extent >= _LONG_ROW * lanes
        self.pack = pack and tall and not long and (simple or extent is not None)
        # dimensions of the columns that lie one after the other in the result become one
        joined = [last]
        if self.pack:
            for v in reversed(roles.columns[:-1]):
                if None in (stage.extents[v], stage.extents[joined[0]]):
                    break
                if not _follows(stage, v, joined):
                    break
                joined.insert(0, v)
        self.joined = joined
        # a matrix that lies as it is read is packed whole, row by row; else panel by panel
        self.whole = unit and simple
        self.columns = volume(stage.extents[v] for v in joined)
        self.rows_in_tile, vectors = _tile_size(machine.unit.registers, rows, self.columns, lanes)
        width = vectors * lanes
        self.width = width if self.columns is None else min(width, self.columns)
        # columns of a tile that lie in one row of an image, which the copy moves as a vector
        self.run = math.gcd(extent, self.width) if extent is not None and memory_stride(
            roles.vector, last) in (1, 2) else 1
        rest = -1 if self.columns is None else -self.columns % self.width
        # whether tiles cover the columns with little to spare
        self.nearly_whole = 0 < rest <= (self.columns or 0) // _TO_SPARE
        self.work = stage.work


def _follows(stage: Stage, var: Var, joined: list[Var]) -> bool:
    """Whether `var` counts rows of what `joined` runs through in the result."""
    target = BufferLoad(stage.stored.buffer, stage.stored.indices)
    stride = memory_stride(target, var)
    return stride == volume(stage.extents[v] for v in joined)


def _tile_size(registers: int, rows: int | None, columns: int | None, lanes: int
               ) -> tuple[int, int]:
    """Rows and vectors of the tile that wastes least of what the registers hold.

    One register more than the tile's is needed for the repeated element, and one for each vector of
    the panel.
    """
    shapes = [(6, 2), (4, 3)] if registers < 32 else [(8, 2), (12, 2), (8, 3)]
    if rows is not None and rows < 4:  # more columns: enough accumulators to hide the latency
        shapes = [(rows, max(2, min(8, (registers - 4) // (rows + 1))))]
    elif registers >= 32 and columns is not None and 2 * lanes < columns <= 4 * lanes:
        shapes = [(6, 4)]

    def used(shape: tuple[int, int]) -> float:
        r, c = shape[0], shape[1] * lanes
        by_rows = 1.0 if rows is None else rows / (-(-rows // r) * r)
        by_columns = 1.0 if columns is None else columns / (-(-columns // c) * c)
        return by_rows * by_columns - (0.05 if by_columns < 1 else 0)

    return max(shapes, key=lambda s: round(used(s), 2))


def _canonical(sch: Schedule, stage: Stage, roles: Roles, plan: _Plan) -> dict[str, int]:
    """Bring the block's iterators into the order batch, rows, columns, reduced.

    Returns how many loops each role has then, and under "lane" which of the block's iterators runs
    along vectors. The joined columns are one loop, and a block that follows gets them joined too,
    so that tiles of both match.
    """
    order = [iv.var for iv in stage.block.iter_vars]
    columns = [v for v in roles.columns if v not in plan.joined]
    place = {v: at for at, v in enumerate(order)}
    sizes = [stage.extents[v] for v in plan.joined]

    def join(values: list[Any]) -> Any:
        flat = values[0]
        for value, size in zip(values[1:], sizes[1:]):
            flat = flat * size + value
        return flat

    def remap(*iters: Var) -> list[Any]:
        def pick(group: list[Var]) -> list[Any]:
            return [iters[place[v]] for v in group]
        return [*pick(roles.batch), *pick(roles.rows), *pick(columns), join(pick(plan.joined)),
                *pick(roles.reduced)]

    count = {"batch": len(roles.batch), "rows": len(roles.rows), "columns": len(columns) + 1,
             "lane": place[plan.joined[-1]]}
    if len(plan.joined) > 1:
        _join_consumer(sch, stage, plan, join)
        sch.transform_block_layout(stage.rv, remap)
        count["lane"] = count["batch"] + count["rows"] + count["columns"] - 1
    elif [*roles.batch, *roles.rows, *roles.columns, *roles.reduced] != order:
        loops = sch.get_loops(stage.rv)
        sch.reorder(*[loops[place[v]] for g in (roles.batch, roles.rows, roles.columns,
                                                roles.reduced) for v in g])
    return count


def _join_consumer(sch: Schedule, stage: Stage, plan: _Plan, join: Any) -> None:
    """The result between the block and what follows, and the loops of what follows, joined."""
    consumers = sch.get_consumers(stage.rv)
    if not consumers:
        return
    indices = list(stage.stored.indices)
    at = [next((d for d, i in enumerate(indices) if i is v), -1) for v in plan.joined]
    if at[0] < 0 or at != list(range(at[0], at[0] + len(at))):
        return
    first, count = at[0], len(at)

    def flat(*axes: Any) -> list[Any]:
        return [*axes[:first], join(list(axes[first:first + count])), *axes[first + count:]]

    for rv in consumers:
        consumer = Stage(sch, rv)
        if not consumer.is_spatial:
            return
        same = [i is v for i, v in zip(consumer.stored.indices, consumer.spatial)]
        if len(same) != len(indices) or not all(same):
            return
    for rv in consumers:
        sch.transform_block_layout(rv, flat)
    sch.transform_layout(stage.rv, ("write", 0), flat)


def _tile(sch: Schedule, rv: BlockRV, count: dict[str, int], plan: _Plan, machine: Machine) -> None:
    """Tile the canonical block, pack its panels, and attach what follows."""
    if plan.pack:
        panel, lane = _pack(sch, rv, count, plan)
    loops = sch.get_loops(rv)
    b, r, c = count["batch"], count["rows"], count["columns"]
    batch, rows, columns = loops[:b], loops[b:b + r], loops[b + r:b + r + c]
    reduced = loops[b + r + c:]
    row_out, row_in = sch.split(rows[-1], [None, plan.rows_in_tile])
    column_out, column_in = sch.split(columns[-1], [None, plan.width])
    sch.reorder(*batch, *columns[:-1], column_out, *rows[:-1], row_out, *reduced, row_in, column_in)
    sch.unroll(row_in)
    sch.vectorize(column_in)
    if plan.pack:
        _order_panel(sch, panel, lane, column_out, plan, machine)
    for consumer in sch.get_consumers(rv):
        sch.reverse_compute_at(consumer, row_out)
        sch.vectorize(sch.get_loops(consumer)[-1])
    if machine.threads_pay(plan.work):
        outer = next((x for x in [*batch, *columns[:-1], column_out]
                      if (as_int(sch.get(x).extent) or machine.cores) > 1), None)
        if outer is not None:
            sch.parallel(outer)
    init = sch.decompose_reduction(rv, reduced[0])
    around = sch.get_loops(init)
    sch.unroll(around[-2])
    sch.vectorize(around[-1])


def _untouched(sch: Schedule, stage: Stage) -> bool:
    """Whether a stage is elementwise and nothing has been decided about its loops yet."""
    return stage.is_spatial and all(sch.get(x).kind == 0 for x in sch.get_loops(stage.rv))


def _pack(sch: Schedule, rv: BlockRV, count: dict[str, int], plan: _Plan) -> tuple[Any, int]:
    """The block that copies the vector operand into panels as wide as the tile.

    Gives it, and which of its iterators counts columns: all of them, or where the last panel is
    filled up those within one. The copy is indexed by the block's iterators; in memory the column
    within a panel comes last.
    """
    def operand() -> tuple[int, BufferLoad, Var]:
        """The vector operand: its place among what the block reads, its load, its lane."""
        stage = Stage(sch, rv)
        lane = stage.block.iter_vars[count["lane"]].var
        load = next(load for load in stage.loads() if _moves(load, lane))
        reads = [region.buffer for region in stage.block.reads]
        return reads.index(load.buffer), load, lane

    panel = sch.reindex(rv, ("read", operand()[0]))
    ragged = plan.columns is None or plan.columns % plan.width
    filled = _fill_tiles(sch, rv, panel, count["lane"], plan.width) if plan.nearly_whole else None
    if filled is not None:
        panel, ragged = filled, False
    at, load, lane = operand()
    axis = next(d for d, index in enumerate(load.indices) if index is lane)
    width = plan.width

    def panels(*axes: Any) -> list[Any]:
        rest = [a for d, a in enumerate(axes) if d != axis]
        before = list(axes[:axis])
        return [*before, axes[axis] // width, *rest[len(before):], axes[axis] % width]

    sch.transform_layout(rv, ("read", at), panels, pad_value=0 if ragged else None)
    return panel, -1 if ragged else axis


def _fill_tiles(sch: Schedule, rv: BlockRV, panel: Any, lane: int, width: int) -> Any:
    """Let the sum run over whole tiles of columns, on zeros where there are none.

    So one program does for all tiles, and only what is written knows of the end. Gives the block
    that copies the panel then; None, and nothing is changed, where the block cannot be padded.
    """
    trial = sch.copy()
    try:
        if not trial.get_consumers(rv):
            trial.reindex(rv, ("write", 0))
        trial.pad_einsum(rv, [width if at == lane else 1
                              for at in range(len(sch.get(rv).iter_vars))])
        copy = trial.get_consumers(panel)[0]
        trial.compute_inline(panel)
        out = trial.get_consumers(rv)[0]
        if trial.get_consumers(out):
            trial.compute_inline(out)
    except ScheduleError:
        return None
    sch.become(trial)
    return copy


def _order_panel(sch: Schedule, panel: Any, lane: int, column_out: Any, plan: _Plan,
                 machine: Machine) -> None:
    """Place the copy, and order its loops: along memory where it reads rows, else by columns.

    Where a column of an image starts takes divisions, so columns run outermost then, unless whole
    vectors of them lie in one row of the image.
    """
    if plan.whole:
        stage = Stage(sch, panel)
        load = stage.loads()[0]
        loops = dict(zip(stage.spatial, sch.get_loops(panel)))
        near = max(loops, key=lambda v: memory_stride(load, v) == 1)
        sch.reorder(*[x for v, x in loops.items() if v is not near], loops[near])
        schedule_elementwise(sch, panel, machine)
        return
    sch.compute_at(panel, column_out)
    if plan.run >= _RUN:
        column = sch.state.realize_of(sch.get_sref(panel)).iter_values[lane]
        loops = sch.get_loops(panel)
        at = max(i for i, x in enumerate(loops) if uses_var(column, sch.get(x).loop_var))
        chunk, vector = sch.split(loops[at], [None, plan.run])
        sch.reorder(*loops[at + 1:], chunk, vector)
        sch.vectorize(vector)


__all__ = ["Contraction", "Roles", "fill_then_copy", "schedule_contraction", "schedule_others",
           "worthwhile"]

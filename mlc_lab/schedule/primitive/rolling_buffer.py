"""rolling_buffer: what overlaps between iterations is computed once, in a circular buffer."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, Sequence

from ...arith import Analyzer, detect_linear_equation
from ...tir import op
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, IntImm, IterVar, PrimExpr, Range, Var
from ...tir.functor import uses_var
from ...tir.stmt import Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, Stmt
from ..buffers import (
    READ, WRITE, Redirect, accesses, allocated_by, index_of, nth_region, one_name,
    replace_allocation,
)
from ..cache_stage import only_writer, region_at
from ..covering import lowest_common_ancestor, stage_pipeline
from ..error import Refusal
from ..footprint import footprint
from ..guards import OPAQUE, complete_or_reduction, is_block
from ..instruction import primitive
from ..provenance import came_from
from ..state import ScheduleState, StmtSRef, blocks_under


class _Overlap(NamedTuple):
    """In dimension `axis` each iteration of `loop` needs `extent` elements from `start` on, of
    which the first `size` are those the iteration before needed last."""

    axis: int
    loop: StmtSRef
    start: PrimExpr
    extent: int
    size: int


@primitive("RollingBuffer", moves=True, normalize=index_of(WRITE, "write_buffer_index"))
def rolling_buffer(state: ScheduleState, block: StmtSRef, write_buffer_index: int | str | Buffer
                   ) -> None:
    """Keep what one iteration computed for the next, in a buffer that is used in a circle.

    The block computes, inside a loop, what a consumer needs there, and neighbouring iterations need
    overlapping parts (a stencil in tiles). The buffer shrinks to one such part along the outermost
    loop's dimension, its indices wrap around, and a predicate leaves out what is there already. The
    order of the iterations matters from then on: their iterators become opaque.

    Before::

        B = T.alloc_buffer((10,))
        for i in range(2):
            for ax0 in range(6):
                with T.block("B"):
                    vb = T.axis.spatial(10, i * 4 + ax0)
                    B[vb] = A[vb] * T.float32(2.0)
            for ax0, ax1 in T.grid(4, 3):
                with T.block("C"):
                    vc = T.axis.spatial(8, i * 4 + ax0)
                    r = T.axis.reduce(3, ax1)
                    with T.init():
                        C[vc] = T.float32(0.0)
                    C[vc] = C[vc] + B[vc + r]

    After `sch.rolling_buffer(B, 0)`::

        B = T.alloc_buffer((6,))
        for i in range(2):
            for ax0 in range(6):
                with T.block("B"):
                    T.where(i < 1 or 2 <= ax0)
                    vb = T.axis.opaque(10, i * 4 + ax0)
                    B[vb % 6] = A[vb] * T.float32(2.0)
            for ax0, ax1 in T.grid(4, 3):
                with T.block("C"):
                    vc = T.axis.opaque(8, i * 4 + ax0)
                    r = T.axis.reduce(3, ax1)
                    T.reads(B[(vc + r) % 6])
                    T.writes(C[vc])
                    with T.init():
                        C[vc] = T.float32(0.0)
                    C[vc] = C[vc] + B[(vc + r) % 6]

    Errors: the buffer is allocated by a block and written by this block alone, at its iterators;
    all that uses it stands in one scope; the block is complete or a reduction in a stage pipeline;
    it shares a loop with all consumers; these loops run one iteration after the other, and
    neighbouring ones overlap; no view (`T.match_buffer`) shows several elements of the dimension
    that rolls.
    """
    is_block(block)
    stmt: Block = block.stmt
    region = nth_region(stmt, write_buffer_index, WRITE)
    buffer = region.buffer
    site = allocated_by(block, buffer)
    one_name(site.stmt.body, buffer)
    scope = state.scope_root(block)
    only_writer(state, scope, buffer)
    _is_used_in(scope.stmt, site.stmt, buffer)
    stray = next((s for s in state.scope(scope).sites if s.block is None
                  and buffer.data in s.reads | s.writes), None)
    if stray is not None:
        raise Refusal("used_by_blocks", f"a statement outside of blocks uses {buffer.name}, of "
                      "which a window alone would be kept", nodes=[stray.node])
    stage_pipeline(state, scope)
    complete_or_reduction(state, block, scope)
    consumers = [s for s in state.child_blocks(scope) if s is not block
                 and accesses(s.stmt, buffer, READ)]
    if not consumers:
        raise Refusal("has_consumers", f"nobody in the scope reads {buffer.name}", nodes=[stmt])
    shared = lowest_common_ancestor(state, scope, [block, *consumers])
    if type(shared.stmt) is not For:
        raise Refusal("consumers_share_a_loop", f"block {stmt.name_hint} and its consumers share "
                      "no loop: each part is computed once already", nodes=[stmt],
                      hint="sch.compute_at the block into a loop of its consumer first")
    around = [*state.loops_above(shared), shared]
    if sum(w.buffer is buffer for w in stmt.writes) > 1:
        raise Refusal("one_region", f"block {stmt.name_hint} writes {buffer.name} in several "
                      "regions: how far one of them moves says nothing of the others",
                      nodes=[stmt])
    overlaps = _overlaps(state, block, region, shared, around)
    rolled = overlaps[0]
    for loop in around[around.index(rolled.loop):]:
        if loop.stmt.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            raise Refusal("loops_are_sequential", f"the iterations of loop "
                          f"{loop.stmt.loop_var.name} run at the same time: none can use what the "
                          "one before has computed", nodes=[loop.stmt])
    _views_do_not_wrap(site.stmt, buffer, rolled.axis)
    shape = list(buffer.shape)
    shape[rolled.axis] = IntImm(buffer.shape[rolled.axis].dtype, rolled.extent)
    new = came_from(buffer.replace(shape=tuple(shape), strides=()), buffer)
    predicate = _predicate(state, block, region, overlaps)
    to = _Roll(buffer, new, rolled, stmt, predicate, {o.loop.stmt.loop_var for o in overlaps})
    changed = to.visit(site.stmt)
    changed = changed.replace(alloc_buffers=replace_allocation(site.stmt.alloc_buffers, buffer,
                                                               new))
    state.replace(site, changed, {**to.reuse, site.stmt: changed})


def _is_used_in(scope: Block, site: Block, buffer: Buffer) -> None:
    """Nothing but what the scope holds may use the buffer, which a block around it may allocate:
    others would find a window of it."""
    if scope is site:
        return
    inside = Counter(a.node for a in footprint(scope))
    for access in footprint(site.body):
        inside[access.node] -= 1
        if access.memory is buffer.data and inside[access.node] < 0:
            raise Refusal("used_in_the_scope", f"{buffer.name} is used outside of block "
                          f"{scope.name_hint}, where a window of it would be left alone",
                          nodes=[access.node])


def _views_do_not_wrap(site: Block, buffer: Buffer, axis: int) -> None:
    """What a view shows lies in a row: in the rolled dimension it may show one place only."""
    for stmt in blocks_under(site):
        for match in stmt.match_buffers:
            source = match.source
            if source.buffer is buffer and not op.is_const_int(source.region[axis].extent, 1):
                raise Refusal("views_do_not_wrap", f"block {stmt.name_hint} views {buffer.name} by "
                              f"T.match_buffer as {match.buffer.name}, with "
                              f"{source.region[axis].extent!r} elements of dimension {axis}, which "
                              "would lie at both ends of the circle", nodes=[stmt],
                              hint="do this before sch.tensorize")


def _overlaps(state: ScheduleState, block: StmtSRef, region: BufferRegion, shared: StmtSRef,
              around: Sequence[StmtSRef]) -> list[_Overlap]:
    """Dimensions in which iterations overlap, the one of the outermost loop first."""
    found: list[_Overlap] = []
    for axis, rng in enumerate(region_at(state, block, region, shared)):
        extent = op.as_int(rng.extent)
        loops = [s for s in around if uses_var(rng.min, s.stmt.loop_var)]
        if extent is None or len(loops) != 1:
            continue
        linear = detect_linear_equation(rng.min, [loops[0].stmt.loop_var])
        step = op.as_int(Analyzer().simplify(linear[0])) if linear else None
        if step is not None and 0 < step < extent and op.is_const_int(loops[0].stmt.min, 0):
            found.append(_Overlap(axis, loops[0], rng.min, extent, extent - step))
    found.sort(key=lambda o: around.index(o.loop))
    if not found:
        raise Refusal("iterations_overlap", f"what block {block.stmt.name_hint} computes in "
                      "neighbouring iterations of the loops it shares with its consumers does not "
                      "overlap: there is nothing to keep", nodes=[block.stmt, shared.stmt])
    return found


def _predicate(state: ScheduleState, block: StmtSRef, region: BufferRegion,
               overlaps: Sequence[_Overlap]) -> PrimExpr:
    """Where the block still has to compute: the first iteration, or beyond the overlap."""
    realize = state.realize_of(block)
    values = {iv.var: v for iv, v in zip(block.stmt.iter_vars, realize.iter_values)}
    analyzer = Analyzer()
    for loop in state.loops_above(block):
        analyzer.bind(loop.stmt.loop_var, Range.from_min_extent(loop.stmt.min, loop.stmt.extent))
    out = realize.predicate
    for overlap in sorted(overlaps):
        index = region.region[overlap.axis].min
        if index not in values:
            raise Refusal("stores_at_iterators", f"block {block.stmt.name_hint} writes "
                          f"{region.buffer.name} at {index!r}, which is no iterator of it",
                          nodes=[block.stmt])
        place = analyzer.simplify(op.sub(values[index], overlap.start))
        out = op.logical_and(out, op.logical_or(
            op.less(overlap.loop.stmt.loop_var, 1),
            op.less_equal(IntImm(place.dtype, overlap.size), place)))
    return out


class _Roll(Redirect):
    """Indices of the rolled dimension wrap around; iterators that roll become opaque."""

    def __init__(self, old: Buffer, new: Buffer, rolled: _Overlap, producer: Block,
                 predicate: PrimExpr, rolling: set[Var]) -> None:
        super().__init__({old: new})
        self.data = {}
        self.old, self.axis, self.extent = old, rolled.axis, rolled.extent
        self.producer, self.predicate, self.rolling = producer, predicate, rolling

    def _wrapped(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        return tuple(op.floormod(e, IntImm(e.dtype, self.extent)) if axis == self.axis else e
                     for axis, e in enumerate(indices))

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        new = super().visit_BufferLoad(node)
        return BufferLoad(new.buffer, self._wrapped(new.indices)) if node.buffer is self.old else (
            new)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        new = super().visit_BufferStore(node)
        return new.replace(indices=self._wrapped(new.indices)) if node.buffer is self.old else new

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        new = super().visit_BufferRegion(node)
        if node.buffer is not self.old:
            return new
        ranges = list(new.region)
        rng = ranges[self.axis]
        if op.is_const_int(rng.extent, 1):
            ranges[self.axis] = Range.from_min_extent(self._wrapped(
                [r.min for r in ranges])[self.axis], rng.extent)
        else:
            ranges[self.axis] = Range.from_min_extent(IntImm(rng.min.dtype, 0),
                                                      IntImm(rng.min.dtype, self.extent))
        return BufferRegion(new.buffer, tuple(ranges))

    def visit_BlockRealize(self, node: BlockRealize) -> Any:
        new = self.default(node)
        iters: list[IterVar] = [
            iv.replace(iter_type=OPAQUE) if uses_var(value, self.rolling)
            and iv.iter_type == IterVar.DataPar else iv
            for iv, value in zip(new.block.iter_vars, new.iter_values)]
        if any(a is not b for a, b in zip(iters, new.block.iter_vars)):
            made = new.block.replace(iter_vars=tuple(iters))
            self.reuse[node.block] = made
            new = new.replace(block=made)
        return new.replace(predicate=self.predicate) if node.block is self.producer else new

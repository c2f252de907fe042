"""rfactor: a reduction becomes partial reductions that are independent of each other."""

from __future__ import annotations

from typing import Any, Sequence

from ...arith import Analyzer
from ...tir import op
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, IntImm, IterVar, PointerType, PrimExpr, PrimType, Range, Var
from ...tir.functor import free_vars, substitute, uses_var
from ...tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, LetStmt, Stmt, seq,
)
from ..error import Refusal
from ..guards import REDUCE, SPATIAL, is_loop, reduction_block, stage_pipeline
from ..instruction import primitive
from ..provenance import came_from, renewed
from ..reducer import Reduction, match_reduction
from ..state import ScheduleState, StmtSRef


@primitive("RFactor")
def rfactor(state: ScheduleState, loop: StmtSRef, factor_axis: int) -> StmtSRef:
    """Compute a reduction in slices, one for each iteration of `loop`, and reduce those at the end.

    A new buffer `<buffer>_rf` holds the slices: it has one more dimension, at `factor_axis`. The
    new block `<block>_rf`, which is returned, fills it; for it `loop` is a spatial loop, which may
    run in parallel. The old block then reduces over the slices. The order of the operations
    changes, so floating point results may differ in their last digits.

    Before::

        for i, k_0, k_1 in T.grid(128, 8, 16):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                vk = T.axis.reduce(128, k_0 * 16 + k_1)
                with T.init():
                    B[vi] = T.float32(0.0)
                B[vi] = B[vi] + A[vi, vk]

    After `sch.rfactor(k_1, 0)`::

        B_rf = T.alloc_buffer((16, 128))
        for i, k_0, k_1 in T.grid(128, 8, 16):
            with T.block("B_rf"):
                vk_1, vi, vk_0 = T.axis.remap("SSR", [k_1, i, k_0])
                with T.init():
                    B_rf[vk_1, vi] = T.float32(0.0)
                B_rf[vk_1, vi] = B_rf[vk_1, vi] + A[vi, vk_0 * 16 + vk_1]
        for i, k_1 in T.grid(128, 16):
            with T.block("B"):
                vk_1, vi = T.axis.remap("RS", [k_1, i])
                with T.init():
                    B[vi] = T.float32(0.0)
                B[vi] = B[vi] + B_rf[vk_1, vi]

    Errors: `loop` is a serial loop around one reduction block of a known kind (sum, product, min,
    max, argmin, argmax) and drives only reduction iterators of it; no loop drives both kinds; the
    scope is a stage pipeline; `factor_axis` is a place among the buffer's dimensions.
    """
    is_loop(loop)
    block, realize = _the_block(state, loop)
    scope = state.scope_root(block)
    stage_pipeline(state, scope)
    reduction_block(state, block, scope)
    if loop.stmt.kind != ForKind.SERIAL or loop.stmt.thread_binding is not None:
        raise Refusal("loop_is_serial", f"loop {loop.stmt.loop_var.name} is not serial; rfactor "
                      "makes two loops of it, and how each runs is said afterwards",
                      nodes=[loop.stmt], hint="rfactor first, then parallel / vectorize / unroll "
                      "the loops of the block that rfactor returns")
    loops = state.loops_above(block)
    reduce_loops = _loop_rules(state, loops, loop, block, realize)
    reduction = match_reduction(block.stmt)
    rank = len(reduction.stores[0].buffer.shape)
    if not -rank - 1 <= factor_axis <= rank:
        raise Refusal("factor_axis_in_range", f"factor_axis={factor_axis}: the slices of "
                      f"{reduction.stores[0].buffer.name} can be placed at {-rank - 1} .. {rank}",
                      nodes=[block.stmt])
    axis = factor_axis % (rank + 1)
    maker = _Maker(realize, loop.stmt, reduction, axis, {lp.stmt.loop_var: lp.stmt for lp in loops})
    partial = maker.partial_block()
    _slices_are_started(state, realize, loop, loops, partial)
    final = maker.final_block(partial)
    nest = _nest_of_copies(partial, loops)
    body = _replace_nest(scope.stmt.body, loops, loop.stmt, reduce_loops, realize, final, nest)
    old: Block = scope.stmt
    new = old.replace(body=body, alloc_buffers=(*old.alloc_buffers, *maker.buffers))
    state.replace(scope, new, {old: new, block.stmt: final.block})
    return state.refs[partial.block]


# ------------------------------------------------------------------------------- rules


def _the_block(state: ScheduleState, loop: StmtSRef) -> tuple[StmtSRef, BlockRealize]:
    blocks = state.child_blocks(loop)
    if len(blocks) != 1:
        raise Refusal("one_block_under_loop", f"loop {loop.stmt.loop_var.name} holds "
                      f"{len(blocks)} blocks; rfactor acts on a single one", nodes=[loop.stmt],
                      hint="move the other blocks out of the loop, or use a loop further in")
    return blocks[0], state.realize_of(blocks[0])


def _loop_rules(state: ScheduleState, loops: Sequence[StmtSRef], loop: StmtSRef, block: StmtSRef,
                realize: BlockRealize) -> set[Var]:
    """Check the loops; those that drive reduction iterators are returned."""
    drives: dict[int, set[Var]] = {SPATIAL: set(), REDUCE: set()}
    for iv, value in zip(block.stmt.iter_vars, realize.iter_values):
        drives[iv.iter_type].update(free_vars(value))
    if state.child_blocks(loops[0])[0] is not block:
        raise Refusal("first_block_under_outermost_loop", f"block {block.stmt.name_hint} is not "
                      f"the first block under loop {loops[0].stmt.loop_var.name}, before which "
                      "its slices would be computed", nodes=[loops[0].stmt, block.stmt])
    met = False
    for item in loops:
        stmt: For = item.stmt
        name = stmt.loop_var.name
        spatial, reduce = stmt.loop_var in drives[SPATIAL], stmt.loop_var in drives[REDUCE]
        if spatial and reduce:
            raise Refusal("loops_drive_one_kind", f"loop {name} drives spatial and reduction "
                          "iterators at once", nodes=[stmt, realize],
                          hint="do not fuse spatial with reduction loops before rfactor")
        if spatial:
            if item is loop:
                raise Refusal("loop_is_a_reduction", f"loop {name} drives spatial iterators: its "
                              "iterations are independent already", nodes=[stmt, realize],
                              hint="choose a loop that drives a reduction iterator")
        elif reduce:
            if not met and len(state.child_blocks(item)) != 1:
                raise Refusal("one_block_under_loop", f"reduction loop {name} holds other blocks "
                              f"beside {block.stmt.name_hint}", nodes=[stmt])
            met = True
        elif met and not op.is_const_int(stmt.extent, 1):
            raise Refusal("every_inner_loop_drives_an_iterator", f"loop {name} drives no iterator "
                          f"of block {block.stmt.name_hint} and repeats the reduction",
                          nodes=[stmt])
    if loop.stmt.loop_var not in drives[REDUCE] and not op.is_const_int(loop.stmt.extent, 1):
        raise Refusal("loop_is_a_reduction", f"loop {loop.stmt.loop_var.name} drives no reduction "
                      f"iterator of block {block.stmt.name_hint}", nodes=[loop.stmt])
    return drives[REDUCE]


def _slices_are_started(state: ScheduleState, realize: BlockRealize, loop: StmtSRef,
                        loops: Sequence[StmtSRef], partial: BlockRealize) -> None:
    """With a predicate: each slice must still run the iteration in which its init happens."""
    if op.is_const_int(realize.predicate, 1):
        return
    analyzer = Analyzer()
    first: dict[Var, PrimExpr] = {}
    reduced = {v for iv, value in zip(partial.block.iter_vars, partial.iter_values)
               if iv.iter_type == REDUCE for v in free_vars(value)}
    for item in loops:
        stmt = item.stmt
        if stmt.loop_var in reduced:
            first[stmt.loop_var] = stmt.min
        else:
            analyzer.bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
    if not analyzer.can_prove(substitute(realize.predicate, first)):
        raise Refusal("every_slice_is_started", f"the predicate of block "
                      f"{realize.block.name_hint} skips whole slices: some elements of the new "
                      "buffer would be summed up without ever being set", nodes=[realize],
                      hint="split by a factor that divides the extent; s.rfactor of te fills up "
                      "with the reducer's identity instead")


# ------------------------------------------------------------------------------- the two blocks


class _Maker:
    """Builds the partial and the final block."""

    def __init__(self, realize: BlockRealize, loop: For, reduction: Reduction, axis: int,
                 loops: dict[Var, For]) -> None:
        self.realize, self.loop, self.reduction = realize, loop, reduction
        self.axis, self.loops = axis, loops
        self.buffers = [self._slices(s.buffer) for s in reduction.stores]
        self.slice_iter = self._iterator(loop, SPATIAL)

    def _slices(self, buffer: Buffer) -> Buffer:
        shape = list(buffer.shape)
        shape.insert(self.axis, self.loop.extent)
        name = f"{buffer.name}_rf"
        data = Var(name, PointerType(PrimType(buffer.data.type_annotation.element_type.dtype),
                                     str(buffer.scope)))
        made = buffer.replace(data=data, shape=tuple(shape), strides=(), name=name,
                              axis_separators=())
        return came_from(made, buffer)

    @staticmethod
    def _iterator(loop: For, kind: int) -> IterVar:
        return IterVar(Range.from_min_extent(loop.min, loop.extent),
                       came_from(Var(f"v{loop.loop_var.name}", loop.loop_var.dtype), loop), kind)

    def _at(self, indices: Sequence[PrimExpr], index: PrimExpr) -> list[PrimExpr]:
        out = list(indices)
        out.insert(self.axis, index)
        return out

    def partial_block(self) -> BlockRealize:
        """The block that computes the slices."""
        old = self.realize.block
        iters, values = [self.slice_iter], [self.loop.loop_var]
        by_loop: dict[Var, Var] = {self.loop.loop_var: self.slice_iter.var}
        table: dict[Var, PrimExpr] = {}
        for iv, value in zip(old.iter_vars, self.realize.iter_values):
            if iv.iter_type == SPATIAL or not uses_var(value, self.loop.loop_var):
                var = renewed(iv.var)
                table[iv.var] = var
                iters.append(iv.replace(var=var))
                values.append(value)
                continue
            for var in free_vars(value):
                if var in self.loops and var not in by_loop:
                    fresh = self._iterator(self.loops[var], REDUCE)
                    by_loop[var] = fresh.var
                    iters.append(fresh)
                    values.append(var)
            table[iv.var] = substitute(value, by_loop)
        reduces = any(iv.iter_type == REDUCE for iv in iters)
        stores = self.reduction.stores
        indices = [self._at([substitute(i, table) for i in s.indices], self.slice_iter.var)
                   for s in stores]
        incoming = [substitute(e, table) for e in self.reduction.incoming]
        inits: Stmt | None = None
        if reduces:
            inits = seq(*(BufferStore(b, v, i) for b, v, i in zip(
                self.buffers, self.reduction.identities, indices)))
            loads = [BufferLoad(b, i) for b, i in zip(self.buffers, indices)]
            body = self._update(self.buffers, indices, self.reduction.combine(loads, incoming))
        else:
            body = seq(*(BufferStore(b, v, i) for b, v, i in zip(self.buffers, incoming, indices)))
        outputs = {s.buffer for s in stores}
        reads = [substitute(r, table) for r in old.reads if r.buffer not in outputs]
        writes = [self._slice_region(substitute(w, table)) for w in old.writes]
        block = Block(iters, reads, writes, old.name_hint + "_rf", body, inits, (), (),
                      old.annotations)
        came_from(block, old)
        return BlockRealize(values, self.realize.predicate, block)

    def _slice_region(self, region: BufferRegion) -> BufferRegion:
        place = [s.buffer for s in self.reduction.stores].index(region.buffer)
        ranges = list(region.region)
        var = self.slice_iter.var
        ranges.insert(self.axis, Range.from_min_extent(var, IntImm(var.dtype, 1)))
        return BufferRegion(self.buffers[place], tuple(ranges))

    def final_block(self, partial: BlockRealize) -> BlockRealize:
        """The block that reduces over the slices; it takes the old block's place."""
        old = self.realize.block
        over = self._iterator(self.loop, REDUCE)
        iters, values = [over], [self.loop.loop_var]
        table: dict[Var, PrimExpr] = {self.slice_iter.var: over.var}
        for iv, value in zip(old.iter_vars, self.realize.iter_values):
            if iv.iter_type == SPATIAL:
                var = renewed(iv.var)
                table[iv.var] = var
                iters.append(iv.replace(var=var))
                values.append(value)
        stores = self.reduction.stores
        indices = [[substitute(i, table) for i in s.indices] for s in stores]
        loads = [BufferLoad(s.buffer, i) for s, i in zip(stores, indices)]
        slices = [BufferLoad(b, self._at(i, over.var)) for b, i in zip(self.buffers, indices)]
        inits = seq(*(BufferStore(s.buffer, v, i) for s, v, i in zip(
            stores, self.reduction.identities, indices)))
        body = self._update([s.buffer for s in stores], indices,
                            self.reduction.combine(loads, slices))
        regions = [substitute(w, table) for w in old.writes]
        reads = [substitute(self._slice_region(w), table) for w in old.writes]
        block = Block(iters, reads, regions, old.name_hint, body, inits, (), (), old.annotations)
        return BlockRealize(values, True, block)

    def _update(self, buffers: Sequence[Buffer], indices: Sequence[Sequence[PrimExpr]],
                values: Sequence[PrimExpr]) -> Stmt:
        """Stores of new values; several are computed before any is stored."""
        if len(buffers) == 1:
            return BufferStore(buffers[0], values[0], indices[0])
        names = [Var(f"v_{b.name}", v.dtype) for b, v in zip(buffers, values)]
        body: Any = seq(*(BufferStore(b, n, i) for b, n, i in zip(buffers, names, indices)))
        for name, value in reversed(list(zip(names, values))):
            body = LetStmt(name, value, body)
        return body


# ------------------------------------------------------------------------------- the loops


def _nest_of_copies(partial: BlockRealize, loops: Sequence[StmtSRef]) -> Stmt:
    table = {lp.stmt.loop_var: renewed(lp.stmt.loop_var) for lp in loops}
    body: Stmt = BlockRealize([substitute(v, table) for v in partial.iter_values],
                              substitute(partial.predicate, table), partial.block)
    for item in reversed(loops):
        stmt: For = item.stmt
        body = stmt.replace(loop_var=table[stmt.loop_var], min=substitute(stmt.min, table),
                            extent=substitute(stmt.extent, table), body=body)
    return body


def _replace_nest(body: Stmt, loops: Sequence[StmtSRef], loop: For, reduce_loops: set[Var],
                  realize: BlockRealize, final: BlockRealize, nest: Stmt) -> Stmt:
    """The scope's body: the slices' nest first, then the old nest around the final block."""
    chain = {s.stmt for s in loops}
    outermost = loops[0].stmt

    def visit(stmt: Any) -> Any:
        if stmt is realize:
            return final
        if type(stmt) is BlockRealize or not isinstance(stmt, Stmt):
            return stmt
        if type(stmt) is For and stmt not in chain:
            return stmt
        new = stmt.map_children(visit)
        if type(stmt) is not For:
            return new
        if stmt is not loop and stmt.loop_var in reduce_loops:
            new = new.body
        return seq(nest, new) if stmt is outermost else new

    return _flatten(visit(body))


def _flatten(stmt: Stmt) -> Stmt:
    return seq(*stmt.seq) if hasattr(stmt, "seq") else stmt

"""rfactor: a reduction becomes partial reductions that are independent of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...arith import Analyzer, eval_set
from ...arith.access import conjuncts
from ...arith.linear_form import follows
from ...tir import op
from ...tir.buffer import Buffer
from ...tir.expr import (
    BufferLoad, IntImm, IterVar, PointerType, PrimExpr, Range, Var,
)
from ...tir.functor import free_vars, pre_order, substitute, uses_var
from ...tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, LetStmt, SeqStmt, Stmt, seq,
)
from ..conflict import first_clash
from ..covering import stage_pipeline
from ..error import Refusal
from ..footprint import Access, footprint, instance, loops_of
from ..guards import REDUCE, SPATIAL, is_loop, reduction_block
from ..independence import surroundings
from ..instruction import primitive
from ..provenance import came_from, renewed
from ..reducer import Reduction, match_reduction
from ..rewrite import copied_loop, with_regions
from ..slices import order_is_free
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ...ir.node import Node
    from ..instruction import BlockRV


@primitive("RFactor", moves=True)
def rfactor(state: ScheduleState, loop: StmtSRef, factor_axis: int) -> BlockRV:
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

    Where a slice may be cut off before its first iteration, as in a split of a symbolic extent, its
    block runs all iterations and combines with the start value beyond the cut.

    Errors: `loop` is a serial loop around one reduction block of a known kind (sum, product, min,
    max, argmin, argmax) and drives only reduction iterators of it; no loop drives both kinds; the
    scope is a stage pipeline; `factor_axis` is a place among the buffer's dimensions. Nothing else
    under the outermost loop writes what the block reads. An argmax of integers, of which the first
    of equal ones wins, can only be cut at its outermost reduction loop.
    """
    is_loop(loop)
    block, realize = _the_block(state, loop)
    scope = state.scope_root(block)
    stage_pipeline(state, scope)
    loops = state.loops_above(block)
    around = {s.stmt.loop_var for s in loops}
    triangle = any(uses_var(s.stmt.extent, around) or uses_var(s.stmt.min, around) for s in loops)
    reduction_block(state, block, scope, affine=not triangle)
    if loop.stmt.kind != ForKind.SERIAL or loop.stmt.thread_binding is not None:
        raise Refusal("loop_is_serial", f"loop {loop.stmt.loop_var.name} is not serial; rfactor "
                      "makes two loops of it, and how each runs is said afterwards",
                      nodes=[loop.stmt], hint="rfactor first, then parallel / vectorize / unroll "
                      "the loops of the block that rfactor returns")
    reduce_loops = _loop_rules(state, loops, loop, block, realize)
    largest = _largest(loops, loop, reduce_loops) if triangle else {}
    reduction = match_reduction(block.stmt)
    rank = len(reduction.stores[0].buffer.shape)
    if not -rank - 1 <= factor_axis <= rank:
        raise Refusal("factor_axis_in_range", f"factor_axis={factor_axis}: the slices of "
                      f"{reduction.stores[0].buffer.name} can be placed at {-rank - 1} .. {rank}",
                      nodes=[block.stmt])
    order_is_free(state, block, reduction, loop, reduce_loops)
    _nothing_flows_back(state, block, loops)
    axis = factor_axis % (rank + 1)
    cuts = _Cuts(state, block, loop, reduce_loops)
    maker = _Maker(realize, loop.stmt, reduction, axis, {lp.stmt.loop_var: lp.stmt for lp in loops},
                   cuts, largest)
    partial = maker.partial_block()
    final = maker.final_block()
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


def _largest(loops: Sequence[StmtSRef], loop: StmtSRef, reduce_loops: set[Var]
             ) -> dict[Var, PrimExpr]:
    """The most iterations of each loop of which there are more or fewer in each iteration of the
    loops around: iterators know no loops. No slice is left without its start by that."""
    analyzer = Analyzer()
    outer: dict[Var, Range] = {}
    found: dict[Var, PrimExpr] = {}
    for item in loops:
        stmt: For = item.stmt
        name = stmt.loop_var.name
        if uses_var(stmt.min, outer) or item is loop and uses_var(stmt.extent, reduce_loops):
            raise Refusal("slices_are_known", f"where loop {name} starts, or how often it runs, "
                          "depends on loops around it", nodes=[stmt],
                          hint="choose the outermost reduction loop")
        if uses_var(stmt.extent, outer):
            most: Any = stmt.extent
            for var, dom in reversed(outer.items()):
                most = eval_set(most, {var: dom}).max_value if uses_var(most, {var}) else most
            if uses_var(most, outer) or op.as_int(most) is None and not free_vars(most) or (
                    item is not loop and stmt.loop_var in reduce_loops
                    and not analyzer.can_prove(stmt.extent > 0)):
                raise Refusal("every_slice_is_started", f"loop {name} runs {stmt.extent!r} times, "
                              "which may be never, or of which no largest number is known",
                              nodes=[stmt])
            found[stmt.loop_var] = analyzer.simplify(most)
        outer[stmt.loop_var] = Range.from_min_extent(stmt.min, stmt.extent)
        analyzer.bind(stmt.loop_var, outer[stmt.loop_var])
    return found


def _nothing_flows_back(state: ScheduleState, block: StmtSRef, loops: Sequence[StmtSRef]) -> None:
    """The slices are computed before all else under the outermost loop: nothing there may write
    what the block reads in a later iteration."""
    chain = [s.stmt for s in loops]
    at: Stmt = chain[0]
    others: list[Access] = []
    around: list[For] = []
    realize = state.realize_of(block)
    while at is not realize:
        if type(at) is For:
            around.append(at)
            parts: Sequence[Stmt] = (at.body,)
        elif type(at) is SeqStmt:
            parts = at.seq
        else:
            raise Refusal("loops_alone_around_block", f"a {type(at).__name__} stands between the "
                          f"loops around block {block.stmt.name_hint}", nodes=[at])
        inner = next(s for s in parts if s is realize or s in chain or type(s) is not For
                     and _holds(s, realize))
        for part in parts:
            if part is not inner:
                others += [a.bound({}, loops_of(around)) for a in footprint(part) if a.write]
        at = inner
    if not others:
        return
    reads = [a.bound({}, loops_of(around)) for a in instance(realize) if not a.write]
    clash = first_clash(others, reads)
    if clash is not None:
        raise Refusal("slices_can_be_computed_first", f"block {block.stmt.name_hint} reads "
                      f"{clash.name}, which is also written under loop "
                      f"{chain[0].loop_var.name}: its slices cannot be computed before that loop",
                      nodes=[chain[0], *clash.blocks], conflict=clash.text)


def _holds(stmt: Stmt, realize: BlockRealize) -> bool:
    return any(item is realize for item in pre_order(stmt))


class _Cuts:
    """The predicate of the block in parts: `spatial` ones speak of no reduction loop; `inside` ones
    cut iterations off, and are moved into the block where a slice may lose its first iteration."""

    def __init__(self, state: ScheduleState, block: StmtSRef, loop: StmtSRef,
                 reduce_loops: set[Var]) -> None:
        realize = state.realize_of(block)
        parts = conjuncts(realize.predicate)
        self.reduce_loops = reduce_loops
        self.spatial = [p for p in parts if not uses_var(p, reduce_loops)]
        self.inside: list[PrimExpr] = []
        first = {s.stmt.loop_var: s.stmt.min for s in state.loops_above(block)
                 if s is not loop and s.stmt.loop_var in reduce_loops}
        around = surroundings(block)
        cuts = [p for p in parts if uses_var(p, reduce_loops)]
        if all(follows(substitute(p, first), around, self.spatial) for p in cuts):
            return
        if all(op.as_int(extent) is not None for _, _, extent in around):
            raise Refusal("every_slice_is_started", "the predicate of block "
                          f"{block.stmt.name_hint} skips whole slices: some elements of the new "
                          "buffer would be summed up without ever being set", nodes=[realize],
                          hint="split by a factor that divides the extent; s.rfactor of te fills "
                          "up with the reducer's identity instead")
        self.inside = cuts

    def of_slices(self, predicate: PrimExpr) -> PrimExpr:
        """What stays of the block's predicate on the block of slices."""
        return self.of_result() if self.inside else predicate

    def of_result(self) -> PrimExpr:
        """What stays of it on the block that reduces over the slices."""
        return op.all(*self.spatial) if self.spatial else op.const(True)


# ------------------------------------------------------------------------------- the two blocks


class _Maker:
    """Builds the partial and the final block."""

    def __init__(self, realize: BlockRealize, loop: For, reduction: Reduction, axis: int,
                 loops: dict[Var, For], cuts: _Cuts, largest: dict[Var, PrimExpr]) -> None:
        self.realize, self.loop, self.reduction = realize, loop, reduction
        self.axis, self.loops, self.cuts, self.largest = axis, loops, cuts, largest
        self.buffers = [self._slices(s.buffer) for s in reduction.stores]
        self.slice_iter = self._iterator(loop, SPATIAL)

    def _slices(self, buffer: Buffer) -> Buffer:
        shape = list(buffer.shape)
        shape.insert(self.axis, self._extent(self.loop))
        name = f"{buffer.name}_rf"
        kind = buffer.data.type_annotation
        data = Var(name, PointerType(kind.element_type if isinstance(kind, PointerType)
                                     else buffer.dtype, str(buffer.scope)))
        start = IntImm(shape[0].dtype, 0) if op.is_const_int(buffer.elem_offset, 0) else (
            buffer.elem_offset)
        made = buffer.replace(data=data, shape=tuple(shape), strides=(), name=name,
                              elem_offset=start, axis_separators=())
        return came_from(made, buffer)

    def _extent(self, loop: For) -> PrimExpr:
        """How often a loop runs, at most where that depends on the loops around."""
        return self.largest.get(loop.loop_var, loop.extent)

    def _iterator(self, loop: For, kind: int) -> IterVar:
        return IterVar(Range.from_min_extent(loop.min, self._extent(loop)),
                       came_from(Var(f"v{loop.loop_var.name}", loop.loop_var.dtype), loop), kind)

    def _at(self, indices: Sequence[PrimExpr], index: PrimExpr) -> list[PrimExpr]:
        out = list(indices)
        out.insert(self.axis, index)
        return out

    def partial_block(self) -> BlockRealize:
        """The block that computes the slices."""
        old = self.realize.block
        iters = [self.slice_iter]
        values: list[PrimExpr] = [self.loop.loop_var]
        by_loop: dict[Var, Var] = {self.loop.loop_var: self.slice_iter.var}
        table: dict[Var, PrimExpr] = {}
        for iv, value in zip(old.iter_vars, self.realize.iter_values):
            if iv.iter_type == SPATIAL or not self.largest and not uses_var(
                    value, self.loop.loop_var):
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
        indices = [self._at([substitute(i, table) for i in s.indices], self._place())
                   for s in stores]
        incoming = [substitute(e, table) for e in self.reduction.incoming]
        for cut in self.cuts.inside:
            incoming = [op.if_then_else(self._in_block(cut, iters, values, by_loop), e, start)
                        for e, start in zip(incoming, self.reduction.identities)]
        inits: Stmt | None = None
        if reduces:
            inits = seq(*(BufferStore(b, v, i) for b, v, i in zip(
                self.buffers, self.reduction.identities, indices)))
            loads = [BufferLoad(b, i) for b, i in zip(self.buffers, indices)]
            body = self._update(self.buffers, indices, self.reduction.combine(loads, incoming))
        else:
            body = seq(*(BufferStore(b, v, i) for b, v, i in zip(self.buffers, incoming, indices)))
        block = with_regions(Block(iters, (), (), old.name_hint + "_rf", body, inits, (), (),
                                   old.annotations))
        block = _in_order(block, [r.buffer for r in old.reads], self.buffers)
        came_from(block, old)
        return BlockRealize(values, self.cuts.of_slices(self.realize.predicate), block)

    def _place(self) -> PrimExpr:
        """Where a slice lies: the number of the iteration."""
        var = self.slice_iter.var
        return op.sub(var, op.cast(self.loop.min, var.dtype))

    def _in_block(self, cut: PrimExpr, iters: list[IterVar], values: list[PrimExpr],
                  by_loop: dict[Var, Var]) -> PrimExpr:
        """A part of the predicate in terms of iterators of the block of slices; loops that no
        iterator stands for get one."""
        for var in free_vars(cut):
            if var in self.loops and var not in by_loop:
                known = next((iv.var for iv, v in zip(iters, values) if v is var), None)
                if known is None:
                    made = self._iterator(self.loops[var], REDUCE if var in
                                          self.cuts.reduce_loops else SPATIAL)
                    iters.append(made)
                    values.append(var)
                    known = made.var
                by_loop[var] = known
        return substitute(cut, by_loop)

    def final_block(self) -> BlockRealize:
        """The block that reduces over the slices; it takes the old block's place."""
        old = self.realize.block
        over = self._iterator(self.loop, REDUCE)
        iters = [over]
        values: list[PrimExpr] = [self.loop.loop_var]
        table: dict[Var, PrimExpr] = {}
        for iv, value in zip(old.iter_vars, self.realize.iter_values):
            if iv.iter_type == SPATIAL:
                var = renewed(iv.var)
                table[iv.var] = var
                iters.append(iv.replace(var=var))
                values.append(value)
        stores = self.reduction.stores
        indices = [[substitute(i, table) for i in s.indices] for s in stores]
        loads = [BufferLoad(s.buffer, i) for s, i in zip(stores, indices)]
        place = substitute(self._place(), {self.slice_iter.var: over.var})
        slices = [BufferLoad(b, self._at(i, place)) for b, i in zip(self.buffers, indices)]
        inits = seq(*(BufferStore(s.buffer, v, i) for s, v, i in zip(
            stores, self.reduction.identities, indices)))
        body = self._update([s.buffer for s in stores], indices,
                            self.reduction.combine(loads, slices))
        block = with_regions(Block(iters, (), (), old.name_hint, body, inits, (), (),
                                   old.annotations))
        block = _in_order(block, self.buffers, [s.buffer for s in stores])
        return BlockRealize(values, self.cuts.of_result(), block)

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


def _in_order(block: Block, reads: list[Buffer], writes: list[Buffer]) -> Block:
    """`block` with its regions in the order of these buffers; those of others stand behind."""
    def sort(regions: Sequence[BufferRegion], order: list[Buffer]) -> tuple[BufferRegion, ...]:
        return tuple(sorted(regions, key=lambda r: order.index(r.buffer) if r.buffer in order
                            else len(order)))

    return block.replace(reads=sort(block.reads, reads), writes=sort(block.writes, writes))


# ------------------------------------------------------------------------------- the loops


def _nest_of_copies(partial: BlockRealize, loops: Sequence[StmtSRef]) -> Stmt:
    table = {lp.stmt.loop_var: renewed(lp.stmt.loop_var) for lp in loops}
    body: Stmt = BlockRealize([substitute(v, table) for v in partial.iter_values],
                              substitute(partial.predicate, table), partial.block)
    for item in reversed(loops):
        body = copied_loop(item.stmt, table, body)
    return body


def _replace_nest(body: Stmt, loops: Sequence[StmtSRef], loop: For, reduce_loops: set[Var],
                  realize: BlockRealize, final: BlockRealize, nest: Stmt) -> Stmt:
    """The scope's body: the slices' nest first, then the old nest around the final block."""
    chain = {s.stmt for s in loops}
    outermost = loops[0].stmt

    def visit(stmt: Node) -> Any:
        if stmt is realize:
            return final
        if type(stmt) is BlockRealize or not isinstance(stmt, Stmt):
            return stmt
        if type(stmt) is For and stmt not in chain:
            return stmt
        new: Any = stmt.map_children(visit)
        if type(stmt) is not For:
            return new
        if stmt is not loop and stmt.loop_var in reduce_loops:
            new = new.body
        return seq(nest, new) if stmt is outermost else new

    return visit(body)

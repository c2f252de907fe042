"""cache_index: computed indices are kept in buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Container

from ...ir.dtype import lanes_of
from ...ir.structural import structural_equal
from ...tir import op
from ...tir.buffer import decl_buffer
from ...tir.expr import BufferLoad, IntImm, IterVar, PrimExpr, Range, Var
from ...tir.functor import Mutator, free_vars, pre_order, substitute
from ...tir.stmt import Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, Stmt
from ..buffers import rewrite_blocks, storage_scope_exists
from ..cache_stage import Location, after_definitions, finish, holds, insert_statement
from ..error import Refusal
from ..guards import is_block
from ..instruction import primitive
from ..provenance import came_from
from ..state import ScheduleState, StmtSRef, child_realizes

if TYPE_CHECKING:
    from ...tir.buffer import Buffer
    from ..instruction import BlockRV


@primitive("CacheIndex", moves=True)
def cache_index(state: ScheduleState, block: StmtSRef, storage_scope: str, cse_thresh: int = 0
                ) -> list[BlockRV]:
    """Compute the indices at which a block reads once, into buffers `index_var_0`, ...

    For each index that is an expression of iterators a block `index_<n>` fills a buffer over just
    those iterators. With `cse_thresh` only indices that occur at least so often are kept. Where no
    index is computed nothing changes and the result is empty.

    Before::

        # A: (20, 40)
        for i, j in T.grid(80, 80):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi // 4, vj // 2]

    After `sch.cache_index(B, "global")`::

        index_var_0 = T.alloc_buffer((80,), "int32")
        index_var_1 = T.alloc_buffer((80,), "int32")
        for ax0 in range(80):
            with T.block("index_0"):
                v0 = T.axis.spatial(80, ax0)
                index_var_0[v0] = v0 // 4
        for ax0 in range(80):
            with T.block("index_1"):
                v0 = T.axis.spatial(80, ax0)
                index_var_1[v0] = v0 // 2
        for i, j in T.grid(80, 80):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi // 4, vj // 2], index_var_0[vi], index_var_1[vj])
                T.writes(B[vi, vj])
                B[vi, vj] = A[index_var_0[vi], index_var_1[vj]]

    Errors: the storage scope must exist; iterators start at zero.
    """
    is_block(block)
    storage_scope_exists(storage_scope)
    stmt: Block = block.stmt
    scope = state.scope_root(block)
    own = {iv.var: iv for iv in stmt.iter_vars}
    chosen = [e for e, count in _computed_indices(stmt, own) if count >= cse_thresh]
    if not chosen:
        return []
    buffers: list[Buffer] = []
    stages: list[Stmt] = []
    blocks: list[Block] = []
    table: list[tuple[PrimExpr, Any]] = []
    for number, index in enumerate(chosen):
        used = [own[v] for v in own if any(u is v for u in free_vars(index))]
        for iv in used:
            if not op.is_const_int(iv.dom.min, 0):
                raise Refusal("iterators_start_at_zero", f"iterator {iv.var.name} starts at "
                              f"{iv.dom.min!r}, a buffer's dimension at 0", nodes=[stmt])
        buffer = decl_buffer([iv.dom.extent for iv in used], index.dtype, f"index_var_{number}",
                             scope=storage_scope)
        came_from(buffer, stmt)
        nest, made = _filling(buffer, used, index, number)
        came_from(made, stmt)
        buffers.append(buffer)
        stages.append(nest)
        blocks.append(made)
        table.append((index, BufferLoad(buffer, [iv.var for iv in used])))
    rewriter = _UseIndices(table)
    new = stmt.replace(body=rewriter.visit(stmt.body), reads=(
        *stmt.reads, *(BufferRegion.from_point(load.buffer, load.indices) for _, load in table)))
    body = rewrite_blocks(scope.stmt.body, {stmt: lambda _: new}, {})
    loops = state.loops_above(block)
    top: Stmt = loops[0].stmt if loops else state.realize_of(block)
    inner = after_definitions(scope.stmt.body)
    items = getattr(inner, "seq", (inner,))
    place = next(i for i, s in enumerate(items) if holds(s, top))
    for offset, nest in enumerate(stages):
        body = insert_statement(body, Location(scope, place + offset), nest)
    return finish(state, scope, body, buffers, {stmt: new}, blocks)


def _computed_indices(stmt: Block, own: Container[Var]) -> list[tuple[PrimExpr, int]]:
    """The computed indices of loads over iterators alone, and how often each occurs."""
    found: list[tuple[PrimExpr, int]] = []
    if child_realizes(stmt):
        return []
    for node in pre_order(stmt.body):
        if type(node) is not BufferLoad:
            continue
        for index in node.indices:
            if isinstance(index, (Var, IntImm)) or lanes_of(index.dtype) > 1 or any(
                    type(n) is BufferLoad for n in pre_order(index)):
                continue
            if not all(v in own for v in free_vars(index)):
                continue
            for number, (known, times) in enumerate(found):
                if structural_equal(known, index):
                    found[number] = known, times + 1
                    break
            else:
                found.append((index, 1))
    return found


def _filling(buffer: Buffer, used: list[IterVar], index: PrimExpr, number: int
             ) -> tuple[Stmt, Block]:
    loops = [(came_from(Var(f"ax{k}", iv.var.dtype), iv.var), iv.dom.extent)
             for k, iv in enumerate(used)]
    iters = [IterVar(Range.from_min_extent(IntImm(iv.var.dtype, 0), iv.dom.extent),
                     came_from(Var(f"v{k}", iv.var.dtype), iv.var), IterVar.DataPar)
             for k, iv in enumerate(used)]
    at = [iv.var for iv in iters]
    value = substitute(index, dict(zip([iv.var for iv in used], at)))
    made = Block(iters, [], [BufferRegion.from_point(buffer, at)], f"index_{number}",
                 BufferStore(buffer, value, at))
    nest: Stmt = BlockRealize([var for var, _ in loops], True, made)
    for var, extent in reversed(loops):
        nest = For(var, IntImm(var.dtype, 0), extent, ForKind.SERIAL, nest)
    return nest, made


class _UseIndices(Mutator):
    """Loads' indices that are among the kept ones are read from their buffers."""

    def __init__(self, table: list[tuple[PrimExpr, Any]]) -> None:
        super().__init__()
        self.table = table

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        new = super().visit_BufferLoad(node)
        indices = tuple(next((load for e, load in self.table if structural_equal(e, i)), i)
                        for i in new.indices)
        return BufferLoad(new.buffer, indices, new.predicate)

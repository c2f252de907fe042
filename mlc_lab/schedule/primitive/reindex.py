"""reindex: access a buffer through a copy with a dimension for each iterator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...tir.buffer import Buffer
from ...tir.expr import IterVar, PrimExpr, Var
from ...tir.functor import substitute
from ..buffers import (
    READ, WRITE, block_argument, buffer_like, buffer_position, nth_region, rewrite_blocks,
)
from ..cache_stage import Stage, copy_stage, finish, insert_statement
from ..chain import alone_in_its_loops
from ..guards import is_block
from ..instruction import primitive
from ..reindexing import (
    RewriteAccesses, before_its_nest, covered_iterators, may_be_staged, the_indices,
)
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import BlockRV
    from ..schedule import Schedule


def _position(sch: Schedule, args: dict[str, Any]) -> None:
    args["buffer"] = buffer_position(block_argument(sch, args), args["buffer"])


@primitive("ReIndex", moves=True, normalize=_position)
def reindex(state: ScheduleState, block: StmtSRef, buffer: Any) -> BlockRV:
    """Let a block access a buffer through a copy that has a dimension for each iterator it uses.

    The copy, `<buffer>_reindex`, is accessed at plain iterators, as einsum-like primitives and
    tensor intrinsics want it. For a read it is filled before the block, for a write it is stored
    back after it; the copying block is returned.

    Before::

        for i, j in T.grid(128, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi] * T.float32(2.0)

    After `sch.reindex(B, ("read", 0))`::

        A_reindex = T.alloc_buffer((128, 64))
        for ax0, ax1 in T.grid(128, 64):
            with T.block("A_reindex_reindex"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                A_reindex[v0, v1] = A[v1, v0]
        for i, j in T.grid(128, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A_reindex[vi, vj] * T.float32(2.0)

    Errors: the block is alone in its loops up to the scope; all its accesses of the buffer have the
    same indices; for a write it is the only writer, complete or a reduction.
    """
    is_block(block)
    kind, index = buffer
    target = nth_region(block.stmt, index, kind).buffer
    scope = state.scope_root(block)
    alone_in_its_loops(state, block)
    indices = the_indices(block.stmt, target)
    used = covered_iterators(block.stmt, indices)
    location = before_its_nest(state, scope, block)
    location = location._replace(position=location.position + (kind == WRITE))
    may_be_staged(state, scope, block, target, indices, kind, location)
    copy = buffer_like(target, f"{target.name}_reindex", "global", [iv.dom.extent for iv in used])
    at = RewriteAccesses(target, copy, [iv.var for iv in used])
    body = rewrite_blocks(scope.stmt.body, {block.stmt: at.visit}, at.reuse)
    stage = _reindex_stage(target, copy, used, indices, kind)
    body = insert_statement(body, location, stage.stmt)
    return finish(state, scope, body, [copy], at.reuse, [stage.block])[0]


def _reindex_stage(target: Buffer, copy: Buffer, used: Sequence[IterVar],
                   indices: Sequence[PrimExpr], kind: str) -> Stage:
    def there(new_vars: list[Var]) -> list[PrimExpr]:
        at = {iv.var: v for iv, v in zip(used, new_vars)}
        return [substitute(i, at) for i in indices]

    region = [iv.dom for iv in used]
    source, sink = (target, copy) if kind == READ else (copy, target)
    return copy_stage(source, sink, region, [r.extent for r in region], f"{sink.name}_reindex",
                      None, source_at=there if kind == READ else None,
                      target_at=there if kind == WRITE else None)

"""Rewrites that several primitives share: simplified bindings, predicates, regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from ..arith import Analyzer, iter_map_simplify
from ..tir.access import block_access_regions
from ..tir.expr import IterVar, PrimExpr, Range, Var
from ..tir.functor import Mutator, pre_order, substitute
from ..tir.op import cast, logical_and
from ..tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, DeclBuffer, For, IfThenElse, SeqStmt, Stmt, seq,
)
from .footprint import reads_memory
from .provenance import came_from, renewed
from .state import StmtSRef
from .truth import with_true_regions

if TYPE_CHECKING:
    from typing import TypeVar

    _S = TypeVar("_S", bound=Stmt)


class _SimplifyBindings(Mutator):
    """Brings the iterator bindings of blocks to normal form (`j_0 * 4 + j_1`)."""

    def __init__(self, domains: Mapping[Var, Range], preserve_unit_iters: bool) -> None:
        super().__init__()
        self.domains = dict(domains)
        self.preserve = preserve_unit_iters

    def visit_For(self, node: For) -> Stmt:
        self.domains[node.loop_var] = Range.from_min_extent(node.min, node.extent)
        body = self.visit(node.body)
        return node if body is node.body else node.replace(body=body)

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        if not node.iter_values:
            return self.default(node)
        new = tuple(iter_map_simplify(node.iter_values, self.domains, node.predicate, "surjective",
                                      Analyzer(), not self.preserve))
        if all(a is b for a, b in zip(new, node.iter_values)):
            return node
        return BlockRealize.from_fields(new, node.predicate, node.block)


def simplify_bindings(stmt: _S, above: Iterable[StmtSRef],
                      preserve_unit_iters: bool = True) -> _S:
    """`stmt` with the bindings of the blocks in it simplified; `above` are the loops around it."""
    domains = {s.stmt.loop_var: Range.from_min_extent(s.stmt.min, s.stmt.extent) for s in above}
    return _SimplifyBindings(domains, preserve_unit_iters).visit(stmt)


def guarded(stmt: Stmt, predicate: PrimExpr) -> Stmt:
    """`stmt` where `predicate` holds: added to the predicates of the outermost blocks in it, around
    what is no block as an `if`. Nothing in memory is read where it does not hold."""
    if type(stmt) is BlockRealize:
        return stmt.replace(predicate=logical_and(predicate, stmt.predicate) if reads_memory(
            stmt.predicate) else logical_and(stmt.predicate, predicate))
    if type(stmt) is SeqStmt:
        return seq(*(guarded(s, predicate) for s in stmt.seq))
    if type(stmt) is For and not (reads_memory(stmt.min) or reads_memory(stmt.extent)):
        return stmt.replace(body=guarded(stmt.body, predicate))
    return IfThenElse(predicate, stmt)


def with_regions(block: Block) -> Block:
    """`block` with reads and writes found again from its body.

    Where a pointer itself is used, what the block has said about its buffer stands.
    """
    owners = {r.buffer.data: r.buffer for r in (*block.reads, *block.writes)}
    reads, writes, opaque = block_access_regions(block, owners)
    hidden = {r.buffer for r in opaque}
    if hidden:
        reads = [*(r for r in block.reads if r.buffer in hidden),
                 *(r for r in reads if r.buffer not in hidden)]
        writes = [*(r for r in block.writes if r.buffer in hidden),
                  *(r for r in writes if r.buffer not in hidden)]
    new = block.replace(reads=tuple(reads), writes=tuple(writes))
    # what a reduction reads of its own result, and what is touched by another name, is not found
    if new.init is not None or type(new.body) is not BufferStore and any(
            type(n) is DeclBuffer for n in pre_order(new.body)):
        return with_true_regions(new, owners)
    return new


def fresh_vars(iter_vars: Sequence[Any], table: dict[Var, PrimExpr]
               ) -> tuple[IterVar, ...]:
    """Copies of iterators with new variables, noted in `table`."""
    out: list[IterVar] = []
    for iv in iter_vars:
        var = renewed(iv.var)
        table[iv.var] = var
        out.append(iv.replace(var=var))
    return tuple(out)


def copied_loop(loop: For, table: Mapping[Var, PrimExpr], body: Stmt) -> For:
    """A second loop like `loop`, over `body`: `table` has new variables, its own among them. Where
    it runs on threads, the two are bound to the same axis by a variable each."""
    thread = loop.thread_binding
    if thread is not None:
        thread = thread.replace(var=renewed(thread.var))
    return loop.replace(loop_var=table[loop.loop_var], min=substitute(loop.min, table),
                        extent=substitute(loop.extent, table), thread_binding=thread, body=body)


def pair_blocks(old: Any, new: Any, reuse: dict[Block, Block]) -> None:
    """Note which block of `old` became which of `new`; the two have the same shape."""
    from .state import sub_statements

    if old is new:
        return
    if type(old) is Block and type(new) is Block:
        reuse[old] = new
    for a, b in zip(sub_statements(old), sub_statements(new)):
        pair_blocks(a, b, reuse)


def replace_block(stmt: Stmt, old: Block, new: Block, predicate: PrimExpr | None = None) -> Stmt:
    """`stmt` with the block `old` (not inside other blocks) replaced by `new`, which runs where
    `predicate` holds, if one is given."""
    if type(stmt) is BlockRealize:
        if stmt.block is not old:
            return stmt
        return stmt.replace(block=new, predicate=stmt.predicate if predicate is None else predicate)
    return stmt.map_children(
        lambda s: replace_block(s, old, new, predicate) if isinstance(s, Stmt) else s)


class _Widen(Mutator):
    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        table: dict[Var, PrimExpr] = {}
        iter_vars: list[IterVar] = []
        for iv, value in zip(node.block.iter_vars, node.iter_values):
            if iv.var.dtype != value.dtype:
                var = came_from(Var(iv.var.name, value.dtype), iv.var)
                table[iv.var] = var
                dom = Range.from_min_extent(cast(iv.dom.min, value.dtype),
                                            cast(iv.dom.extent, value.dtype))
                iv = iv.replace(var=var, dom=dom)
            iter_vars.append(iv)
        if not table:
            return node
        block = substitute(node.block, table)
        block = block.replace(iter_vars=tuple(iter_vars), reads=_one_type(block.reads),
                              writes=_one_type(block.writes))
        return node.replace(block=block)


def widen_iterators(stmt: Stmt) -> Stmt:
    """Iterators in the type of the values bound to them, where int32 loops met int64 ones."""
    return _Widen().visit(stmt)


def _one_type(regions: Sequence[BufferRegion]) -> tuple[BufferRegion, ...]:
    """Regions whose extents have the type of their starts."""
    return tuple(BufferRegion(r.buffer, tuple(
        Range.from_min_extent(d.min, cast(d.extent, d.min.dtype)) for d in r.region))
        for r in regions)

"""pad_einsum: a contraction runs over rounded-up extents, on padded copies of its operands."""

from __future__ import annotations

from typing import Any, Sequence

from ...arith import Analyzer
from ...tir import op
from ...tir.buffer import Buffer
from ...tir.expr import (
    Add, BufferLoad, Cast, IntImm, IterVar, Mul, PrimExpr, Range, Var,
)
from ...tir.functor import pre_order
from ...tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, Stmt,
)
from ..buffers import Redirect, buffer_like
from ..chain import alone_in_its_loops, replace_nest, trivially_bound
from ..error import Refusal
from ..guards import REDUCE, is_block
from ..instruction import primitive
from ..provenance import came_from
from ..state import ScheduleState, StmtSRef


@primitive("PadEinsum")
def pad_einsum(state: ScheduleState, block: StmtSRef, padding: Sequence[int]) -> None:
    """Round the extents of a contraction up to multiples of `padding`, one for each iterator.

    New blocks copy the operands into padded buffers, with zeros in the padding, and the result out
    of one. Afterwards loops can be tiled without remainder.

    Before::

        for i, j, k in T.grid(15, 6, 20):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0.0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    After `sch.pad_einsum(C, [1, 1, 8])`::

        A_pad = T.alloc_buffer((15, 24))
        B_pad = T.alloc_buffer((24, 6))
        for i0, i1 in T.grid(15, 24):
            with T.block("A_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                A_pad[v0, v1] = T.if_then_else(v1 < 20, A[v0, v1], T.float32(0.0))
        for i0, i1 in T.grid(24, 6):
            with T.block("B_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                B_pad[v0, v1] = T.if_then_else(v0 < 20, B[v0, v1], T.float32(0.0))
        for i, j, k in T.grid(15, 6, 24):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0.0)
                C[vi, vj] = C[vi, vj] + A_pad[vi, vk] * B_pad[vk, vj]

    Errors: the block is alone in its loops, each iterator bound to a loop of its own; it stores one
    element, and all indices are iterators or constants; where a reduction is padded it must be a
    sum of products, to which zeros add nothing.
    """
    is_block(block)
    stmt: Block = block.stmt
    scope = state.scope_root(block)
    sizes = [int(p) for p in padding]
    if len(sizes) != len(stmt.iter_vars) or any(p <= 0 for p in sizes):
        raise Refusal("one_padding_each", f"padding={sizes}: block {stmt.name_hint} has "
                      f"{len(stmt.iter_vars)} iterators, each gets a positive number; 1 leaves it "
                      "as it is", nodes=[stmt])
    alone_in_its_loops(state, block)
    realize = trivially_bound(state, block)
    padded = _extents(stmt, sizes)
    stores = _einsum(stmt)
    _zeros_add_nothing(stmt, padded)
    target = stores[0].buffer
    indices = _index_lists(stmt, target)
    before: list[Stmt] = []
    after: list[Stmt] = []
    table: dict[Buffer, Buffer] = {}
    for buffer, at in indices.items():
        shape = [padded[i] if i in padded else d
                 for d, i in zip(buffer.shape, at)]
        if all(i not in padded for i in at):
            continue
        new = buffer_like(buffer, f"{buffer.name}_pad", shape=shape)
        table[buffer] = new
        if buffer is target:
            after.append(_copy(new, buffer, buffer.shape, None))
        else:
            limits = [d if i in padded else None for d, i in zip(buffer.shape, at)]
            before.append(_copy(buffer, new, shape, limits))
    if not padded:
        return
    redirect = Redirect(table)
    wide = stmt.replace(iter_vars=tuple(
        iv.replace(dom=Range.from_min_extent(iv.dom.min, padded[iv.var]))
        if iv.var in padded else iv for iv in stmt.iter_vars))
    made = redirect.visit(wide)
    bound = {v: iv.var for iv, v in zip(stmt.iter_vars, realize.iter_values)}
    nest: Stmt = realize.replace(block=made)
    for item in reversed(state.loops_above(block)):
        loop: For = item.stmt
        var = bound.get(loop.loop_var)
        nest = loop.replace(body=nest, extent=padded[var] if var in padded else loop.extent)
    body = replace_nest(state, scope, block, *before, nest, *after)
    new_scope = scope.stmt.replace(body=body, alloc_buffers=(
        *scope.stmt.alloc_buffers, *table.values()))
    state.replace(scope, new_scope, {stmt: made, scope.stmt: new_scope})


def _extents(stmt: Block, sizes: Sequence[int]) -> dict[Var, PrimExpr]:
    """The new extents of the iterators that change."""
    out: dict[Var, PrimExpr] = {}
    analyzer = Analyzer()
    for iv, size in zip(stmt.iter_vars, sizes):
        if not op.is_const_int(iv.dom.min, 0):
            raise Refusal("iterators_start_at_zero", f"iterator {iv.var.name} of block "
                          f"{stmt.name_hint} starts at {iv.dom.min!r}", nodes=[stmt])
        extent = iv.dom.extent
        padded = analyzer.simplify(op.mul(op.floordiv(op.add(extent, size - 1), size), size))
        if not analyzer.can_prove(op.equal(padded, extent)):
            out[iv.var] = padded
    return out


def _einsum(stmt: Block) -> list[BufferStore]:
    parts = [p for p in (stmt.init, stmt.body) if p is not None]
    if any(type(p) is not BufferStore for p in parts) or len({p.buffer for p in parts}) != 1:
        raise Refusal("einsum_pattern", f"block {stmt.name_hint} is not a single store (and its "
                      "init)", nodes=[stmt])
    own = {iv.var for iv in stmt.iter_vars}
    for part in parts:
        for node in pre_order(part):
            if type(node) not in (BufferLoad, BufferStore):
                continue
            for index in node.indices:
                if not (isinstance(index, IntImm) or index in own):
                    raise Refusal("einsum_pattern", f"{node.buffer.name} is accessed at "
                                  f"{index!r}; in an einsum every index is an iterator or a "
                                  "constant", nodes=[part], hint="sch.reindex first")
    return parts


def _index_lists(stmt: Block, target: Buffer) -> dict[Buffer, tuple]:
    """The indices of each buffer, operands in order of the block's reads, the result last."""
    found: dict[Buffer, tuple] = {}
    for node in pre_order(stmt.body):
        if type(node) in (BufferLoad, BufferStore):
            known = found.setdefault(node.buffer, node.indices)
            if any(a is not b and not (isinstance(a, IntImm) and isinstance(b, IntImm)
                                       and a.value == b.value)
                   for a, b in zip(known, node.indices)):
                raise Refusal("einsum_pattern", f"{node.buffer.name} is accessed in two ways",
                              nodes=[stmt])
    order = [r.buffer for r in stmt.reads if r.buffer in found and r.buffer is not target]
    return {b: found[b] for b in (*dict.fromkeys(order), target)}


def _zeros_add_nothing(stmt: Block, padded: dict[Var, PrimExpr]) -> None:
    """Padding a reduction needs terms that vanish there."""
    reduced = [iv.var for iv in stmt.iter_vars if iv.iter_type == REDUCE and iv.var in padded]
    if not reduced:
        return
    value: Any = stmt.body.value
    loads = type(value) is Add and type(value.a) is BufferLoad and (
        value.a.buffer is stmt.body.buffer)
    factors = _factors(value.b) if loads else []
    for var in reduced:
        if not any(var in f.indices for f in factors):
            raise Refusal("zeros_add_nothing", f"the reduction over {var.name} of block "
                          f"{stmt.name_hint} is padded, but its terms are not products with a "
                          f"factor that is zero in the padding of {var.name}", nodes=[stmt],
                          hint="pad only spatial iterators (padding 1 for the others)")


def _factors(e: Any) -> list[BufferLoad]:
    """The loads that are factors of a product."""
    if type(e) is Mul:
        return _factors(e.a) + _factors(e.b)
    if type(e) is Cast:
        return _factors(e.value)
    return [e] if type(e) is BufferLoad else []


def _copy(source: Buffer, target: Buffer, shape: Sequence[PrimExpr],
          limits: Sequence[PrimExpr | None] | None) -> Stmt:
    """A block over `shape` that copies, with zeros from `limits` on."""
    loops, iters = [], []
    for axis, dim in enumerate(shape):
        zero = IntImm(dim.dtype, 0)
        loops.append((came_from(Var(f"i{axis}", dim.dtype), source), dim))
        var = came_from(Var(f"v{axis}", dim.dtype), source)
        iters.append(IterVar(Range.from_min_extent(zero, dim), var, 0))
    at = [iv.var for iv in iters]
    value: PrimExpr = BufferLoad(source, at)
    if limits is not None:
        inside: PrimExpr = op.const(True)
        for var, limit in zip(at, limits):
            if limit is not None:
                inside = op.logical_and(inside, op.less(var, limit))
        value = op.if_then_else(inside, value, op.make_zero(source.dtype))
    name = (target if limits is not None else source).name
    made = Block(iters, [BufferRegion.from_point(source, at)],
                 [BufferRegion.from_point(target, at)], name, BufferStore(target, value, at))
    came_from(made, source)
    nest: Stmt = BlockRealize([var for var, _ in loops], True, made)
    for var, dim in reversed(loops):
        nest = For(var, IntImm(var.dtype, 0), dim, ForKind.SERIAL, nest)
    return nest

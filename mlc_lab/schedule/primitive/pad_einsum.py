"""pad_einsum: a contraction runs over rounded-up extents, on padded copies of its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...arith import Analyzer
from ...ir.dtype import is_integer
from ...tir import op
from ...tir.buffer import Buffer
from ...tir.expr import (
    Add, BufferLoad, Call, Cast, Div, FloorDiv, FloorMod, IntImm, IterVar, Mod, Mul, PrimExpr,
    Range, Var,
)
from ...tir.functor import pre_order, substitute, uses_var
from ...tir.op.intrinsic import PURE, effect_of
from ...tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, Stmt,
)
from ..buffers import Redirect, buffer_like
from ..cache_stage import declaring, sizes_are_known
from ..chain import alone_in_its_loops, replace_nest, trivially_bound
from ..error import Refusal
from ..guards import is_block
from ..instruction import primitive
from ..provenance import came_from
from ..state import ScheduleState, StmtSRef
from ..truth import with_true_regions

_DIVISIONS = (Div, Mod, FloorDiv, FloorMod)


@primitive("PadEinsum", moves=True)
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
    sum of products of elements that are zero in the padding; nothing is divided by what is there.
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
    realize, ranges = trivially_bound(state, block)
    runs = {iv.var: r.extent for iv, r in zip(stmt.iter_vars, ranges)}
    padded = _extents(stmt, runs, sizes)
    stores = _einsum(stmt, padded)
    target = stores[0].buffer
    indices = _index_lists(stmt, stores)
    _zeros_add_nothing(stmt, stores[-1], padded)
    before: list[Stmt] = []
    after: list[Stmt] = []
    table: dict[Buffer, Buffer] = {}
    for buffer, at in indices.items():
        if all(i not in padded for i in at):
            continue
        extents: dict[PrimExpr, PrimExpr] = {**runs, **padded}
        shape = [op.cast(extents[i], d.dtype) if i in runs else d
                 for d, i in zip(buffer.shape, at)]
        new = table[buffer] = buffer_like(buffer, f"{buffer.name}_pad", shape=shape)
        if buffer is not target or stmt.init is None and _reads(stmt, target):
            before.append(_copy(buffer, new, at, runs, padded))
        if buffer is target:
            after.append(_copy(new, buffer, at, runs, {}))
    if not padded:
        return
    redirect = Redirect(table)
    wide = stmt.replace(iter_vars=tuple(
        iv.replace(dom=Range.from_min_extent(iv.dom.min, padded[iv.var]))
        if iv.var in padded else iv for iv in stmt.iter_vars))
    # what was declared for the old extents may not hold what the padding touches
    made = with_true_regions(redirect.visit(wide), {})
    bound = {v: iv.var for iv, v in zip(stmt.iter_vars, realize.iter_values)}
    nest: Stmt = realize.replace(block=made)
    for item in reversed(state.loops_above(block)):
        loop: For = item.stmt
        var = bound.get(loop.loop_var, loop.loop_var)
        nest = loop.replace(body=nest, extent=op.cast(padded[var], loop.extent.dtype)
                            if var in padded else loop.extent)
    sizes_are_known(scope.stmt, table.values())
    body = replace_nest(state, scope, block, *before, nest, *after)
    new_scope = declaring(state, scope, scope.stmt.replace(body=body, alloc_buffers=(
        *scope.stmt.alloc_buffers, *table.values())))
    state.replace(scope, new_scope, {stmt: made, scope.stmt: new_scope})


def _reads(stmt: Block, buffer: Buffer) -> bool:
    return any(type(n) is BufferLoad and n.buffer is buffer for n in pre_order(stmt.body))


def _extents(stmt: Block, runs: Mapping[Var, PrimExpr], sizes: Sequence[int]
             ) -> dict[Var, PrimExpr]:
    """The new extents of the iterators that change; `runs` has the old ones."""
    out: dict[Var, PrimExpr] = {}
    analyzer = Analyzer()
    for iv, size in zip(stmt.iter_vars, sizes):
        if not op.is_const_int(iv.dom.min, 0):
            raise Refusal("iterators_start_at_zero", f"iterator {iv.var.name} of block "
                          f"{stmt.name_hint} starts at {iv.dom.min!r}", nodes=[stmt])
        extent = runs[iv.var]
        padded = analyzer.simplify(op.mul(op.floordiv(op.add(extent, size - 1), size), size))
        if not analyzer.can_prove(op.equal(padded, extent)):
            out[iv.var] = padded
    return out


def _einsum(stmt: Block, padded: Mapping[Var, PrimExpr]) -> list[BufferStore]:
    """The store of the init, if there is one, and that of the body; `padded` has new extents."""
    parts = [p for p in (stmt.init, stmt.body) if p is not None]
    stores = [p for p in parts if type(p) is BufferStore]
    if len(stores) < len(parts) or len({p.buffer for p in stores}) != 1 or stmt.match_buffers:
        raise Refusal("einsum_pattern", f"block {stmt.name_hint} is not a single store (and its "
                      "init)", nodes=[stmt])
    own = {iv.var for iv in stmt.iter_vars}
    known = Analyzer()
    for iv in stmt.iter_vars:
        known.bind(iv.var, iv.dom if iv.var not in padded else Range.from_min_extent(
            iv.dom.min, padded[iv.var]))
    for part in parts:
        for node in pre_order(part):
            if type(node) is Call and effect_of(node) != PURE:
                raise Refusal("einsum_pattern", f"block {stmt.name_hint} calls {node!r}, which has "
                              "effects: in the padding it would be called too", nodes=[part])
            if isinstance(node, _DIVISIONS) and is_integer(node.dtype) and (
                    any(type(n) is BufferLoad for n in pre_order(node.b))
                    or uses_var(node.b, padded) and not known.can_prove(op.not_equal(node.b, 0))):
                raise Refusal("zeros_do_no_harm", f"block {stmt.name_hint} divides by "
                              f"{node.b!r}, which may be zero in the padding", nodes=[part])
            if not isinstance(node, (BufferLoad, BufferStore)):
                continue
            for index, dim in zip(node.indices, node.buffer.shape):
                if not (isinstance(index, IntImm) or index in own):
                    raise Refusal("einsum_pattern", f"{node.buffer.name} is accessed at "
                                  f"{index!r}; in an einsum every index is an iterator or a "
                                  "constant", nodes=[part], hint="sch.reindex first")
                if isinstance(index, IntImm) and not known.can_prove(
                        op.logical_and(index.value >= 0, op.less(index, dim))):
                    raise Refusal("einsum_pattern", f"{node.buffer.name} is accessed at {index}, "
                                  f"and has {dim} elements there: a condition may keep the block "
                                  "from it, and would not keep a copy", nodes=[part])
    return stores


def _index_lists(stmt: Block, stores: Sequence[BufferStore]) -> dict[
        Buffer, tuple[PrimExpr, ...]]:
    """The indices of each buffer, operands in order of the block's reads, the result last."""
    target = stores[0].buffer
    found: dict[Buffer, tuple[PrimExpr, ...]] = {}
    for node in (n for store in stores for n in pre_order(store)):
        if type(node) in (BufferLoad, BufferStore):
            known = found.setdefault(node.buffer, node.indices)
            if any(a is not b and not (isinstance(a, IntImm) and isinstance(b, IntImm)
                                       and a.value == b.value)
                   for a, b in zip(known, node.indices)):
                raise Refusal("einsum_pattern", f"{node.buffer.name} is accessed in two ways",
                              nodes=[stmt])
    if len({b.data for b in found}) != len(found):
        raise Refusal("einsum_pattern", f"block {stmt.name_hint} accesses one memory by two "
                      "buffers", nodes=[stmt])
    order = [r.buffer for r in stmt.reads if r.buffer in found]
    return {b: found[b] for b in (*dict.fromkeys(
        b for b in (*order, *found) if b is not target), target)}


def _zeros_add_nothing(stmt: Block, store: BufferStore, padded: dict[Var, PrimExpr]) -> None:
    """What runs more often for one element must add terms that vanish in the padding."""
    reduced = [v for v in padded if not _among(v, store.indices)]
    if not reduced:
        return
    value: Any = store.value
    sums = type(value) is Add and type(value.a) is BufferLoad and (
        value.a.buffer is store.buffer)
    factors = _factors(value.b) if sums else None
    for var in reduced:
        zeros: list[PrimExpr] = []
        others: list[PrimExpr] = []
        for factor in factors or ():
            vanishes = type(factor) is BufferLoad and _among(var, factor.indices)
            (zeros if vanishes else others).append(factor)
        if not zeros or any(not is_integer(n.dtype) and (
                type(n) is BufferLoad or type(n) in (Call, Div) and uses_var(n, var))
                            for f in others for n in pre_order(f)):
            raise Refusal("zeros_add_nothing", f"the reduction over {var.name} of block "
                          f"{stmt.name_hint} is padded, but its terms are not products of elements "
                          f"that are zero in the padding of {var.name}"
                          + (" (zero times what is infinite is not zero)" if zeros else ""),
                          nodes=[stmt], hint="pad only spatial iterators (padding 1 for the "
                          "others)")


def _among(var: Var, indices: Sequence[PrimExpr]) -> bool:
    return any(i is var for i in indices)


def _factors(e: PrimExpr) -> list[PrimExpr]:
    """The factors of a product."""
    if type(e) is Mul:
        return _factors(e.a) + _factors(e.b)
    if type(e) is Cast:
        return _factors(e.value)
    return [e]


def _copy(source: Buffer, target: Buffer, at: Sequence[PrimExpr], runs: Mapping[Var, PrimExpr],
          padded: Mapping[Var, PrimExpr]) -> Stmt:
    """A block that copies what is accessed `at` iterators and constants, over `padded` extents with
    zeros where the iterators did not run before, or ran past the source: a condition kept them from
    reading there."""
    loops: list[tuple[Var, PrimExpr]] = []
    iters: list[IterVar] = []
    table: dict[Var, Var] = {}
    for dim, old in zip(source.shape, at):
        if not isinstance(old, Var) or old not in runs or old in table:
            continue
        extent = op.cast(padded.get(old, runs[old]), dim.dtype)
        loops.append((came_from(Var(f"i{len(loops)}", dim.dtype), source), extent))
        table[old] = var = came_from(Var(f"v{len(iters)}", dim.dtype), source)
        iters.append(IterVar(Range.from_min_extent(IntImm(dim.dtype, 0), extent), var,
                             IterVar.DataPar))
    inside = _inside(source, at, runs, padded, table)
    places = [substitute(i, table) for i in at]
    value: PrimExpr = BufferLoad(source, places)
    if not op.is_const_int(inside, 1):
        value = op.if_then_else(inside, value, op.make_zero(source.dtype))
    name = (target if padded else source).name
    made = Block(iters, [BufferRegion.from_point(source, places)],
                 [BufferRegion.from_point(target, places)], name,
                 BufferStore(target, value, places))
    came_from(made, source)
    nest: Stmt = BlockRealize([var for var, _ in loops], True, made)
    for var, dim in reversed(loops):
        nest = For(var, IntImm(var.dtype, 0), dim, ForKind.SERIAL, nest)
    return nest


def _inside(source: Buffer, at: Sequence[PrimExpr], runs: Mapping[Var, PrimExpr],
            padded: Mapping[Var, PrimExpr], table: Mapping[Var, Var]) -> PrimExpr:
    """Whether iterators (renamed by the table) ran before where they are, and the source has an
    element there, along each of its axes: one iterator may stand in several."""
    analyzer = Analyzer()
    inside: PrimExpr = op.const(True)
    for old, var in table.items():
        if old in padded:
            inside = op.logical_and(inside, op.less(var, op.cast(runs[old], var.dtype)))
    for dim, old in zip(source.shape, at):
        if isinstance(old, Var) and old in table and not analyzer.can_prove(
                op.less_equal(op.cast(runs[old], dim.dtype), dim)):
            inside = op.logical_and(inside, op.less(op.cast(table[old], dim.dtype), dim))
    return inside

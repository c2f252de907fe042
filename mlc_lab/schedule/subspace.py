"""Cutting a block in two: an outer block over some loops around an inner one over the rest.

What blockize and tensorize share. The iterator vi of the block becomes vi_o of the outer block and
vi_i of the inner one, with vi = vi_o * extent(vi_i) + vi_i, and plus the first value where the
loops do not start at 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ..arith import (
    Analyzer, IterSplitExpr, IterSumExpr, eval_set, normalize_iter_map_to_expr, subspace_divide,
)
from ..tir import op
from ..tir.expr import And, IntImm, IterVar, PrimExpr, Range, Var, const_index
from ..tir.functor import substitute, uses_var
from ..tir.stmt import (
    TRUE, Block, BlockRealize, BufferRegion, For, ForKind, Stmt,
)
from .error import Refusal
from .footprint import reads_memory
from .guards import REDUCE, SPATIAL
from .independence import (
    starts_again, starts_with_init, why_labels_are_false,
)
from .init_first import FirstIterations, first_iterations, sets_the_same
from .provenance import came_from
from .rewrite import pair_blocks, with_regions
from .state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..tir.expr import ExprLike

    #: what an iterator is bound to outside and inside of the new block, each with its extent
    _Part = tuple[PrimExpr, PrimExpr | int, PrimExpr, PrimExpr | int]


class Halves(NamedTuple):
    """A block cut in two: iterators and bindings of each, and the body for the inner one."""

    outer_iters: list[IterVar]
    outer_values: list[PrimExpr]
    outer_predicate: PrimExpr
    inner_iters: list[IterVar]
    inner_values: list[PrimExpr]
    inner_predicate: PrimExpr
    block: Block  # the old block with its iterators expressed by the new ones


def divide_block(state: ScheduleState, block: StmtSRef, inner_loops: Sequence[StmtSRef],
                 preserve_unit_iters: bool) -> Halves:
    """Cut `block` at its loops: `inner_loops` (its innermost ones) go to the inner half."""
    stmt: Block = block.stmt
    realize = state.realize_of(block)
    for iv in stmt.iter_vars:
        if not op.is_const_int(iv.dom.min, 0):
            raise Refusal("iterators_start_at_zero", f"iterator {iv.var.name} of block "
                          f"{stmt.name_hint} starts at {iv.dom.min!r}, so it cannot be written as "
                          "outer * extent + inner", nodes=[stmt])
    domains = {s.stmt.loop_var: Range.from_min_extent(s.stmt.min, s.stmt.extent)
               for s in state.loops_above(block)}
    inside = [s.stmt.loop_var for s in inner_loops]
    outside = set(domains) - set(inside)
    for loop in inner_loops:
        if uses_var(loop.stmt.min, outside) or uses_var(loop.stmt.extent, outside):
            raise Refusal("loops_are_independent", f"the bounds of loop {loop.stmt.loop_var.name} "
                          "depend on a loop outside of the new block, which may only use its own "
                          "iterators", nodes=[loop.stmt])
    analyzer = Analyzer()
    pairs = subspace_divide(realize.iter_values, domains, inside, realize.predicate, "surjective",
                            analyzer, not preserve_unit_iters) if domains else []
    starts: list[PrimExpr] = [IntImm(iv.var.dtype, 0) for iv in stmt.iter_vars]
    if pairs:
        parts: list[_Part] = []
        starts.clear()
        for (a, b), iv in zip(pairs[:-1], stmt.iter_vars):
            outer, below = _from_zero(a.source, analyzer)
            inner, start = _from_zero(b.source, analyzer)
            parts.append((outer, a.extent, inner, b.extent))
            starts.append(_start(block, inner_loops, iv, below, b.extent, start))
    else:
        parts = _trivial_division(block, realize, set(domains) - set(inside), set(inside),
                                  inner_loops)
    outer_predicate, inner_predicate = _divide_predicate(
        block, realize.predicate, set(domains) - set(inside), set(inside), inner_loops)
    outer_iters: list[IterVar] = []
    outer_values: list[PrimExpr] = []
    inner_iters: list[IterVar] = []
    inner_values: list[PrimExpr] = []
    table: dict[Var, PrimExpr] = {}
    for iv, first, (outer, outer_extent, inner, inner_extent) in zip(stmt.iter_vars, starts, parts):
        dtype = iv.var.dtype
        outer_extent, inner_extent = _extent(outer_extent, dtype), _extent(inner_extent, dtype)
        outer_var = came_from(Var(f"{iv.var.name}_o", dtype), iv.var)
        outer_iters.append(IterVar(Range.from_min_extent(IntImm(dtype, 0), outer_extent),
                                   outer_var, iv.iter_type))
        outer_values.append(outer)
        if op.is_const_int(inner_extent, 1):
            known = op.is_const_int(outer_extent, 1) and not preserve_unit_iters
            table[iv.var] = first if known else op.add(outer_var, first)
            continue
        inner_var = came_from(Var(f"{iv.var.name}_i", dtype), iv.var)
        inner_iters.append(IterVar(Range.from_min_extent(IntImm(dtype, 0), inner_extent),
                                   inner_var, iv.iter_type))
        inner_values.append(inner)
        value = inner_var if op.is_const_int(outer_extent, 1) else op.add(
            op.mul(outer_var, inner_extent), inner_var)
        table[iv.var] = op.add(value, first)
    new = substitute(stmt, table)
    came_from(new, stmt)
    return Halves(outer_iters, outer_values, outer_predicate, inner_iters, inner_values,
                  inner_predicate, new)


def _from_zero(source: IterSumExpr | IterSplitExpr, analyzer: Analyzer) -> tuple[PrimExpr, Any]:
    """What one half of an iterator is bound to less its first value, and that first value."""
    if type(source) is not IterSumExpr:
        return normalize_iter_map_to_expr(source, analyzer), 0
    moving = IterSumExpr(source.args, 0, source.dtype)
    return normalize_iter_map_to_expr(moving, analyzer), source.base


def _start(block: StmtSRef, inner_loops: Sequence[StmtSRef], iv: IterVar, outer: ExprLike,
           extent: ExprLike, inner: ExprLike) -> PrimExpr:
    """The first value of an iterator that is outer * extent + inner."""
    dtype = iv.var.dtype
    parts = [op.cast(const_index(e), dtype) for e in (outer, extent, inner)]
    if any(reads_memory(e) for e in parts):
        raise _not_divisible(block, inner_loops, iv)
    return op.add(op.mul(parts[0], parts[1]), parts[2])


def _extent(value: PrimExpr | int, dtype: str) -> PrimExpr:
    return IntImm(dtype, value) if isinstance(value, int) else op.cast(value, dtype)


def _trivial_division(block: StmtSRef, realize: BlockRealize, outside: set[Var], inside: set[Var],
                      inner_loops: Sequence[StmtSRef]) -> list[_Part]:
    """A division of bindings that are not affine: each must belong to one half whole."""
    parts: list[_Part] = []
    for iv, value in zip(block.stmt.iter_vars, realize.iter_values):
        zero, one = IntImm(iv.var.dtype, 0), IntImm(iv.var.dtype, 1)
        if not uses_var(value, inside):
            parts.append((value, iv.dom.extent, zero, one))
        elif not uses_var(value, outside):
            parts.append((zero, one, value, iv.dom.extent))
        else:
            raise _not_divisible(block, inner_loops, iv)
    return parts


def _divide_predicate(block: StmtSRef, predicate: PrimExpr, outside: set[Var], inside: set[Var],
                      inner_loops: Sequence[StmtSRef]) -> tuple[PrimExpr, PrimExpr]:
    """Each condition of a predicate goes to the half whose loops it speaks of."""
    outer: PrimExpr = TRUE
    inner: PrimExpr = TRUE
    parts = [predicate]
    while parts:
        part = parts.pop(0)
        if type(part) is And:
            parts[:0] = [part.a, part.b]
        elif not uses_var(part, inside):
            outer = op.logical_and(outer, part)
        elif not uses_var(part, outside):
            inner = op.logical_and(inner, part)
        else:
            raise _not_divisible(block, inner_loops, None)
    return outer, inner


def _not_divisible(block: StmtSRef, inner_loops: Sequence[StmtSRef], iv: IterVar | None) -> Refusal:
    what = f"iterator {iv.var.name}" if iv is not None else "the predicate"
    name = inner_loops[0].stmt.loop_var.name if inner_loops else "the block"
    return Refusal("subspace_is_divisible", f"{what} of block {block.stmt.name_hint} mixes loops "
                   f"outside of {name} with loops in it in a way that is not outer * extent + "
                   "inner", nodes=[block.stmt, *(s.stmt for s in inner_loops[:1])],
                   hint="split loops by factors that divide their extents, and reorder so that "
                   "the inner parts are inside")


# ------------------------------------------------------------------------------- building blocks


def relaxed_regions(regions: Sequence[BufferRegion], inner_iters: Sequence[IterVar],
                    outer_iters: Sequence[IterVar] = (), loops: Sequence[For] = ()
                    ) -> list[BufferRegion]:
    """Regions over all values of `inner_iters`, whose domains may name the `loops` around them:
    where a region would, it is all of the dimension. A block without iterators may name the loops
    itself."""
    hidden = {lp.loop_var for lp in loops}
    analyzer = Analyzer()
    for iv in (*outer_iters, *inner_iters):
        analyzer.bind(iv.var, iv.dom)
    domains = {lp.loop_var: Range.from_min_extent(lp.min, lp.extent) for lp in loops}
    domains.update((iv.var, iv.dom) for iv in inner_iters)
    blank = Analyzer()
    out: list[BufferRegion] = []
    for region in regions:
        ranges: list[Range] = []
        for rng, dim in zip(region.region, region.buffer.shape):
            if not (uses_var(rng.min, domains) or uses_var(rng.extent, domains)):
                ranges.append(rng)
                continue
            found = eval_set(rng, domains, blank)
            low, high = found.min_value, found.max_value
            if found.has_lower_bound() and found.has_upper_bound() and not (
                    uses_var(low, hidden) or uses_var(high, hidden)):
                ranges.append(Range.from_min_extent(analyzer.simplify(low), analyzer.simplify(
                    op.sub(op.add(high, 1), low))))
            else:
                ranges.append(Range.from_min_extent(IntImm(dim.dtype, 0), dim))
        out.append(BufferRegion(region.buffer, tuple(ranges)))
    return out


def build_blocks(halves: Halves, loops: Sequence[For], first: FirstIterations | None
                 ) -> tuple[BlockRealize, Block]:
    """The outer block around `loops` and the inner block; the latter is returned too. A reduction
    that is cut is set to its start value in its `first` iterations, which come before all."""
    block = halves.block
    changes: dict[str, Any] = {"iter_vars": tuple(halves.inner_iters)}
    if first is not None:
        changes.update(init=None, reads=(*block.writes, *block.reads))
    inner = came_from(block.replace(**changes), block)
    inner_realize = BlockRealize(halves.inner_values, halves.inner_predicate, inner)
    init = _outer_init(halves, first) if first is not None else None
    body: Stmt = inner_realize
    for loop in reversed(loops):
        body = loop.replace(body=body)
    outer = Block(halves.outer_iters,
                  relaxed_regions(block.reads, halves.inner_iters, halves.outer_iters, loops),
                  relaxed_regions(block.writes, halves.inner_iters, halves.outer_iters, loops),
                  block.name_hint + "_o", body, init)
    came_from(outer, block)
    return BlockRealize(halves.outer_values, halves.outer_predicate, outer), inner


def _set_by_init(halves: Halves) -> list[tuple[IterVar, PrimExpr]]:
    """The inner iterators, with their bindings, that say which elements the init sets."""
    init = halves.block.init
    return [(iv, value) for iv, value in zip(halves.inner_iters, halves.inner_values)
            if iv.iter_type == SPATIAL and init is not None and uses_var(init, iv.var)]


def _outer_init(halves: Halves, first: FirstIterations) -> Stmt:
    """The init of a reduction cut in two: a block over the inner spatial iterators."""
    block = halves.block
    table: dict[Var, PrimExpr] = {}
    iters: list[IterVar] = []
    values: list[PrimExpr] = []
    for iv, value in _set_by_init(halves):
        var = came_from(Var(f"{iv.var.name}_init", iv.var.dtype), iv.var)
        table[iv.var] = var
        iters.append(iv.replace(var=var))
        values.append(substitute(value, first.table))
    made = with_regions(Block(iters, [], [substitute(w, table) for w in block.writes],
                              block.name_hint + "_init", substitute(block.init, table)))
    came_from(made, block)
    stmt: Stmt = BlockRealize(values, first.predicate, made)
    for loop in reversed(first.kept):
        var = first.table[loop.loop_var]
        assert type(var) is Var
        stmt = For(var, substitute(loop.min, first.table), substitute(loop.extent, first.table),
                   ForKind.SERIAL, stmt)
    return stmt


def only_block(state: ScheduleState, loop: StmtSRef) -> StmtSRef:
    """The one block under a loop, reached through single loops only."""
    at = loop.stmt
    while type(at) is For:
        at = at.body
    if type(at) is not BlockRealize:
        blocks = state.child_blocks(loop)
        names = ", ".join(b.stmt.name_hint for b in blocks)
        raise Refusal("one_block_under_loop", f"loop {loop.stmt.loop_var.name} must hold one block "
                      f"and loops around it, nothing else; it holds {names}", nodes=[loop.stmt],
                      hint="use an inner loop, or give a list of blocks to sch.blockize")
    return state.refs[at.block]


def _inits_come_first(state: ScheduleState, block: StmtSRef, inner: Sequence[StmtSRef],
                      halves: Halves) -> FirstIterations:
    """All elements of an outer block around `inner` are set to their start value before any is
    added to: so each must have one iteration that sets it, before all others that touch it.
    Returned are those iterations."""
    name = block.stmt.name_hint
    if why_labels_are_false(state, block) == "spatial" or not starts_with_init(state, block):
        raise Refusal("init_runs_first", f"the init of block {name} would come "
                      "before iterations that touch the same element and came before it",
                      nodes=[block.stmt], hint="sch.decompose_reduction first")
    again = starts_again(state, block, inner)
    if again is not None:
        raise Refusal("init_runs_once", f"in loop {inner[0].stmt.loop_var.name} block {name} adds "
                      "to an element before its init sets it (again): run before the loop, "
                      "the init would not wipe that out", nodes=[block.stmt],
                      conflict=again.text(name, f"the init of {name}"),
                      hint="let each value of the reduction be met once")
    depth = len(state.loops_above(block)) - len(inner)
    values = [value for _, value in _set_by_init(halves)]
    first = first_iterations(state, block, depth, values, state.realize_of(block).predicate)
    reduced = [(iv, value) for iv, value in zip(halves.inner_iters, halves.inner_values)
               if iv.iter_type == REDUCE]
    if not sets_the_same(state, block, depth, values, reduced, first):
        raise Refusal("init_sets_the_same", "it is not certain that the loops at "
                      f"{inner[0].stmt.loop_var.name} run the init of block {name} for just the "
                      "elements that would be set to their start value before them",
                      nodes=[block.stmt], hint="sch.decompose_reduction first")
    return first_iterations(state, block, depth, values, halves.inner_predicate)


def blockized(state: ScheduleState, loop: StmtSRef, preserve_unit_iters: bool
              ) -> tuple[BlockRealize, dict[Block, Block]]:
    """The loop nest at `loop` as an outer block, and which blocks became which."""
    block = only_block(state, loop)
    around = state.loops_above(block)
    inner_loops = around[around.index(loop):]
    halves = divide_block(state, block, inner_loops, preserve_unit_iters)
    first = None
    if block.stmt.init is not None and any(iv.iter_type == REDUCE for iv in halves.outer_iters):
        first = _inits_come_first(state, block, inner_loops, halves)
    realize, inner = build_blocks(halves, [s.stmt for s in inner_loops], first)
    reuse = {block.stmt: inner}
    pair_blocks(block.stmt.body, inner.body, reuse)
    return realize, reuse


__all__ = ["Halves", "blockized", "build_blocks", "divide_block", "only_block", "relaxed_regions"]

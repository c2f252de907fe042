"""transform_block_layout: other iterators for a block, by an index map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...arith import Analyzer
from ...arith.index_map import inverse, map_ranges
from ...tir import op
from ...tir.expr import Add, IntImm, IterVar, PrimExpr, Range, Sub, Var
from ...tir.function import IndexMap
from ...tir.functor import free_vars, substitute, uses_var
from ...tir.stmt import EMPTY, BlockRealize, For, ForKind, Stmt
from ..chain import SubstituteAccesses, alone_in_its_loops, replace_nest, trivially_bound
from ..error import Refusal
from ..guards import KIND_NAMES, REDUCE, SPATIAL, is_block, loop_is_plain
from ..independence import chooses_by_results, clash_when_reordered, labels_are_true
from ..instruction import primitive
from ..provenance import came_from
from ..reindexing import block_index_map
from ..rewrite import pair_blocks
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ...tir.expr import ThreadAxis


@primitive("TransformBlockLayout", moves=True, normalize=block_index_map)
def transform_block_layout(state: ScheduleState, block: StmtSRef, index_map: Any) -> None:
    """Give a block other iterators, computed from the old ones by `index_map`, and other loops.

    The loops around the block are replaced by one for each new iterator. With the bijective map
    (i, j) -> (i * 64 + j) two iterators become one.

    Before::

        for i, j in T.grid(128, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)

    After `sch.transform_block_layout(B, lambda i, j: (j, i // 16, i % 16))`::

        for ax0, ax1, ax2 in T.grid(64, 8, 16):
            with T.block("B"):
                v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
                B[v1 * 16 + v2, v0] = A[v1 * 16 + v2, v0] * T.float32(2.0)

    A new loop that stands for one of the old loops alone runs as that one does (in parallel, on
    threads) and has its annotations. An index need not start at 0: the new iterator then stands for
    it less its first value. Where the map changes the order of iterations, none of those that
    change places may clash.

    Errors: the block is alone in its loops, each iterator bound to a loop of its own that runs over
    fixed values; the map is bijective, and each of its indices uses iterators of one kind; a block
    with an init keeps an iterator of its reduction; iterations that touch the same element, one of
    them writing, keep their order. Loops that end have no annotation and are not bound to threads.
    """
    is_block(block)
    scope = state.scope_root(block)
    alone_in_its_loops(state, block)
    realize, ranges = trivially_bound(state, block)
    stmt = block.stmt
    for iv in stmt.iter_vars:
        if iv.iter_type not in (SPATIAL, REDUCE):
            raise Refusal("iterators_commute", f"iterator {iv.var.name} of block {stmt.name_hint} "
                          f"is {KIND_NAMES.get(iv.iter_type)}: its iterations have an order that "
                          "must be kept", nodes=[stmt])
    old = [iv.var for iv in stmt.iter_vars]
    if len(index_map.initial_indices) != len(old):
        raise Refusal("map_takes_the_iterators", f"the index map takes "
                      f"{len(index_map.initial_indices)} indices, block {stmt.name_hint} has "
                      f"{len(old)} iterators", nodes=[stmt])
    starts = _starts(stmt, index_map, ranges)
    mapped = [op.sub(e, low) for e, low in zip(index_map.map_indices(old), starts)]
    kinds = [_kind(stmt, index) for index in mapped]
    if stmt.init is not None and REDUCE not in kinds:
        raise Refusal("keeps_a_reduction", f"block {stmt.name_hint} starts a reduction, and no new "
                      "iterator would be of it", nodes=[stmt],
                      hint="let an iterator of the reduction stay one, also if it has one value; "
                      "or take the init out before, by sch.decompose_reduction")
    bound_to = {iv.var: v for iv, v in zip(stmt.iter_vars, realize.iter_values)}
    try:
        from_zero = IndexMap(index_map.initial_indices, [
            op.sub(e, low) for e, low in zip(index_map.final_indices, starts)])
        back = inverse(from_zero, ranges)
        extents = [r.extent for r in map_ranges(from_zero, ranges)]
    except ValueError as err:
        raise Refusal("map_is_bijective", f"{err}", nodes=[stmt], hint="a block's iterators must "
                      "be covered exactly: each once, none left over") from None
    _order_is_free(state, block, [substitute(e, bound_to) for e in mapped])
    analyzer = Analyzer()
    loops: list[tuple[Var, PrimExpr]] = []
    iters: list[IterVar] = []
    for position, (extent, kind) in enumerate(zip(extents, kinds)):
        dom = Range.from_min_extent(IntImm(extent.dtype, 0), extent)
        sources = [v for v in free_vars(mapped[position]) if v in old]
        loop_var = came_from(Var(f"ax{position}", extent.dtype),
                             *(v for s in sources for v in free_vars(bound_to[s])))
        loops.append((loop_var, extent))
        var = came_from(Var(f"v{position}", extent.dtype), *sources)
        iters.append(IterVar(dom, var, kind))
        analyzer.bind(iters[-1].var, dom)
    values = back.map_indices([iv.var for iv in iters])
    table = {var: analyzer.simplify(value) for var, value in zip(old, values)}
    for index, iv in zip(mapped, iters):  # one that is handed on stays, also if it has one value
        if isinstance(index, Var):
            table[index] = iv.var
    to = SubstituteAccesses(table, iters)
    new = to.visit(stmt).replace(iter_vars=tuple(iters))
    new = substitute(new, table)  # also where memory that is made inside is as large as they say
    nest: Stmt = BlockRealize([var for var, _ in loops], realize.predicate, new)
    notes = _notes(state, block, [bound_to.get(_one(e)) for e in mapped])
    for (var, extent), (kind, thread, said) in zip(reversed(loops), reversed(notes)):
        nest = For(var, IntImm(var.dtype, 0), extent, kind, nest, thread, said)
    body = replace_nest(state, scope, block, nest)
    reuse = {stmt: new}
    pair_blocks(stmt.body, new.body, reuse)
    changed = scope.stmt.replace(body=body)
    state.replace(scope, changed, {**reuse, scope.stmt: changed})


def _one(index: PrimExpr) -> PrimExpr:
    """The iterator that an index is, less where it starts; or the index."""
    while isinstance(index, (Add, Sub)) and op.as_int(index.b) is not None:
        index = index.a
    return index


def _notes(state: ScheduleState, block: StmtSRef, sources: Sequence[Any]
           ) -> list[tuple[ForKind, ThreadAxis | None, Mapping[str, Any]]]:
    """How each new loop runs: as the old loop runs whose variable it has, else one by one. No
    annotation and no binding to threads is lost."""
    left = {s.stmt.loop_var: s for s in state.loops_above(block)}
    found: list[tuple[ForKind, ThreadAxis | None, Mapping[str, Any]]] = []
    for var in sources:
        loop = left.pop(var, None)
        found.append((ForKind.SERIAL, None, EMPTY) if loop is None else (
            loop.stmt.kind, loop.stmt.thread_binding, loop.stmt.annotations))
    for loop in left.values():
        loop_is_plain(loop)
    return found


def _starts(stmt: Any, index_map: IndexMap, ranges: Sequence[Range]) -> list[PrimExpr]:
    """The first value of each new index."""
    try:
        return [r.min for r in map_ranges(index_map, ranges)]
    except ValueError as err:
        raise Refusal("map_is_bijective", f"{err}", nodes=[stmt]) from None


def _order_is_free(state: ScheduleState, block: StmtSRef, mapped: Sequence[PrimExpr]) -> None:
    """No two iterations that clash change places, nested by the new indices."""
    chain = state.loops_above(block)
    if not chain or labels_are_true(state, block) and not chooses_by_results(
            state.realize_of(block)):
        return
    old = [s.stmt.loop_var for s in chain]
    clash = clash_when_reordered(state, chain, old, mapped)
    if clash is not None:
        raise Refusal(
            "dependences_keep_their_order", "in the new order iterations would change places that "
            f"touch the same element of {clash.name}: {clash.what}", nodes=[block.stmt],
            conflict=clash.text, hint="use a map that keeps the order of these iterations")


def _kind(stmt: Any, mapped: Any) -> int:
    used = [iv for iv in stmt.iter_vars if uses_var(mapped, iv.var)]
    kinds = {iv.iter_type for iv in used}
    if len(kinds) > 1:  # iterators that stand still may go with any
        kinds = {iv.iter_type for iv in used if not op.is_const_int(iv.dom.extent, 1)} or {SPATIAL}
    if len(kinds) > 1:
        names = " and ".join(sorted(KIND_NAMES.get(k, "other") for k in kinds))
        raise Refusal("iterators_of_one_kind", f"the new iterator {mapped!r} of block "
                      f"{stmt.name_hint} would mix {names} iterators", nodes=[stmt])
    return kinds.pop() if kinds else SPATIAL

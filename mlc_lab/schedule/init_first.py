"""When the init of a reduction may run before the loops in which it stands.

The init runs in the iteration in which all reduction iterators are at their start. Taken out of
some loops it runs before everything in them, so nothing in them may touch its elements before it
does; and it must set the same elements. A size that is a variable of the function counts as at
least one: what a reduction over nothing leaves is not kept.
"""

from __future__ import annotations

from ..arith import Analyzer
from ..arith.expr_util import conjuncts
from ..tir import op
from ..tir.expr import IntImm, IterVar, Range, Var
from ..tir.functor import free_vars, substitute, uses_var, variables_of
from ..tir.stmt import Block, BlockRealize, For, Stmt
from .conflict import first_clash, later
from .dependency import Site, inside
from .error import Refusal
from .executed import iterations, mixed_radix, whole_mixed_radix
from .footprint import choice_reads, loops_of
from .independence import labels_are_true
from .order import Place, passed, stays_within
from .state import ScheduleState, StmtSRef


def init_may_go_first(state: ScheduleState, block: StmtSRef, depth: int, init: Stmt) -> None:
    """The init of a block may run as `init`, before the loop that is inside of `depth` loops."""
    scope = state.scope(state.scope_root(block))
    site = scope.site(block.stmt)
    stmt: Block = block.stmt
    own = [a for a in site.accesses if a.block is stmt]
    starts, updates = ([a for a in own if a.init is init] for init in (True, False))
    stays_within(scope, site, depth + 1, init, inside_definitions=False)
    _sets_the_same(state, block, site, depth, init)
    inner = site.loops[depth:]
    order = [lp.loop_var for lp in inner]
    choices = list(choice_reads(site.node, inner))
    found = None
    if choices or not (_starts_first(site) and labels_are_true(state, block)):
        found = first_clash(updates, [*starts, *choices], loops_of(inner), later(order, False),
                            [*scope.around, *loops_of(site.loops[:depth])], steady=scope.steady)
    if found is not None:
        raise Refusal("init_runs_once", f"inside of loop {inner[0].loop_var.name} block "
                      f"{stmt.name_hint} adds to an element before its init sets it (again): run "
                      "before the loop, the init would not wipe that out", nodes=[stmt],
                      conflict=found.text(stmt.name_hint, f"the init of {stmt.name_hint}"),
                      hint="decompose at a loop further in, or reorder the reduction inside")
    place = Place(site.loops[:depth], scope.boundary(site.loops[:depth], site.items[depth]))
    moved = [*starts, *choices]
    way = passed(scope, site, place, inside(moved, inner), False, here=moved)
    if way is not None:
        raise Refusal("nothing_is_passed", f"before loop {inner[0].loop_var.name} the init of "
                      f"block {stmt.name_hint} would run before {way.site.name}, which touches the "
                      "same elements, or those that say which iterations run",
                      nodes=[stmt, way.site.node],
                      conflict=lambda: way.text(f"the init of {stmt.name_hint}"))


def _starts_first(site: Site) -> bool:
    """Whether it is seen at a glance that loops take the reduction iterators, for each value of the
    spatial ones, through every value once, and begin with the first."""
    digits = whole_mixed_radix(site.node.iter_values, site.loops)
    return digits is not None and site.block is not None and all(
        op.is_const_int(iv.dom.min, low) for iv, (low, _) in zip(site.block.iter_vars, digits)
        if iv.iter_type == IterVar.CommReduce)


def _sets_the_same(state: ScheduleState, sref: StmtSRef, site: Site, depth: int,
                   init: Stmt) -> None:
    """Before the loops the init must run for just the elements for which it runs in them."""
    block, realize = site.block, site.node
    assert block is not None
    pairs = list(zip(block.iter_vars, realize.iter_values))
    reduced = [(iv, v) for iv, v in pairs if iv.iter_type == IterVar.CommReduce]
    spatial = [v for iv, v in pairs if iv.iter_type != IterVar.CommReduce]
    inner = site.loops[depth:]
    used = variables_of(spatial)
    kept = [lp for lp in inner if lp.loop_var in used]
    dropped = [lp for lp in inner if lp not in kept]
    if op.is_const_int(realize.predicate, 1):
        first = mixed_radix([v for _, v in reduced], dropped)
        if first is not None and all(
                op.is_const_int(iv.dom.min, low) for (iv, _), (low, _) in zip(reduced, first)):
            return
    analyzer = Analyzer()
    for size in sizes_of(state, sref):
        analyzer.enter_constraint(op.greater_equal(size, 1))
    for lp in site.loops:
        analyzer.bind(lp.loop_var, Range.from_min_extent(lp.min, lp.extent))
    # with all dropped loops in their first iteration the reduction is at its start
    table = {lp.loop_var: lp.min for lp in dropped}
    conditions = [op.greater_equal(substitute(lp.extent, table), 1) for lp in dropped]
    conditions += [op.equal(substitute(v, table), iv.dom.min) for iv, v in reduced]
    conditions += [substitute(c, table) for c in conjuncts(realize.predicate)
                   if uses_var(c, table)]
    if not any(uses_var(v, {lp.loop_var for lp in kept}) for _, v in reduced) and all(
            analyzer.can_prove(substitute(c, table)) for c in conditions):
        return
    if _tried(site, depth, init):
        return
    raise Refusal("init_sets_the_same", f"it is not certain that the loops inside of "
                  f"{inner[0].loop_var.name} run the init of block {block.name_hint} for every "
                  "element that they add to: the new block would set others as well",
                  nodes=[realize], hint="decompose at a loop further in")


def sizes_of(state: ScheduleState, block: StmtSRef) -> list[Var]:
    """The variables in the shapes of a function's parameters."""
    found: dict[Var, None] = {}
    for buffer in state.func_of(block).buffer_map.values():
        for dim in buffer.shape:
            if type(dim) is not IntImm:
                found.update(dict.fromkeys(free_vars(dim)))
    return [v for v in found if v.dtype in ("int32", "int64")]


def _tried(site: Site, depth: int, init: Stmt) -> bool:
    """Whether the init runs for the same elements, found by running the loops."""
    block, realize = site.block, site.node
    assert block is not None
    pairs = list(zip(block.iter_vars, realize.iter_values))
    outer = [lp.loop_var for lp in site.loops[:depth]]
    starts = op.const(True)
    for iv, value in pairs:
        if iv.iter_type == IterVar.CommReduce:
            starts = op.logical_and(starts, op.equal(value, iv.dom.min))
    spatial = [v for iv, v in pairs if iv.iter_type != IterVar.CommReduce]
    before = iterations([*outer, *spatial], op.logical_and(realize.predicate, starts), site.loops)
    own: list[For] = []
    while type(init) is For:
        own.append(init)
        init = init.body
    assert type(init) is BlockRealize
    after = iterations([*outer, *init.iter_values], init.predicate, [*site.loops[:depth], *own])
    return before is not None and before == after


__all__ = ["init_may_go_first", "sizes_of"]

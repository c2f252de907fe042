"""When the init of a reduction may run before the loops in which it stands.

The init runs in the iteration in which all reduction iterators are at their start. Taken out of
some loops it runs before everything in them, so nothing in them may touch its elements before it
does; and it must set the same elements. A size that is a variable of the function counts as at
least one: what a reduction over nothing leaves is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..arith import Analyzer
from ..arith.expr_util import conjuncts
from ..tir import op
from ..tir.expr import IntImm, IterVar, PrimExpr, Range, Var
from ..tir.functor import free_vars, substitute, uses_var, variables_of
from ..tir.stmt import Block, Evaluate, For, Stmt
from .conflict import first_clash, later
from .dependency import Site, inside
from .error import Refusal
from .executed import iterations, whole_mixed_radix
from .footprint import choice_reads, loops_of
from .independence import labels_are_true
from .order import Place, passed, stays_within
from .provenance import came_from
from .rewrite import copied_loop
from .state import ScheduleState, StmtSRef


def init_may_go_first(state: ScheduleState, block: StmtSRef, depth: int, init: Stmt,
                      first: FirstIterations) -> None:
    """The init of a block may run as `init`, over its `first` iterations, before the loop that is
    inside of `depth` loops."""
    scope = state.scope(state.scope_root(block))
    site = scope.site(block.stmt)
    stmt: Block = block.stmt
    own = [a for a in site.accesses if a.block is stmt]
    starts, updates = ([a for a in own if a.init is init] for init in (True, False))
    stays_within(scope, site, depth + 1, init, inside_definitions=False)
    inner = site.loops[depth:]
    pairs = list(zip(stmt.iter_vars, state.realize_of(block).iter_values))
    if not sets_the_same(
            state, block, depth, [v for iv, v in pairs if iv.iter_type != IterVar.CommReduce],
            [(iv, v) for iv, v in pairs if iv.iter_type == IterVar.CommReduce], first):
        raise Refusal("init_sets_the_same", f"it is not certain that the loops inside of "
                      f"{inner[0].loop_var.name} run the init of block {stmt.name_hint} for every "
                      "element that they add to: the new block would set others as well",
                      nodes=[site.node], hint="decompose at a loop further in")
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


class FirstIterations(NamedTuple):
    """The loops of an init that runs before a reduction, and its condition."""

    table: dict[Var, PrimExpr]  # the variable of a loop that is kept -> the new one; else its start
    kept: list[For]
    dropped: list[For]
    predicate: PrimExpr  # of the new variables

    def around(self, body: Stmt) -> Stmt:
        """The loops that are kept, around what uses their new variables."""
        for lp in reversed(self.kept):
            body = copied_loop(lp, self.table, body)
        return body


def first_iterations(state: ScheduleState, block: StmtSRef, depth: int,
                     values: Sequence[PrimExpr], predicate: PrimExpr, suffix: str = ""
                     ) -> FirstIterations:
    """Of the loops inside of `depth` loops around a block those that `values` use, with the others
    in their first iteration, where the reduction starts; and what becomes of a predicate then."""
    loops = [s.stmt for s in state.loops_above(block)]
    used = variables_of(values)
    kept = [lp for lp in loops[depth:] if lp.loop_var in used]
    dropped = [lp for lp in loops[depth:] if lp.loop_var not in used]
    away = {lp.loop_var for lp in dropped}
    table: dict[Var, PrimExpr] = {}
    for lp in loops[depth:]:  # the bounds of those that are kept may speak of those that are not
        table[lp.loop_var] = substitute(lp.min, table) if lp.loop_var in away else came_from(
            Var(f"{lp.loop_var.name}{suffix}", lp.loop_var.dtype), lp.loop_var)
    at_start = {v: table[v] for v in away}
    analyzer: Analyzer | None = None
    condition: PrimExpr = op.const(True)
    for part in conjuncts(predicate):
        if uses_var(part, away):
            analyzer = analyzer or _analyzer(state, block, loops)
            if analyzer.can_prove(substitute(part, at_start)):
                continue
        condition = op.logical_and(condition, substitute(part, table))
    return FirstIterations(table, kept, dropped, condition)


def sets_the_same(state: ScheduleState, block: StmtSRef, depth: int, values: Sequence[PrimExpr],
                  reduced: Sequence[tuple[IterVar, PrimExpr]], first: FirstIterations) -> bool:
    """Whether, of the iterations inside of `depth` loops, those in which the `reduced` iterators,
    with their bindings, are at their start give `values` just what the first iterations give them.

    Seen at a glance where the loops that are dropped are the digits of the reduced iterators;
    proven where no other loop speaks of those that are dropped; else found by running the loops.
    """
    realize, loops = state.realize_of(block), [s.stmt for s in state.loops_above(block)]
    digits = whole_mixed_radix([v for _, v in reduced], first.dropped)
    if digits is not None and all(
            op.is_const_int(iv.dom.min, low) for (iv, _), (low, _) in zip(reduced, digits)):
        return True
    away, kept = ({lp.loop_var for lp in part} for part in (first.dropped, first.kept))
    if not any(uses_var(e, away) for lp in first.kept for e in (lp.min, lp.extent)) and not any(
            uses_var(v, kept) for _, v in reduced):
        table = {lp.loop_var: first.table[lp.loop_var] for lp in first.dropped}
        conditions = [op.greater_equal(lp.extent, 1) for lp in first.dropped]
        conditions += [op.equal(v, iv.dom.min) for iv, v in reduced]
        conditions += [c for c in conjuncts(realize.predicate) if uses_var(c, away)]
        analyzer = _analyzer(state, block, loops)
        if all(analyzer.can_prove(substitute(c, table)) for c in conditions):
            return True
    starts = realize.predicate
    for iv, v in reduced:
        starts = op.logical_and(starts, op.equal(v, iv.dom.min))
    outer = [lp.loop_var for lp in loops[:depth]]
    before = iterations([*outer, *values], starts, loops)
    own: list[For] = []
    nest = first.around(Evaluate(op.const(0)))
    while type(nest) is For:
        own.append(nest)
        nest = nest.body
    after = iterations([*outer, *(substitute(v, first.table) for v in values)], first.predicate,
                       [*loops[:depth], *own])
    return before is not None and before == after


def _analyzer(state: ScheduleState, block: StmtSRef, loops: Sequence[For]) -> Analyzer:
    """What holds in a block: the bounds of its loops, and sizes of at least one."""
    analyzer = Analyzer()
    for size in sizes_of(state, block):
        analyzer.enter_constraint(op.greater_equal(size, 1))
    for lp in loops:
        analyzer.bind(lp.loop_var, Range.from_min_extent(lp.min, lp.extent))
    return analyzer


def sizes_of(state: ScheduleState, block: StmtSRef) -> list[Var]:
    """The variables in the shapes of a function's parameters."""
    found: dict[Var, None] = {}
    for buffer in state.func_of(block).buffer_map.values():
        for dim in buffer.shape:
            if type(dim) is not IntImm:
                found.update(dict.fromkeys(free_vars(dim)))
    return [v for v in found if v.dtype in ("int32", "int64")]


__all__ = ["FirstIterations", "first_iterations", "init_may_go_first", "sets_the_same", "sizes_of"]

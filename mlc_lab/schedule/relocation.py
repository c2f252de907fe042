"""When a block may be computed elsewhere: under a loop of its consumers or of its producers.

The block keeps its body and gets other loops, so it may run more than once, in another order, and
before or after what it used to follow. Each of these needs a reason why nobody can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..arith import Analyzer, detect_iter_map
from ..arith.expr_util import conjuncts
from ..tir.expr import IterVar, Range
from ..tir.functor import uses_var
from ..tir.stmt import (
    Allocate, AllocateConst, AttrStmt, Block, BlockRealize, DeclBuffer, For, IfThenElse, LetStmt,
    Stmt,
)
from .conflict import always, first_clash, later
from .dependency import BlockScope, Site, inside
from .error import Refusal
from .executed import (
    in_bounds, iterations, reaches, reduces_in_order, runs_everywhere, tiles_cover, why_not_whole,
)
from .footprint import Access, instance, loops_of
from .order import Place, common, drives_reduction, flow, passed
from .repeatable import order_matters, why_not_repeatable
from .state import ScheduleState, StmtSRef


def may_be_computed_at(state: ScheduleState, scope: StmtSRef, block: StmtSRef, loop: StmtSRef,
                       position: int, nest: Stmt, forward: bool, outlives: bool = False) -> None:
    """The block may be computed by `nest`, the `position`-th statement under `loop`.

    `forward`: it moves to what reads it, which is later; else to what it reads, which is earlier.
    `outlives`: others than its readers see what it writes.
    """
    graph = state.scope(scope)
    site = graph.site(block.stmt)
    around = tuple(s.stmt for s in (*state.loops_above(loop), loop))
    place = Place(around, graph.boundary(around, position))
    realize, own = _unnested(nest)
    _wrappers_stay(graph, site, place, forward)
    if forward:
        _readers_follow(graph, site, place)
        _what_is_read_is_final(graph, site, place)
    _runs_again(block.stmt, site)
    if block.stmt.init is not None:
        _is_reduced_whole(site, realize, (*around, *own), around)
    if forward:
        if not site.ask(runs_everywhere) and not in_bounds(block.stmt):
            raise Refusal("stays_in_bounds", f"block {block.stmt.name_hint} does not run for all "
                          "values of its iterators, and for the others it could touch what lies "
                          "outside of its buffers: moved, it might", nodes=[site.node],
                          hint="give its iterators the domains that its loops take them through")
        if outlives:
            _writes_as_before(block.stmt, site, realize, (*around, *own))
    else:
        _runs_as_before(block.stmt, site, realize, (*around, *own))
    there = inside(instance(realize), own)
    if outlives or not forward:
        _runs_in_its_turn(graph, site, place, realize, own)
    _nothing_is_passed(graph, site, place, there, forward, block.stmt)


def _unnested(nest: Stmt) -> tuple[BlockRealize, tuple[For, ...]]:
    loops: list[For] = []
    while type(nest) is For:
        loops.append(nest)
        nest = nest.body
    assert type(nest) is BlockRealize
    return nest, tuple(loops)


def _wrappers_stay(graph: BlockScope, site: Site, place: Place, forward: bool) -> None:
    """Conditions and definitions around the block must be around its new place too."""
    depth = len(place.loops)
    there = next((s.wrappers for s in graph.sites if len(s.loops) >= depth
                  and s.loops[depth - 1] is place.loops[-1]), ())
    new = [w for n, w in there if n < depth]
    old = [w for _, w in site.wrappers]
    left = [w for w in old if not any(w is x for x in new)]
    harmless: tuple[type, ...] = (Allocate, AllocateConst, AttrStmt, DeclBuffer, LetStmt)
    if forward:
        harmless = (*harmless, IfThenElse)  # then whoever reads it runs under the same condition
    entered = [w for w in new if not any(w is x for x in old) and type(w) not in harmless]
    if left or entered:
        what = type((left or entered)[0]).__name__
        raise Refusal("conditions_stay", f"block {site.name} would "
                      + ("leave" if left else "come into") + f" a statement ({what}) that says "
                      "whether it runs or defines what it uses", nodes=(left or entered)[:1])


def _readers_follow(graph: BlockScope, site: Site, place: Place) -> None:
    """Whoever reads what the block computes must do so under the loop, behind the new place."""
    depth = len(place.loops)
    for other in graph.sites:
        if other is site or other.reads.isdisjoint(site.writes):
            continue
        under = len(other.loops) >= depth and other.loops[depth - 1] is place.loops[-1]
        if not under or other.index < place.boundary:
            raise Refusal(
                "readers_follow", f"{other.name} reads what block {site.name} computes, and "
                + ("comes before the place where it would be computed" if under else
                   f"is not under loop {place.loops[-1].loop_var.name}"),
                nodes=[other.node, place.loops[-1]],
                hint="choose a place that comes before all that read it")


def _what_is_read_is_final(graph: BlockScope, site: Site, place: Place) -> None:
    """Who reads under loops that are around the block too must not see a reduction half done, or
    what stood there before: at the new place all that is read is complete."""
    kept = common(site.loops, place.loops)
    shared = [lp.loop_var for lp in site.loops[:kept]]
    settled = flow(graph).settled
    if all(m in graph.own and settled(m) for m in site.writes) and not any(
            drives_reduction(site, var) for var in shared):
        return
    writes = [a for a in site.within(kept) if a.write]
    for other in graph.sites:
        if other is site or other.reads.isdisjoint(site.writes):
            continue
        reads = [a for a in other.within(kept) if not a.write]
        found = first_clash(reads, writes, loops_of(site.loops[:kept]),
                            later(shared, other.index < site.index), graph.around,
                            steady=graph.steady)
        if found is not None:
            raise Refusal(
                "what_is_read_is_final", f"{other.name} reads elements of {found.name} that block "
                f"{site.name} writes again in a later iteration of the loops around both: computed "
                "where they are read, they would be complete at once",
                nodes=[other.node, site.node],
                conflict=partial(found.text, other.name, site.name),
                hint="leave the block where it is")


def _runs_again(block: Block, site: Site) -> None:
    """Run more than once, or in the order of its new loops, the block must leave the same."""
    reason = why_not_repeatable(block)
    if reason:
        raise Refusal("may_run_again", f"elsewhere, block {block.name_hint} may run again or its "
                      f"iterations in another order, and it would not leave the same: {reason}",
                      nodes=[block])


def _is_reduced_whole(site: Site, realize: BlockRealize, loops: tuple[For, ...],
                      around: tuple[For, ...]) -> None:
    """A reduction must have combined all its values once, and do so again, in an order that gives
    the same."""
    block = site.block
    assert block is not None
    reason = site.ask(why_not_whole)
    if reason:
        raise Refusal("reduction_is_whole", f"block {site.name} is a reduction that may not "
                      f"combine every value once, after its init: {reason}", nodes=[site.node],
                      hint="sch.decompose_reduction makes its init a block of its own")
    if order_matters(block) and not (site.ask(reduces_in_order)
                                     and reduces_in_order(realize, loops)):
        raise Refusal("order_of_reduction", f"what block {site.name} computes depends on the order "
                      "of its reduction, which would be another", nodes=[block],
                      hint="write the update as C[...] = C[...] + value, with the init of the sum")
    spread = [v for iv, v in zip(block.iter_vars, realize.iter_values)
              if iv.iter_type == IterVar.CommReduce
              and any(uses_var(v, lp.loop_var) for lp in around)]
    if spread and (why_not_whole(realize, loops) or not _once(realize, loops)):
        raise Refusal("reduction_is_whole", f"at its new place block {site.name} would reduce a "
                      "part in each iteration, and not surely each value once and after its init",
                      nodes=[site.node, block], hint="choose an outer loop")


def _once(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether no iteration of a block runs twice."""
    domains = {lp.loop_var: Range.from_min_extent(lp.min, lp.extent) for lp in loops}
    return bool(detect_iter_map(realize.iter_values, domains, realize.predicate, "bijective",
                                Analyzer()).indices)


def _runs_as_before(block: Block, site: Site, realize: BlockRealize,
                    loops: tuple[For, ...]) -> None:
    """At the new place just the iterations must run that ran before, no fewer and no others."""
    if site.ask(runs_everywhere):
        if runs_everywhere(realize, loops) or tiles_cover(realize, loops):
            return
    if _among(site.node, site.loops, realize, loops) and _among(
            realize, loops, site.node, site.loops):
        return
    before = iterations(site.node.iter_values, site.node.predicate, site.loops)
    after = None
    if before is not None:
        after = iterations(realize.iter_values, realize.predicate, loops)
    if before is not None and before == after:
        return
    lost = sorted((before or set()) - (after or set())) if after is not None else []
    names = ", ".join(iv.var.name for iv in block.iter_vars)
    raise Refusal(
        "no_iteration_is_lost", f"at its new place block {block.name_hint} might not run for just "
        "the values of its iterators for which it runs now"
        + (f": ({names}) = {lost[0]} would be lost" if lost else ""), nodes=[site.node],
        hint="leave the block where it is, or move its producer to it: sch.compute_at")


def _among(realize: BlockRealize, loops: Sequence[For], other: BlockRealize,
           other_loops: Sequence[For]) -> bool:
    """Whether all iterations at another place surely are iterations at the first one too."""
    return reaches(realize.iter_values, loops, realize.predicate, other.iter_values,
                   loops_of(other_loops), conjuncts(other.predicate))


def _runs_in_its_turn(graph: BlockScope, site: Site, place: Place, realize: BlockRealize,
                      own: tuple[For, ...]) -> None:
    """In each iteration of the loops that stay around the block, the iterations of it must run that
    ran there before; or nothing that it touches changes in these loops.

    Of `D[k] = C[k]` in a loop over k, all rows may be copied in each iteration only if those of C
    are given no other value in a later one.
    """
    kept = common(site.loops, place.loops)
    loops = (*place.loops, *own)
    turns = [n for n, lp in enumerate(site.loops[:kept]) if any(
        uses_var(e, lp.loop_var) for r in (site.node, realize) for e in (*r.iter_values,
                                                                        r.predicate))]
    if not turns or _same_turns(kept, site.node, site.loops, realize, loops):
        return
    first = turns[0]
    known = flow(graph)
    may_pass, mine = known.may_pass(site, (site.loops, place.loops)), site.writes

    def but(a: Access, b: Access) -> bool:
        write, read = (a, b) if a.write else (b, a)
        if write.memory in mine:
            return not read.write and write.memory in graph.own and known.settled(write.memory)
        return may_pass(a, b)

    moved = [*site.within(first), *inside(instance(realize), loops[first:])]
    for other in graph.sites:
        if other is site or common(other.loops, site.loops) <= first:
            continue
        found = first_clash(moved, other.within(first), (), always,
                            [*graph.around, *loops_of(site.loops[:first])], but, graph.steady)
        if found is not None:
            loop = site.loops[first]
            raise Refusal(
                "runs_in_its_turn", f"in an iteration of loop {loop.loop_var.name} block "
                f"{site.name} would run for other values of its iterators than it does now, and "
                f"{other.name} touches elements of {found.name} that it touches in another one",
                nodes=[site.node, other.node, loop],
                conflict=partial(found.text, site.name, other.name),
                hint="leave the block where it is")


def _same_turns(kept: int, old: BlockRealize, old_loops: Sequence[For], new: BlockRealize,
                new_loops: Sequence[For]) -> bool:
    """Whether a block surely runs at two places for the same values of its iterators in each
    iteration of the first `kept` loops, which are around both."""
    def among(a: BlockRealize, a_loops: Sequence[For], b: BlockRealize, b_loops: Sequence[For]
              ) -> bool:
        return reaches(a.iter_values, a_loops[kept:], a.predicate, b.iter_values,
                       loops_of(b_loops), conjuncts(b.predicate))

    if among(old, old_loops, new, new_loops) and among(new, new_loops, old, old_loops):
        return True
    shared = [lp.loop_var for lp in old_loops[:kept]]
    before = iterations([*shared, *old.iter_values], old.predicate, old_loops)
    return before is not None and before == iterations(
        [*shared, *new.iter_values], new.predicate, new_loops)


def _writes_as_before(block: Block, site: Site, realize: BlockRealize,
                      loops: tuple[For, ...]) -> None:
    """What outlives the scope must be written whole, not only as far as its readers need it."""
    try:
        _runs_as_before(block, site, realize, loops)
    except Refusal as error:
        raise not_an_output_block(block, error.message) from None


def not_an_output_block(block: Block, why: str = "") -> Refusal:
    """The refusal to compute only a part of what a block writes for others."""
    names = ", ".join(dict.fromkeys(r.buffer.name for r in block.writes))
    return Refusal(
        "not_an_output_block", f"block {block.name_hint} writes {names}, which outlives the scope: "
        "computing only the part that a consumer needs could leave parts of it unwritten"
        + (f" ({why})" if why else ""), nodes=[block],
        hint="move the consumer instead: sch.reverse_compute_at")


def _nothing_is_passed(graph: BlockScope, site: Site, place: Place, there: Sequence[Access],
                       forward: bool, block: Block) -> None:
    settled = flow(graph).may_pass(site, (site.loops, place.loops))
    written = site.writes

    def but(a: Access, b: Access) -> bool:
        if forward and a.memory in written and not (a.write and b.write):
            return True  # its readers: they follow
        return forward and settled(a, b)

    found = passed(graph, site, place, there, forward, but)
    if found is not None:
        touched = found.clash.a.buffer.name if found.clash.a.buffer is not None else "memory"
        raise Refusal(
            "nothing_is_passed", f"{'later' if forward else 'earlier'}, block {block.name_hint} "
            f"would be computed {'after' if forward else 'before'} {found.site.name}, and both "
            f"touch elements of {touched}: what is read would be another value",
            nodes=[block, found.site.node], conflict=lambda: found.text(block.name_hint),
            hint="choose a place with nothing in between that writes what the block reads, or "
            "reads or writes what it writes")


__all__ = ["may_be_computed_at", "not_an_output_block"]

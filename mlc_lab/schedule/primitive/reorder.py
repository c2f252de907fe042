"""reorder: nested loops change places."""

from __future__ import annotations

from ...arith import Analyzer
from ...tir import op
from ...tir.functor import substitute, uses_var
from ...tir.stmt import For
from ..error import Refusal
from ..guards import KIND_NAMES, REDUCE, SPATIAL, is_loop
from ..independence import (
    chooses_by_results, clash_when_reordered, has_one_to_one_binding, labels_are_true,
)
from ..instruction import primitive
from ..loop_kind import loops_stay_independent
from ..state import ScheduleState, StmtSRef


@primitive("Reorder")
def reorder(state: ScheduleState, *ordered_loops: StmtSRef) -> None:
    """Put loops in the given order, outermost first.

    They need not be adjacent: loops in between that are not named stay in their places.

    Before::

        for i, j, k in T.grid(128, 64, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0.0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    After `sch.reorder(k, i)`::

        for k, j, i in T.grid(32, 64, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0.0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    Errors: the loops are distinct, on one chain without branches; the blocks below have spatial or
    reduction iterators only; no extent depends on a loop moved inside it; no two iterations that
    touch one element, one of them writing, change places, but for two updates of a reduction.
    """
    for loop in ordered_loops:
        is_loop(loop)
    if not ordered_loops:
        raise Refusal("reorder_needs_loops", "reorder takes at least one loop")
    if len(set(ordered_loops)) != len(ordered_loops):
        twice = next(s for s in ordered_loops if ordered_loops.count(s) > 1)
        raise Refusal("loops_are_distinct", f"loop {twice.stmt.loop_var.name} is given twice",
                      nodes=[twice.stmt])
    if len(ordered_loops) == 1:
        return
    chain = _chain(set(ordered_loops))
    bottom = chain[-1]
    for block in state.child_blocks(bottom):
        for iv in block.stmt.iter_vars:
            if iv.iter_type not in (SPATIAL, REDUCE):
                raise Refusal(
                    "iterators_commute", f"iterator {iv.var.name} of block "
                    f"{block.stmt.name_hint} is {KIND_NAMES.get(iv.iter_type)}: its iterations "
                    "have an order that must be kept", nodes=[block.stmt])
    places = iter(ordered_loops)
    wanted = [next(places) if s in set(ordered_loops) else s for s in chain]
    if wanted == chain:
        return
    for position, loop in enumerate(wanted):
        for inner in wanted[position + 1:]:
            for bound in (loop.stmt.min, loop.stmt.extent):
                if uses_var(bound, inner.stmt.loop_var):
                    raise Refusal(
                        "extents_stay_defined", f"the bounds of loop {loop.stmt.loop_var.name} "
                        f"depend on {inner.stmt.loop_var.name}, which would come inside it",
                        nodes=[loop.stmt, inner.stmt])
    _order_is_free(state, chain, wanted)
    body = bottom.stmt.body
    for loop in reversed(wanted):
        source: For = loop.stmt
        body = source.replace(body=body)
    state.replace(chain[0], body)
    loops_stay_independent(state, chain)  # an iteration of a loop around them is what it was


def _order_is_free(state: ScheduleState, chain: list[StmtSRef], wanted: list[StmtSRef]) -> None:
    """No two iterations that clash may change places."""
    if _plainly_free(state, chain, wanted):
        return
    before, after = ([s.stmt.loop_var for s in order] for order in (chain, wanted))
    clash = clash_when_reordered(state, chain, before, after)
    if clash is None:
        return
    places = [s.stmt for s, new in zip(chain, wanted) if s is not new]
    if clash.a.init or clash.b.init:
        raise Refusal(
            "init_runs_first", f"in the new order an element of {clash.name} would be added to "
            "before the iteration that runs its T.init(), or set to its start value again after "
            "that", nodes=[*places, *clash.blocks], conflict=clash.text,
            hint="sch.decompose_reduction first, or fuse spatial loops with spatial ones only")
    raise Refusal(
        "dependences_keep_their_order", "in the new order iterations would change places that "
        f"touch the same element of {clash.name}: {clash.what}",
        nodes=[*places, *clash.blocks], conflict=clash.text,
        hint="keep the order of loops whose iterations use what others of them have written")


def _plainly_free(state: ScheduleState, chain: list[StmtSRef], wanted: list[StmtSRef]) -> bool:
    """Whether the order is free at a glance: one block, whose iterators are what they are called,
    each of its iterations is run once, and that with its init comes first in both orders."""
    blocks = state.child_blocks(chain[-1])
    if len(blocks) != 1 or chain[-1].stmt.body is not state.realize_of(blocks[0]):
        return False
    block = blocks[0]
    if not has_one_to_one_binding(state, block) or not labels_are_true(
            state, block) or chooses_by_results(state.realize_of(block)):
        return False
    if block.stmt.init is None:
        return True
    bindings = list(zip(block.stmt.iter_vars, state.realize_of(block).iter_values))
    spatial = [v for iv, v in bindings if iv.iter_type == SPATIAL]
    first = {s.stmt.loop_var: s.stmt.min for s in chain}
    for iv, value in bindings:
        if iv.iter_type != SPATIAL:
            drivers = [v for v in first if uses_var(value, v)]
            if any(uses_var(other, drivers) for other in spatial) or not Analyzer().can_prove(
                    op.equal(substitute(value, first), iv.dom.min)):
                return False
    return True


def _chain(loops: set[StmtSRef]) -> list[StmtSRef]:
    """The loops from the outermost to the innermost of `loops`, all there are in between."""
    depth = {s: sum(1 for _ in _above(s)) for s in loops}
    bottom = max(loops, key=depth.__getitem__)
    chain = [bottom]
    missing = loops - {bottom}
    while missing:
        parent = chain[-1].parent
        if parent is None or type(parent.stmt) is not For:
            other = next(iter(missing))
            raise Refusal("loops_on_one_chain", f"loops {bottom.stmt.loop_var.name} and "
                          f"{other.stmt.loop_var.name} are not nested in one another",
                          nodes=[bottom.stmt, other.stmt])
        if parent.stmt.body is not chain[-1].stmt:
            raise Refusal("single_branch", f"loop {parent.stmt.loop_var.name} holds more than loop "
                          f"{chain[-1].stmt.loop_var.name}: what is beside it would run a "
                          "different number of times", nodes=[parent.stmt],
                          hint="reorder before compute_at / decompose_reduction put other "
                          "statements there")
        chain.append(parent)
        missing.discard(parent)
    chain.reverse()
    return chain


def _above(sref: StmtSRef) -> list[StmtSRef]:
    out: list[StmtSRef] = []
    parent = sref.parent
    while parent is not None:
        out.append(parent)
        parent = parent.parent
    return out

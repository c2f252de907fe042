"""reorder: nested loops change places."""

from __future__ import annotations

from ...tir.functor import uses_var
from ...tir.stmt import For
from ..error import Refusal
from ..guards import (
    KIND_NAMES, REDUCE, SPATIAL, affine_binding, is_loop,
)
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("Reorder")
def reorder(state: ScheduleState, *ordered_loops: StmtSRef) -> None:
    """Put loops in the given order, outermost first.

    They need not be adjacent: loops in between that are not named stay in their places.

    Before::

        for i, j, k in T.grid(128, 128, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0.0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    After `sch.reorder(k, i)`::

        for k, j, i in T.grid(128, 128, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0.0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    Errors: the loops are distinct, on one chain without branches; the blocks below have affine
    bindings and spatial or reduction iterators only; no extent depends on a loop moved inside it.
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
        affine_binding(state, block, chain[0])
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
    for block in state.child_blocks(bottom):
        _init_runs_first(state, block, chain, wanted)
    body = bottom.stmt.body
    for loop in reversed(wanted):
        source: For = loop.stmt
        body = source.replace(body=body)
    state.replace(chain[0], body)


def _init_runs_first(state: ScheduleState, block: StmtSRef, before: list[StmtSRef],
                     after: list[StmtSRef]) -> None:
    """Loops that drive spatial and reduction iterators at once, as the parts of a fused loop do,
    keep their order: else an element could be added to before the iteration that sets it to its
    start value."""
    if block.stmt.init is None:
        return
    bindings = list(zip(block.stmt.iter_vars, state.realize_of(block).iter_values))
    reduced = [v for iv, v in bindings if iv.iter_type == REDUCE]
    spatial = [v for iv, v in bindings if iv.iter_type != REDUCE]

    def driving(loops: list[StmtSRef]) -> list[StmtSRef]:
        return [s for s in loops if any(uses_var(v, s.stmt.loop_var) for v in reduced)]

    mixed = [s for s in driving(before) if any(uses_var(v, s.stmt.loop_var) for v in spatial)]
    if mixed and driving(before) != driving(after):
        names = ", ".join(s.stmt.loop_var.name for s in mixed)
        raise Refusal(
            "init_runs_first", f"loops {names} drive both spatial and reduction iterators of block "
            f"{block.stmt.name_hint}: in another order, an element could be added to before the "
            "iteration that runs its T.init()", nodes=[*(s.stmt for s in mixed), block.stmt],
            hint="sch.decompose_reduction first, or fuse spatial loops with spatial ones only")


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
    out = []
    parent = sref.parent
    while parent is not None:
        out.append(parent)
        parent = parent.parent
    return out

"""Reductions in parts: when slices of one may be computed apart, and by threads."""

from __future__ import annotations

from collections.abc import Collection

from ..arith.reducer import Reduction
from ..tir import op
from ..tir.expr import Var
from ..tir.functor import free_vars, uses_var
from ..tir.stmt import Block
from .error import Refusal
from .guards import REDUCE
from .independence import starts_again, starts_with_init, why_labels_are_false
from .reducer import match_reduction
from .state import ScheduleState, StmtSRef


def order_is_free(state: ScheduleState, block: StmtSRef, reduction: Reduction, loop: StmtSRef,
                  reduce_loops: Collection[Var]) -> None:
    """Spatial iterators are spatial, the init comes first, and the order may be changed, for slices
    of a reduction that the iterations of `loop` compute."""
    stmt: Block = block.stmt
    if stmt.match_buffers or stmt.alloc_buffers:
        raise Refusal("known_reduction", f"block {stmt.name_hint} has buffers or views of its own",
                      nodes=[stmt])
    if why_labels_are_false(state, block) in ("spatial", "other"):
        raise Refusal("spatial_iterators_are_spatial", f"block {stmt.name_hint} touches the same "
                      "element at different values of its spatial iterators: its slices would be "
                      "summed up in another order than its elements", nodes=[stmt])
    if not starts_with_init(state, block):
        raise Refusal("init_runs_first", f"the first iteration of block {stmt.name_hint} for an "
                      "element is not the one that runs its T.init(), or may be cut off",
                      nodes=[state.realize_of(block)])
    around = state.loops_above(block)
    first = next((n for n, s in enumerate(around) if s.stmt.loop_var in reduce_loops), None)
    again = None if first is None else starts_again(state, block, around[first:])
    if again is not None:
        name = stmt.name_hint
        raise Refusal("init_runs_once", f"block {name} adds to an element before its T.init() sets "
                      "it (again); slices would not be wiped out by that", nodes=[stmt],
                      conflict=again.text(name, f"the init of {name}"),
                      hint="let each value of the reduction be met once")
    inside = [s.stmt for s in around if s.stmt.loop_var in reduce_loops
              and not op.is_const_int(s.stmt.extent, 1)]
    if reduction.ordered and inside and inside[0] is not loop.stmt:
        raise Refusal("first_of_equal_wins", f"of equal values in block {stmt.name_hint} the first "
                      f"one wins, and slices of loop {loop.stmt.loop_var.name} are compared in "
                      "another order", nodes=[stmt, loop.stmt],
                      hint=f"rfactor loop {inside[0].loop_var.name}, or compare indices where "
                      "values are equal")


def threads_may_share(state: ScheduleState, block: StmtSRef, loop: StmtSRef) -> None:
    """The iterations of `loop` may run on threads, each of which reduces a slice for itself; then
    they reduce what they have together, in any order."""
    stmt: Block = block.stmt
    if stmt.init is None:
        raise Refusal("threads_share_a_reduction", f"block {stmt.name_hint} has no T.init(): "
                      f"threads of loop {loop.stmt.loop_var.name} would update one element at the "
                      "same time", nodes=[loop.stmt, stmt],
                      hint="bind before sch.decompose_reduction, or sch.rfactor first")
    if any(iv.iter_type != REDUCE and uses_var(value, loop.stmt.loop_var) for iv, value in zip(
            stmt.iter_vars, state.realize_of(block).iter_values)):
        raise Refusal("loops_drive_one_kind", f"loop {loop.stmt.loop_var.name} drives spatial and "
                      "reduction iterators at once", nodes=[loop.stmt, stmt],
                      hint="do not fuse spatial with reduction loops")
    reduction = match_reduction(stmt)
    loops = {v for iv, value in zip(stmt.iter_vars, state.realize_of(block).iter_values)
             if iv.iter_type == REDUCE for v in free_vars(value)}
    order_is_free(state, block, reduction, loop, loops)
    if reduction.ordered:
        raise Refusal("first_of_equal_wins", f"of equal values in block {stmt.name_hint} the first "
                      "one wins, and threads are compared in another order",
                      nodes=[stmt, loop.stmt], hint="compare indices where values are equal")

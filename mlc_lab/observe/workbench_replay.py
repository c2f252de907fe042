"""Follows another source of instructions with the tree: a schedule made in code, a text, a file.

The source is replayed on a schedule of its own, the shadow. What an argument means there is found
in the tree's schedule by its place in the program, which is the same in both. So look-ups and names
are the tree's own, and a step that the tree has already is found again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..schedule.error import Refusal, ScheduleError
from ..schedule.instruction import BlockRV, InstructionKind, LoopRV
from ..schedule.schedule import Schedule
from ..schedule.state import StmtSRef
from ..tir.expr import PrimExpr, Var
from ..tir.functor import substitute
from .workbench_find import variable
from .workbench_palette import statements_in_order

if TYPE_CHECKING:
    from .workbench import Workbench
    from .workbench_tree import Attempt

#: instructions that only look something up: they come with the attempt that needs them
LOOKUPS = {"get_block", "get_loops", "get_child_blocks", "get_producers", "get_consumers",
           "get_output_blocks"}  # fmt: skip


def follow(
    bench: Workbench,
    at: Attempt,
    shadow: Schedule,
    kind: InstructionKind,
    bound: dict[str, Any],
    last: bool = False,
) -> tuple[Attempt, Any, ScheduleError | None]:
    """Apply an instruction of `shadow` to the tree at `at`, and bring `shadow` to where that leads.

    Both schedules have the same program; what the arguments mean in one is found in the other
    by its place. The step is applied once: `shadow` becomes a copy of what the tree reached, in
    which its variables refer to what they did. `last`: nothing follows, `shadow` stays where it is.
    Returns (node, results, refusal).
    """
    args = dict(bound)
    try:
        shadow.resolve(list(args.values()))
    except Refusal as gone:  # a variable whose block or loop is no more
        return at, None, shadow._refused(kind, args, gone, shadow.mod)
    theirs = [shadow.state.refs[s] for s in statements_in_order(shadow.state)]
    place = {id(sref): n for n, sref in enumerate(theirs)}
    moved: list[Schedule] = []
    kept: dict[Any, StmtSRef] = {}

    def arguments(sch: Schedule) -> dict[str, Any]:
        ours = [sch.state.refs[s] for s in statements_in_order(sch.state)]

        def translate(value: object) -> Any:
            if isinstance(value, (BlockRV, LoopRV)):
                return variable(sch, ours[place[id(shadow.resolve(value))]])
            if isinstance(value, (list, tuple)):
                return type(value)(translate(v) for v in value)
            return value

        if not last:
            moved.append(sch)
            kept.update((rv, sref if sref.stmt is None else ours[place[id(sref)]])
                        for rv, sref in shadow.srefs().items())  # fmt: skip
        return {name: translate(value) for name, value in args.items()}

    node, refusal = bench.attempt(at, kind, arguments)
    if refusal is not None:
        return node, None, refusal
    if not last:
        reached = node.reached
        if reached is not moved[0]:  # the tree had the step: the same program, other references
            pairs = zip(statements_in_order(moved[0].state), statements_in_order(reached.state))
            refs = {moved[0].state.refs[one]: reached.state.refs[other] for one, other in pairs}
            kept = {rv: refs.get(sref, sref) for rv, sref in kept.items()}
        shadow.become(reached.copy(kept))
    return node, node.reached.steps[-1].instruction.outputs, None


def replay_steps(bench: Workbench, made: Schedule) -> None:
    """The steps of a schedule that was made in code, as the first branch."""
    shadow = bench.attempts[0].reached.copy()
    table: dict[Any, Any] = {}
    at = bench.at

    def translate(value: object) -> Any:
        if isinstance(value, (BlockRV, LoopRV)):
            return table[value]
        if isinstance(value, (list, tuple)):
            return type(value)(translate(v) for v in value)
        if isinstance(value, Var):
            return table.get(value, value)
        if isinstance(value, PrimExpr) and any(isinstance(k, Var) for k in table):
            return substitute(value, {k: v for k, v in table.items() if isinstance(k, Var)})
        return value

    for step in made.steps:
        inst = step.instruction
        try:
            args = {name: translate(value) for name, value in inst.args.items()}
            if inst.kind.sampling:
                args["decision"] = step.decision
            if inst.kind.method in LOOKUPS:
                if step.error is not None:
                    continue
                results = shadow.apply(inst.kind, args)
            else:
                node, results, refusal = follow(bench, at, shadow, inst.kind, args)
                if refusal is not None:
                    continue
                at = node
        except (KeyError, ScheduleError):
            if step.error is not None:
                continue  # it was refused there too, for an argument that is gone
            raise
        outputs = results if isinstance(results, (list, tuple)) else [results]
        table.update(zip(inst.output_list, outputs))
    bench.goto(at.id)

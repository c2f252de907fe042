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
    values: dict[Any, Any],
    last: bool = False,
) -> tuple[Attempt, Any, ScheduleError | None]:
    """Apply an instruction of `shadow` to it and to the tree at `at`, in step.

    Both schedules have the same program; what the arguments mean in one is found in the other
    by its place. `values` maps sampled numbers. `last`: nothing follows, so the shadow stays
    where it is. Returns (node, results in `shadow` or, of the last, in the tree, refusal).
    """
    args = dict(bound)
    try:
        shadow.resolve(list(args.values()))
    except Refusal as gone:  # a variable whose block or loop is no more
        return at, None, shadow._refused(kind, args, gone, shadow.mod)
    theirs = [shadow.state.refs[s] for s in statements_in_order(shadow.state)]
    place = {id(sref): n for n, sref in enumerate(theirs)}

    def translate(value: object, sch: Schedule, ours: list[Any]) -> Any:
        if isinstance(value, (BlockRV, LoopRV)):
            sref = shadow.resolve(value)
            return variable(sch, sch.state.refs[ours[place[id(sref)]]])
        if isinstance(value, Var):
            return values.get(value, value)
        if isinstance(value, (list, tuple)):
            return type(value)(translate(v, sch, ours) for v in value)
        if isinstance(value, PrimExpr) and values:
            return substitute(value, values)
        return value

    def arguments(sch: Schedule) -> dict[str, Any]:
        ours = statements_in_order(sch.state)
        return {name: translate(value, sch, ours) for name, value in args.items()}

    node, refusal = bench.attempt(at, kind, arguments)
    if refusal is not None:
        return node, None, refusal
    if last:
        return node, node.reached.steps[-1].instruction.outputs, None
    if kind.sampling:  # the same decision in both
        args["decision"] = node.reached.steps[-1].decision
    results = shadow.apply(kind, dict(args))
    made = results if isinstance(results, (list, tuple)) else [results]
    for theirs_rv, our_rv in zip(made, node.reached.steps[-1].instruction.output_list):
        if isinstance(theirs_rv, Var):
            values[theirs_rv] = our_rv
    return node, results, None


def replay_steps(bench: Workbench, made: Schedule) -> None:
    """The steps of a schedule that was made in code, as the first branch."""
    shadow = bench.attempts[0].reached.copy()
    table: dict[Any, Any] = {}
    values: dict[Any, Any] = {}
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
                node, results, refusal = follow(bench, at, shadow, inst.kind, args, values)
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

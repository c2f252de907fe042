"""trace: how the answer's trace stands to another one, and what it does to other programs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...reading import MISTAKES, MLCError, reason
from ...schedule import Schedule, ScheduleError, Trace
from ..answers import Answer
from ..result import Found
from .equivalent import equivalent
from .structure import structure

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ..exercise import Variant

#: what a sampling instruction chose, at the end of its line
_DECISION = re.compile(r", decision=.*\)$")
#: options of an instruction that say the default
_DEFAULTS = re.compile(r", (preserve_unit_iters=True|disable_predication=False)")


def trace(answer: Answer, variant: Variant, *, like: Trace | None = None,
          keeps: Sequence[str] | None = None, on: Mapping[str, IRModule] | None = None,
          **asked: Any) -> Found:
    """Whether the answer's trace is as asked.

    `like`: it has the instructions of this one, and other decisions at most; `keeps`: these steps,
    as `steps_of` tells them, are among its own, in order; `on`: it replays on
    these programs, given by what they are called, computes the same there, and the programs that
    it makes are as `structure` checks them with the other options.
    """
    if answer.sch is None:
        return Found(False, "a trace is asked for")
    if like is not None:
        problem = _differs(answer.sch.trace, like)
        if problem:
            return Found(False, problem)
    left = iter(steps_of(answer.sch.trace))
    for step in keeps or ():
        if step not in left:  # `left` goes on behind the one that is found
            return Found(False, f"this step is not there, or not in its place: {step}")
    for name, program in (on or {}).items():
        found = _replayed(answer.sch.trace, program, variant, asked)
        if not found.passed:
            return Found(False, f"on {name}: {found.says}", found.place)
    return Found(True, f"it replays on {', '.join(on)}" if on else "")


def instructions(of: Trace) -> list[str]:
    """The lines of a trace without what was chosen and without options that say the default."""
    return [_DEFAULTS.sub("", _DECISION.sub(")", line)) for line in of.as_python()]


def steps_of(of: Trace) -> list[str]:
    """The primitives of a trace that change the program. Blocks and loops are told by where they
    come from, so two that act on the same ones are told alike, whatever stands between them."""
    known: dict[Any, str] = {}
    steps = []
    for inst in of.insts:
        given = [_told(value, known) for value in inst.inputs]
        attrs = [_told(value, known) for value in inst.attrs]
        told = f"{inst.kind.method}({', '.join([*given, *attrs])})"
        made = inst.outputs if isinstance(inst.outputs, list) else [inst.outputs]
        if inst.kind.name == "GetBlock":
            told = str(inst.attrs[0])
        elif inst.kind.name != "GetLoops":
            steps.append(told)
        for number, value in enumerate(made):
            loops = f"loop {number} of {given[0]}" if inst.kind.name == "GetLoops" else ""
            part = f"part {number} of {given[0]}" if inst.kind.name == "Split" else told
            if value is not None:
                known[value] = loops or part
    return steps


def _told(value: Any, known: Mapping[Any, str]) -> str:
    """A block, a loop, a number or a list of them."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_told(item, known) for item in value)}]"
    try:
        return known.get(value) or str(value)
    except TypeError:
        return str(value)


def _differs(have: Trace, want: Trace) -> str:
    """Which instruction is not that of another trace, or nothing."""
    ours, theirs = instructions(have), instructions(want)
    for number, (a, b) in enumerate(zip(ours, theirs), 1):
        if a != b:
            return f"instruction {number} is {a}; it was {b}"
    if len(ours) != len(theirs):
        return f"the trace has {len(ours)} instructions; it had {len(theirs)}"
    return ""


def _replayed(steps: Trace, program: IRModule, variant: Variant, asked: Mapping[str, Any]) -> Found:
    """What a trace makes of another program."""
    sch = Schedule(program, seed=1)
    try:
        steps.apply_to_schedule(sch)
    except ScheduleError as error:
        return Found(False, f"{error.call} is refused by the rule \"{error.rule}\": {error.reason}")
    except (MLCError, *MISTAKES, RecursionError) as error:
        return Found(False, f"the trace does not apply: {reason(error)}")
    made = Answer("schedule", sch.mod, sch)
    for found in (equivalent(made, variant, of=program, nasty=False, cases=1),
                  structure(made, variant, **asked)):
        if not found.passed:
            return found
    return Found(True)


def programs(shapes: Sequence[tuple[int, int, int]], make: Any) -> dict[str, IRModule]:
    """Programs for several shapes, by their shapes."""
    return {"the product of {} by {} times {} by {}".format(n, k, k, m): make(n, m, k)
            for n, m, k in shapes}


__all__ = ["instructions", "programs", "steps_of", "trace"]

"""What the decisions of a trace are about, in words: which loop is put in tiles, what a number is
for. A trace calls them v4, v5."""

from __future__ import annotations

import re
from typing import Any

from ..ir.module import IRModule
from ..language import text
from ..observe.live_knobs import replayed
from ..reading import MLCError
from ..schedule import Schedule
from ..schedule.instruction import Instruction
from ..schedule.trace import Trace
from ..tir.stmt import For

_DECISION = re.compile(r", decision=(\[[^\]]*\]|-?\d+)")


def without_decisions(python: str) -> str:
    """The text of a trace without what was decided: traces of one space have the same."""
    return _DECISION.sub("", python)


def words_of(trace: Trace, mod: IRModule) -> dict[str, dict[str, Any]]:
    """Of each decision of a trace, by its name ("v4, v5"): a "label" that says what it is about,
    and the "choices" where the decision is the number of one, else None. What can no longer be
    replayed has no words."""
    names, found = trace.names(), {}
    numbers = {rv for inst in trace.insts if "candidates" in inst.args for rv in inst.output_list}
    last = max((at for at, inst in enumerate(trace.insts)
                if at in trace.decisions or not numbers.isdisjoint(inst.inputs)), default=-1)
    beginning = Trace()
    for at, inst in enumerate(trace.insts[:last + 1]):
        beginning.append(inst, trace.decisions.get(at))
    try:
        for inst, sch, table in replayed(beginning, Schedule(mod)):
            if not inst.kind.sampling:
                if inst.kind.method == "split" and not numbers.isdisjoint(inst.inputs):
                    loop = sch.get(table[inst.args["loop"]]).loop_var.name
                    for rv in numbers.intersection(inst.inputs):
                        found[names[rv]]["label"] = text("tile of {loop}", "views").format(
                            loop=loop)
                continue
            name = ", ".join(names[rv] for rv in inst.output_list)
            about = inst.args.get("loop", inst.args.get("block"))
            stmt = sch.get(table[about]) if about is not None else None
            called = stmt.loop_var.name if isinstance(stmt, For) else getattr(
                stmt, "name_hint", "")
            if "candidates" in inst.args:
                found[name] = {"label": _purpose(trace, inst),
                               "choices": [str(c) for c in inst.args["candidates"]]}
            else:
                label = (text("tiles of {loop}", "views") if isinstance(stmt, For) else
                         text("place of {loop}", "views"))
                found[name] = {"label": label.format(loop=called), "choices": None}
    except MLCError:
        pass
    often = [one["label"] for one in found.values()]
    for name, one in found.items():
        if often.count(one["label"]) > 1:
            one["label"] += f" ({name})"
    return found


def _purpose(trace: Trace, choice: Instruction) -> str:
    """What a number is for: the annotation that it is the value of, or the step that takes it."""
    for inst in trace.insts:
        if not set(inst.inputs).isdisjoint(choice.output_list):
            return str(inst.args.get("ann_key") or inst.kind.method)
    return text("a number", "views")


def said(value: Any, words: dict[str, Any] | None) -> str:
    """A decision as people write it: "2 × 16", or the choice that it is the number of."""
    if isinstance(value, (list, tuple)):
        return " × ".join(map(str, value))
    choices = (words or {}).get("choices")
    if choices and isinstance(value, int) and 0 <= value < len(choices):
        return choices[value]
    return str(value)


__all__ = ["said", "without_decisions", "words_of"]

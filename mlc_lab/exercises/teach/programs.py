"""The programs that answers stand for, beside those of the reference: a service of a worker.

An answer is read here as a judge reads it, in a process that is ended when it takes too long: a
teacher looks at what strangers wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...observe.compare import joined
from ...observe.recording import Recording
from ...observe.session import record
from ...reading import MISTAKES, MLCError, reason
from ...schedule import Schedule
from ..answers import read
from ..catalogue import get
from ..command import as_text


def program_of(variant: Any, answer: Any) -> str:
    """What an answer makes, as text; "" for one that makes no program, or cannot be read."""
    try:
        found = read(variant, answer)
    except (MLCError, *MISTAKES, RecursionError):
        return ""
    try:
        return "" if found.mod is None else found.mod.script()
    finally:
        found.close()


def _look(request: dict[str, Any]) -> dict[str, Any]:
    """Of an answer its program, the reference, and the program of that."""
    variant = get(request["id"], request["folder"]).variant(request["seed"])
    out: dict[str, Any] = {"status": "ok", "program": program_of(variant, request["answer"])}
    try:
        reference = variant.reference
        out["reference"] = as_text(reference)
        out["values"] = reference if variant.exercise.kind == "prediction" else None
        out["right"] = program_of(variant, reference)
    except (MLCError, *MISTAKES, RecursionError) as error:  # of a teacher's own exercise
        out |= {"reference": f"the reference cannot be made: {reason(error)}", "right": ""}
    return out


def _compare(request: dict[str, Any]) -> dict[str, Any]:
    """The schedule of an answer beside that of the reference, as a comparison's data."""
    variant = get(request["id"], request["folder"]).variant(request["seed"])
    found: list[Recording] = []
    for answer, name in ((request["answer"], request["name"]), (variant.reference, "reference")):
        try:
            read_one = read(variant, answer)
        except (MLCError, *MISTAKES, RecursionError) as error:
            return {"status": "error", "reason": reason(error)}
        if read_one.mod is None:
            read_one.close()
            return {"status": "error", "reason": "it makes no program"}
        found.append(record(read_one.sch or Schedule(read_one.mod), name).recording)
    title = f"{variant.exercise.id} {variant.exercise.title}"
    return {"status": "ok", "steps": [len(one.steps) for one in found],
            "comparison": joined(found[0], found[1], title, [request["name"], "reference"])}


def load(role: str) -> None:
    """Prepare the process."""


HANDLERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "look": _look, "compare": _compare}

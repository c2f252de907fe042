"""Reads a saved tree of attempts: checked first, then made again attempt by attempt.

One JSON object: `lines`, `keys`, `programs`, `docs`, `title`, `prelude`, `machine` and `flops` are
those of a recording (see `recording.py`); further

    format    "mlc-lab/attempts"
    version   1
    nodes     [{"id", "parent", "op", "python", "lead", "program", "error", "began"}, ...]: the
              attempts, each after its parent (null for the start); `lead` are the look-ups that
              `python` needs, `program` the program after it, `error` (only of a refused one) is as
              in a recording, `began` (only of the last of several that were made at once) the
              attempt above at which that began
    at        the attempt at which the tree stands
    imports   the Python that stands before the program when it is copied
    sizes, target   for measuring

The file holds TVMScript and the Python of each attempt. Both are parsed and interpreted by this
package's own readers; nothing is executed or unpickled.
"""

from __future__ import annotations

from typing import Any

from ..ir.diagnostics import MLCError
from ..reading import MISTAKES, reason
from ..schedule.instruction import InstructionKind
from ..script import from_source
from ..target import Target
from .recording import RecordingError, validate
from .workbench import FORMAT, VERSION, Workbench
from .workbench_find import WorkbenchError
from .workbench_tree import Attempt
from .workbench_replay import LOOKUPS, follow
from .workbench_python import ScheduleReader


def check(data: Any) -> None:
    """Check plain data against the format. Raises WorkbenchError naming the first wrong entry."""

    def need(condition: bool, where: str, what: str) -> None:
        if not condition:
            raise WorkbenchError(f"not a tree of attempts: {where} {what}")

    need(isinstance(data, dict), "the whole", "is no JSON object")
    need(data.get("format") == FORMAT, "format", f"is {data.get('format')!r}, not {FORMAT!r}")
    need(isinstance(data.get("version"), int), "version", "is no number")
    need(data["version"] <= VERSION, "version", f"is {data['version']}: a newer MLC Lab wrote it")
    nodes = data.get("nodes")
    need(isinstance(nodes, list) and bool(nodes), "nodes", "is missing or empty")
    like_recording = {**data, "format": "mlc-lab/recording", "version": 1, "steps": [
        {"op": "start", "python": "", "before": 0, "after": 0}]}  # fmt: skip
    try:
        validate(like_recording)
    except RecordingError as error:
        raise WorkbenchError(str(error).replace("not a recording", "not a tree of attempts")
                             ) from None  # fmt: skip
    for i, node in enumerate(nodes):
        where = f"nodes[{i}]"
        need(isinstance(node, dict), where, "is no object")
        parent = node.get("parent")
        right = parent is None if i == 0 else type(parent) is int and 0 <= parent < i
        need(right, f"{where}.parent", f"is {parent!r}, no attempt before it")
        need(isinstance(node.get("python"), str), f"{where}.python", "is no text")
        lead = node.get("lead")
        need(isinstance(lead, list) and all(isinstance(x, str) for x in lead),
             f"{where}.lead", "is no list of texts")  # fmt: skip
        program = node.get("program")
        need(type(program) is int and 0 <= program < len(data["programs"]), f"{where}.program",
             "is no program")  # fmt: skip
        if node.get("began") is not None:
            up, began = parent, node["began"]
            while type(began) is int and up is not None and up > began:
                up = nodes[up]["parent"]
            need(type(began) is int and up == began, f"{where}.began", "is no attempt above it")
    at = data.get("at", 0)
    need(type(at) is int and 0 <= at < len(nodes), "at", "is no attempt")
    sizes, target = data.get("sizes") or {}, data.get("target", "llvm")
    need(isinstance(sizes, dict) and all(type(v) is int and 0 < v < 1 << 31 for v in
                                         sizes.values()), "sizes", "is no object of sizes")
    need(isinstance(target, (str, dict)), "target", "is no text and no object")
    try:
        Target(target)
    except MLCError as error:
        need(False, "target", f"is none: {error}")


def read(cls: type[Workbench], data: object) -> Workbench:
    """The tree that plain data describes. Raises WorkbenchError."""
    check(data)
    try:
        return _read(cls, data)
    except WorkbenchError:
        raise
    except MISTAKES as error:
        raise WorkbenchError(f"not a tree of attempts: {reason(error)}") from error


def _read(cls: type[Workbench], data: Any) -> Workbench:
    """The tree of data that has the right form."""
    lines = [data["lines"][i][0] for i in data["programs"][0]["lines"]]
    try:
        module = from_source("\n".join(lines))
    except MLCError as error:
        raise WorkbenchError(f"not a tree of attempts: its program cannot be read: {error}"
                             ) from None  # fmt: skip
    sizes = data.get("sizes") or {}
    bench = cls(module, title=data["title"], target=data.get("target", "llvm"), sizes=sizes)
    made: list[Attempt] = [bench.attempts[0]]
    for number, node in enumerate(data["nodes"][1:], 1):
        made.append(_again(bench, made[node["parent"]], node, number))
    for old, new in zip(data["nodes"], made):
        cost = data["programs"][old["program"]].get("cost")
        if cost is not None and new.error is None:
            bench.recording.programs[new.program].cost = cost
        if old.get("began") is not None:
            new.began = made[old["began"]].id
    bench.recording.machine = data.get("machine", {})
    bench.recording.flops = data.get("flops")
    bench.goto(made[data.get("at", 0)].id)
    return bench


def _again(bench: Workbench, parent: Attempt, node: dict[str, Any], number: int) -> Attempt:
    """Make one attempt again under its parent."""
    if parent.schedule is None:
        raise WorkbenchError(f"not a tree of attempts: nodes[{number}] goes on from a refused one")
    shadow = parent.schedule.copy()
    scope = {name: rv for rv, name in parent.names.items()}
    found: list[Attempt] = []

    def apply(kind: InstructionKind, bound: dict[str, Any], line: int) -> Any:
        if kind.method in LOOKUPS:
            return shadow.apply(kind, bound)
        if found:
            raise WorkbenchError(f"not a tree of attempts: nodes[{number}] holds two steps")
        made, results, _ = follow(bench, parent, shadow, kind, bound, last=True)
        found.append(made)
        return results if results is not None else [None] * 64

    text = "\n".join([*node["lead"], node["python"]])
    try:
        ScheduleReader(text, apply, scope).read()
    except MLCError as error:
        raise WorkbenchError(f"not a tree of attempts: nodes[{number}]: {error}") from None
    if not found:
        raise WorkbenchError(f"not a tree of attempts: nodes[{number}] holds no step")
    return found[0]

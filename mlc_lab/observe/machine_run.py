"""A run of the virtual machine as plain data that a view can draw: bytecode, registers, memory.

`vm.trace("main", x)` records a run; `run_of(trace)` gives a `MachineRun`. Its JSON, version 1:

    format    "mlc-lab/machine-run"
    version   1
    title     the function that was called
    code      [{"function", "lines": [text, ...]}, ...]: the bytecode of every function that ran
    steps     [{"code": index into code, "at": line, "depth": calls around it, "name": what it
              calls, "kernel": whether it is work of the program and not of the machine, "reads":
              [register], "writes": register or "", "seconds", "set": {register: text}, "unset":
              [register], "wrote": {register: index into values or null}, "node": index into nodes
              or null}, ...]: `set` and `unset` are what changed among the registers, `wrote` what
              was written into tensors (null: not looked at, for lack of time)
    given     {register: index into values or null}: what the arguments hold
    values    [summary, ...]: what tensors hold, in the form of `relax/vm/values.py`
    nodes     [{"label", "name" (the variable it binds), "type", "takes": [{"name", "type", "node":
              index into nodes or null}, ...]}, ...]: the kernels in the graph that was built
    storages  [{"size", "from", "to": steps, the last one excluded, "tensors": [{"register",
              "offset", "size", "from", "to"}, ...]}, ...]: memory in the order it was allocated
    live      [bytes, ...]: memory held after each step
    unshared  [bytes, ...]: what would be held if each tensor had memory of its own to the end
    peak      the most that was held

Sizes are in bytes, times in seconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..above import above
from ..language import text
from .kernels import Kernels

FORMAT = "mlc-lab/machine-run"
VERSION = 1


class MachineRun:
    """A recorded run, ready to be drawn. `data` is described at the head of this file."""

    def __init__(self, trace: Any) -> None:
        self.kernels = Kernels(trace.executable, trace.func_name)
        self.data = _read(trace, self.kernels)

    def to_dict(self) -> dict[str, Any]:
        """The run as plain data."""
        return self.data

    def to_json(self) -> str:
        """The JSON text of `to_dict`."""
        return json.dumps(self.data, separators=(",", ":"), ensure_ascii=False)

    def table(self) -> str:
        """The kernels of the run and the memory held, as text."""
        rows = [f"{1e6 * s['seconds']:10.2f} us  {'  ' * s['depth']}{s['name']}"
                for s in self.data["steps"] if s["kernel"]]
        return "\n".join([*rows, f"memory at the peak: {self.data['peak']} bytes"])

    def show(self) -> Any:
        """The run as a notebook widget."""
        MachineView = above("view of a run").MachineView
        return MachineView(self)

    def html(self, path: str | Path | None = None, title: str | None = None) -> str:
        """The run as one HTML page without a kernel; written to `path` if given."""
        page = above("view of a run").page
        titled = text("A run of {title}", "views").format(title=self.data["title"])
        made = page([self], title or titled)
        if path is not None:
            Path(path).write_text(made, encoding="utf-8")
        return made

    def _repr_mimebundle_(self, **kwargs: object) -> Any:
        try:
            return self.show()._repr_mimebundle_(**kwargs)
        except ImportError:
            return {"text/plain": self.table()}

    def __repr__(self) -> str:
        return f"<run of {self.data['title']}: {len(self.data['steps'])} steps>"


def run_of(trace: object) -> MachineRun:
    """A run recorded by `vm.trace(...)`."""
    return MachineRun(trace)


def _read(trace: Any, kernels: Kernels) -> dict[str, Any]:
    values: list[dict] = []

    def numbered(found: dict[str, dict | None]) -> dict[str, int | None]:
        """Summaries by their numbers in `values`."""
        new = [summary for summary in found.values() if summary is not None]
        values.extend(new)
        at = iter(range(len(values) - len(new), len(values)))
        return {name: None if summary is None else next(at) for name, summary in found.items()}

    calls: dict[str, int] = {}
    given = numbered(trace.given)
    code: list[dict] = []
    index: dict[str, int] = {}
    steps: list[dict] = []
    before: dict[str, str] = {}
    for step in trace.steps:
        if step.function not in index:
            index[step.function] = len(code)
            code.append({"function": step.function, "lines": list(trace.code[step.function])})
        now = {name: text_of(value) for name, value in step.registers.items()}
        kernel = _is_kernel(step.name, trace.code)
        call = calls.setdefault(step.name, 0)
        if kernel and step.function == trace.func_name:
            calls[step.name] += 1
        steps.append({
            "code": index[step.function], "at": step.at, "depth": step.depth, "name": step.name,
            "kernel": kernel,
            "reads": [r for r in step.reads if r.startswith("%") and r != "%vm"],
            "writes": step.writes, "seconds": step.seconds,
            "set": {n: t for n, t in now.items() if before.get(n) != t},
            "unset": [n for n in before if n not in now], "wrote": numbered(step.wrote),
            "node": kernels.node_of(step.name, call) if kernel else None})
        before = now
    storages = _storages(trace.steps)
    live = [sum(row["size"] for row in step.storages if row["alive"]) for step in trace.steps]
    return {"format": FORMAT, "version": VERSION, "title": trace.func_name, "code": code,
            "steps": steps, "given": given, "values": values, "nodes": kernels.nodes,
            "storages": storages, "live": live,
            "unshared": _unshared(storages, len(steps)), "peak": max(live, default=0)}


def _is_kernel(name: str, code: dict) -> bool:
    """Whether a call is work of the program: not of the machine, not another function's."""
    return not name.startswith(("vm.", "shape_func")) and name not in code


def _storages(steps: Any) -> list[dict]:
    """When each piece of memory, and each tensor in it, came and went."""
    found: list[dict] = []
    for number, step in enumerate(steps):
        for row in step.storages:
            if row["id"] == len(found):
                found.append({"size": row["size"], "from": number, "to": len(steps), "tensors": []})
            entry = found[row["id"]]
            if not row["alive"]:
                entry["to"] = min(entry["to"], number)
            now = {(t["register"], t["offset"], t["size"]) for t in row["tensors"]}
            open_ = [t for t in entry["tensors"] if t["to"] is None]
            for tensor in open_:
                key = tensor["register"], tensor["offset"], tensor["size"]
                if key in now:
                    now.discard(key)
                else:
                    tensor["to"] = number
            entry["tensors"] += [{"register": r, "offset": o, "size": s, "from": number, "to": None}
                                 for r, o, s in sorted(now)]
    for entry in found:
        for tensor in entry["tensors"]:
            tensor["to"] = entry["to"] if tensor["to"] is None else tensor["to"]
    return found


def _unshared(storages: list[dict], count: int) -> list[int]:
    born = [0] * (count + 1)
    for entry in storages:
        for tensor in entry["tensors"]:
            born[tensor["from"]] += tensor["size"]
    out, total = [], 0
    for number in range(count):
        total += born[number]
        out.append(total)
    return out


def text_of(value: dict[str, Any]) -> str:
    """A described register in words."""
    kind = value["kind"]
    if kind == "tensor":
        return f"{'x'.join(map(str, value['shape'])) or 'scalar'} {value['dtype']}"
    if kind == "storage":
        return f"memory of {value['size']} bytes"
    if kind == "shape":
        return f"shape ({', '.join(map(str, value['values']))})"
    if kind == "tuple":
        return f"({', '.join(text_of(v) for v in value['items'])})"
    return str(value["value"]) if "value" in value else kind


__all__ = ["MachineRun", "run_of", "text_of"]

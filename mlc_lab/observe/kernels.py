"""The kernels of a run: which node of the graph each is, and how its program came about.

An executable keeps the graph of kernels that it was built from and the kernels as they were
compiled (`Executable.unscheduled`, `Executable.kernels`). The default schedule of a kernel is made
again from these, and shown only where it gives the very program that was compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dlight.base import is_scheduled, schedule_of
from ..dlight.cpu import default_rules
from ..ir.module import IRModule
from ..ir.structural import structural_equal
from ..language import text
from ..schedule import Schedule
from ..target import Target
from ..tir.function import PrimFunc
from .graph import GraphError, graph_of
from .recording import Recording
from .session import record

if TYPE_CHECKING:
    from ..relax.vm.bytecode import Executable


class Kernels:
    """The kernels of an executable, as one of its functions calls them."""

    def __init__(self, executable: Executable | None, func_name: str) -> None:
        self.executable = executable
        self.nodes: list[dict[str, Any]] = []
        self._calls: dict[str, list[int]] = {}
        self._read_graph(func_name)

    def _read_graph(self, func_name: str) -> None:
        mod = getattr(self.executable, "unscheduled", None)
        if mod is None:
            return
        try:
            graph = graph_of(mod, func_name)
        except GraphError:
            return
        calls = [n for n in graph.nodes if n["kind"] in ("kernel", "extern")]
        number = {node["id"]: at for at, node in enumerate(calls)}
        label = {n["id"]: n["name"] or n["label"] for n in graph.nodes}
        for at, node in enumerate(calls):
            takes = [{"name": label[e["from"]], "type": e["label"], "node": number.get(e["from"])}
                     for e in graph.edges if e["to"] == node["id"]]
            takes += [{"name": "constant", "type": c["type"], "node": None}
                      for c in node["constants"]]
            self.nodes.append({"label": node["label"], "name": node["name"], "type": node["type"],
                               "takes": takes})
            self._calls.setdefault(node["label"], []).append(at)

    def node_of(self, name: str, call: int) -> int | None:
        """The number of the node that the call of a kernel is, the first being call 0; None where
        the function calls it in another order than its graph says, as in branches and loops."""
        found = self._calls.get(name, [])
        return found[call] if call < len(found) else None

    def names(self) -> list[str]:
        """The kernels that there are programs of."""
        mod = getattr(self.executable, "kernels", None)
        return [] if mod is None else [var.name_hint for var in mod.functions]

    def schedule(self, name: str) -> Schedule | None:
        """The default schedule that made a kernel; None where something else did."""
        before, after = (self._function(part, name) for part in ("unscheduled", "kernels"))
        if (self.executable is None or before is None or after is None
                or is_scheduled(before)):
            return None
        sch = schedule_of(before, Target(self.executable.target), default_rules())
        if sch is None:
            return None
        made = sch.mod["main"]
        return sch if structural_equal(made.replace(attrs=after.attrs), after) else None

    def recording(self, name: str) -> tuple[Recording, str]:
        """The schedule of a kernel, step by step, and in words where it comes from.

        Raises KeyError for a kernel that there is no program of.
        """
        sch = self.schedule(name)
        if sch is not None:
            return record(sch, name).recording, text(
                "the default schedule of this kind of kernel", "views")
        func = self._function("kernels", name)
        if func is None:
            raise KeyError(f"there is no program of {name}")
        made = record(Schedule(IRModule({"main": func})), name).recording
        return made, text("as it was compiled: its schedule was there before, from a search or by "
                          "hand, or no rule fits it", "views")

    def _function(self, part: str, name: str) -> PrimFunc | None:
        mod = getattr(self.executable, part, None)
        if mod is None:
            return None
        found = [f for v, f in mod.functions.items() if v.name_hint == name]
        return found[0] if found and isinstance(found[0], PrimFunc) else None


__all__ = ["Kernels"]

"""The accesses of an answer's program around the one that is at fault.

What is at fault is named by the place of a row of the marks (`result.Found`): the element that was
written wrongly, or reached outside of its buffer; or the buffer whose accesses miss most, of which
the first miss is shown that need not be, because the line was there before. Of a model it is the
binding whose value differs first: what is shown is its graph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.module import IRModule
from ..observe.access import AccessTrace, accesses
from ..observe.graph import graph_of
from ..observe.instrument import Element
from ..observe.measure import Unmeasurable, only_function
from ..observe.outside import why_not
from .checks.work import too_large
from .checks.models import model_of

#: accesses that a card shows, and among which a miss is looked for
SHOWN, SEARCHED = 20_000, 400_000
#: of those that are shown so many come before the one at fault: the caches have filled by then
_BEFORE = 15_000


def watched(mod: IRModule | None, place: Mapping[str, Any]) -> dict[str, Any]:
    """Accesses of a program, as `AccessTrace.shown` has them, with the "position" of the one at a
    place; of a model its graph, with the node that is at fault "selected"; or {"message": why
    there is nothing}."""
    if mod is None:
        return {"message": "it makes no program"}
    if "binding" in place and model_of(mod) is not None:
        return _in_graph(mod, str(place["binding"]))
    sizes = place.get("sizes")
    why = _why_not(mod) or too_large(mod, sizes)
    if why:
        return {"message": why}
    options: dict[str, Any] = {"limit": SHOWN, "sizes": sizes, "threads": 1}
    element = _element(place)
    try:
        trace = accesses(mod, last_of=element, **options)
    except Unmeasurable:
        if element is None:
            raise
        trace = accesses(mod, **options)  # what it names has been renamed, or lies in registers
    at = trace.last if element is not None else _miss(mod, trace, place, options)
    if at >= len(trace):
        trace = accesses(mod, first=at - _BEFORE, **options)
    return {**trace.shown(place.get("caches"), 1), "position": max(0, at - trace.first)}


def _in_graph(mod: IRModule, name: str) -> dict[str, Any]:
    """The graph of a model, with the node of a binding "selected"."""
    graph = graph_of(mod)
    found = [node["id"] for node in graph.nodes if node["name"] == name]
    return {"graph": graph.to_dict(), "selected": found[-1] if found else ""}


def _why_not(mod: IRModule) -> str:
    """Why a program cannot be watched, or nothing."""
    if model_of(mod) is not None:
        return "it is a model, and only the accesses of one kernel are shown"
    only_function(mod)  # or raises which of them is not clear
    return why_not(mod)


def _element(place: Mapping[str, Any]) -> Element | None:
    """The element that a place names, as "C[0, 1]"."""
    found = re.fullmatch(r"(\w+)\[([-\d, ]*)\]", str(place.get("element", "")))
    if not found:
        return None
    indices = tuple(int(n) for n in found[2].split(",") if n.strip())
    return Element(found[1], indices, bool(place.get("write", True)))


def _miss(mod: IRModule, trace: AccessTrace, place: Mapping[str, Any], options: dict[str, Any]
          ) -> int:
    """The number of the first miss of the buffer that a place names whose line was used before;
    where there is none the first miss, or the first access of it, and 0 where there is no such."""
    if "buffer" not in place:
        return 0
    if trace.total > len(trace):
        trace = accesses(mod, **{**options, "limit": SEARCHED})
    names = np.array([p.name for p in trace.places])
    its = (names[trace.buffer] == place["buffer"]) & (trace.write == bool(place.get("write")))
    result = trace.result(place.get("caches"))
    missed = its & (result.simulation.found > int(place.get("level", 0)))
    line = trace.address // result.hierarchy.levels[0].line
    again = np.ones(len(trace), bool)
    again[np.unique(line, return_index=True)[1]] = False
    for wanted in (missed & again, missed, its):
        if wanted.any():
            return int(np.argmax(wanted))
    return 0


__all__ = ["SEARCHED", "SHOWN", "watched"]

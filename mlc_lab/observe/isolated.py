"""What the process does that `isolate.py` or `code_ahead.py` keeps: a service of
`mlc_lab/workers`."""

from __future__ import annotations

from typing import Any

from ..machine.caches import CacheHierarchy
from . import count_steps, measure
from .access import accesses
from .lowered import code_of
from .outside import why_not
from .recording import Recording

#: the programs, the reference first, and what measures them
_modules: list[Any] = [None]
_session: Any = None


def _begin(request: dict[str, Any]) -> dict[str, Any]:
    global _session
    _session = measure.Measurement(
        Recording(), _modules, target=request["target"], sizes=request["sizes"],
        trusted=request["trusted"])
    return {"status": "ok", "cost": {}}


def _run_reference(request: dict[str, Any]) -> dict[str, Any]:
    _modules[0] = request["module"]
    _session.arrays = _session.right = None  # those of the reference before
    return {"status": "ok", "cost": _session.reference()}


def _measure(request: dict[str, Any]) -> dict[str, Any]:
    measure.TIME_EACH = request["seconds"]
    _modules[1:] = [request["module"]]
    return {"status": "ok", "cost": _session.one(1)}


def _count(request: dict[str, Any]) -> dict[str, Any]:
    caches = request["caches"] and CacheHierarchy.from_dict(request["caches"])
    return {"status": "ok", "cost": count_steps.counted(
        request["module"], caches, _session.sizes, _session.target, _session.trusted,
        request["inner"])}


def _trace(request: dict[str, Any]) -> dict[str, Any]:
    mod = request["module"]
    if not _session.trusted and (reason := why_not(mod)):
        return {"status": "ok", "cost": {"message": f"not run: {reason}"}}
    trace = accesses(mod, limit=request["limit"], sizes=_session.sizes, target=_session.target)
    return {"status": "ok", "cost": trace.shown(
        CacheHierarchy.from_dict(request["caches"]), request["offered"])}


def _code(request: dict[str, Any]) -> dict[str, Any]:
    recording = Recording()
    recording.modules = [request["module"]]
    return {"status": "ok", "code": code_of(recording, [0], request["target"])}


HANDLERS = {"begin": _begin, "reference": _run_reference, "cost": _measure, "counted": _count,
            "accesses": _trace, "code": _code}

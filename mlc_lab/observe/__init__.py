"""Recordings of what the compiler did: steps, differences, timings, correctness, memory accesses.

A view never runs a pass: it draws a recording made here. `recording.py` has the format,
`session.py` gathers the schedules a program makes, `measure.py` times and checks their steps,
`flops.py` counts arithmetic, `doctor.py` examines the machine. `counts.py` counts cache misses
exactly, `access.py` traces the accesses of small programs; both run the program with a report of
each load and store inside (`instrument.py`, `report_code.py`), in simulated caches (`cache.py`,
`cache_code.py`). `sharing.py` counts the cache lines that threads take from each other.
"""

from __future__ import annotations

from typing import Any

_HOME = {
    "CacheHierarchy": "..machine.caches", "CacheLevel": "..machine.caches", "accesses": ".access",
    "count_accesses": ".counts", "count_sharing": ".sharing", "reuse_distances": ".replay",
    "simulate": ".replay",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """The functions that people call, each imported when it is first asked for."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home, __name__), name)

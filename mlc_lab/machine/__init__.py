"""What is known of the machine that code is made for, or that it runs on: one place for each fact.

`vectors.py` has the width and number of vector registers, `caches.py` the caches, `hardware.py`
both as a search asks for them, `peak.py` measures operations and bytes a second, and `of_target.py`
gives the machine as LLVM wants it described. Search, default schedules, views and code generation
all ask here.
"""

from __future__ import annotations

from typing import Any

_HOME = {
    "CacheHierarchy": "caches", "CacheLevel": "caches", "Hardware": "hardware",
    "VectorUnit": "vectors", "cache_bytes": "caches", "hardware_of": "hardware",
    "bandwidth": "peak", "measure_bandwidth": "peak", "measure_peak": "peak",
    "vector_bits": "vectors", "vector_unit": "vectors",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """The functions that people call, each imported when it is first asked for."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


__all__ = [*_HOME]

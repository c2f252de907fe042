"""The table of checks: each is a function of an answer, its variant and the row's options.

A check gives a `Found`: whether the row is passed, and in words what was found, with the place
where an answer is wrong. Nothing here looks at a clock or at this machine, but for `speed`: the
same answer has the same marks everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .counts import counts
from .equivalent import equivalent
from .function import function
from .gpu_counts import gpu_counts
from .graph import graph
from .graph_results import moves, same_graph
from .machine_code import machine_code
from .marks import marks
from .own import own
from .prediction import prediction
from .space import search, space
from .speed import speed
from .structure import structure
from .threads import threads
from .traces import trace

#: kind of check -> (answer, variant, **options) -> Found
CHECKS: dict[str, Callable[..., Any]] = {
    "counts": counts, "equivalent": equivalent, "graph": graph, "machine_code": machine_code,
    "marks": marks,
    "prediction": prediction, "speed": speed, "structure": structure, "trace": trace,
    "function": function, "gpu_counts": gpu_counts, "moves": moves, "own": own,
    "same_graph": same_graph, "search": search, "space": space, "threads": threads,
}

__all__ = ["CHECKS"]

"""Features of a candidate for a GPU, for cost models, computed from the decisions of its trace.

No schedule is made for them: to replay a trace takes a tenth of a second, and a search looks at
many more candidates than it measures. There are the decisions in their order, how many blocks,
virtual threads and threads they bind, and of the tiles of all axes how many elements the inner
levels have. Of a product that is tiled there is an estimate of the time (`gpu_estimate.py`), which
trees correct by what was measured, or modelled; of others they learn all.
"""

from __future__ import annotations

import math

import numpy as np

from ..schedule import Trace
from .gpu_estimate import Product, estimated_seconds
from .trace_extents import bound_extents

#: numbers of decisions, and of all together
_DECISIONS, WIDTH = 40, 52
_AXES = ("blockIdx.x", "vthread.x", "threadIdx.x")


def gpu_features_of(trace: Trace, product: Product | None = None) -> tuple[np.ndarray, float]:
    """Features of a trace with decisions, and an estimate of its seconds."""
    row: list[float] = []
    levels: dict[int, list[list[int]]] = {}
    for index, inst in enumerate(trace.insts):
        decision = trace.decisions.get(index)
        if inst.kind.name == "EnterPostproc":
            break
        if not inst.kind.sampling or decision is None:
            continue
        if inst.kind.name == "SamplePerfectTile":
            row += map(math.log2, decision)
            levels.setdefault(len(decision), []).append(list(decision))
        elif inst.kind.name == "SampleCategorical":
            row.append(math.log2(1 + abs(float(inst.args["candidates"][decision]))))
        else:
            row.append(float(decision) if isinstance(decision, int) else 0.0)
    row = [*row, *[0.0] * _DECISIONS][:_DECISIONS]
    found = bound_extents(trace)
    row += [math.log2(found.get(axis, 1)) for axis in _AXES]
    tiles = max(levels.items(), default=(0, []))[1]
    for start in (1, 2, 3):  # a block's tile, a virtual thread's, a thread's
        sizes = [math.prod(tile[start:]) for tile in tiles]
        row += [math.log2(math.prod(sizes)), math.log2(sum(sizes) + 1)]
    row += [len(trace.insts), *[0.0] * (WIDTH - len(row))]
    return np.array(row[:WIDTH], np.float32), estimated_seconds(trace, product)


__all__ = ["WIDTH", "gpu_features_of"]

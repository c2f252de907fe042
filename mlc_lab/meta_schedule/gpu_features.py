"""Features of a candidate for a GPU, for cost models, computed from its TensorIR without lowering.

Of each kernel's axes the extents, and of every store, those with the most iterations first: how often
it runs, what it stores to, how much a thread repeats, how many elements it loads, and what is left to
the postprocessors (the vectors of a copy, unrolling). There is no estimate of the time but that of the
arithmetic: trees learn the rest from what was measured, or modelled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..observe import flops
from ..tir.expr import BufferLoad
from ..tir.functor import pre_order
from ..tir.op import as_int
from ..tir.stmt import Block, BufferStore, For, ForKind, Stmt
from .schedule_rule.auto_unroll import UNROLL
from .schedule_rule.multi_level_tiling_gpu import FETCH

#: stores that get features, and how many numbers each
STORES, WIDTH = 8, 9
#: operations a second, only to give the estimate a unit of time
_RATE = 1e13
_SCOPES = ("global", "shared", "local")


def _log(x: float) -> float:
    return math.log2(x + 1)


class _Walk:
    """Goes through a program; `rows` has of each store its iterations and numbers."""

    def __init__(self) -> None:
        self.axes: dict[str, int] = {}
        self.rows: list[tuple[float, list[float]]] = []
        self.asked = 0.0
        self.operations = 0.0

    def visit(self, s: Any, total: int, thread: int, fetch: float) -> None:
        """`total` iterations of a store, `thread` of them in the innermost thread."""
        if type(s) is For:
            n = as_int(s.extent) or 1
            total *= n
            if s.thread_binding is not None:
                tag = s.thread_binding.thread_tag
                self.axes[tag] = max(n, self.axes.get(tag, 1))
                thread = 1
            else:
                thread *= n
        elif isinstance(s, Block):
            fetch = float(getattr(s.annotations.get(FETCH), "value", s.annotations.get(FETCH) or 0))
            asked = s.annotations.get(UNROLL)
            self.asked = float(getattr(asked, "value", asked or self.asked))
        elif type(s) is BufferStore:
            self._store(s, total, thread, fetch)
        for part in s.children():
            if isinstance(part, Stmt):
                self.visit(part, total, thread, fetch)

    def _store(self, s: BufferStore, total: int, thread: int, fetch: float) -> None:
        loads = [n for n in pre_order(s.value) if type(n) is BufferLoad]
        try:
            self.operations += total * flops.count_value(s.value)
        except flops.Uncountable:
            pass
        at = s.buffer.scope() or "global"
        self.rows.append((float(total), [
            _log(total), _log(thread), fetch, len(loads),
            sum((n.buffer.scope() or "global") == "global" for n in loads),
            *(float(at == scope) for scope in _SCOPES), 1.0]))


def gpu_features_of(mod: Any) -> tuple[np.ndarray, float]:
    """Features of a module's function, and seconds of its arithmetic alone."""
    func = mod["main"] if "main" in mod else next(iter(mod.functions.values()))
    walk = _Walk()
    walk.visit(func.body, 1, 1, 0.0)
    axes = [_log(walk.axes.get(tag, 1)) for tag in (
        "blockIdx.x", "blockIdx.y", "vthread.x", "threadIdx.x", "threadIdx.y")]
    row = [*axes, _log(walk.asked)]
    walk.rows.sort(key=lambda pair: -pair[0])
    for _, numbers in walk.rows[:STORES]:
        row += numbers
    row += [0.0] * (6 + STORES * WIDTH - len(row))
    factors = [as_int(n.extent) or 1 for n in pre_order(func.body)
               if type(n) is For and n.kind is ForKind.SERIAL][:12]
    row += [*map(_log, factors), *[0.0] * (12 - len(factors))]
    return np.array(row, np.float32), max(walk.operations, 1.0) / _RATE


__all__ = ["STORES", "WIDTH", "gpu_features_of"]

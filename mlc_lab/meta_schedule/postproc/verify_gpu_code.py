"""VerifyGPUCode: drop what has more threads or registers than the target's blocks.

Counted in the decisions of a trace, where they say it, before it is replayed; else in the schedule,
before anything is lowered or built (RewriteCooperativeFetch counts the shared memory). The pass of
the same name (`mlc_lab/lower/verify_gpu_code.py`) has the last word when a candidate is built.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...target.limits import limits_of
from ...tir.op import as_int
from ...tir.expr import BufferLoad
from ...tir.stmt import BufferStore, For, Stmt
from ..gpu_tiles import tiles_of
from ..trace_extents import bound_extents
from .postproc import Postproc

if TYPE_CHECKING:
    from ...schedule.schedule import Schedule
    from ...schedule.trace import Trace

#: results that a thread keeps, and virtual threads, at most
_RESULTS, _VIRTUAL = 128, 16
#: threads of a warp, below which lanes are idle
_WARP = 32


class VerifyGPUCode(Postproc):
    """Judges each nest of loops that is bound to threads."""

    stage = "judged"

    def admits(self, trace: Trace) -> bool:
        """Whether the loops that a trace binds keep the limits, and what a tiled product takes."""
        return self._fits(bound_extents(trace), 1) and self._holds(trace)

    def _holds(self, trace: Trace) -> bool:
        """Whether the results of a thread fit, and the copies of inputs in shared memory."""
        product = self.context.product if self.context is not None else None
        tiles = tiles_of(trace, product)
        limits = limits_of(self.context.target) if self.context is not None else None
        if tiles is None or product is None or limits is None:
            return True
        return (tiles.results <= _RESULTS
                and sum(tiles.copies(product)) * product.nbytes <= limits.shared_bytes)

    def _fits(self, axes: Mapping[str, int], results: int) -> bool:
        limits = limits_of(self.context.target) if self.context is not None else None
        if limits is None:
            return True
        threads, virtual, blocks = (
            math.prod(n for tag, n in axes.items() if tag.startswith(word))
            for word in ("threadIdx", "vthread", "blockIdx"))
        idle = threads < _WARP <= virtual * blocks  # lanes that there would be work for
        return (threads <= limits.threads and virtual <= _VIRTUAL
                and virtual * results <= _RESULTS and not ("vthread.x" in axes and idle))

    def apply(self, sch: Schedule) -> bool:
        """Whether all kernels keep the limits."""
        for func in sch.mod.functions.values():
            for kernel in _kernels(func.body):
                found = _Kernel()
                found.walk(kernel, 1)
                if not self._fits(found.axes, found.results):
                    return False
        return True


def _kernels(s: Any) -> list[For]:
    """The outermost loops that are bound."""
    if type(s) is For and s.thread_binding is not None:
        return [s]
    return [k for part in s.children() if isinstance(part, Stmt) for k in _kernels(part)]


class _Kernel:
    """What one kernel asks for."""

    def __init__(self) -> None:
        self.axes: dict[str, int] = {}
        self.results = 1  # that a thread keeps, for each virtual thread

    def walk(self, s: Any, inside: int) -> None:
        """`inside`: iterations of the loops around that belong to one thread."""
        if type(s) is For:
            n = as_int(s.extent) or 1
            if s.thread_binding is not None:
                tag = s.thread_binding.thread_tag
                self.axes[tag] = max(n, self.axes.get(tag, 1))
                inside = 1
            else:
                inside *= n
        elif type(s) is BufferStore and type(s.value) is BufferLoad and (
                s.value.buffer.scope() == "local"):
            self.results = max(self.results, inside)
        for part in s.children():
            if isinstance(part, Stmt):
                self.walk(part, inside)


__all__ = ["VerifyGPUCode"]

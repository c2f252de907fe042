"""What the limits of a GPU leave: how much of them a program takes, before anything runs.

    threads        [used, most]: threads of a block
    shared         [used, most]: bytes of shared memory of a block
    registers      [used, most]: of a thread, estimated
    occupancy      {"warps", "most", "limit"}: warps that a multiprocessor holds, and what allows no
                   more
    message        why there are no figures, else ""

A program of several kernels has the most that one of them takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir import dtype as dt
from ...ir.module import IRModule
from ...language import text
from ...lower.pipeline import default_passes, has_thread_axes, with_own
from ...lower.split_host_device import is_kernel, launch_extents
from ...target import Target
from ...target.gpus import gpu_of
from ...target.limits import limits_of
from ...tir.functor import all_statements
from ...tir.op import as_int
from ...tir.stmt import Allocate
from .occupancy import MOST_REGISTERS, occupancy, registers

if TYPE_CHECKING:
    from ...target.target import TargetLike
    from ...tir.function import PrimFunc


def what_is_left(mod: IRModule, target: TargetLike) -> dict[str, Any] | None:
    """The figures of a program for a GPU, as at the head of this file; None for another target."""
    where = Target(target)
    limits = limits_of(where)
    if limits is None:
        return None
    if not has_thread_axes(mod):
        return {"message": text("no loop is bound to threads yet", "views")}
    try:
        for step in with_own(default_passes(where)):
            mod = step(mod)
        kernels = [_taken(f) for f in mod.functions.values() if is_kernel(f)]
    except Exception as error:  # told to the reader, who may be half way
        return {"message": str(error).split("\n")[0]}
    if not kernels:
        return {"message": text("no loop is bound to threads yet", "views")}
    threads, shared, words = (max(k[n] for k in kernels) for n in range(3))
    found: dict[str, Any] = {"threads": [threads, limits.threads],
                             "shared": [shared, limits.shared_bytes],
                             "registers": [words, MOST_REGISTERS], "message": ""}
    gpu = gpu_of(where)
    held = min((occupancy(gpu, *(taken[n] for n in (0, 2, 1))) for taken in kernels),
               key=lambda h: h.warps)
    found["occupancy"] = {"warps": held.warps, "most": held.most_warps, "limit": held.limit}
    return found


def _taken(func: PrimFunc) -> tuple[int, int, int]:
    """Threads of a block, bytes of shared memory, registers of a thread."""
    threads = shared = own = 0
    for tag, extent in launch_extents(func).items():
        if tag.startswith("threadIdx"):
            threads = max(threads, 1) * (as_int(extent) or 1)
    for s in all_statements(func.body):
        if type(s) is Allocate:
            nbytes = dt.bytes_of(s.dtype)
            for extent in s.extents:
                nbytes *= as_int(extent) or 1
            if s.buffer_var.storage_scope.startswith("shared"):
                shared += nbytes
            else:
                own += -(-nbytes // 4)
    return max(threads, 1), shared, registers(func, own)


__all__ = ["what_is_left"]

"""VerifyGPUCode: kernels fit the device, and nothing of the program runs outside of them.

The program stays as it is. A refusal says the limit, the amount, and the statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir import dtype as dt
from ..ir.module import IRModule
from ..ir.transform import Pass, PassContext, PassInfo
from ..target.limits import Limits, limits_of
from ..tir.expr import BufferLoad
from ..tir.function import PrimFunc
from ..tir.functor import all_statements, pre_order
from ..tir.op import as_int
from ..tir.stmt import Allocate, BufferStore, Stmt
from .common import LowerError
from .split_host_device import axes_of, is_kernel

if TYPE_CHECKING:
    from ..target.target import Target

_ADVICE = ("bind loops to blocks and threads, for example\n"
           "    i0, i1 = sch.split(loop, [None, 128])\n"
           '    sch.bind(i0, "blockIdx.x")\n'
           '    sch.bind(i1, "threadIdx.x")')


def _verify_host(name: str, func: PrimFunc, kind: str) -> None:
    """The host touches no memory of the device."""
    for s in all_statements(func.body):
        found: BufferStore | BufferLoad | None
        if type(s) is BufferStore:
            found = s
        else:
            parts = [x for e in s.children() if not isinstance(e, Stmt) for x in pre_order(e)]
            found = next((x for x in parts if type(x) is BufferLoad), None)
        if found is not None:
            line = repr(s).strip().splitlines()[-1].strip()
            raise LowerError(
                f"{name}: {found.buffer.name} is {'written' if found is s else 'read'} outside of "
                f"a kernel, and the target {kind!r} runs only loops that are bound to threads:\n"
                f"    {line}\n"
                f'In the schedule, {_ADVICE}\nOr build it for the CPU, target="llvm"')


def _verify_kernel(name: str, func: PrimFunc, limits: Limits, target: Target) -> None:
    axes = {s.node.thread_tag: s for s in axes_of(func)[0]}
    sizes = {tag: as_int(s.value) for tag, s in axes.items()}
    lines = {tag: f'{s.node.var.name} = T.launch_thread("{tag}", {s.value!r})'
             for tag, s in axes.items()}
    where = f"of {target.tag}" if target.tag else f"of the target {target.kind.name!r}"
    threads = {tag: n for tag, n in sizes.items() if tag.startswith("threadIdx")}
    total = 1
    for n in threads.values():
        total *= n or 1
    if total > limits.threads:
        each = " * ".join(f"{n} on {tag}" for tag, n in threads.items())
        raise LowerError(f"{name}: a block has {total} threads ({each}), and the limit {where} is "
                         f"{limits.threads}:\n    " + "\n    ".join(lines[tag] for tag in threads)
                         + "\nBind smaller loops to threadIdx, with sch.split(loop, "
                         f"[None, {limits.threads // 4}])")
    for tag, n in sizes.items():
        bound = (limits.block if tag.startswith("threadIdx") else limits.grid)["xyz".index(tag[-1])]
        if n is not None and n > bound:
            raise LowerError(f"{name}: {tag} has {n} "
                             f"{'threads' if tag.startswith('threadIdx') else 'blocks'}, and the "
                             f"limit {where} is {bound}:\n    {lines[tag]}\nSplit the loop and "
                             "bind its parts to two axes")
    _verify_shared(name, func, limits, where)


def _verify_shared(name: str, func: PrimFunc, limits: Limits, where: str) -> None:
    rows = []
    for s in all_statements(func.body):
        if type(s) is Allocate and s.buffer_var.storage_scope.startswith("shared"):
            size: Any = dt.bytes_of(s.dtype)
            for extent in s.extents:
                number = as_int(extent)
                if number is None:
                    raise LowerError(
                        f"{name}: {s.buffer_var.name} has {extent!r} elements of shared memory, "
                        "and how much a block has is fixed when it is compiled: tile the loops "
                        "with constant factors")
                size *= number
            rows.append((size, s))
    total = sum(size for size, _ in rows)
    if total > limits.shared_bytes:
        each = ", ".join(f"{s.buffer_var.name} {size}" for size, s in rows)
        size, largest = max(rows, key=lambda row: row[0])
        raise LowerError(
            f"{name}: a block uses {total} bytes of shared memory ({each}), and the limit {where} "
            f"is {limits.shared_bytes}. The largest is {largest.buffer_var.name} = T.allocate("
            f"[{', '.join(map(repr, largest.extents))}], \"{largest.dtype}\", "
            f'"{largest.buffer_var.storage_scope}"): copy a smaller part, with sch.compute_at at a '
            "loop further inside or with smaller tiles")


def VerifyGPUCode(target: Target) -> Pass:
    """Refuse kernels that do not fit the device, and programs with work outside of kernels.

    Raises LowerError.
    """
    def verify(mod: IRModule, ctx: PassContext) -> IRModule:
        limits = limits_of(target)
        for var, func in mod.functions.items():
            if type(func) is not PrimFunc or limits is None:
                continue
            if is_kernel(func):
                _verify_kernel(var.name_hint, func, limits, target)
            else:
                _verify_host(var.name_hint, func, target.kind.name)
        return mod

    return Pass(verify, PassInfo("tir.VerifyGPUCode"))


__all__ = ["VerifyGPUCode"]

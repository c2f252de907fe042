"""The simulated device: the kernels of a lowered program as machine code for the CPU.

The same program that a GPU would get goes through `lower/threads_to_loops.py` and then the way of
every program for the CPU. Blocks run on all cores. Its time says nothing of a GPU.

A kernel whose loops may have no end (`while`) runs in a thread of its own, and its loops look at a
number in memory. When it takes too long, or Ctrl+C is pressed, the number is set and they end.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...ir.module import IRModule
from ...ir.transform import Pass
from ...lower import LimitUnroll, PlaceAllocations, Simplify, SplitVector, SumLanes
from ...lower.common import function_pass
from ...lower.split_host_device import is_kernel
from ...lower.threads_to_loops import ThreadsToLoops
from ...runtime.native_library import native_address
from ...tir.expr import EQ, Call, IntImm, StringImm
from ...tir.function import PrimFunc
from ...tir.functor import Mutator, all_statements
from ...tir.stmt import AssertStmt, Stmt, While, seq
from .. import llvm
from .inside import accesses_stay_inside
from .real import KernelError
from .watch import limit_s, until

if TYPE_CHECKING:
    from ...ir.transform import PassContext
    from ...runtime.module import Module

_ENDED = "it was ended"


class _Looks(Mutator):
    """Loops that look whether they are to end."""

    def visit_While(self, node: While) -> Stmt:
        asked = Call("int32", "tir.call_extern", (StringImm("mlc_lab_stopped"),))
        go_on = EQ(asked, IntImm("int32", 0))
        return While(node.condition, seq(AssertStmt(go_on, StringImm(_ENDED), seq()),
                                         self.visit(node.body)))


def _has_while(func: object) -> bool:
    return type(func) is PrimFunc and any(type(s) is While for s in all_statements(func.body))


def _looking(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Loops of kernels that look whether they are to end."""
    return func.with_body(_Looks().visit(func.body)) if is_kernel(func) and _has_while(func) else (
        func)


def _loops_look() -> Pass:
    return function_pass("LoopsLook", _looking)


def on_the_cpu(mod: IRModule) -> IRModule:
    """A program of kernels as one of loops, with the last passes that LLVM wants."""
    for step in (accesses_stay_inside(), _loops_look(), ThreadsToLoops(), Simplify(), SumLanes(),
                 LimitUnroll(), SplitVector(), PlaceAllocations()):
        mod = step(mod)
    return mod


def build(mod: IRModule, entry: str | None = None) -> Module:
    """Lowered host functions and kernels, compiled for this machine. Raises what LLVM's generator
    raises, and LowerError for barriers that only some threads reach."""
    return llvm.build(on_the_cpu(mod), None, entry)


_one = threading.Lock()  # loops of all kernels look at one number


def _stop(number: int) -> None:
    ctypes.CFUNCTYPE(None, ctypes.c_int32)(native_address("mlc_lab_stop"))(number)


def with_an_end(run: Callable[..., Any], mod: IRModule) -> Callable[..., Any]:
    """A host's function, which gives up kernels that do not end."""
    endless = [v.name_hint for v, f in mod.functions.items() if _has_while(f)]
    if not endless:
        return run

    def call(*args: Any) -> Any:
        given: list[Any] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                given.append(run(*args))
            except BaseException as error:
                failed.append(error)

        with _one:
            limit = limit_s()
            _stop(0)
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            ended = False
            try:
                ended = until(lambda: not thread.is_alive(), limit)
            finally:
                _stop(int(not ended))
                thread.join()
        if not ended:
            raise KernelError(
                f"a kernel on the simulated device had not ended after {limit:g} s, and was "
                f"stopped: a loop of {', '.join(endless)} runs without end, or for long. What it "
                "had written is there. MLC_LAB_DEVICE_LIMIT in the environment is the number of "
                "seconds that are waited, 0 for no end")
        if failed:
            raise failed[0]
        return given[0]

    return call


__all__ = ["build", "on_the_cpu", "with_an_end"]

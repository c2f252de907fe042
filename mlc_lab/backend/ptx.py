"""What `build` gives for the target "nvptx": the kernels of a program as PTX, through LLVM.

The program is lowered as for CUDA; each kernel becomes a function that a launch can name
(`llvm_ptx.py`). It is there to be read, beside the CUDA C of the same program; nothing runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..ir.recursion import grows_stack
from ..lower import LowerError, lower
from ..lower.split_host_device import is_kernel, launch_extents
from ..machine.of_target import machine_of
from ..runtime import jit
from ..runtime.llir import ModuleText
from ..runtime.module import Module
from ..target import Target
from ..tir.function import PrimFunc
from ..tir.op import as_int
from . import llvm
from .llvm_emit import Unit
from .llvm_ptx import PTXGen, plain_name, write_kernel
from .source import last_passes

if TYPE_CHECKING:
    from ..ir.module import IRModule

_READ = ('it is PTX, to be read with get_source("ptx"); to run the program, build it for "cuda", '
         "which has a simulated device")


def machine(target: Target) -> jit.Machine:
    """The GPU that a target names by `-mcpu`."""
    options = {"kind": "llvm", "mtriple": "nvptx64-nvidia-cuda"}
    if target.attrs.get("mcpu"):
        options["mcpu"] = target.mcpu
    return machine_of(Target(options))


def lowered(mod: IRModule, target: Target) -> IRModule:
    """A program as functions of the host and kernels. Raises LowerError for what the target
    cannot run."""
    mod = lower(mod, target=target)
    for step in last_passes(target):
        mod = step(mod)
    return mod


@grows_stack
def generate(mod: IRModule, where: jit.Machine, emitter: type[PTXGen] = PTXGen
             ) -> tuple[str, dict[str, int]]:
    """The LLVM IR of a lowered module's kernels, written by `emitter`; of each the bytes of
    dynamic shared memory.

    Raises CodegenError for what PTX does not have.
    """
    unit = Unit(ModuleText(where.triple, where.data_layout))
    unit.text.attributes.append("attributes #0 = { nounwind }")
    dynamic = {}
    for var, func in mod.functions.items():
        if is_kernel(func):
            name = unit.unique(plain_name(var.name_hint))
            extents = launch_extents(func)
            x, y, z = (as_int(extents.get(f"threadIdx.{letter}", 1)) or 0 for letter in "xyz")
            dynamic[name] = write_kernel(unit, name, func, (x, y, z), emitter).dynamic
    return str(unit.text), dynamic


def compiled(text: str, where: jit.Machine) -> jit.Compiled:
    """The LLVM IR of kernels, optimised and translated."""
    return jit.compile_ir(text, where, vectorize=False, emit=False)


def noted(asm: str, dynamic: dict[str, int]) -> str:
    """PTX, with what a launch has to know of it."""
    notes = [f"// a launch of {name} gives {nbytes} bytes of dynamic shared memory\n"
             for name, nbytes in dynamic.items() if nbytes]
    return "".join(notes) + asm


def build(mod: IRModule, target: Target) -> Module:
    """A program for "nvptx". `imported_modules[0]` has the kernels; the module's own functions,
    which would launch them, are TensorIR to be read.

    Raises LowerError and CodegenError for what a kernel cannot be; the text says what to change.
    """
    flat, where = lowered(mod, target), machine(target)
    text, dynamic = generate(flat, where)
    hosts = [str((f.attrs or {}).get("global_symbol", v.name_hint))
             for v, f in flat.functions.items() if type(f) is PrimFunc and not is_kernel(f)]
    if not hosts:
        raise LowerError("the module has no PrimFunc to build")
    made = compiled(text, where)
    texts: dict[str, Callable[[], str]] = dict.fromkeys(
        ("ptx", "source", "asm"), lambda: noted(made.asm, dynamic))
    kernels = Module({}, "nvptx", None, texts, names=dynamic, refusal=_READ)
    own = {**texts, "ll": lambda: made.ll, "tir": lambda: flat.script()}
    return Module({}, "llvm", llvm.entry_of(mod), own, None, [kernels], _READ, hosts)


__all__ = ["build", "compiled", "generate", "lowered", "machine", "noted"]

"""The virtual machine: a lowered Relax function as bytecode, and what runs it.

    bytecode.py    what an executable is: functions as lists of instructions, constants, kernels
    codegen.py     from lowered Relax to bytecode
    exec_builder.py  bytecode written by hand, instruction by instruction
    builtins.py    what the machine does itself: memory, shapes, tuples, closures
    machine.py     VirtualMachine: registers, calls, stateful use
    native.py      the compiled form: a function's bytecode as one native function
    saving.py      executables as files
    inspecting.py  profile, trace and stepping of bytecode
    values.py      what tensors hold, in few numbers, for a trace

Read them in this order.
"""

from .bytecode import Executable, VMExecutable
from .machine import VirtualMachine, VMInstrumentReturnKind
from .saving import load

__all__ = ["Executable", "VMExecutable", "VMInstrumentReturnKind", "VirtualMachine", "build",
           "load"]


def build(mod, target="llvm", params=None, exec_mode="compiled", **options):
    """`relax.vm.build`, the older name of `relax.build`."""
    from ..building import build as build_module

    return build_module(mod, target, params, exec_mode=exec_mode, **options)

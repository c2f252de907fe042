"""ExecBuilder: bytecode written instruction by instruction.

    builder = relax.ExecBuilder()
    with builder.function("twice_and_add", num_inputs=2):
        builder.emit_call("my.add", args=[builder.r(0), builder.r(0)], dst=builder.r(2))
        builder.emit_call("my.add", args=[builder.r(2), builder.r(1)], dst=builder.r(3))
        builder.emit_ret(builder.r(3))
    vm = relax.VirtualMachine(builder.get(), tvm.cpu())

What `Executable.as_python` prints is written for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...ir.diagnostics import MLCError
from ...runtime import NDArray
from .bytecode import (
    VM_REGISTER, VOID_REGISTER, Arg, CallInstr, DType, Executable, Goto, If, Ret, VMFunction,
)


class ExecBuilderError(MLCError, ValueError):
    """Bytecode that cannot be run; the text says which instruction, and why not."""


class ExecBuilder:
    """Writes the functions of an executable, instruction by instruction; `get` gives it.

    The inputs of a function are its registers 0, 1, ...; any other number names a further one.
    Arguments are made by `r`, `imm`, `c`, `f` and `convert_constant`.
    """

    def __init__(self) -> None:
        self._executable = Executable()
        self._function: VMFunction | None = None
        self._written: dict[str, VMFunction] = {}  # as they were given

    # -- arguments --------------------------------------------------------------------------------

    def r(self, idx: int) -> Arg:
        """A register."""
        return Arg("r", int(idx))

    def imm(self, value: int) -> Arg:
        """A number."""
        return Arg("i", int(value))

    def c(self, idx: int) -> Arg:
        """An entry of the constant pool, by its place."""
        return Arg("c", int(idx))

    def f(self, name: str) -> Arg:
        """A function, by its name."""
        return Arg("f", self._executable.function_index(name))

    def void_arg(self) -> Arg:
        """The register whose value is dropped."""
        return Arg("r", VOID_REGISTER)

    def vm_state(self) -> Arg:
        """The machine itself."""
        return Arg("r", VM_REGISTER)

    def convert_constant(self, const: object) -> Arg:
        """A tensor, string, dtype (a ``tvm.DataType``), shape or number as an argument.

        Constants that are equal have one place in the pool. Raises TypeError for anything else.
        """
        pool = self._executable
        if isinstance(const, (bool, int, np.integer)):
            return self.imm(int(const))
        if isinstance(const, NDArray):
            for at, have in enumerate(pool.constants):
                if isinstance(have, NDArray) and _equal(have, const):
                    return self.c(at)
            return self.c(pool.constant_index(const))
        if isinstance(const, str):
            is_dtype = isinstance(const, DType) or hasattr(const, "type_code")
            return self.c(pool.constant_index(DType(const) if is_dtype else str(const)))
        if isinstance(const, float):
            return self.c(pool.constant_index(const))
        if isinstance(const, Sequence) and all(isinstance(n, (int, np.integer)) for n in const):
            return self.c(pool.constant_index(tuple(map(int, const))))
        raise TypeError("a constant of bytecode is a tensor, a string, a dtype, a shape or a "
                        f"number, not a {type(const).__name__}")

    # -- functions --------------------------------------------------------------------------------

    def declare_function(self, func_name: str, kind: object = None) -> None:
        """Give a function its number before it is called."""
        self._executable.function_index(func_name)

    @contextmanager
    def function(self, func_name: str, num_inputs: int = 0,
                 param_names: Sequence[str] | None = None) -> Iterator[VMFunction]:
        """``with builder.function("main", num_inputs=2):`` around what is emitted for it.

        Raises ExecBuilderError inside of another function, and for one that is there already.
        """
        if self._function is not None:
            raise ExecBuilderError(f"{func_name} begins before {self._function.name} ends")
        if func_name in self._written:
            raise ExecBuilderError(f"there is a function {func_name!r} already")
        params = list(param_names) if param_names else [f"arg{k}" for k in range(num_inputs)]
        if len(params) != num_inputs:
            raise ExecBuilderError(f"{func_name} has {num_inputs} inputs and {len(params)} names")
        self.declare_function(func_name)
        self._function = VMFunction(func_name, params, num_inputs)
        try:
            yield self._function
            self._written[func_name] = self._function
        finally:
            self._function = None

    def _emit(self, instruction: Any) -> None:
        if self._function is None:
            raise ExecBuilderError("an instruction is emitted inside of a function: "
                                   "with builder.function(\"main\", num_inputs=1):")
        self._function.code.append(instruction)

    def emit_call(self, name: str, args: Sequence[Any] | None = None, dst: Arg | None = None
                  ) -> None:
        """``dst = name(*args)``; a tensor, shape or dtype among the arguments is a constant."""
        given = tuple(a if isinstance(a, Arg) else self.convert_constant(a) for a in args or ())
        self._emit(CallInstr(VOID_REGISTER if dst is None else _register(dst),
                             self._executable.function_index(name), given))

    def emit_ret(self, result: Arg) -> None:
        """Return a register."""
        self._emit(Ret(_register(result)))

    def emit_goto(self, pc_offset: int) -> None:
        """Jump that many instructions ahead."""
        self._emit(Goto(int(pc_offset)))

    def emit_if(self, cond: Arg, false_offset: int) -> None:
        """Go on where the register is not zero, else jump that many instructions ahead."""
        self._emit(If(_register(cond), int(false_offset)))

    def get(self) -> Executable:
        """The executable, with the registers of each function numbered in order of use.

        Raises ExecBuilderError for a register that is read before anything is written to it, a
        jump out of its function, and a function that does not end.
        """
        executable = self._executable
        for name, function in self._written.items():
            executable.functions[name] = _numbered(function)
        if self._written:
            executable.exec_mode = "bytecode"
        return executable


def _register(arg: Arg) -> int:
    if not isinstance(arg, Arg) or arg.kind != "r":
        raise ExecBuilderError(f"a register is wanted here, as builder.r(0), not {arg!r}")
    return arg.value


def _equal(a: NDArray, b: NDArray) -> bool:
    return a is b or (tuple(a.shape) == tuple(b.shape) and str(a.dtype) == str(b.dtype)
                      and str(a.device) == str(b.device)
                      and bool(np.array_equal(a.numpy(), b.numpy())))


def _numbered(function: VMFunction) -> VMFunction:
    """A function that was checked, with its registers in order of use."""
    places = {k: k for k in range(len(function.params))}
    new: list[Any] = []

    def refuse(at: int, why: str) -> ExecBuilderError:
        return ExecBuilderError(f"{function.name}: instruction {at} {why}")

    def read(at: int, number: int) -> int:
        if number < 0:
            return number
        if number not in places:
            raise refuse(at, f"reads register %{number}, to which nothing is written before")
        return places[number]

    count = len(function.code)
    for at, step in enumerate(function.code):
        kind = type(step)
        offset = step.offset if kind is Goto else step.false_offset if kind is If else 1
        if offset == 0 or not 0 <= at + offset < count + (kind in (CallInstr, Ret)):
            raise refuse(at, f"jumps by {offset}, to no instruction of its function")
        if kind is CallInstr:
            if at == count - 1:
                raise refuse(at, "is the last one, and no emit_ret")
            args = tuple(Arg("r", read(at, a.value)) if a.kind == "r" else a for a in step.args)
            dst = step.dst if step.dst < 0 else places.setdefault(step.dst, len(places))
            new.append(CallInstr(dst, step.func, args))
        elif kind is Ret:
            new.append(Ret(read(at, step.value)))
        elif kind is If:
            new.append(If(read(at, step.cond), step.false_offset))
        else:
            new.append(step)
    if not new:
        raise ExecBuilderError(f"{function.name} has no instructions: it ends with emit_ret")
    return VMFunction(function.name, function.params, len(places), new)


__all__ = ["ExecBuilder", "ExecBuilderError"]

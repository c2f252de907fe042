"""VirtualMachine: runs the functions of an executable.

A function that has a compiled form is one native function; every other runs here, instruction by
instruction, over a list of registers. Both give the same answer. A call of a function in bytecode
whose result is returned as it is (a tail call) is a jump: a loop that is written as recursion takes
any number of turns.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Callable

import numpy as np
import tvm_ffi

from ...above import above
from ...runtime import NDArray, array, device, registry, timing
from ...runtime.ndarray import from_dlpack
from . import kv_state, searching  # noqa: F401  (register their functions)
from .builtins import BUILTINS, Storage
from .bytecode import VM_REGISTER, CallInstr, Executable, Goto, Ret, VMFunction, is_tail_call

if TYPE_CHECKING:
    from ...runtime.device import Device

_CALL, _RET, _IF, _GOTO, _TAIL_CALL = range(5)


class VMInstrumentReturnKind(IntEnum):
    """What an instrument answers before a call."""

    NO_OP = 0
    SKIP_RUN = 1


class VirtualMachine:
    """Runs an executable: ``vm["main"](x)``.

    Results are memory of their own, which later calls leave alone. Only a value that the function
    passes on as it is keeps its memory: a parameter that is returned is the argument, a constant
    is the executable's, a value that is returned twice is one tensor. docs/numbers.md ("Memory of
    results") says which operators pass on. Copy such a result before writing into it.

    Parameters
    ----------
    rt_mod : Executable or path
        What ``relax.build`` gave, or a file that ``export_library`` wrote.
    device : Device
        That of the target that the executable was built for, which is also the default; another
        one is refused.
    memory_cfg : str or dict, optional
        TVM's choice of an allocator: "naive", "pooled", or a dict of these by device. Here there is
        one, numpy's; ValueError for another.
    profile : bool
        Accepted for TVM's sake: ``vm.profile(...)`` works without.
    """

    def __init__(self, rt_mod: Any, device: Device | str | None = None, memory_cfg: Any = None,
                 profile: bool = False, exec_mode: str | None = None) -> None:
        if isinstance(rt_mod, (str, os.PathLike)):
            rt_mod = above("load a virtual machine's file")(rt_mod)
        if not isinstance(rt_mod, Executable):
            raise TypeError("a VirtualMachine runs what relax.build gives, not a "
                            f"{type(rt_mod).__name__}" + (
                                "; call relax.build(mod, target=\"llvm\") first"
                                if hasattr(rt_mod, "functions") else ""))
        kinds = memory_cfg.values() if isinstance(memory_cfg, dict) else [memory_cfg]
        if not {*kinds} <= {None, "naive", "pooled"}:
            raise ValueError('memory_cfg is "naive", "pooled", or a dict of these by device, not '
                             f"{memory_cfg!r}")
        self.executable = rt_mod
        self.device = _check_device(device, rt_mod.device)
        self._moved: dict[int, NDArray] = {}
        self.exec_mode = exec_mode or rt_mod.exec_mode
        self._decoded: dict[str, list] = {}
        self._functions: dict[str, Callable] = {}
        self._saved: dict[str, Callable] = {}
        self._inputs: dict[str, tuple] = {}
        self._outputs: dict[str, Any] = {}
        self._watch: Callable | None = None
        self._instrument: Callable | None = None

    # -- functions --------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A function of the executable, in its compiled form where there is one."""
        func = self._functions.get(name)
        if func is None:
            func = self._functions[name] = self._find(name)
        return func

    def _find(self, name: str) -> Callable[..., Any]:
        if name in self._saved:
            return self._saved[name]
        ex = self.executable
        if name in ex.compiled and self.exec_mode == "compiled":
            return ex.lib[ex.compiled[name]]
        if name in ex.functions:
            return _Interpreted(self, name)
        if ex.lib is not None and ex.lib.implements_function(name):
            return ex.lib[name]
        names = [*ex.functions, *self._saved]
        near = get_close_matches(name, names, 1)
        raise AttributeError(
            f"the executable has no function {name!r}"
            f"{f'; did you mean {near[0]!r}?' if near else ''} "
            f"(its functions: {', '.join(map(repr, names)) or 'none'})")

    def call(self, name: str, *args: object) -> Any:
        """Run a function by its bytecode on values; the result is not converted."""
        function = self.executable.functions.get(name)
        if function is None:
            return self[name](*args)
        self._check_count(function, args)
        return self._run(function, args)

    @staticmethod
    def _check_count(function: VMFunction, args: Any) -> None:
        if len(args) != len(function.params):
            raise TypeError(
                f"{function.name} takes {len(function.params)} arguments "
                f"({', '.join(function.params)}), got {len(args)}")

    def module_functions(self) -> list[str]:
        """The names of the functions that can be called."""
        return [*self.executable.functions, *self._saved]

    @property
    def module(self) -> "_ModuleView":
        """The functions as a runtime module: `vm.module["main"]`, `vm.module.time_evaluator`."""
        return _ModuleView(self)

    # -- stateful use -----------------------------------------------------------------------------

    def set_input(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Keep arguments for `invoke_stateful`. Keyword arguments go by the parameters' names."""
        self._inputs[func_name] = self._bind(func_name, args, kwargs)

    def invoke_stateful(self, func_name: str) -> None:
        """Run a function on the arguments kept by `set_input` and keep its result."""
        if func_name not in self._inputs:
            raise ValueError(f"{func_name}: set_input({func_name!r}, ...) comes before "
                             "invoke_stateful")
        self._outputs[func_name] = self[func_name](*self._inputs[func_name])

    def get_outputs(self, func_name: str) -> Any:
        """The result of the last `invoke_stateful`; several as a list."""
        if func_name not in self._outputs:
            raise ValueError(f"{func_name}: invoke_stateful({func_name!r}) comes before "
                             "get_outputs")
        out = self._outputs[func_name]
        return list(out) if isinstance(out, (tuple, list, tvm_ffi.Array)) and not isinstance(
            out, tvm_ffi.Shape) else out

    def save_function(self, func_name: str, saved_name: str, *args: object,
                      include_return: bool = True, **kwargs: object) -> None:
        """A new function `saved_name` without parameters: `func_name` on these arguments."""
        func, values = self[func_name], self._bind(func_name, args, kwargs)

        def saved() -> Any:
            out = func(*values)
            return out if include_return else None

        self._saved[saved_name] = saved
        self._functions.pop(saved_name, None)

    def invoke_closure(self, closure: Callable, *args: object) -> Any:
        """Call a closure that a function returned."""
        return _to_user(closure(*map(to_value, args)))

    def _bind(self, name: str, args: tuple, kwargs: dict) -> tuple:
        function = self.executable.functions.get(name)
        params = function.params if function is not None else []
        values = list(args)
        unknown = set(kwargs) - set(params)
        if unknown:
            raise TypeError(f"{name} has no parameter {', '.join(sorted(unknown))} (its "
                            f"parameters: {', '.join(params)})")
        for param in params[len(values):]:
            if param not in kwargs:
                raise TypeError(f"{name}: the argument {param} is missing")
            values.append(kwargs[param])
        return tuple(map(to_value, values))

    # -- looking inside ---------------------------------------------------------------------------

    def time_evaluator(self, func_name: str, dev: Device | str | None = None, number: int = 10,
                       repeat: int = 1, **options: object) -> timing.TimeEvaluator:
        """Measure a function: `vm.time_evaluator("main", tvm.cpu())(x).mean` is in seconds."""
        _check_device(dev, self.device.type)
        func = self.invoke_stateful if func_name == "invoke_stateful" else self[func_name]
        if not isinstance(func, tvm_ffi.Function):
            func = tvm_ffi.convert(func)
        f_preproc = options.pop("f_preproc", None) or None
        if isinstance(f_preproc, str):
            f_preproc = registry.get_global_func(f_preproc)
        return timing.TimeEvaluator(func, func_name, {
            "number": number, "repeat": repeat, "f_preproc": f_preproc, **options},
            getattr(self.executable.lib, "clock", ""))

    def profile(self, func_name: str, *args: object) -> Any:
        """Run a function by its bytecode and measure every call; prints as a table."""
        return above("inspecting of a virtual machine").profile(self, func_name, args)

    def trace(self, func_name: str, *args: object, values: bool = False) -> Any:
        """Run a function by its bytecode and record every step; see `inspecting.Trace`."""
        return above("inspecting of a virtual machine").trace(self, func_name, args, values)

    def memory_plan(self, func_name: str) -> dict[str, Any]:
        """Where the tensors of a function lie and when, as data; see `inspecting.memory_plan`."""
        return above("inspecting of a virtual machine").memory_plan(self.executable, func_name)

    def set_instrument(self, instrument: Callable | None) -> None:
        """Call `instrument(func, name, before, return_value, *args)` around every call of bytecode.

        Where it answers VMInstrumentReturnKind.SKIP_RUN before a call, the call is left out.
        Functions run by their bytecode while an instrument is set.
        """
        if isinstance(instrument, str):
            instrument = registry.get_global_func(instrument)
        self._instrument = instrument
        self._functions.clear()
        if instrument is not None:
            self.exec_mode = "bytecode"

    # -- running ----------------------------------------------------------------------------------

    def new_storage(self, size: int, scope: str) -> Storage:
        """Memory for tensors."""
        return Storage(size, scope, self.device)

    def callee(self, name: str) -> Callable[..., Any]:
        """What a name in the bytecode calls."""
        builtin = BUILTINS.get(name)
        if builtin is not None:
            return builtin
        ex = self.executable
        if name in ex.functions:
            return _BytecodeCallee(self, name)
        if ex.lib is not None and ex.lib.implements_function(name):
            func = ex.lib[name]
            return func
        return self._registered(name)

    def _registered(self, name: str) -> Callable[..., Any]:
        """A registered function, or one of a C library that speaks tvm-ffi. Looked up at each call:
        a notebook registers functions anew."""
        def call(*args: Any) -> Any:
            func = registry.get_global_func(name, allow_missing=True)
            if func is None:
                func = library_function(name)
            if func is None:
                func = registry.get_global_func(name)  # raises, naming what is near
            return func(*args)

        return call

    def decode(self, function: VMFunction) -> list:
        """The instructions with callees looked up and constants filled in."""
        code = self._decoded.get(function.name)
        if code is None:
            code = [self._decode(i) for i in function.code]
            for at, step in enumerate(code):
                if step[0] == _CALL and step[5] in self.executable.functions and is_tail_call(
                        self.executable, function.code, at):
                    code[at] = (_TAIL_CALL, *step[1:])
            self._decoded[function.name] = code
        return code

    def _decode(self, instruction: Any) -> tuple:
        if type(instruction) is CallInstr:
            ex = self.executable
            name = ex.names[instruction.func]
            template: list[Any] = []
            fill = []
            for at, (kind, value) in enumerate(instruction.args):
                if kind == "r" and value == VM_REGISTER:
                    template.append(self)
                elif kind == "r":
                    template.append(None)
                    fill.append((at, value))
                elif kind == "i":
                    template.append(value)
                elif kind == "c":
                    constant = self._on_device(value)
                    template.append(tvm_ffi.Shape(constant) if type(constant) is tuple
                                    else constant)
                else:
                    template.append(self.callee(ex.names[value]))
            return (_CALL, self.callee(name), template, fill, instruction.dst, name)
        if type(instruction) is Ret:
            return (_RET, instruction.value)
        if type(instruction) is Goto:
            return (_GOTO, instruction.offset)
        return (_IF, instruction.cond, instruction.false_offset)

    def _on_device(self, number: int) -> Any:
        """A constant; a tensor is copied to the device, once."""
        constant = self.executable.constants[number]
        if self.device.type == "cpu" or not isinstance(constant, NDArray):
            return constant
        if number not in self._moved:
            self._moved[number] = array(constant, self.device)
        return self._moved[number]

    def _run(self, function: VMFunction, args: Any) -> Any:
        """Run a function's bytecode."""
        code = self.decode(function)
        registers: list[Any] = [None] * max(function.registers, len(args))
        registers[:len(args)] = args
        watch = self._watch
        #: the calls whose ends the instrument is still told of, and the instrument
        left: list[tuple] = []
        at = 0
        while True:
            step = code[at]
            kind = step[0]
            if kind == _CALL:
                _, func, template, fill, dst, name = step
                values = template.copy()
                for place, register in fill:
                    values[place] = registers[register]
                if watch is not None:
                    result = watch(function, at, step, values, registers)
                elif self._instrument is not None and name not in BUILTINS:
                    result = _instrumented(self._instrument, func, name, values)
                else:
                    result = func(*values)
                if dst >= 0:
                    registers[dst] = result
                at += 1
            elif kind == _RET:
                result = registers[step[1]]
                for instrument, func, name, values in reversed(left):
                    instrument(func, name, False, result, *values)
                return result
            elif kind == _IF:
                at += 1 if registers[step[1]] else step[2]
            elif kind == _GOTO:
                at += step[1]
            else:
                args = self._tail_call(function, at, step, registers, left)
                if args is None:
                    at += 1
                    continue
                function = self.executable.functions[step[5]]
                code, at = self.decode(function), 0
                registers = [None] * max(function.registers, len(args))
                registers[:len(args)] = args

    def _tail_call(self, function: VMFunction, at: int, step: tuple, registers: list,
                   left: list[tuple]) -> list | None:
        """What a tail call passes on; None where an instrument leaves the call out.

        A recording has it as a call that gives nothing yet: the steps of the callee follow, at the
        same depth. An instrument is told of its end (`left`) when the last callee returns.
        """
        _, func, template, fill, dst, name = step
        values = template.copy()
        for place, register in fill:
            values[place] = registers[register]
        self._check_count(self.executable.functions[name], values)
        if self._watch is not None:
            self._watch(function, at, (_CALL, _nothing, *step[2:]), values, registers)
        elif self._instrument is not None:
            instrument = self._instrument
            if _skips(instrument, func, name, values):
                registers[dst] = None
                return None
            left.append((instrument, func, name, values))
        return values


def _instrumented(instrument: Callable, func: Callable, name: str, values: list) -> Any:
    if _skips(instrument, func, name, values):
        return None
    result = func(*values)
    instrument(func, name, False, result, *values)
    return result


def _skips(instrument: Callable, func: Callable, name: str, values: list) -> bool:
    """Whether the instrument, asked before a call, leaves it out."""
    answer = instrument(func, name, True, None, *values)
    return answer is not None and int(answer) == VMInstrumentReturnKind.SKIP_RUN


class _Interpreted:
    """A function that runs by its bytecode, as the user calls it."""

    def __init__(self, vm: VirtualMachine, name: str) -> None:
        self.vm, self.vm_name = vm, name

    def __call__(self, *args: object) -> Any:
        return _to_user(self.vm.call(self.vm_name, *map(to_value, args)))

    def __repr__(self) -> str:
        return f"<function {self.vm_name} of a relax.VirtualMachine, in bytecode>"


def _nothing(*_: object) -> None:
    """The result of a tail call, seen from where it is made."""


class _BytecodeCallee:
    """A function of the executable as bytecode calls it."""

    def __init__(self, vm: VirtualMachine, name: str) -> None:
        self.vm, self.vm_name = vm, name

    def __call__(self, *args: object) -> Any:
        return self.vm.call(self.vm_name, *args)


class _ModuleView:
    """The functions of a machine under the interface of a runtime module."""

    def __init__(self, vm: VirtualMachine) -> None:
        self._vm = vm

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._vm[name]

    get_function = __getitem__

    def time_evaluator(self, func_name: str, dev: Any = None, **options: Any
                       ) -> Any:
        """See VirtualMachine.time_evaluator."""
        return self._vm.time_evaluator(func_name, dev, **options)

    def implements_function(self, name: str) -> bool:
        """Whether there is such a function."""
        return name in self._vm.module_functions()


def library_function(name: str) -> Any:
    """A function of a loaded library that follows tvm-ffi's convention, by its symbol; or None."""
    import ctypes

    from ...runtime import native_library
    from ...runtime.module import SYMBOL_PREFIX

    for symbol in (SYMBOL_PREFIX + name, name):
        try:
            found = getattr(ctypes.CDLL(None), symbol)
        except (AttributeError, OSError, TypeError, ValueError):
            continue
        if symbol.startswith(SYMBOL_PREFIX) or name.startswith(SYMBOL_PREFIX):
            address = ctypes.cast(found, ctypes.c_void_p).value
            assert address is not None  # the symbol was found
            return native_library.packed(address, name=name)
    return None


def _check_device(dev: Device | str | None, built_for: str) -> Any:
    if isinstance(dev, (list, tuple)):
        dev = dev[0] if dev else None
    if dev is None:
        return device(built_for)
    if device(dev).type != built_for:
        where = "the CPU" if built_for == "cpu" else repr(device(built_for))
        raise ValueError(f"programs run on {where} here, not on {device(dev)!r}: relax.build was "
                         "given the target, tvm.relax.build(mod, target=...)")
    return device(dev)


def to_value(value: Any) -> Any:
    """An argument as the machine holds it: arrays of any library become tensors, without a copy
    where their memory can be shared."""
    if isinstance(value, (NDArray, int, float, str, tvm_ffi.Shape)) or value is None:
        return value
    if isinstance(value, np.ndarray):
        if not value.flags.writeable or not value.flags.c_contiguous:
            return array(np.array(value))
        return from_dlpack(value)
    if isinstance(value, (tuple, list, tvm_ffi.Array)):
        return tuple(map(to_value, value))
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "__dlpack__"):
        if getattr(value, "requires_grad", False):
            value = value.detach()
        if hasattr(value, "is_contiguous") and not value.is_contiguous():
            value = value.contiguous()
        return from_dlpack(value)
    return value


def _to_user(value: object) -> Any:
    """A result as the user gets it: tuples are tvm-ffi arrays, as native code returns them."""
    if type(value) is tuple:
        items = [_to_user(v) for v in value]
        try:
            return tvm_ffi.convert(items)
        except TypeError:  # an item that only Python knows, such as a closure
            return items
    return value


__all__ = ["VMInstrumentReturnKind", "VirtualMachine", "to_value"]

"""What the virtual machine runs: functions of four kinds of instructions over registers.

    call  dst = func(args)          a kernel, a registered function, a builtin, or a function here
    ret   value
    if    cond, false_offset        go on if the register is not zero, else jump ahead
    goto  offset

An argument is a register (`%3`; `%vm` is the machine itself), a number (`i784`), an entry of the
constant pool (`c[1]`) or a function (`f[add]`). Registers 0, 1, ... hold the parameters at entry.
The printed form is TVM's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...above import above

#: numbers that stand for no register: the result is dropped; the argument is the machine
VOID_REGISTER = -1
VM_REGISTER = -2


class Arg(NamedTuple):
    """An argument of a call: `kind` is "r" (register), "i" (number), "c" (constant), "f"."""

    kind: str
    value: int

    def text(self, executable: "Executable") -> str:
        """As the bytecode is printed."""
        if self.kind == "r":
            return register_name(self.value)
        if self.kind == "i":
            return f"i{self.value}"
        if self.kind == "c":
            return f"c[{self.value}]"
        return f"f[{executable.names[self.value]}]"


def register_name(number: int) -> str:
    """%3, %vm, %void."""
    return {VOID_REGISTER: "%void", VM_REGISTER: "%vm"}.get(number, f"%{number}")


class CallInstr(NamedTuple):
    """dst = names[func](*args)"""

    dst: int
    func: int
    args: tuple


class Ret(NamedTuple):
    """Return a register."""

    value: int


class If(NamedTuple):
    """Go on where the register is not zero, else jump `false_offset` instructions ahead."""

    cond: int
    false_offset: int


class Goto(NamedTuple):
    """Jump `offset` instructions ahead."""

    offset: int


@dataclass
class VMFunction:
    """A function in bytecode."""

    name: str
    params: list[str]
    registers: int = 0
    code: list[Any] = field(default_factory=list)


class Executable:
    """A built module: functions in bytecode, the constant pool, and the compiled kernels.

    Attributes
    ----------
    functions : dict of str to VMFunction
    names : list of str
        The functions that calls refer to by number: those here, kernels, builtins, registered ones.
    constants : list
        Tensors, strings, dtypes (``DType``) and shapes (tuples of int).
    lib : runtime Module
        The kernels, and the functions in compiled form.
    device : str
        The type of the device that kernels run on, and tensors lie on.
    compiled : dict
        For each function that has a compiled form, its name in ``lib``; ``not_compiled`` says of
        the others why not, and ``memory`` how many bytes each compiled one keeps for its tensors.
    kernels, unscheduled : IRModule
        The kernels as they were compiled, and the module, with its graph, before they had their
        default schedules; None where that is not known, as of a loaded executable.
    """

    def __init__(self) -> None:
        self.functions: dict[str, VMFunction] = {}
        self.names: list[str] = []
        self.constants: list[Any] = []
        self.lib: Any = None
        self.compiled: dict[str, str] = {}
        self.not_compiled: dict[str, str] = {}
        self.memory: dict[str, int] = {}  # bytes of planned memory of each compiled function
        self.exec_mode = "bytecode"
        self.target = "llvm"
        self.device = "cpu"
        self.kernels: Any = None
        self.unscheduled: Any = None
        self._constant_places: dict[Any, int] = {}
        self._holder: Any = None
        self._machine: Any = None  # of a loaded executable: what its code was compiled for

    # -- building ---------------------------------------------------------------------------------

    def function_index(self, name: str) -> int:
        """The number of a function, given on first use."""
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def constant_index(self, value: object) -> int:
        """The place of a constant in the pool; equal strings, dtypes and shapes share one."""
        key = (type(value), value) if isinstance(value, (str, tuple, float)) else id(value)
        if key not in self._constant_places:
            self._constant_places[key] = len(self.constants)
            self.constants.append(value)
        return self._constant_places[key]

    # -- looking ----------------------------------------------------------------------------------

    def as_text(self) -> str:
        """The bytecode, printed as TVM prints it."""
        parts = []
        for function in self.functions.values():
            lines = [f"@{function.name}:"]
            lines += [f"  {self.instruction_text(i)}" for i in function.code]
            parts.append("\n".join(lines) + "\n")
        parts += [f"@{name} packed_func;\n" for name in self.names if name not in self.functions]
        return "\n".join(parts)

    def instruction_text(self, instruction: Any) -> str:
        """One instruction, printed."""
        kind = type(instruction)
        if kind is CallInstr:
            args = ", ".join(a.text(self) for a in instruction.args)
            return (f"call  {self.names[instruction.func]:<16} in: {args:<12} "
                    f"dst: {register_name(instruction.dst)}")
        if kind is Ret:
            return f"ret   {register_name(instruction.value)}"
        if kind is Goto:
            return f"goto  {instruction.offset}"
        return f"If    {register_name(instruction.cond)}, {instruction.false_offset}"

    def as_python(self) -> str:
        """The bytecode as the calls of a builder that would make it."""
        lines = ["ib = rx.Builder()"]

        def arg(a: Arg) -> str:
            if a.kind == "r":
                number = "vm" if a.value == VM_REGISTER else a.value
                return f"ib.r({number})"
            if a.kind == "f":
                return f'ib.f("{self.names[a.value]}")'
            return f"ib.{'imm' if a.kind == 'i' else 'c'}({a.value})"

        for function in self.functions.values():
            lines.append(f'with ib.function("{function.name}", num_inputs={len(function.params)}):')
            for i in function.code:
                if type(i) is CallInstr:
                    dst = "" if i.dst == VOID_REGISTER else f", dst=ib.r({i.dst})"
                    args = ", ".join(map(arg, i.args))
                    lines.append(f'    ib.emit_call("{self.names[i.func]}", args=[{args}]{dst})')
                elif type(i) is Ret:
                    lines.append(f"    ib.emit_ret(ib.r({i.value}))")
                elif type(i) is Goto:
                    lines.append(f"    ib.emit_goto({i.offset})")
                else:
                    lines.append(f"    ib.emit_if(ib.r({i.cond}), {i.false_offset})")
        return "\n".join(lines) + "\n"

    def stats(self) -> str:
        """The constant pool and the functions, in a few lines."""
        pool = ", ".join(_brief(c) for c in self.constants)
        names = [*self.functions, *(n for n in self.names if n not in self.functions)]
        return ("Relax VM executable statistics:\n"
                f"  Constant pool (# {len(self.constants)}): [{pool}]\n"
                f"  Globals (#{len(names)}): [{', '.join(names)}]\n")

    @property
    def mod(self) -> Any:
        """TVM's name for the runtime module: the kernels."""
        return self.lib

    def jit(self, *args: object, **options: object) -> "Executable":
        """The executable itself: its kernels are linked already."""
        return self

    def __getitem__(self, name: str) -> Any:
        """A function, on a machine of the executable's own."""
        if self._holder is None:
            self._holder = above("virtual machine")(self)
        return self._holder[name]

    def export_library(self, file_name: Any, **options: object) -> str:
        """Write the executable with its constants to one file and return its path.

        `relax.vm.load(path)` and `tvm.runtime.load_module(path)` read it. See `saving.py`.
        """
        return above("save a virtual machine's file")(self, file_name)

    def __repr__(self) -> str:
        forms = ", ".join(f"{n} ({'compiled' if n in self.compiled else 'bytecode'})"
                          for n in self.functions)
        return f"<relax executable: {forms}; {len(self.constants)} constants>"


def is_tail_call(executable: Executable, code: list[Any], at: int) -> bool:
    """Whether what the call at `at` gives is what the function returns, with nothing done between
    but copying and emptying registers."""
    holders = {code[at].dst} - {VOID_REGISTER}
    seen: set[int] = set()
    at += 1
    while holders and at not in seen and 0 <= at < len(code):
        seen.add(at)
        step = code[at]
        if type(step) is Ret:
            return step.value in holders
        if type(step) is Goto:
            at += step.offset
            continue
        name = executable.names[step.func] if type(step) is CallInstr else ""
        if name not in ("vm.builtin.copy", "vm.builtin.null_value"):
            return False
        copied = name == "vm.builtin.copy" and step.args[0].kind == "r" and (
            step.args[0].value in holders)
        (holders.add if copied else holders.discard)(step.dst)
        at += 1
    return False


class DType(str):
    """A dtype in the constant pool."""


def _brief(value: Any) -> str:
    if isinstance(value, DType):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"shapetuple[{', '.join(map(str, value))}]"
    if hasattr(value, "shape"):
        return f"tensor[{', '.join(map(str, value.shape))}] {value.dtype}"
    return repr(value)


VMExecutable = Executable

__all__ = ["Arg", "CallInstr", "DType", "Executable", "Goto", "If", "Ret", "VMExecutable",
           "VMFunction", "VM_REGISTER", "VOID_REGISTER", "is_tail_call", "register_name"]

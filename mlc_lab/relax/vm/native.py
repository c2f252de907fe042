"""The compiled form: the bytecode of a function as one native function, with nothing between the
kernels.

A function has one where all shapes are numbers and every call is of a kernel of the module. Its
bytecode is run once at build time over places instead of tensors (`_Plan`): an argument, a piece of
planned memory, a constant, a result. What is left are calls of kernels with pointers; they are
written as LLVM IR beside the kernels. Checks of arguments become the table that every native
function has. Planned memory is one block: each storage of the bytecode gets the lowest place that
is free while it is in use. The block is kept from call to call; a call that finds it in use by
another thread takes one of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...backend.llvm_packed import dl_dtype
from ...ir.dtype import bytes_of
from ...runtime.abi import Arg as AbiArg
from ...runtime.abi import Symbol, declare_native, quoted, write_packed
from ...runtime.llir import FunctionText
from .builtins import ASSERT_IMM
from .bytecode import CallInstr, Executable, Ret, VMFunction

#: pieces of planned memory start at multiples of this
_ALIGN = 128
CONSTANTS = "mlc_lab_vm_constants"
SET_CONSTANT = "__vm_set_constant"
RELEASE = "__vm_release"


class NotCompiled(Exception):
    """Why a function has no compiled form."""


class Tensor(NamedTuple):
    """Where a tensor lies: `place` is "arg", "const" or "memory" with its number and offset."""

    place: str
    number: int
    offset: int
    shape: tuple
    dtype: str

    @property
    def size(self) -> int:
        """Its bytes."""
        count = bytes_of(self.dtype)
        for extent in self.shape:
            count *= extent
        return count


@dataclass
class Piece:
    """A storage of the bytecode: bytes, the calls between which it is used, and its place."""

    size: int
    first: int = -1
    last: int = -1
    offset: int = 0
    output: int = -1


@dataclass
class _Plan:
    """What a function does, seen from outside of the machine."""

    name: str
    params: list[AbiArg] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    calls: list[tuple[str, list[Tensor]]] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    result: Any = None
    block: int = 0


def compile_functions(executable: Executable, kernels: set[str]) -> Any:
    """What to hand to `backend.llvm.build(..., extra=)`: it writes the compiled forms.

    Fills `executable.compiled` and `executable.not_compiled`.
    """
    def write(unit: Any) -> list[str]:
        names = []
        for function in executable.functions.values():
            try:
                plan = _Reader(executable, function, kernels, unit).plan()
            except NotCompiled as reason:
                executable.not_compiled[function.name] = str(reason)
                continue
            executable.compiled[function.name] = function.name
            executable.memory[function.name] = plan.block
            _write(unit, plan)
            names.append(function.name)
        if names:
            names += _write_services(unit, executable, names)
        return names

    return write


# ------------------------------------------------------------------------------ reading


class _Reader:
    """Runs bytecode over places."""

    def __init__(self, executable: Executable, function: VMFunction, kernels: set[str],
                 unit: Any) -> None:
        self.ex, self.function, self.kernels, self.unit = executable, function, kernels, unit
        self.out = _Plan(function.name)
        self.registers: dict[int, Any] = {}
        self.shapes: dict[int, tuple] = {}
        self.dtypes: dict[int, str] = {}

    def plan(self) -> _Plan:
        """Read the whole function. Raises NotCompiled."""
        if not self.function.code or type(self.function.code[-1]) is not Ret:
            raise NotCompiled("it does not end in a return")
        for number in range(len(self.function.params)):
            self.registers[number] = ("param", number)
        for instruction in self.function.code:
            if type(instruction) is CallInstr:
                self.call(instruction)
            elif type(instruction) is Ret:
                self.out.result = self.value(self.registers.get(instruction.value))
            else:
                raise NotCompiled("it branches")
        for number, name in enumerate(self.function.params):
            tensor = self.param(number)
            self.out.params.append(AbiArg(
                name, "tensor", dl_dtype(tensor.dtype), tensor.shape, align=self.align(number)))
        self.results(self.out.result)
        _place(self.out)
        return self.out

    def align(self, number: int) -> int:
        """The alignment that the kernels ask of an argument."""
        align = 1
        for name, tensors in self.out.calls:
            for row, tensor in zip(self.unit.signatures[name].args, tensors):
                if tensor.place == "arg" and tensor.number == number:
                    align = max(align, row.align)
        return align

    def param(self, number: int) -> Tensor:
        """A parameter, of which all must be known."""
        if number not in self.shapes or number not in self.dtypes:
            raise NotCompiled(f"parameter {self.function.params[number]} is no tensor of a known "
                              "shape and dtype")
        return Tensor("arg", number, 0, self.shapes[number], self.dtypes[number])

    def value(self, value: Any) -> Any:
        """A register's content, parameters as tensors."""
        if isinstance(value, tuple) and len(value) == 2 and value[0] == "param":
            return self.param(value[1])
        return value

    def argument(self, arg: Any) -> Any:
        """What an argument of a call stands for."""
        if arg.kind == "r":
            return self.value(self.registers.get(arg.value))
        if arg.kind == "c":
            constant = self.ex.constants[arg.value]
            if hasattr(constant, "shape"):
                return Tensor("const", arg.value, 0, tuple(constant.shape), str(constant.dtype))
            return constant
        if arg.kind == "i":
            return arg.value
        raise NotCompiled("it passes a function as a value")

    def call(self, instruction: CallInstr) -> None:
        """One call."""
        name = self.ex.names[instruction.func]
        if name in self.kernels:
            self.kernel(name, [self.argument(a) for a in instruction.args])
            return
        method = _READERS.get(name)
        if method is None:
            raise NotCompiled(f"it calls {name}")
        result = method(self, instruction)
        if instruction.dst >= 0:
            self.registers[instruction.dst] = result

    def kernel(self, name: str, tensors: list) -> None:
        """A call of a kernel, its arguments checked now instead of at each run."""
        signature = self.unit.signatures[name]
        if len(tensors) != len(signature.args) or signature.returns:
            raise NotCompiled(f"{name} takes or returns scalars")
        bound: dict[int, int] = {}
        for row, tensor in zip(signature.args, tensors):
            if not isinstance(tensor, Tensor) or row.kind != "tensor" or row.strides is not None \
                    or row.elem_offset is not None:
                raise NotCompiled(f"{name} takes something that is no compact tensor")
            if dl_dtype(tensor.dtype) != row.dtype or len(row.shape) != len(tensor.shape):
                raise NotCompiled(f"{name} declares {row.name} otherwise than it is passed")
            for want, have in zip(row.shape, tensor.shape):
                want = bound.setdefault(want.index, have) if isinstance(want, Symbol) else want
                if want is not None and want != have:
                    raise NotCompiled(f"{name} declares {row.name} otherwise than it is passed")
        for tensor in tensors:
            if tensor.place == "memory":
                piece = self.out.pieces[tensor.number]
                piece.first = len(self.out.calls) if piece.first < 0 else piece.first
                piece.last = len(self.out.calls)
        self.out.calls.append((name, [*tensors, *(bound[s.index] for _, s in signature.bound)]))

    # -- builtins ---------------------------------------------------------------------------------

    def check_tensor(self, instruction: CallInstr) -> None:
        content = self.registers.get(instruction.args[0].value)
        dtype = self.argument(instruction.args[2]) if instruction.args[2].kind == "c" else None
        if isinstance(content, tuple) and content[:1] == ("param",) and dtype is not None:
            self.dtypes[content[1]] = str(dtype)

    def match_shape(self, instruction: CallInstr) -> None:
        ndim = instruction.args[2].value
        codes = [a.value for a in instruction.args[3:3 + 2 * ndim]]
        if any(code != ASSERT_IMM for code in codes[::2]):
            raise NotCompiled("it has symbolic shapes")
        content = self.registers.get(instruction.args[0].value)
        shape = tuple(codes[1::2])
        if isinstance(content, tuple) and content[:1] == ("param",):
            self.shapes[content[1]] = shape
        elif not isinstance(content, Tensor) or content.shape != shape:
            raise NotCompiled("it checks a shape as it runs")

    def heap(self, instruction: CallInstr) -> None:
        raise NotCompiled("it has symbolic shapes")

    def nothing(self, instruction: CallInstr) -> None:
        return None

    def copy(self, instruction: CallInstr) -> Any:
        arg = instruction.args[0]
        return self.registers.get(arg.value) if arg.kind == "r" else self.argument(arg)

    def reshape(self, instruction: CallInstr) -> Tensor:
        tensor, shape = (self.argument(a) for a in instruction.args[:2])
        if not isinstance(tensor, Tensor) or not isinstance(shape, tuple) or isinstance(
                shape, Tensor):
            raise NotCompiled("it reshapes to a shape that is not known")
        new = tensor._replace(shape=tuple(shape))
        if new.size != tensor.size:
            raise NotCompiled("it reshapes to another number of elements")
        return new

    def storage(self, instruction: CallInstr) -> Any:
        size = self.argument(instruction.args[1])
        if not isinstance(size, tuple):
            raise NotCompiled("it allocates memory of a size that is not known")
        self.out.pieces.append(Piece(int(size[0])))
        return ("storage", len(self.out.pieces) - 1)

    def tensor(self, instruction: CallInstr) -> Tensor:
        storage, offset, shape, dtype = (self.argument(a) for a in instruction.args[:4])
        if not isinstance(shape, tuple):
            raise NotCompiled("it makes a tensor of a shape that is not known")
        made = Tensor("memory", storage[1], int(offset), tuple(shape), str(dtype))
        if made.offset + made.size > self.out.pieces[made.number].size:
            raise NotCompiled("a tensor does not fit into its storage")
        return made

    def tuple(self, instruction: CallInstr) -> list:
        return [self.argument(a) for a in instruction.args]

    def item(self, instruction: CallInstr) -> Any:
        items = self.argument(instruction.args[0])
        if not isinstance(items, list):
            raise NotCompiled("it takes a tuple apart that it did not make")
        return items[instruction.args[1].value]

    # -- results ----------------------------------------------------------------------------------

    def results(self, value: Any) -> None:
        """Let every tensor returned be an object of its own."""
        if isinstance(value, list):
            for item in value:
                self.results(item)
            return
        if not isinstance(value, Tensor) or value.place != "memory":
            raise NotCompiled("it returns an argument, a constant, or something that is no tensor")
        piece = self.out.pieces[value.number]
        whole = value.offset == 0 and value.size == piece.size
        others = any(t.place == "memory" and t.number == value.number and t.size != value.size
                     for _, tensors in self.out.calls for t in tensors if isinstance(t, Tensor))
        if piece.output >= 0 or not whole or others:
            raise NotCompiled("it returns a tensor that shares its memory")
        piece.output = len(self.out.outputs)
        self.out.outputs.append(value)


_READERS = {
    "vm.builtin.check_tensor_info": _Reader.check_tensor,
    "vm.builtin.match_shape": _Reader.match_shape,
    "vm.builtin.alloc_shape_heap": _Reader.heap,
    "vm.builtin.null_value": _Reader.nothing,
    "vm.builtin.copy": _Reader.copy,
    "vm.builtin.reshape": _Reader.reshape,
    "vm.builtin.alloc_storage": _Reader.storage,
    "vm.builtin.alloc_tensor": _Reader.tensor,
    "vm.builtin.make_tuple": _Reader.tuple,
    "vm.builtin.tuple_getitem": _Reader.item,
}


def _place(plan: _Plan) -> None:
    """Give each piece the lowest place that is free while it is used, large ones first."""
    placed: list[Piece] = []
    for piece in sorted((p for p in plan.pieces if p.output < 0 and p.first >= 0),
                        key=lambda p: -p.size):
        at = 0
        for other in sorted(placed, key=lambda p: p.offset):
            apart = other.last < piece.first or piece.last < other.first
            if not apart and at < other.offset + other.size and other.offset < at + piece.size:
                at = _aligned(other.offset + other.size)
        piece.offset = at
        placed.append(piece)
    plan.block = max((p.offset + _aligned(p.size) for p in placed), default=0)


def _aligned(size: int) -> int:
    return max(1, -(-size // _ALIGN)) * _ALIGN


# ------------------------------------------------------------------------------ writing


def _write(unit: Any, plan: _Plan) -> None:
    """Write the function of a plan, and the packed function around it."""
    text = unit.text
    kernel = quoted(f"{plan.name}.vm")
    params = [("ptr", f"a{k}") for k in range(len(plan.params))] + [("ptr", "ret")]
    slot = f"@{quoted(f'{plan.name}.block')}"
    text.globals.append(f"{slot} = internal global ptr null, align 8")
    with text.function("i32", kernel, params, "internal", "nounwind") as f:
        _Writer(unit, plan, slot, f).run()
    write_packed(text, plan.name, plan.params, (), kernel, range(len(plan.params)), True)
    quick = set(unit.quick)
    if len(plan.calls) <= 64 and all(name in quick for name, _ in plan.calls):
        unit.quick.append(plan.name)


class _Writer:
    """Writes one function."""

    def __init__(self, unit: Any, plan: _Plan, slot: str, f: FunctionText) -> None:
        self.unit, self.plan, self.slot, self.f = unit, plan, slot, f
        self.block = ""
        self.anys = ""
        self.data: list[str] = []
        self.failed = f.new_label("failed")

    def run(self) -> None:
        """The whole body."""
        f, plan = self.f, self.plan
        single = isinstance(plan.result, Tensor)
        self.code = f.var("i32", "-1")
        if not single:
            self.anys = f.var("[2 x i64]", count=max(len(plan.outputs), 1), align=8)
        for k in range(len(plan.outputs)):
            f.store("i64", "0", self.any_of(k))
            f.store("i64", "0", f.gep("i8", self.any_of(k), 8))
        if plan.block:
            self.take_block()
        for k, tensor in enumerate(plan.outputs):
            self.new_output(k, tensor)
        for name, args in plan.calls:
            self.kernel(name, args)
        if plan.block:
            self.give_block()
        if not single:
            self.tuple_of(plan.result, "%ret")
        f.ret("i32 0")
        f.label(self.failed)
        for k in range(len(plan.outputs)):
            held = f.load("ptr", f.gep("i8", self.any_of(k), 8))
            with f.if_(f.op(f"icmp ne ptr {held}, null")):
                self.unit.text.declare("i32", "TVMFFIObjectDecRef", ["ptr"])
                f.call("i32", "TVMFFIObjectDecRef", [f"ptr {held}"])
                f.store("i64", "0", self.any_of(k))
                f.store("ptr", "null", f.gep("i8", self.any_of(k), 8))
        if plan.block:
            self.give_block()
        f.ret(f"i32 {f.load('i32', self.code)}")

    def any_of(self, k: int) -> str:
        """The slot in which a result is handed over."""
        return "%ret" if not self.anys else self.f.gep("[2 x i64]", self.anys, k)

    def memory_error(self, pointer: str) -> None:
        """Fail unless a pointer was given."""
        f = self.f
        with f.if_(f.op(f"icmp eq ptr {pointer}, null")):
            declare_native(self.unit.text, "mlc_lab_fail")
            kind = self.unit.text.string("MemoryError")
            what = self.unit.text.string(f"{self.plan.name}: no memory for its tensors")
            code = f.call("i32", "mlc_lab_fail", [f"ptr {kind}", f"ptr {what}"])
            f.store("i32", code, self.code)
            f.br(self.failed)

    def take_block(self) -> None:
        """The planned memory: what the last call left, or new memory."""
        f = self.f
        declare_native(self.unit.text, "mlc_lab_alloc")
        declare_native(self.unit.text, "mlc_lab_free")
        held = f.var("ptr")
        f.store("ptr", f.op(f"atomicrmw xchg ptr {self.slot}, ptr null acq_rel"), held)
        with f.if_(f.op(f"icmp eq ptr {f.load('ptr', held)}, null")):
            f.store("ptr", f.call("ptr", "mlc_lab_alloc", [f"i64 {self.plan.block}"]), held)
        self.block = f.load("ptr", held)
        self.held = held
        with f.if_(f.op(f"icmp eq ptr {self.block}, null")):
            declare_native(self.unit.text, "mlc_lab_fail")
            kind = self.unit.text.string("MemoryError")
            what = self.unit.text.string(f"{self.plan.name}: no memory for its tensors")
            f.ret(f"i32 {f.call('i32', 'mlc_lab_fail', [f'ptr {kind}', f'ptr {what}'])}")

    def give_block(self) -> None:
        """Leave the planned memory for the next call."""
        f = self.f
        block = f.load("ptr", self.held)
        other = f.op(f"atomicrmw xchg ptr {self.slot}, ptr {block} acq_rel")
        with f.if_(f.op(f"icmp ne ptr {other}, null")):
            f.call("void", "mlc_lab_free", [f"ptr {other}"])

    def new_output(self, k: int, tensor: Tensor) -> None:
        """Allocate a result."""
        f, text = self.f, self.unit.text
        declare_native(text, "mlc_lab_new_tensor")
        name = f"@{quoted(f'{self.plan.name}.shape{k}')}"
        dims = ", ".join(f"i64 {d}" for d in tensor.shape)
        text.globals.append(f"{name} = private constant [{len(tensor.shape)} x i64] [{dims}]")
        code, bits, lanes = dl_dtype(tensor.dtype)
        pointer = f.call("ptr", "mlc_lab_new_tensor", [
            f"ptr {name}", f"i64 {len(tensor.shape)}", f"i64 {code | bits << 8 | lanes << 16}",
            f"i64 {tensor.size}", f"ptr {self.any_of(k)}"])
        self.memory_error(pointer)
        self.data.append(pointer)

    def kernel(self, name: str, args: list) -> None:
        """Call a kernel."""
        f, signature = self.f, self.unit.signatures[name]
        operands = [f"ptr {self.pointer(a)}" if isinstance(a, Tensor) else f"i64 {a}"
                    for a in args]
        code = f.call("i32", signature.kernel, operands)
        good, bad = f.new_label("ok"), f.new_label("bad")
        f.cond_br(f.op(f"icmp eq i32 {code}, 0"), good, bad)
        f.label(bad)
        f.store("i32", code, self.code)
        f.br(self.failed)
        f.label(good)

    def pointer(self, tensor: Tensor) -> str:
        """Where a tensor's data lies."""
        f = self.f
        if tensor.place == "arg":
            return f"%a{tensor.number}"
        if tensor.place == "const":
            return f.load("ptr", f.gep("ptr", f"@{CONSTANTS}", tensor.number),
                          ", !invariant.load !{}")
        piece = self.plan.pieces[tensor.number]
        if piece.output >= 0:
            return self.data[piece.output]
        return f.gep("i8", self.block, piece.offset + tensor.offset)

    def tuple_of(self, value: Any, target: str) -> None:
        """Make the tuple of results in `target`."""
        f = self.f
        declare_native(self.unit.text, "mlc_lab_new_tuple")
        items = f.var("[2 x i64]", count=max(len(value), 1), align=8)
        for k, item in enumerate(value):
            slot = f.gep("[2 x i64]", items, k)
            if isinstance(item, list):
                self.tuple_of(item, slot)
                continue
            source = self.any_of(self.plan.pieces[item.number].output)
            for offset in (0, 8):
                f.store("i64", f.load("i64", f.gep("i8", source, offset)),
                        f.gep("i8", slot, offset))
        code = f.call("i32", "mlc_lab_new_tuple", [
            f"ptr {items}", f"i32 {len(value)}", f"ptr {target}"])
        with f.if_(f.op(f"icmp ne i32 {code}, 0")):
            f.ret(f"i32 {code}")


def _write_services(unit: Any, executable: Executable, names: list[str]) -> list[str]:
    """The table of constants with the function that fills it, and the one that frees memory."""
    text = unit.text
    count = max(len(executable.constants), 1)
    text.globals.append(f"@{CONSTANTS} = internal global [{count} x ptr] zeroinitializer, align 8")
    with text.function("i32", f"{SET_CONSTANT}.vm", [("i64", "at"), ("ptr", "data")],
                       "internal") as f:
        f.store("ptr", "%data", f.gep("ptr", f"@{CONSTANTS}", "%at"))
        f.ret("i32 0")
    args = [AbiArg("at", "int", (0, 64, 1)), AbiArg("data", "handle")]
    write_packed(text, SET_CONSTANT, args, (), f"{SET_CONSTANT}.vm", range(2))
    with text.function("i32", f"{RELEASE}.vm", (), "internal") as f:
        declare_native(text, "mlc_lab_free")
        for name in names:
            slot = f"@{quoted(f'{name}.block')}"
            block = f.op(f"atomicrmw xchg ptr {slot}, ptr null acq_rel")
            with f.if_(f.op(f"icmp ne ptr {block}, null")):
                f.call("void", "mlc_lab_free", [f"ptr {block}"])
        f.ret("i32 0")
    write_packed(text, RELEASE, (), (), f"{RELEASE}.vm", ())
    unit.quick += [SET_CONSTANT, RELEASE]
    return [SET_CONSTANT, RELEASE]


def fill_constants(executable: Executable) -> None:
    """Tell native code where the constants lie, and free its memory with the executable."""
    import weakref

    if not executable.compiled:
        return
    setter = executable.lib[SET_CONSTANT]
    for at, constant in enumerate(executable.constants):
        if hasattr(constant, "shape"):
            setter(at, constant)
    weakref.finalize(executable, executable.lib[RELEASE])


__all__ = ["NotCompiled", "Tensor", "compile_functions", "fill_constants"]

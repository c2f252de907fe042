"""What a function of bytecode does, seen from outside of the machine: kernels called on places.

The bytecode is run once at build time over places instead of tensors: an argument, a piece of
planned memory, a constant, a result. What is left is a `Plan`: calls of kernels, and the few checks
that only a run can make. An extent is a number, or a `Slot` of the table of symbolic dimensions;
the kernel that computes the rest of that table comes first in a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard, Union

from ...backend.llvm_packed import dl_dtype
from ...ir.dtype import bytes_of
from ...runtime.abi import Arg as AbiArg
from ...runtime.abi import Symbol
from ..memory_plan import Piece, pack
from .builtins import ASSERT_HEAP, ASSERT_IMM, SKIP, STORE, where
from .bytecode import CallInstr, Executable, Ret, VMFunction


class NotCompiled(Exception):
    """Why a function has no compiled form."""


@dataclass(frozen=True)
class Slot:
    """An extent that is known when the function is called: a place in the table of dimensions."""

    number: int


Dim = Union[int, Slot]


class Product(NamedTuple):
    """A number times extents."""

    factor: int
    slots: tuple[Slot, ...]


def product(factor: int, dims: tuple[Dim, ...]) -> Product:
    """A number times extents, the numbers among them multiplied out."""
    for dim in dims:
        if isinstance(dim, int):
            factor *= dim
    slots = sorted((d for d in dims if isinstance(d, Slot)), key=lambda s: s.number)
    return Product(factor, tuple(slots))


class Tensor(NamedTuple):
    """Where a tensor lies: `place` is "arg", "const", "memory" or "heap" with its number and an
    offset in bytes."""

    place: str
    number: int
    offset: int
    shape: tuple[Dim, ...]
    dtype: str

    @property
    def bytes(self) -> Product:
        """Its size."""
        return product(bytes_of(self.dtype), self.shape)


class Call(NamedTuple):
    """A call of a kernel: tensors, scalars, and the extents that its symbols are bound to."""

    kernel: str
    args: list


class Check(NamedTuple):
    """What has to hold as the function runs: `have` equals `want`, or with `more` is no less.

    Where it does not, the error says "`what` is 2 and `relation` 4".
    """

    want: Product
    have: Product
    what: str
    relation: str
    more: bool = False


@dataclass
class Plan:
    """What a function does. `block` is the bytes of its pieces of known size, `head` the number of
    steps that fill the table of `heap` symbolic dimensions; `symbols` are the slots that the
    arguments' shapes bind."""

    name: str
    params: list[AbiArg] = field(default_factory=list)
    symbols: dict[Slot, str] = field(default_factory=dict)
    heap: int = 0
    pieces: list[Piece] = field(default_factory=list)
    steps: list[Call | Check] = field(default_factory=list)
    head: int = 0
    outputs: list[Tensor] = field(default_factory=list)
    result: Any = None
    block: int = 0

    @property
    def calls(self) -> list[Call]:
        """The calls of kernels."""
        return [step for step in self.steps if type(step) is Call]

    @property
    def lanes(self) -> list[list[Piece]]:
        """The pieces of unknown size that share memory."""
        count = max((p.lane for p in self.pieces), default=-1) + 1
        return [[p for p in self.pieces if p.lane == k] for k in range(count)]


class Reader:
    """Runs bytecode over places. `kernels` are the names of the module's kernels, `unit` has their
    signatures."""

    def __init__(self, executable: Executable, function: VMFunction, kernels: set[str],
                 unit: Any) -> None:
        self.ex, self.function, self.kernels, self.unit = executable, function, kernels, unit
        self.out = Plan(function.name)
        self.registers: dict[int, Any] = {}
        self.shapes: dict[int, tuple] = {}
        self.declared: dict[int, tuple] = {}  # shapes as the arguments are checked against
        self.dtypes: dict[int, str] = {}

    def plan(self) -> Plan:
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
        symbols = {slot: Symbol(at) for at, slot in enumerate(self.out.symbols)}
        for number, name in enumerate(self.function.params):
            dtype = self.param(number).dtype
            shape = tuple(symbols[d] if isinstance(d, Slot) else d for d in self.declared[number])
            self.out.params.append(AbiArg(
                name, "tensor", dl_dtype(dtype), shape, align=self.align(number)))
        self.results(self.out.result)
        self.split()
        place(self.out)
        return self.out

    def split(self) -> None:
        """Find the steps at the start that fill the table of dimensions."""
        fills = [isinstance(s, Check) or any(isinstance(a, Tensor) and a.place == "heap"
                                         for a in s.args) for s in self.out.steps]
        self.out.head = fills.index(False) if False in fills else len(fills)
        if any(type(s) is Call and fill for s, fill in
               zip(self.out.steps[self.out.head:], fills[self.out.head:])):
            raise NotCompiled("it computes a shape between its kernels")

    def align(self, number: int) -> int:
        """The alignment that the kernels ask of an argument."""
        align = 1
        for call in self.out.calls:
            for row, tensor in zip(self.unit.signatures[call.kernel].args, call.args):
                if isinstance(tensor, Tensor) and tensor[:2] == ("arg", number):
                    align = max(align, row.align)
        return align

    def param(self, number: int) -> Tensor:
        """A parameter, of which all must be known."""
        if number not in self.shapes or number not in self.dtypes:
            raise NotCompiled(f"parameter {self.function.params[number]} is no tensor of a known "
                              "rank and dtype")
        return Tensor("arg", number, 0, self.shapes[number], self.dtypes[number])

    def value(self, value: Any) -> Any:
        """A register's content, parameters as tensors."""
        if _is_param(value):
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
            raise NotCompiled("it branches" if name == "vm.builtin.read_if_cond"
                              else f"it calls {name}")
        result = method(self, instruction)
        if instruction.dst >= 0:
            self.registers[instruction.dst] = result

    def kernel(self, name: str, args: list) -> None:
        """A kernel's call. Of its arguments what is known is checked now, the rest as it runs."""
        signature = self.unit.signatures[name]
        if len(args) != len(signature.args) or signature.returns:
            raise NotCompiled(f"{name} takes other arguments than it is passed, or returns one")
        bound: dict[int, Dim] = {}
        for row, arg in zip(signature.args, args):
            what = f"{self.function.name}: calling {name}, an extent of {row.name}"
            if row.kind == "int" and isinstance(arg, (int, Slot)):
                if row.symbol is not None:
                    self.same(bound.setdefault(row.symbol.index, arg), arg, what)
                continue
            if not isinstance(arg, Tensor) or row.kind != "tensor" or row.strides is not None \
                    or row.elem_offset is not None:
                raise NotCompiled(f"{name} takes something that is no compact tensor")
            if dl_dtype(arg.dtype) != row.dtype or len(row.shape) != len(arg.shape):
                raise NotCompiled(f"{name} declares {row.name} otherwise than it is passed")
            for want, have in zip(row.shape, arg.shape):
                want = bound.setdefault(want.index, have) if isinstance(want, Symbol) else want
                if want is not None:
                    self.same(want, have, what)
        for arg in args:
            if isinstance(arg, Tensor) and arg.place == "memory":
                piece = self.out.pieces[arg.number]
                piece.first = len(self.out.steps) if piece.first < 0 else piece.first
                piece.last = len(self.out.steps)
        self.out.steps.append(Call(name, [*args, *(bound[s.index] for _, s in signature.bound)]))

    def same(self, want: Dim, have: Dim, what: str, relation: str = "has to be") -> None:
        """Two extents have to be equal."""
        self.check(Check(product(1, (want,)), product(1, (have,)), what, relation))

    def check(self, check: Check) -> None:
        """Note what has to hold, unless it is known to."""
        want, have = check.want, check.have
        if want == have or (check.more and want.slots == have.slots
                            and want.factor <= have.factor):
            return
        if not want.slots and not have.slots:
            raise NotCompiled(f"{check.what} is {have.factor} and {check.relation} {want.factor}")
        self.out.steps.append(check)

    # -- builtins ---------------------------------------------------------------------------------

    def check_tensor(self, instruction: CallInstr) -> None:
        content = self.registers.get(instruction.args[0].value)
        dtype = self.argument(instruction.args[2]) if instruction.args[2].kind == "c" else None
        if _is_param(content) and dtype is not None:
            self.dtypes[content[1]] = str(dtype)

    def match_shape(self, instruction: CallInstr) -> None:
        ndim = instruction.args[2].value
        codes = [a.value for a in instruction.args[3:3 + 2 * ndim]]
        pairs = list(zip(codes[::2], codes[1::2]))
        content = self.registers.get(instruction.args[0].value)
        if _is_param(content) and content[1] not in self.shapes:
            self.declare(content[1], pairs)
            return
        content = self.value(content)
        if not isinstance(content, Tensor) or len(content.shape) != ndim or any(
                code == STORE for code, _ in pairs):
            raise NotCompiled("it checks a shape as it runs")
        where = self.where(instruction)
        shape = list(content.shape)
        for axis, (code, number) in enumerate(pairs):
            if code == ASSERT_IMM:
                self.same(number, shape[axis], f"{where}: dimension {axis}", "is declared as")
            elif code == ASSERT_HEAP:
                self.same(Slot(number), shape[axis], f"{where}: dimension {axis}")
                shape[axis] = Slot(number)
        if content.place == "arg":  # from here on under the names that it was found equal to
            self.shapes[content.number] = tuple(shape)

    def where(self, instruction: CallInstr) -> str:
        """The place in the program that a check of the bytecode names."""
        last = instruction.args[-1]
        text = self.ex.constants[last.value] if last.kind == "c" else ""
        return where(text) if isinstance(text, str) else self.function.name

    def declare(self, number: int, pairs: list[tuple[int, int]]) -> None:
        """The shape that a parameter is declared with, each extent not given as a slot."""
        name, symbols = self.function.params[number], self.out.symbols
        shape: list[Dim] = []
        for axis, (code, value) in enumerate(pairs):
            if code == ASSERT_IMM:
                shape.append(value)
                continue
            slot = Slot(value)
            if code == SKIP:  # compared later, when what it has to equal is computed
                slot = Slot(self.out.heap)
                self.out.heap += 1
            elif code == ASSERT_HEAP and slot not in symbols:
                raise NotCompiled("it compares an argument with what no argument has bound")
            symbols.setdefault(slot, f"{name}.shape[{axis}]")
            shape.append(slot)
        self.shapes[number] = self.declared[number] = tuple(shape)

    def heap(self, instruction: CallInstr) -> Tensor:
        size = instruction.args[1].value
        if self.out.heap:
            raise NotCompiled("it has two tables of dimensions")
        self.out.heap = max(size, 1)
        return Tensor("heap", 0, 0, (size,), "int64")

    def make_shape(self, instruction: CallInstr) -> tuple[Dim, ...]:
        codes = [a.value for a in instruction.args[2:2 + 2 * instruction.args[1].value]]
        return tuple(Slot(value) if code else value
                     for code, value in zip(codes[::2], codes[1::2]))

    def make_prim_value(self, instruction: CallInstr) -> Dim:
        code, value = (a.value for a in instruction.args[1:3])
        if code == 2:
            raise NotCompiled("it computes a float from sizes")
        return Slot(value) if code else value

    def shape_of(self, instruction: CallInstr) -> tuple[Dim, ...]:
        tensor = self.argument(instruction.args[0])
        if not isinstance(tensor, Tensor):
            raise NotCompiled("it asks for the shape of something that is no tensor")
        return tensor.shape

    def call_tir_dyn(self, instruction: CallInstr) -> None:
        func, *args = instruction.args
        name = self.ex.names[func.value] if func.kind == "f" else ""
        if name not in self.kernels:
            raise NotCompiled(f"it calls {name or 'a function value'}")
        *tensors, scalars = (self.argument(a) for a in args)
        self.kernel(name, [*tensors, *scalars])

    def nothing(self, instruction: CallInstr) -> None:
        return None

    def copy(self, instruction: CallInstr) -> Any:
        arg = instruction.args[0]
        return self.registers.get(arg.value) if arg.kind == "r" else self.argument(arg)

    def reshape(self, instruction: CallInstr) -> Tensor:
        tensor, shape = (self.argument(a) for a in instruction.args[:2])
        if not isinstance(tensor, Tensor) or type(shape) is not tuple or -1 in shape:
            raise NotCompiled("it reshapes to a shape that is not known")
        new = tensor._replace(shape=shape)
        self.check(Check(new.bytes, tensor.bytes, f"{self.function.name}: the bytes of what is "
                         "reshaped", "have to be"))
        return new

    def storage(self, instruction: CallInstr) -> Any:
        size = self.argument(instruction.args[1])
        if type(size) is not tuple:
            raise NotCompiled("it allocates memory of a size that is not known")
        self.out.pieces.append(Piece(size[0]))
        return ("storage", len(self.out.pieces) - 1)

    def tensor(self, instruction: CallInstr) -> Tensor:
        storage, offset, shape, dtype = (self.argument(a) for a in instruction.args[:4])
        if type(shape) is not tuple:
            raise NotCompiled("it makes a tensor of a shape that is not known")
        made = Tensor("memory", storage[1], int(offset), shape, str(dtype))
        size = self.out.pieces[made.number].size
        if isinstance(size, int):
            size -= made.offset
        elif made.offset:
            raise NotCompiled("it makes a tensor inside of memory of a size that is not known")
        self.check(Check(made.bytes, product(1, (size,)), f"{self.function.name}: the storage of a "
                         "tensor", "has to hold bytes:", more=True))
        return made

    def tuple(self, instruction: CallInstr) -> list:
        return [self.argument(a) for a in instruction.args]

    def item(self, instruction: CallInstr) -> Any:
        items = self.argument(instruction.args[0])
        if not isinstance(items, list):
            raise NotCompiled("it takes a tuple apart that it did not make")
        return items[instruction.args[1].value]

    # -- results ----------------------------------------------------------------------------------

    def results(self, value: object) -> None:
        """Let every tensor returned be an object of its own."""
        if isinstance(value, list):
            for item in value:
                self.results(item)
            return
        if not isinstance(value, Tensor) or value.place != "memory":
            raise NotCompiled("it returns an argument, a constant, or something that is no tensor")
        piece = self.out.pieces[value.number]
        sizes = {a.bytes for call in self.out.calls for a in call.args
                 if isinstance(a, Tensor) and a[:2] == ("memory", value.number)}
        if isinstance(piece.size, int):
            sizes.add(Product(piece.size, ()))
        if piece.output >= 0 or value.offset or sizes - {value.bytes}:
            raise NotCompiled("it returns a tensor that shares its memory")
        piece.output = len(self.out.outputs)
        self.out.outputs.append(value)


def _is_param(content: Any) -> TypeGuard[tuple]:
    return type(content) is tuple and len(content) == 2 and content[0] == "param"


_READERS = {
    "vm.builtin.check_tensor_info": Reader.check_tensor,
    "vm.builtin.match_shape": Reader.match_shape,
    "vm.builtin.alloc_shape_heap": Reader.heap,
    "vm.builtin.make_shape": Reader.make_shape,
    "vm.builtin.make_prim_value": Reader.make_prim_value,
    "vm.builtin.shape_of": Reader.shape_of,
    "vm.builtin.call_tir_dyn": Reader.call_tir_dyn,
    "vm.builtin.null_value": Reader.nothing,
    "vm.builtin.copy": Reader.copy,
    "vm.builtin.reshape": Reader.reshape,
    "vm.builtin.alloc_storage": Reader.storage,
    "vm.builtin.alloc_tensor": Reader.tensor,
    "vm.builtin.make_tuple": Reader.tuple,
    "vm.builtin.tuple_getitem": Reader.item,
}


def place(plan: Plan) -> None:
    """Give each piece that is no result its place in the block of the function."""
    plan.block = pack([p for p in plan.pieces if p.output < 0 and p.first >= 0])


__all__ = ["Call", "Check", "NotCompiled", "Piece", "Plan", "Product", "Reader", "Slot", "Tensor",
           "place", "product"]

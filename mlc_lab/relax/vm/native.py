"""The compiled form: the bytecode of a function as one native function, with nothing between the
kernels.

A function has one where it neither branches nor calls anything but kernels of the module;
`call_plan.py` finds out and makes the plan. Its calls of kernels with pointers are written here as
LLVM IR beside the kernels. Checks of arguments become the table that every native function has;
symbolic dimensions lie in a table on the stack. Planned memory is one block, as
`relax/memory_plan.py` packs it; behind the storages of known size are those whose size depends on
the call. The block is kept from call to call; a call that finds it in use by another thread, or too
small, takes one of its own.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Callable

from ...backend.llvm_packed import dl_dtype
from ...runtime import native_library
from ...runtime.abi import Symbol, declare_native, quoted, write_packed
from ...runtime.llir import FunctionText
from ..memory_plan import ALIGN
from .bytecode import Executable
from .call_plan import (
    Call,
    Check,
    Dim,
    NotCompiled,
    Plan,
    Product,
    Reader,
    Slot,
    Tensor,
)

CONSTANTS = "mlc_lab_vm_constants"
BLOCKS = "mlc_lab_vm_blocks"


def compile_functions(executable: Executable, kernels: set[str]) -> Any:
    """What to hand to `backend.llvm.build(..., extra=)`: it writes the compiled forms.

    Fills `executable.compiled`, `executable.not_compiled` and `executable.memory`.
    """
    def write(unit: Any) -> list[str]:
        names: list[str] = []
        for function in executable.functions.values():
            try:
                plan = Reader(executable, function, kernels, unit).plan()
            except NotCompiled as reason:
                executable.not_compiled[function.name] = str(reason)
                continue
            executable.compiled[function.name] = function.name
            if not plan.lanes:
                executable.memory[function.name] = plan.block
            _write(unit, plan, len(names))
            names.append(function.name)
        if names:
            _write_tables(unit, executable, names)
        if not executable.not_compiled:
            unit.inner |= kernels
        return names

    return write


def _write(unit: Any, plan: Plan, number: int) -> None:
    """Write the function of a plan, the `number`-th, and the packed function around it."""
    text = unit.text
    kernel = quoted(f"{plan.name}.vm")
    params = [*(("ptr", f"a{k}") for k in range(len(plan.params))),
              *(("i64", f"s{k}") for k in range(len(plan.symbols))), ("ptr", "ret")]
    slot = f"getelementptr (ptr, ptr @{BLOCKS}, i64 {number})"
    # Not optimised: it only calls, and the time to compile it shows in every build.
    with text.function("i32", kernel, params, "internal", "noinline optnone nounwind") as f:
        _Writer(unit, plan, slot, f).run()
    takes = [*range(len(plan.params)), *map(Symbol, range(len(plan.symbols)))]
    write_packed(text, plan.name, plan.params, list(plan.symbols.values()), kernel, takes, True)
    quick = set(unit.quick)
    if len(plan.calls) <= 64 and all(call.kernel in quick for call in plan.calls):
        unit.quick.append(plan.name)


class _Writer:
    """Writes one function.

    What the block at `failed` gives back grows as the function goes on: nothing while the table of
    dimensions is filled (`failed` is another block then), the planned memory and the results after.
    """

    def __init__(self, unit: Any, plan: Plan, slot: str, f: FunctionText) -> None:
        self.unit, self.plan, self.slot, self.f = unit, plan, slot, f
        self.block = ""
        self.anys = ""
        self.heap = ""
        self.dims: dict[Slot, str] = {}
        self.lanes: list[str] = []
        self.data: list[str] = []
        self.failed = f.new_label("early")
        self.planned = bool(plan.block or plan.lanes)

    def run(self) -> None:
        """The whole body."""
        f, plan = self.f, self.plan
        single = isinstance(plan.result, Tensor)
        self.code = f.var("i32", "-1")
        if plan.heap:
            self.heap = f.var("i64", count=plan.heap, align=8)
            for k, slot in enumerate(plan.symbols):
                f.store("i64", f"%s{k}", f.gep("i64", self.heap, slot.number))
        early, late = self.failed, f.new_label("failed")
        for step in plan.steps[:plan.head]:
            self.step(step)
        self.failed = late
        if not single:
            self.anys = f.var("[2 x i64]", count=max(len(plan.outputs), 1), align=8)
        for k in range(len(plan.outputs)):
            f.store("i64", "0", self.any_of(k))
            f.store("i64", "0", f.gep("i8", self.any_of(k), 8))
        if self.planned:
            self.take_block()
        for k, tensor in enumerate(plan.outputs):
            self.new_output(k, tensor)
        for step in plan.steps[plan.head:]:
            self.step(step)
        if self.planned:
            self.give_block()
        if not single:
            self.tuple_of(plan.result, "%ret")
        f.ret("i32 0")
        f.label(late)
        for k in range(len(plan.outputs)):
            held = f.load("ptr", f.gep("i8", self.any_of(k), 8))
            with f.if_(f.op(f"icmp ne ptr {held}, null")):
                self.unit.text.declare("i32", "TVMFFIObjectDecRef", ["ptr"])
                f.call("i32", "TVMFFIObjectDecRef", [f"ptr {held}"])
                f.store("i64", "0", self.any_of(k))
                f.store("ptr", "null", f.gep("i8", self.any_of(k), 8))
        if self.planned:
            self.give_block()
        f.br(early)
        f.label(early)
        f.ret(f"i32 {f.load('i32', self.code)}")

    # -- extents ----------------------------------------------------------------------------------

    def dim(self, dim: Dim) -> str:
        """An extent as an i64. The table of dimensions is full: every slot is read once."""
        if isinstance(dim, int):
            return str(dim)
        if dim not in self.dims:
            self.dims[dim] = self.f.load("i64", self.f.gep("i64", self.heap, dim.number))
        return self.dims[dim]

    def value(self, what: Product) -> str:
        """A product of extents as an i64."""
        out = str(what.factor)
        for slot in what.slots:
            out = self.f.op(f"mul i64 {out}, {self.dim(slot)}")
        return out

    # -- failing ----------------------------------------------------------------------------------

    def fail(self, kind: str, what: str) -> str:
        """Set the error; the code to return."""
        declare_native(self.unit.text, "mlc_lab_fail")
        string = self.unit.text.string
        return self.f.call("i32", "mlc_lab_fail", [f"ptr {string(kind)}", f"ptr {string(what)}"])

    def memory_error(self, pointer: str, leave: bool = False) -> None:
        """Fail unless a pointer was given; `leave` where there is nothing to give back."""
        f = self.f
        with f.if_(f.op(f"icmp eq ptr {pointer}, null")):
            code = self.fail("MemoryError", f"{self.plan.name}: no memory for its tensors")
            if leave:
                f.ret(f"i32 {code}")
            else:
                f.store("i32", code, self.code)
                f.br(self.failed)

    # -- memory -----------------------------------------------------------------------------------

    def any_of(self, k: int) -> str:
        """The slot in which a result is handed over."""
        return "%ret" if not self.anys else self.f.gep("[2 x i64]", self.anys, k)

    def take_block(self) -> None:
        """The planned memory: what the last call left, or new memory.

        A block whose size depends on the call begins with its size.
        """
        f, plan = self.f, self.plan
        declare_native(self.unit.text, "mlc_lab_alloc")
        declare_native(self.unit.text, "mlc_lab_free")
        need = str(plan.block)
        for lane in plan.lanes:
            self.lanes.append(need)
            need = f.op(f"add i64 {need}, {self.lane_size(lane)}")
        self.held = f.var("ptr")
        f.store("ptr", f.op(f"atomicrmw xchg ptr {self.slot}, ptr null acq_rel"), self.held)
        if plan.lanes:
            need = f.op(f"add i64 {need}, {ALIGN}")
            before = f.load("ptr", self.held)
            with f.if_(f.op(f"icmp ne ptr {before}, null")):
                with f.if_(f.op(f"icmp ult i64 {f.load('i64', before)}, {need}")):
                    f.call("void", "mlc_lab_free", [f"ptr {before}"])
                    f.store("ptr", "null", self.held)
        with f.if_(f.op(f"icmp eq ptr {f.load('ptr', self.held)}, null")):
            made = f.call("ptr", "mlc_lab_alloc", [f"i64 {need}"])
            f.store("ptr", made, self.held)
            if plan.lanes:
                with f.if_(f.op(f"icmp ne ptr {made}, null")):
                    f.store("i64", need, made)
        block = f.load("ptr", self.held)
        self.memory_error(block, leave=True)
        self.block = f.gep("i8", block, ALIGN) if plan.lanes else block

    def lane_size(self, pieces: list) -> str:
        """The bytes of the largest piece of a lane, rounded up."""
        f, size = self.f, "0"
        for piece in pieces:
            mine = self.dim(piece.size)
            larger = f.op(f"icmp ugt i64 {mine}, {size}")
            size = f.op(f"select i1 {larger}, i64 {mine}, i64 {size}")
        return f.op(f"and i64 {f.op(f'add i64 {size}, {ALIGN - 1}')}, {-ALIGN}")

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
        if any(isinstance(d, Slot) for d in tensor.shape):
            shape = f.var("i64", count=len(tensor.shape), align=8)
            for axis, dim in enumerate(tensor.shape):
                f.store("i64", self.dim(dim), f.gep("i64", shape, axis))
        else:
            shape = f"@{quoted(f'{self.plan.name}.shape{k}')}"
            dims = ", ".join(f"i64 {d}" for d in tensor.shape)
            text.globals.append(
                f"{shape} = private constant [{len(tensor.shape)} x i64] [{dims}]")
        code, bits, lanes = dl_dtype(tensor.dtype)
        pointer = f.call("ptr", "mlc_lab_new_tensor", [
            f"ptr {shape}", f"i64 {len(tensor.shape)}", f"i64 {code | bits << 8 | lanes << 16}",
            f"i64 {self.value(tensor.bytes)}", f"ptr {self.any_of(k)}"])
        self.memory_error(pointer)
        self.data.append(pointer)

    # -- steps ------------------------------------------------------------------------------------

    def step(self, step: Call | Check) -> None:
        """Write one step."""
        if isinstance(step, Call):
            self.kernel(step.kernel, step.args)
        else:
            self.check(step)

    def check(self, check: Check) -> None:
        """Fail unless what has to hold does."""
        f, string = self.f, self.unit.text.string
        want, have = self.value(check.want), self.value(check.have)
        with f.if_(f.op(f"icmp {'ult' if check.more else 'ne'} i64 {have}, {want}")):
            declare_native(self.unit.text, "mlc_lab_raise")
            code = f.call("i32", "mlc_lab_raise", [
                f"ptr {string('ValueError')}",
                f"ptr {string(f'%s is %lld and {check.relation} %lld')}",
                f"ptr {string(check.what)}", f"i64 {have}", f"i64 {want}", *["i64 0"] * 3])
            f.store("i32", code, self.code)
            f.br(self.failed)

    def kernel(self, name: str, args: list) -> None:
        """Call a kernel."""
        f, signature = self.f, self.unit.signatures[name]
        operands = []
        for at, arg in enumerate(args):
            if isinstance(arg, Tensor):
                operands.append(f"ptr {self.pointer(arg)}")
                continue
            kind = signature.types[at] if at < len(signature.types) else "i64"
            value = self.dim(arg)
            if kind != "i64" and value.startswith("%"):
                value = f.op(f"trunc i64 {value} to {kind}")
            operands.append(f"{kind} {value}")
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
        if tensor.place == "heap":
            return self.heap
        if tensor.place == "const":
            return f.load("ptr", f.gep("ptr", f"@{CONSTANTS}", tensor.number),
                          ", !invariant.load !{}")
        piece = self.plan.pieces[tensor.number]
        if piece.output >= 0:
            return self.data[piece.output]
        if piece.lane >= 0:
            return f.gep("i8", self.block, self.lanes[piece.lane])
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


def _write_tables(unit: Any, executable: Executable, names: list[str]) -> None:
    """The addresses of the constants, and the slots in which functions keep their memory."""
    globals_ = unit.text.globals
    for name, count in ((CONSTANTS, len(executable.constants)), (BLOCKS, len(names))):
        globals_.append(f"@{name} = global [{max(count, 1)} x ptr] zeroinitializer, align 8")


def fill_constants(executable: Executable) -> None:
    """Tell native code where the constants lie, and free its memory with the executable."""
    if not executable.compiled:
        return
    table = executable.lib.data_address(CONSTANTS)
    for at, constant in enumerate(executable.constants):
        if hasattr(constant, "shape"):
            ctypes.c_void_p.from_address(table + 8 * at).value = constant.data_ptr()
    if any(executable.memory.get(name, 1) for name in executable.compiled):
        weakref.finalize(executable, releaser(executable))


def releaser(executable: Executable) -> Callable[[], None]:
    """What frees the memory that compiled functions keep from call to call; they may be called
    again after it."""
    lib, count = executable.lib, len(executable.compiled)  # with the code live its slots
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(
        native_library.native_address("mlc_lab_free_all"))
    return lambda: free(lib.data_address(BLOCKS), count)


__all__ = ["compile_functions", "fill_constants", "releaser"]

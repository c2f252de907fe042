"""What every piece of generated code shares: a function being written, and its module.

``Unit`` is one LLVM module; ``Emitter`` one function of it. The emitter numbers values: writing
the same effect-free instruction again within its scope gives the operand written before. Most index
arithmetic of unrolled loops repeats, and what is not written need not be parsed and removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..ir import dtype as dt
from ..ir.diagnostics import MLCError
from ..runtime.abi import declare_native, quoted
from ..runtime.llir import FunctionText, ModuleText
from ..tir import Buffer, PrimExpr, Var
from .llvm_types import lane_bytes, memory_element, register_type


#: lanes that are put into a vector one after the other. The time that LLVM's vectorizer of straight
#: code takes grows with the cube of their number: 4 s for 128 of them. Longer ones are put together
_GATHERED = 16


class CodegenError(MLCError, ValueError):
    """A program that cannot be turned into machine code; the text says what and what to do."""


def checked_symbol(name: str) -> str:
    """The name of a function, if object code can have it. Raises CodegenError."""
    if "\0" in name or name.startswith("llvm.") or any("\ud800" <= c <= "\udfff" for c in name):
        raise CodegenError(f"no function in object code can be called {name[:60]!r}")
    return name


class Unit:
    """One LLVM module under construction."""

    def __init__(self, text: ModuleText, scalable: bool = False) -> None:
        self.text = text
        self.scalable = scalable  # whether the machine has vectors of scalable length
        self.numbers: dict[str, int] = {}
        self.signatures: dict[str, Any] = {}
        self.imports: list[str] = []  # LLVM IR to be linked in
        self.quick: list[str] = []  # functions so short that they are called with the GIL held
        self.externs: list[str] = []  # C functions that the program calls by name
        self.inner: set[str] = set()  # functions that are rarely called from outside
        self.helpers: set[str] = set()  # functions of the code generator's own

    def loop_note(self, copies: int) -> str:
        """Metadata for one loop that says how often to unroll it; a node of its own for each."""
        text, at = self.text, len(self.text.metadata)
        text.node(f"distinct !{{!{at}, !{at + 1}}}")
        text.node('!{!"llvm.loop.unroll.disable"}' if copies == 1 else
                  f'!{{!"llvm.loop.unroll.count", i32 {copies}}}')
        return f"!{at}"

    def unique(self, hint: str) -> str:
        """A global name not used before."""
        count = self.numbers[hint] = self.numbers.get(hint, -1) + 1
        return f"{hint}.{count}" if count else hint


class Emitter(FunctionText):
    """One function under construction, and what is known inside it.

    Attributes
    ----------
    env : dict
        The operand of each variable, in the type of the variable.
    wide : dict
        The operand as an i64 of integer variables used in index arithmetic.
    nonneg : set
        Integer variables known to be >= 0.
    objects : set
        Pointer variables whose memory nothing else points to.
    data : dict
        Which expressions have data in them (see ``arith.expr_util.is_data``).
    nonzero : set
        Integer variables known not to be zero.
    mask : str or None
        Inside a choice by a vector, or a masked store: the active lanes. Others load nothing.
    mask_width : int
        How many lanes the mask has.
    """

    def __init__(self, unit: Unit, name: str, header: str) -> None:
        super().__init__(unit.text, header)
        self.unit = unit
        self.function_name = name
        self.env: dict[Var, str] = {}
        self.wide: dict[Var, str] = {}
        self.nonneg: set[Var] = set()
        self.objects: set[Var] = set()
        self.data: dict[PrimExpr, bool] = {}
        self.nonzero: set[Var] = set()
        self.mask: str | None = None
        self.mask_width = 0
        self.error_slot: str | None = None
        self.workspaces: list[str] = []  # heap memory that is to be freed, outermost first
        self.free_labels: dict[str, str] = {}  # workspace -> label that frees it at early exits
        self.code_slot = ""  # where the return code is while an early exit frees workspaces
        #: of each loop around that is left early: the labels of its next iteration and its end, and
        #: how many workspaces there were outside of it
        self.exits: list[tuple[str, str, int]] = []
        self.stored: Buffer | None = None  # what the store being written stores to
        self.work = 0.0  # stores the function makes, where that is known; infinite where not
        self.repeats = 1.0  # how often the code being written runs
        self._known: dict[str, str] = {}
        self._log: list[str] = []

    # -- value numbering --------------------------------------------------------------------------

    def pure(self, text: str) -> str:
        """Emit an effect-free instruction, unless the same one stands above in this scope."""
        name = self._known.get(text)
        if name is None:
            self.count += 1
            name = self._known[text] = f"%v{self.count}"
            self.lines.append(f"  {name} = {text}")
            self._log.append(text)
        return name

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Code that may not run: what is written inside is not known after it."""
        mark = len(self._log)
        yield
        for text in self._log[mark:]:
            del self._known[text]
        del self._log[mark:]

    # -- calls of LLVM's own functions ------------------------------------------------------------

    def call_intrinsic(self, name: str, ret: str, *args: str) -> str:
        """Call an intrinsic without effects; operands carry their types."""
        self.unit.text.declare(ret, name, [a.rsplit(" ", 1)[0] if a[0] != "<" else
                                           a[: a.index(">") + 1] for a in args])
        return self.pure(f"call {ret} @{name}({', '.join(args)})")

    # -- memory -----------------------------------------------------------------------------------

    def pointer(self, buffer: Buffer) -> str:
        """The data pointer of a buffer."""
        try:
            return self.env[buffer.data]
        except KeyError:
            raise CodegenError(
                f"{self.function_name}: buffer {buffer.name!r} is used where it is not defined: "
                "it is neither a parameter nor allocated around its use"
            ) from None

    def slot_address(self, buffer: Buffer, index: str) -> str:
        """The address of the element with the flat index ``index`` (an i64 operand)."""
        pointer = self.pointer(buffer)
        if index == "0":
            return pointer
        lanes = dt.lanes_of(buffer.dtype)
        element = memory_element(buffer.dtype)
        if lanes > 1:
            element = f"[{lanes} x {element}]"
        return self.pure(f"getelementptr inbounds {element}, ptr {pointer}, i64 {index}")

    def load_from(self, address: str, dtype: str, predicate: str | None = None) -> str:
        """Load one value (a vector: consecutive lanes) of ``dtype``."""
        align, lanes = lane_bytes(dtype), dt.lanes_of(dtype)
        element = memory_element(dtype)
        ty = element if lanes == 1 else f"<{lanes} x {element}>"
        if predicate is not None and lanes > 1:
            value = self._masked_load(address, ty, element, lanes, align, predicate)
        else:
            self.count += 1
            value = f"%v{self.count}"
            self.lines.append(f"  {value} = load {ty}, ptr {address}, align {align}")
        if dt.is_bool(dtype):
            zero = "0" if lanes == 1 else "zeroinitializer"
            return self.op(f"icmp ne {ty} {value}, {zero}")
        return value

    def _masked_load(
        self, address: str, ty: str, element: str, lanes: int, align: int, mask: str
    ) -> str:
        name = f"llvm.masked.load.{_suffix(element, lanes)}.p0"
        self.unit.text.declare(ty, name, ["ptr", "i32 immarg", f"<{lanes} x i1>", ty])
        return self.op(
            f"call {ty} @{name}(ptr {address}, i32 {align}, <{lanes} x i1> {mask}, "
            f"{ty} zeroinitializer)"
        )

    def store_to(
        self, address: str, value: str, dtype: str, predicate: str | None = None
    ) -> None:
        """Store one value (a vector: consecutive lanes) of ``dtype``."""
        align, lanes = lane_bytes(dtype), dt.lanes_of(dtype)
        element = memory_element(dtype)
        ty = element if lanes == 1 else f"<{lanes} x {element}>"
        if dt.is_bool(dtype):
            value = self.op(f"zext {register_type(dtype)} {value} to {ty}")
        if predicate is not None and lanes > 1:
            name = f"llvm.masked.store.{_suffix(element, lanes)}.p0"
            self.unit.text.declare("void", name, [ty, "ptr", "i32 immarg", f"<{lanes} x i1>"])
            self.do(
                f"call void @{name}({ty} {value}, ptr {address}, i32 {align}, "
                f"<{lanes} x i1> {predicate})"
            )
            return
        self.lines.append(f"  store {ty} {value}, ptr {address}, align {align}")

    # -- vectors ----------------------------------------------------------------------------------

    def splat(self, value: str, ty: str, lanes: int) -> str:
        """A scalar operand of LLVM type ``ty`` in every lane."""
        if value[0] != "%" and value[0] != "@":
            return f"splat ({ty} {value})" if ty != "ptr" else self._splat(value, ty, lanes)
        return self._splat(value, ty, lanes)

    def _splat(self, value: str, ty: str, lanes: int) -> str:
        vector = f"<{lanes} x {ty}>"
        one = self.pure(f"insertelement {vector} poison, {ty} {value}, i64 0")
        return self.pure(
            f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer"
        )

    def lane(self, value: str, ty: str, lanes: int, index: int) -> str:
        """One lane of a vector with elements of LLVM type ``ty``."""
        return self.pure(f"extractelement <{lanes} x {ty}> {value}, i64 {index}")

    def gather_lanes(self, values: list[str], ty: str) -> str:
        """A vector of scalar operands."""
        lanes = len(values)
        if lanes > _GATHERED and lanes % 2 == 0:
            half = lanes // 2
            low, high = (self.gather_lanes(part, ty) for part in (values[:half], values[half:]))
            order = ", ".join(f"i32 {n}" for n in range(lanes))
            part = f"<{half} x {ty}>"
            return self.op(f"shufflevector {part} {low}, {part} {high}, <{lanes} x i32> <{order}>")
        vector = "poison"
        for index, value in enumerate(values):
            vector = self.op(f"insertelement <{lanes} x {ty}> {vector}, {ty} {value}, i64 {index}")
        return vector

    # -- failing ----------------------------------------------------------------------------------

    def fail(self, kind: str, text: str) -> None:
        """Return from the function with an error. Code after it needs a new block."""
        if self.error_slot is not None:
            # In a parallel loop: errors belong to a thread, so the launching one raises.
            kind = "RuntimeError" if kind == "AssertionError" else kind
            self.store("ptr", self._error(kind, text), self.error_slot)
            self.leave("-1")
            return
        declare_native(self.unit.text, "mlc_lab_fail")
        kind, message = self.unit.text.string(kind), self.unit.text.string(text)
        self.leave(self.op(f"call i32 @mlc_lab_fail(ptr {kind}, ptr {message})"))

    def leave(self, code: str) -> None:
        """Free all workspaces and return an i32.

        The label of each workspace frees it and jumps to that of the next one outside. Freeing all
        of them at each early exit would make code grow with the square of their number.
        """
        if not self.workspaces:
            self.ret(f"i32 {code}")
            return
        self.code_slot = self.code_slot or self.var("i32")
        self.store("i32", code, self.code_slot)
        self.br(self._free_label())

    def _free_label(self) -> str:
        """The label at which an early exit frees the innermost workspace."""
        block = self.workspaces[-1]
        if block not in self.free_labels:
            self.free_labels[block] = self.new_label("leave")
        return self.free_labels[block]

    def release(self) -> None:
        """Free the innermost workspace, also on the early exits from within it."""
        declare_native(self.unit.text, "mlc_lab_free")
        block = self.workspaces.pop()
        free = f"call void @mlc_lab_free(ptr {block})"
        self.do(free)
        if block not in self.free_labels:
            return
        after = self.new_label("after")
        self.br(after)
        self.label(self.free_labels.pop(block))
        self.do(free)
        if self.workspaces:
            self.br(self._free_label())
        else:
            self.ret(f"i32 {self.load('i32', self.code_slot)}")
        self.label(after)

    def _error(self, kind: str, text: str) -> str:
        """A constant of an error's kind and text, for the thread that raises it."""
        name = "@" + quoted(self.unit.unique(f"{self.function_name}_error"))
        kind, text = self.unit.text.string(kind), self.unit.text.string(text)
        self.unit.text.globals.append(
            f"{name} = internal constant {{ ptr, ptr }} {{ ptr {kind}, ptr {text} }}")
        return name

    def fail_through(self, code: str) -> None:
        """Return an error that a callee has raised already."""
        if self.error_slot is not None:
            text = f"{self.function_name}: a call inside a parallel loop failed"
            self.store("ptr", self._error("RuntimeError", text), self.error_slot)
        self.leave(code)


def _suffix(element: str, lanes: int) -> str:
    """How an intrinsic's name spells a vector type."""
    short = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(element, element)
    return f"v{lanes}{short}"


def intrinsic_suffix(dtype: str) -> str:
    """How an intrinsic's name spells a dtype: ``v8f32``."""
    code, bits, lanes = dt.parse(dtype)
    element = "p0" if code == "handle" else f"{'f' if code == 'float' else 'i'}{bits}"
    return element if lanes == 1 else f"v{lanes}{element}"


def const_int(e: PrimExpr) -> int | None:
    """The value of an integer constant, else None."""
    from ..tir import IntImm

    return e.value if type(e) is IntImm else None


__all__ = ["CodegenError", "Emitter", "Unit", "checked_symbol", "const_int", "intrinsic_suffix",
           "quoted"]

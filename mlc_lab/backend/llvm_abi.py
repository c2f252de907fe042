"""How a PrimFunc is called: what its arguments must be, and what its kernel takes.

From parameters and ``buffer_map`` follows a row per argument for the check table of the runtime
(``runtime/native/args.py``), and a plain signature: data pointers and numbers in the order of the
parameters, then an i64 for each shape variable that is no parameter itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import tir
from ..ir import dtype as dt
from ..runtime.abi import Arg, Symbol, quoted
from ..tir.functor import all_statements
from ..tir.stmt import Evaluate
from .llvm_calls import RETURN_SLOT
from .llvm_emit import CodegenError, const_int
from .llvm_packed import dl_dtype
from .llvm_types import lane_bytes, register_type

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr


@dataclass
class Signature:
    """How one function is called.

    Attributes
    ----------
    args : list of Arg
        The rows of the check table.
    symbols : list of str
        Names of what the shapes bind, in the order of their slots.
    types, variables : list
        LLVM type and variable of each parameter of the kernel, without the symbols.
    bound : list of (Var or None, Symbol)
        The symbols that the kernel takes after its parameters; None for a computed extent.
    checks : list of (Symbol, PrimExpr, str)
        Extents that are expressions: their slot, what they must be, and how to name them.
    """

    name: str
    kernel: str
    args: list[Arg] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    variables: list[tir.Var] = field(default_factory=list)
    bound: list[tuple[tir.Var | None, Symbol]] = field(default_factory=list)
    checks: list[tuple[Symbol, Any, str]] = field(default_factory=list)
    returns: bool = False

    @property
    def takes(self) -> list[int | Symbol]:
        """What the packed wrapper passes to the kernel."""
        return [*range(len(self.args)), *(symbol for _, symbol in self.bound)]


class _Reader:
    """Reads a PrimFunc's parameters into a Signature."""

    def __init__(self, func: tir.PrimFunc, out: Signature) -> None:
        self.func, self.out = func, out
        self.slots: dict[tir.Var, Symbol] = {}
        self.params = {p for p in func.params if p not in func.buffer_map}

    def slot(self, var: tir.Var) -> Symbol:
        """The symbol of a shape variable, made where it is first met."""
        if var not in self.slots:
            self.slots[var] = Symbol(len(self.out.symbols))
            self.out.symbols.append(var.name)
            if var not in self.params:
                self.out.bound.append((var, self.slots[var]))
        return self.slots[var]

    def extent(self, e: PrimExpr, what: str) -> int | Symbol:
        """What the table says of an extent or stride."""
        value = const_int(e)
        if value is not None:
            return value
        if isinstance(e, tir.Var):
            return self.slot(e)
        # Bound to a slot of its own, and compared with the expression by the kernel.
        symbol = Symbol(len(self.out.symbols))
        self.out.symbols.append(what)
        self.out.bound.append((None, symbol))
        self.out.checks.append((symbol, e, what))
        return symbol

    def tensor(self, param: tir.Var, buffer: tir.Buffer) -> Arg:
        shape = tuple(
            self.extent(e, f"{buffer.name}.shape[{d}]") for d, e in enumerate(buffer.shape)
        )
        strides = None
        if buffer.strides:
            strides = tuple(
                self.extent(e, f"{buffer.name}.strides[{d}]")
                for d, e in enumerate(buffer.strides)
            )
        offset = None
        if isinstance(buffer.elem_offset, tir.Var):
            offset = self.slot(buffer.elem_offset)
        elif buffer.elem_offset is not None and const_int(buffer.elem_offset) is None:
            offset = self.extent(buffer.elem_offset, f"{buffer.name}.elem_offset")
        self.out.types.append("ptr")
        self.out.variables.append(buffer.data)
        return Arg(
            buffer.name, "tensor", dl_dtype(buffer.dtype), shape, strides, offset,
            lane_bytes(buffer.dtype),
        )

    def scalar(self, param: tir.Var) -> Arg:
        code, bits, lanes = dt.parse(param.dtype)
        if lanes > 1 or code == "bfloat":
            raise CodegenError(
                f"{self.out.name}: parameter {param.name!r} is of type {param.dtype}, which cannot "
                "be passed as a number; pass a buffer"
            )
        self.out.types.append(register_type(param.dtype))
        self.out.variables.append(param)
        if code == "handle":
            return Arg(param.name, "handle")
        kind = {"int": "int", "uint": "int", "float": "float", "bool": "bool"}[code]
        symbol = self.slots.get(param) if kind == "int" else None
        return Arg(param.name, kind, dl_dtype(param.dtype), symbol=symbol)

    def read(self) -> None:
        func = self.func
        # Tensors first: a number that is a shape variable must know its slot.
        tensors = {}
        order = []
        for param in func.params:
            buffer = func.buffer_map.get(param)
            order.append((param, buffer))
            if buffer is not None:
                for e in (*buffer.shape, *buffer.strides, buffer.elem_offset):
                    if isinstance(e, tir.Var):
                        self.slot(e)
        for param, buffer in order:
            row = self.scalar(param) if buffer is None else self.tensor(param, buffer)
            self.out.args.append(row)
            tensors[param] = row
        self._check_bound()

    def _check_bound(self) -> None:
        """Every variable of a computed extent must be bound somewhere."""
        for _, expr, what in self.out.checks:
            for var in tir.free_vars(expr):
                if var not in self.slots and var not in self.params:
                    raise CodegenError(
                        f"{self.out.name}: the extent {what} is an expression of {var.name!r}, "
                        "which no argument determines; add it as a parameter, or as an extent of "
                        "its own"
                    )


def signature_of(name: str, func: tir.PrimFunc) -> Signature:
    """How ``func``, under the global name ``name``, is called."""
    out = Signature(name, quoted(f"{name}_kernel"))
    _Reader(func, out).read()
    out.returns = _returns_value(func)
    return out


def _returns_value(func: tir.PrimFunc) -> bool:
    return any(type(s) is Evaluate and type(s.value) is tir.Call
               and getattr(s.value.op, "name", "") == "tir.ret" for s in all_statements(func.body))


def parameter_texts(signature: Signature, func: tir.PrimFunc) -> list[str]:
    """The kernel's parameters with what is known of them: aliasing, size, alignment."""
    noalias = bool(int((func.attrs or {}).get("tir.noalias", 0) or 0))
    texts = []
    for at, (ty, var) in enumerate(zip(signature.types, signature.variables, strict=True)):
        facts = ""
        arg = signature.args[at]
        if arg.kind == "tensor":
            facts = " noalias" if noalias else ""
            facts += f" align {arg.align}"
            size = arg.dtype[1] * arg.dtype[2] // 8
            for extent in arg.shape:
                size = size * extent if isinstance(extent, int) else 0
            if size and arg.strides is None and arg.elem_offset is None:
                facts += f" dereferenceable({size})"
        del var
        texts.append(f"{ty}{facts} %a{at}")
    texts += [f"i64 %s{at}" for at in range(len(signature.bound))]
    if signature.returns:
        texts.append("ptr %ret")
    return texts


__all__ = ["RETURN_SLOT", "Signature", "parameter_texts", "signature_of"]

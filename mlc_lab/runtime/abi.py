"""The packed function around a kernel: the calling convention of tvm-ffi.

A kernel proper takes plain pointers and numbers. ``write_packed`` writes the function with the
public symbol that unpacks and checks the arguments (see ``native/args.py``) and calls the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .llir import ModuleText
from .module import SYMBOL_PREFIX
from .native.args import ANY, BOOL, FLOAT, HANDLE, INT, TENSOR

__all__ = ["ANY", "Arg", "LLVM_SCALARS", "Symbol", "declare_native", "write_packed"]


@dataclass(frozen=True)
class Symbol:
    """A shape variable, by its place in the list of a function's symbols."""

    index: int


@dataclass(frozen=True)
class Arg:
    """What a kernel expects of one argument.

    ``kind`` is ``"tensor"``, ``"int"``, ``"float"``, ``"bool"`` or ``"handle"``; ``dtype`` is
    DLPack's (code, bits, lanes). Extents, strides and ``elem_offset`` are ints, symbols, or None
    for "not checked here"; ``strides`` of None means a compact tensor, ``elem_offset`` of None that
    the data pointer includes the offset. A scalar that is itself a shape variable has ``symbol``.
    """

    name: str
    kind: str
    dtype: tuple[int, int, int] = (0, 0, 0)
    shape: tuple[int | Symbol | None, ...] = ()
    strides: tuple[int | Symbol | None, ...] | None = None
    elem_offset: Symbol | None = None
    align: int = 1
    symbol: Symbol | None = None


_KINDS = {"tensor": TENSOR, "int": INT, "float": FLOAT, "handle": HANDLE, "bool": BOOL}

# DLPack (code, bits) of a scalar argument -> its LLVM type.
LLVM_SCALARS = {(2, 16): "half", (2, 32): "float", (2, 64): "double"}

_NATIVE = {
    "mlc_lab_check_args": ("i32", ("ptr", "ptr", "i32", "ptr", "ptr")),
    "mlc_lab_fail": ("i32", ("ptr", "ptr")),
    "mlc_lab_raise": ("i32", ("ptr", "ptr", "ptr", "i64", "i64", "i64", "i64", "i64")),
    "mlc_lab_parallel_launch": ("i32", ("ptr", "ptr", "i64")),
    "mlc_lab_alloc": ("ptr", ("i64",)),
    "mlc_lab_free": ("void", ("ptr",)),
}


def declare_native(m: ModuleText, name: str) -> str:
    """Declare a function of the native runtime and return its name."""
    ret, args = _NATIVE[name]
    m.declare(ret, name, args)
    return name


def _entry(value: int | Symbol | None) -> str:
    if value is None:
        return f"i64 {ANY}"
    if isinstance(value, Symbol):
        return f"i64 {-1 - value.index}"
    return f"i64 {value}"


def _numbers(m: ModuleText, hint: str, values: Sequence[int | Symbol | None]) -> str:
    if not values:
        return "null"
    name = f"@.{hint}"
    body = ", ".join(map(_entry, values))
    m.globals.append(f"{name} = private constant [{len(values)} x i64] [{body}], align 8")
    return name


def _write_table(m: ModuleText, name: str, args: Sequence[Arg], symbols: Sequence[str]) -> str:
    rows = []
    for index, arg in enumerate(args):
        code, bits, lanes = arg.dtype
        if arg.kind == "tensor":
            ndim = len(arg.shape)
        else:
            ndim = 0 if arg.symbol is None else arg.symbol.index + 1
        shape = _numbers(m, f"{name}.{index}.shape", arg.shape)
        strides = "null"
        if arg.strides is not None and arg.kind == "tensor" and arg.shape:
            strides = _numbers(m, f"{name}.{index}.strides", arg.strides)
        fields = (
            f"ptr {m.string(arg.name)}",
            f"i64 {_KINDS[arg.kind]}",
            f"i64 {code | bits << 8 | lanes << 16}",
            f"i64 {ndim}",
            f"i64 {arg.align}",
            f"ptr {shape}",
            f"ptr {strides}",
            _entry(arg.elem_offset),
        )
        rows.append(f"{{{', '.join(fields)}}}")
    row_type = "{ptr, i64, i64, i64, i64, ptr, ptr, i64}"
    body = ", ".join(f"{row_type} {fields}" for fields in rows)
    m.globals.append(f"@.{name}.args = private constant [{len(rows)} x {row_type}] [{body}]")
    texts = ", ".join(f"ptr {m.string(s)}" for s in symbols)
    m.globals.append(f"@.{name}.symbols = private constant [{len(symbols)} x ptr] [{texts}]")
    m.globals.append(
        f"@.{name}.desc = private constant {{ptr, i64, ptr, i64, ptr}} {{ptr {m.string(name)}, "
        f"i64 {len(args)}, ptr @.{name}.args, i64 {len(symbols)}, ptr @.{name}.symbols}}"
    )
    return f"@.{name}.desc"


def quoted(name: str) -> str:
    """``name`` as an LLVM identifier, quoted where it has characters that need it."""
    plain = all(c.isalnum() or c in "_.$-" for c in name)
    return name if plain and name.isascii() else f'"{name}"'


def write_packed(
    m: ModuleText,
    name: str,
    args: Sequence[Arg],
    symbols: Sequence[str],
    kernel: str,
    takes: Sequence[int | Symbol],
    returns: bool = False,
) -> None:
    """Define ``@__tvm_ffi_<name>`` that checks ``args`` and calls ``@kernel``.

    ``takes`` lists the kernel's parameters: positions of arguments, and symbols (an i64 each). The
    kernel returns an i32, zero for success; with ``returns`` it also takes the address of the Any
    for its result.
    """
    desc = _write_table(m, name, args, symbols)
    declare_native(m, "mlc_lab_check_args")
    params = [("ptr", "self"), ("ptr", "args"), ("i32", "n"), ("ptr", "ret")]
    with m.function("i32", quoted(SYMBOL_PREFIX + name), params) as f:
        out = f.var(f"[{max(len(args), 1)} x i64]", align=8)
        syms = f.var(f"[{max(len(symbols), 1)} x i64]", align=8)
        code = f.call(
            "i32",
            "mlc_lab_check_args",
            [f"ptr {desc}", "ptr %args", "i32 %n", f"ptr {out}", f"ptr {syms}"],
        )
        with f.if_(f.op(f"icmp ne i32 {code}, 0")):
            f.ret(f"i32 {code}")
        operands = []
        for source in takes:
            if isinstance(source, Symbol):
                operands.append(f"i64 {f.load('i64', f.gep('i64', syms, source.index))}")
                continue
            arg, slot = args[source], f.gep("i64", out, source)
            if arg.kind in ("tensor", "handle"):
                operands.append(f"ptr {f.load('ptr', slot)}")
            elif arg.kind == "float":
                value = f.load("double", slot)
                ty = LLVM_SCALARS[arg.dtype[:2]]
                if ty != "double":
                    value = f.op(f"fptrunc double {value} to {ty}")
                operands.append(f"{ty} {value}")
            elif arg.kind == "bool":
                value = f.load("i64", slot)
                operands.append(f"i1 {f.op(f'icmp ne i64 {value}, 0')}")
            else:
                value, bits = f.load("i64", slot), arg.dtype[1]
                if bits < 64:
                    value = f.op(f"trunc i64 {value} to i{bits}")
                operands.append(f"i{bits} {value}")
        if returns:
            operands.append("ptr %ret")
        status = f.call("i32", kernel, operands)
        f.ret(f"i32 {status}")


"""The packed function around a kernel: the calling convention of tvm-ffi.

A kernel proper takes plain pointers and numbers. ``write_packed`` writes the function with the
public symbol that unpacks and checks the arguments and calls the kernel. It tests the usual case in
a few instructions; all else goes through the table (see ``native/args.py``), which also accepts the
unusual cases and explains errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .llir import FunctionText, ModuleText
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
    elem_offset: int | Symbol | None = None
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
    "mlc_lab_new_tensor": ("ptr", ("ptr", "i64", "i64", "i64", "ptr")),
    "mlc_lab_new_tuple": ("i32", ("ptr", "i32", "ptr")),
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
    name = f"@{quoted(f'.{hint}')}"
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
    rows_of, symbols_of, desc = (f"@{quoted(f'.{name}.{part}')}" for part in (
        "args", "symbols", "desc"))
    m.globals.append(f"{rows_of} = private constant [{len(rows)} x {row_type}] [{body}]")
    texts = ", ".join(f"ptr {m.string(s)}" for s in symbols)
    m.globals.append(f"{symbols_of} = private constant [{len(symbols)} x ptr] [{texts}]")
    m.globals.append(
        f"{desc} = private constant {{ptr, i64, ptr, i64, ptr}} {{ptr {m.string(name)}, "
        f"i64 {len(args)}, ptr {rows_of}, i64 {len(symbols)}, ptr {symbols_of}}}"
    )
    return desc


def quoted(name: str) -> str:
    """``name`` as an LLVM identifier, quoted where it has characters that need it."""
    if name.isascii() and all(c.isalnum() or c in "_.$-" for c in name) and not name[:1].isdigit():
        return name
    text = "".join(c if c.isprintable() and c not in '"\\' else "".join(
        f"\\{byte:02X}" for byte in c.encode(errors="replace")) for c in name)
    return f'"{text}"'


def write_packed(
    m: ModuleText,
    name: str,
    args: Sequence[Arg],
    symbols: Sequence[str],
    kernel: str,
    takes: Sequence[int | Symbol],
    returns: bool = False,
    quick: bool = True,
) -> None:
    """Define ``@__tvm_ffi_<name>`` that checks ``args`` and calls ``@kernel``.

    With ``quick`` the usual case is tested in place; without, it is less code and a slower call.

    ``takes`` lists the kernel's parameters: positions of arguments, and symbols (an i64 each). The
    kernel returns an i32, zero for success; with ``returns`` it also takes the address of the Any
    for its result.
    """
    desc = _write_table(m, name, args, symbols)
    declare_native(m, "mlc_lab_check_args")
    params = [("ptr", "self"), ("ptr", "args"), ("i32", "n"), ("ptr", "ret")]
    # Not optimised: its compile time matters, and the few nanoseconds that it takes do not.
    with m.function("i32", quoted(SYMBOL_PREFIX + name), params, "", "noinline optnone") as f:
        out = f.var(f"[{max(len(args), 1)} x i64]", align=8)
        syms = f.var(f"[{max(len(symbols), 1)} x i64]", align=8)
        slow, join = f.new_label("slow"), f.new_label("join")
        sides = []
        if quick and args and all(map(_has_quick_test, args)):
            values, bound = _quick_test(f, args, slow)
            sides.append((f.block, _operands(f, args, takes, values, bound)))
            f.br(join)
        f.label(slow)
        code = f.call(
            "i32",
            "mlc_lab_check_args",
            [f"ptr {desc}", "ptr %args", "i32 %n", f"ptr {out}", f"ptr {syms}"],
        )
        with f.if_(f.op(f"icmp ne i32 {code}, 0")):
            f.ret(f"i32 {code}")
        values = [f.load("i64", f.gep("i64", out, at)) for at in range(len(args))]
        bound = {
            t.index: f.load("i64", f.gep("i64", syms, t.index))
            for t in takes
            if isinstance(t, Symbol)
        }
        sides.append((f.block, _operands(f, args, takes, values, bound)))
        f.label(join)
        operands = []
        for choices in zip(*(texts for _, texts in sides), strict=True):
            ty, value = choices[0].split()
            if len(sides) > 1:
                pairs = zip(choices, sides, strict=True)
                merged = ", ".join(f"[{c.split()[1]}, %{block}]" for c, (block, _) in pairs)
                value = f.op(f"phi {ty} {merged}")
            operands.append(f"{ty} {value}")
        if returns:
            operands.append("ptr %ret")
        f.ret(f"i32 {f.call('i32', kernel, operands)}")


def _operands(
    f: FunctionText,
    args: Sequence[Arg],
    takes: Sequence[int | Symbol],
    values: Sequence[str],
    bound: dict[int, str],
) -> list[str]:
    """The kernel's operands, with their types, from 64-bit values of arguments and symbols."""
    operands = []
    for source in takes:
        if isinstance(source, Symbol):
            operands.append(f"i64 {bound[source.index]}")
            continue
        arg, value = args[source], values[source]
        if arg.kind in ("tensor", "handle"):
            operands.append(f"ptr {f.op(f'inttoptr i64 {value} to ptr')}")
        elif arg.kind == "float":
            value = f.op(f"bitcast i64 {value} to double")
            ty = LLVM_SCALARS[arg.dtype[:2]]
            if ty != "double":
                value = f.op(f"fptrunc double {value} to {ty}")
            operands.append(f"{ty} {value}")
        elif arg.kind == "bool":
            operands.append(f"i1 {f.op(f'icmp ne i64 {value}, 0')}")
        else:
            bits = arg.dtype[1]
            if bits < 64:
                value = f.op(f"trunc i64 {value} to i{bits}")
            operands.append(f"i{bits} {value}")
    return operands


def _has_quick_test(arg: Arg) -> bool:
    """Whether ``_quick_test`` knows the argument's kind."""
    if arg.kind == "tensor":
        whole = all(extent is not None for extent in arg.shape)
        return arg.strides is None and arg.elem_offset is None and whole
    return arg.kind == "float" or (arg.kind == "int" and arg.dtype[1] in (32, 64))


def _quick_test(f: FunctionText, args: Sequence[Arg], slow: str) -> tuple[list[str], dict]:
    """Test the common case without branches for each fact: compact tensors, exact types.

    Goes to the block ``slow``, where ``mlc_lab_check_args`` decides, if anything is not so. Gives
    the 64-bit values of the arguments and of the symbols.
    """

    def go_on(facts: list[str]) -> None:
        good = f.new_label("quick")
        whole = facts[0]
        for fact in facts[1:]:
            whole = f.op(f"and i1 {whole}, {fact}")
        f.cond_br(whole, good, slow)
        f.label(good)

    def same(ty: str, value: str, wanted: int | str) -> str:
        return f.op(f"icmp eq {ty} {value}, {wanted}")

    go_on([same("i32", "%n", len(args))])
    tags = {"tensor": 70, "float": 3, "int": 1}
    facts, words = [], []
    for at, arg in enumerate(args):
        slot = f.gep("i64", "%args", 2 * at)
        facts.append(same("i32", f.load("i32", slot), tags[arg.kind]))
        words.append(f.load("i64", f.gep("i64", slot, 1)))
    go_on(facts)
    facts, tensors = [], {}
    for at, arg in enumerate(args):
        if arg.kind == "tensor":
            t = tensors[at] = f.gep("i8", f.op(f"inttoptr i64 {words[at]} to ptr"), 24)
            code, bits, lanes = arg.dtype
            kind = len(arg.shape) | (code | bits << 8 | lanes << 16) << 32
            facts.append(same("i64", f.load("i64", f.gep("i8", t, 16)), kind))
            facts.append(same("i32", f.load("i32", f.gep("i8", t, 8)), 1))
        elif arg.kind == "int" and arg.dtype[1] == 32:
            low = f.op(f"trunc i64 {words[at]} to i32")
            wide = f.op(f"{'zext' if arg.dtype[0] == 1 else 'sext'} i32 {low} to i64")
            facts.append(same("i64", wide, words[at]))
    if facts:
        go_on(facts)
    facts, values, bound = [], [], {}

    def known(entry: int | Symbol, value: str) -> str:
        """The operand that an extent has to equal, after noting that it does."""
        if isinstance(entry, Symbol):
            if entry.index not in bound:
                bound[entry.index] = value
                return value
        wanted = str(bound[entry.index] if isinstance(entry, Symbol) else entry)
        facts.append(same("i64", value, wanted))
        return wanted

    for at, arg in enumerate(args):
        if arg.kind != "tensor":
            if arg.symbol is not None:
                known(arg.symbol, words[at])
            values.append(words[at])
            continue
        t = tensors[at]
        shape, strides = (f.load("ptr", f.gep("i8", t, offset)) for offset in (24, 32))
        extents = [
            known(entry, f.load("i64", f.gep("i64", shape, d)))
            for d, entry in enumerate(arg.shape) if entry is not None
        ]
        facts.append(f.op(f"icmp ne ptr {strides}, null"))
        # A tensor of tvm-ffi always has strides; where it has none this reads the shape instead.
        given = f.op(f"select i1 {facts[-1]}, ptr {strides}, ptr {shape}")
        expected = "1"
        for d in reversed(range(len(extents))):
            facts.append(same("i64", f.load("i64", f.gep("i64", given, d)), expected))
            if d:
                both = expected[0] != "%" and extents[d][0] != "%"
                expected = (
                    str(int(expected) * int(extents[d]))
                    if both
                    else f.op(f"mul i64 {expected}, {extents[d]}")
                )
        address = f.op(f"add i64 {f.load('i64', t)}, {f.load('i64', f.gep('i8', t, 40))}")
        if arg.align > 1:
            facts.append(same("i64", f.op(f"and i64 {address}, {arg.align - 1}"), 0))
        values.append(address)
    if facts:
        go_on(facts)
    return values, bound

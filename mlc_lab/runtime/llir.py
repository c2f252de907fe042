"""A writer of LLVM IR text with structured control flow.

LLVM parses text faster than llvmlite's object builder can produce it, so code generation here
assembles strings. A value is its textual operand (``%3``, ``7``, ``@g``); its type is written where
it is used, as in LLVM itself. Variables are stack slots, which LLVM turns into registers.

    m = ModuleText(triple)
    with m.function("i64", "sum", [("ptr", "data"), ("i64", "n")]) as f:
        total = f.var("i64", "0")
        with f.for_range("0", "%n") as i:
            x = f.load("i64", f.gep("i64", "%data", i))
            f.store("i64", f.op(f"add i64 {f.load('i64', total)}, {x}"), total)
        f.ret(f"i64 {f.load('i64', total)}")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["FunctionText", "ModuleText", "c_string"]


def c_string(text: str) -> tuple[str, int]:
    """``text`` as an LLVM constant with a terminating zero, and its length in bytes."""
    data = text.encode() + b"\0"
    body = "".join(
        chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data
    )
    return f'c"{body}"', len(data)


class FunctionText:
    """The text of one function under construction. Emission methods return operands."""

    def __init__(self, module: ModuleText, header: str) -> None:
        self.module = module
        self.header = header
        self.entry: list[str] = []  # stack slots: LLVM only promotes those of the entry block
        self.lines: list[str] = []
        self.count = 0
        self.terminated = False
        self.block = "entry"  # the label of the block being written, for phi
        self._loops: list[tuple[str, str]] = []

    # -- straight-line code ---------------------------------------------------------------------

    def fresh(self) -> str:
        """A new local name."""
        self.count += 1
        return f"%v{self.count}"

    def op(self, text: str) -> str:
        """Emit ``%v = text`` and return ``%v``."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Emit an instruction that gives no value."""
        self.lines.append("  " + text)

    def load(self, ty: str, ptr: str, suffix: str = "") -> str:
        return self.op(f"load {ty}, ptr {ptr}{suffix}")

    def store(self, ty: str, value: str, ptr: str, suffix: str = "") -> None:
        self.lines.append(f"  store {ty} {value}, ptr {ptr}{suffix}")

    def gep(self, ty: str, ptr: str, index: str | int) -> str:
        """The address of element ``index`` (an i64) of an array of ``ty`` at ``ptr``."""
        return self.op(f"getelementptr inbounds {ty}, ptr {ptr}, i64 {index}")

    def var(self, ty: str, init: str | None = None, count: int | str = 1, align: int = 0) -> str:
        """A stack slot for ``count`` values of ``ty``, made once in the entry block."""
        name = self.fresh()
        extra = f", i64 {count}" if count != 1 else ""
        extra += f", align {align}" if align else ""
        self.entry.append(f"  {name} = alloca {ty}{extra}")
        if init is not None:
            self.store(ty, init, name)
        return name

    def call(self, ret: str, name: str, args: Sequence[str] = ()) -> str:
        """Call ``@name`` with operands that carry their types (``"i64 %n"``)."""
        text = f"call {ret} @{name}({', '.join(args)})"
        if ret == "void":
            self.do(text)
            return ""
        return self.op(text)

    # -- blocks -----------------------------------------------------------------------------------

    def new_label(self, hint: str = "b") -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def label(self, name: str) -> None:
        """Start the block ``name``, falling into it from the block before if that is open."""
        if not self.terminated:
            self.lines.append(f"  br label %{name}")
        self.lines.append(f"{name}:")
        self.block = name
        self.terminated = False

    def br(self, name: str) -> None:
        if not self.terminated:
            self.lines.append(f"  br label %{name}")
            self.terminated = True

    def cond_br(self, cond: str, then: str, other: str, suffix: str = "") -> None:
        self.lines.append(f"  br i1 {cond}, label %{then}, label %{other}{suffix}")
        self.terminated = True

    def ret(self, value: str = "void") -> None:
        self.lines.append(f"  ret {value}")
        self.terminated = True

    # -- structured control flow ------------------------------------------------------------------

    @contextmanager
    def if_(self, cond: str) -> Iterator[None]:
        """Run the body when the i1 operand ``cond`` holds."""
        then, end = self.new_label("then"), self.new_label("end")
        self.cond_br(cond, then, end)
        self.label(then)
        yield
        self.br(end)
        self.label(end)

    @contextmanager
    def else_(self, cond: str) -> Iterator[None]:
        """Run the body when the i1 operand ``cond`` does not hold."""
        body, end = self.new_label("else"), self.new_label("end")
        self.cond_br(cond, end, body)
        self.label(body)
        yield
        self.br(end)
        self.label(end)

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Repeat the body until ``break_``."""
        head, end = self.new_label("loop"), self.new_label("done")
        self.label(head)
        self._loops.append((head, end))
        yield
        self._loops.pop()
        self.br(head)
        self.label(end)

    def break_(self) -> None:
        self.br(self._loops[-1][1])

    @contextmanager
    def for_range(self, start: str, stop: str) -> Iterator[str]:
        """Run the body for an i64 from ``start`` up to, not including, ``stop``."""
        slot = self.var("i64", start)
        with self.loop():
            i = self.load("i64", slot)
            more = self.op(f"icmp slt i64 {i}, {stop}")
            with self.else_(more):
                self.break_()
            yield i
            self.store("i64", self.op(f"add nsw i64 {i}, 1"), slot)

    def __str__(self) -> str:
        return "\n".join([f"{self.header} {{", "entry:", *self.entry, *self.lines, "}", ""])


class ModuleText:
    """The text of one module: globals, declarations, functions, metadata."""

    def __init__(self, triple: str = "", data_layout: str = "") -> None:
        self.head = []
        if data_layout:
            self.head.append(f'target datalayout = "{data_layout}"')
        if triple:
            self.head.append(f'target triple = "{triple}"')
        self.globals: list[str] = []
        self.functions: list[FunctionText] = []
        self.declarations: dict[str, str] = {}
        self.attributes: list[str] = []
        self.metadata: list[str] = []
        self._strings: dict[str, str] = {}

    def declare(self, ret: str, name: str, args: Sequence[str], attrs: str = "") -> None:
        """Declare an external function once."""
        if name not in self.declarations:
            self.declarations[name] = f"declare {ret} @{name}({', '.join(args)}){attrs}"

    def string(self, text: str) -> str:
        """A private constant holding ``text`` and a zero; the same text gives the same one."""
        name = self._strings.get(text)
        if name is None:
            body, size = c_string(text)
            name = self._strings[text] = f"@.s{len(self._strings)}"
            self.globals.append(
                f"{name} = private unnamed_addr constant [{size} x i8] {body}, align 1"
            )
        return name

    def node(self, text: str) -> str:
        """Add a metadata node and return its name (``!7``)."""
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"

    @contextmanager
    def function(
        self,
        ret: str,
        name: str,
        params: Sequence[tuple[str, str]] = (),
        linkage: str = "",
        attrs: str = "",
    ) -> Iterator[FunctionText]:
        """Define ``@name``; the body of the ``with`` writes it."""
        args = ", ".join(f"{ty} %{arg}" for ty, arg in params)
        prefix = f"define {linkage} " if linkage else "define "
        f = FunctionText(self, f"{prefix}{ret} @{name}({args}){' ' + attrs if attrs else ''}")
        yield f
        self.functions.append(f)

    def __str__(self) -> str:
        return "\n".join(
            [
                *self.head,
                *self.globals,
                *self.declarations.values(),
                *map(str, self.functions),
                *self.attributes,
                *(f"!{i} = {text}" for i, text in enumerate(self.metadata)),
                "",
            ]
        )

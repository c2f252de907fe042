"""LLVM IR and assembly of a program, each line with the lines of the program it came from.

The code generator marks what it writes for a statement as a debugger's line table would: the
optimiser then carries the marks along, and the assembly names them in `.loc` lines. The number of
such a "line" stands for a set of lines of the program. Marks do not change the code.

The mix counts the instructions of the assembly by what they do and how wide they are, of all of it
and of its inner loop (`inner_loop.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..backend.llvm import generate
from ..backend.llvm_stmt import StmtGen
from ..ir.module import IRModule
from ..machine.of_target import machine_of
from ..runtime import jit
from ..target import Target
from .inner_loop import LOC, InnerLoop, inner_loops
from .lowering import Line

if TYPE_CHECKING:
    from ..ir.node import Node

_MARK = re.compile(r", !dbg !@(\d+)(?=,|$)")
_DEFINE = re.compile(r'^define .*?@("[^"]+"|[\w.$]+)\(')
_NODE = re.compile(r"^!(\d+) = ")
_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)")
_ATTACHED = re.compile(r",? !dbg !(\d+)")


@dataclass
class MachineCode:
    """Optimised LLVM IR and assembly as traced lines; the instruction mix; for which processor;
    the loops that have no loop inside."""

    llvm: list[Line] = field(default_factory=list)
    assembly: list[Line] = field(default_factory=list)
    mix: dict[str, int] = field(default_factory=dict)
    machine: str = ""
    loops: list[InnerLoop] = field(default_factory=list)


def machine_code(mod: IRModule, origins: Mapping[Any, Collection[int]], target: Any = "llvm",
                 ir: bool = True) -> MachineCode:
    """LLVM IR and assembly of a lowered module; without `ir` the assembly alone.

    `origins` gives for statements and loop variables the numbers of the lines they came from (see
    `lowering.lower_traced`). Raises what the code generator raises (`CodegenError`).
    """
    where = machine_of(Target(target) if isinstance(target, str) else target)
    sets: dict[tuple[int, ...], int] = {}

    def number(node: Node) -> int:
        lines = tuple(sorted(origins.get(node, ())))
        return sets.setdefault(lines, len(sets) + 1) if lines else 0

    text, _, imports = generate(mod, where, emitter=marking(StmtGen, number))
    text = with_debug_info(text)
    compiled = jit.compile_ir(text, where, emit=False, imports=imports)
    known = {at: lines for lines, at in sets.items()}
    commented = compiled.commented_asm
    assembly = _read_assembly(commented, known)
    name = f"{where.triple.split('-')[0]} {where.cpu}".strip()
    return MachineCode(_read_ir(compiled.ll, known) if ir else [], assembly,
                       mix([text for text, _ in assembly]), name, inner_loops(commented, known))


def marking(base: type[StmtGen], number: Callable[[Any], int]) -> Any:
    """A code generator that notes on every instruction for which statement it was written: by the
    `number` of the statement or loop variable, where that is not 0."""

    class Marking(base):
        def run(self, node: Node) -> None:
            start = len(self.lines)
            super().run(node)
            self.mark(start, number(node))

        def count_loop(self, var: Any, *rest: Any, **options: Any) -> None:
            start = len(self.lines)
            super().count_loop(var, *rest, **options)
            self.mark(start, number(var))

        def mark(self, start: int, mark: int) -> None:
            """Note on what was written from `start` on, and has no note yet, what it is for."""
            if not mark:
                return
            for at in range(start, len(self.lines)):
                line = self.lines[at]
                if line.startswith("  ") and "!dbg" not in line:
                    self.lines[at] = f"{line}, !dbg !@{mark}"

    return Marking


def with_debug_info(text: str, emission: str = "LineTablesOnly") -> str:
    """LLVM IR with the marks made debug locations, of one of LLVM's kinds of `emission`. Functions
    without marks stay as they are."""
    lines = text.split("\n")
    count = 1 + max((int(m[1]) for m in map(_NODE.match, lines) if m), default=-1)
    nodes: list[str] = []

    def node(body: str) -> int:
        nodes.append(body)
        return count + len(nodes) - 1

    file = node('!DIFile(filename: "program", directory: "")')
    unit = node(f"distinct !DICompileUnit(language: DW_LANG_C, file: !{file}, isOptimized: true, "
                f"emissionKind: {emission})")
    kind = node("!DISubroutineType(types: !{})")
    flags = [node('!{i32 2, !"Debug Info Version", i32 3}'),
             node('!{i32 7, !"Dwarf Version", i32 4}')]
    places: dict[tuple[int, int], int] = {}
    out: list[str] = []
    at = 0
    while at < len(lines):
        head = _DEFINE.match(lines[at])
        if not head:
            out.append(lines[at])
            at += 1
            continue
        end = lines.index("}", at)
        body = lines[at:end + 1]
        if any("!dbg !@" in line for line in body):
            name = head[1].strip('"')
            scope = node(f'distinct !DISubprogram(name: "{name}", file: !{file}, type: !{kind}, '
                         f"unit: !{unit}, spFlags: DISPFlagDefinition | DISPFlagOptimized)")

            def place(line: int, scope: int = scope) -> str:
                found = places.get((scope, line))
                if found is None:
                    found = places[scope, line] = node(
                        f"!DILocation(line: {line}, scope: !{scope})")
                return f", !dbg !{found}"

            body[0] = re.sub(r" \{$", f" !dbg !{scope} {{", body[0])
            for i in range(1, len(body) - 1):
                if body[i].startswith("  "):
                    marked = _MARK.sub(lambda m: place(int(m[1])), body[i])
                    body[i] = marked if marked != body[i] else body[i] + place(0)
        out += body
        at = end + 1
    out += [f"!llvm.dbg.cu = !{{!{unit}}}",
            "!llvm.module.flags = !{" + ", ".join(f"!{f}" for f in flags) + "}"]
    out += [f"!{count + i} = {body}" for i, body in enumerate(nodes)]
    return "\n".join([*out, ""])


# ------------------------------------------------------------------------------------ reading back


def _read_ir(text: str, known: Mapping[int, tuple[int, ...]]) -> list[Line]:
    """The functions that came from the program, without debug metadata."""
    lines = text.split("\n")
    places = {m[1]: int(m[2]) for m in map(_LOCATION.match, lines) if m}
    out: list[Line] = []
    at = 0
    while at < len(lines):
        if not lines[at].startswith("define "):
            at += 1
            continue
        end = lines.index("}", at)
        if "!dbg" in lines[at]:
            for line in lines[at:end + 1]:
                if line.lstrip().startswith("#dbg_"):
                    continue
                found = _ATTACHED.search(line)
                place = places.get(found[1], 0) if found and not line.startswith("define") else 0
                out.append((_ATTACHED.sub("", line), known.get(place, ())))
            out.append(("", ()))
        at = end + 1
    return out[:-1]


#: assembler directives that say nothing about the program
_DROPPED = re.compile(r"\s*\.(cfi_\w+|loc|file|p2align|globl|type|size|section|text|ident|addrsig"
                      r"\w*|weak|hidden|local|comm|align|set|intel_syntax|attribute|option|cpu|fpu"
                      r"|syntax|functype|build_version|subsections_via_symbols)\b")
_COMMENT = re.compile(r"\s+(## |# |//|@ ).*$")


def _read_assembly(text: str, known: Mapping[int, tuple[int, ...]]) -> list[Line]:
    """The instructions and labels of the functions that came from the program."""
    out: list[Line] = []
    chunk: list[Line] = []
    current: tuple[int, ...] = ()
    located = False

    def flush() -> None:
        if located:
            if out:
                out.append(("", ()))
            out.extend(_without_idle_labels(chunk))

    for line in text.split("\n"):
        bare = line.strip()
        if bare.startswith(".section") and ".debug" in bare or bare == ".data":
            break
        place = LOC.match(line)
        if place:
            current, located = known.get(int(place[1]), ()), True
            continue
        if not bare or bare[0] in "#@;" or bare.startswith("//") or _DROPPED.match(line):
            continue
        line = _COMMENT.sub("", line)
        if line[0] not in " \t.":  # the label of a function or of data
            if re.match(r"L(func|tmp|BB|CPI|\w*\d+:)", line):
                chunk.append((line, ()))
                continue
            flush()
            chunk, located, current = [], False, ()
            chunk.append((line, ()))
        elif line.startswith("."):
            chunk.append((line, ()))
        elif not bare.startswith("."):
            chunk.append((line.expandtabs(8).replace("        ", "    ", 1), current))
    flush()
    return out


def _without_idle_labels(lines: list[Line]) -> list[Line]:
    """Labels that nothing refers to (of debug information, mostly) are left out."""
    body = "\n".join(text for text, _ in lines if not text.endswith(":"))
    used = set(re.findall(r"\.?\w[\w.$]*", body))
    first = lines[0][0]
    return [line for line in lines
            if line[0] == first or not line[0].endswith(":") or line[0][:-1] in used]


# ------------------------------------------------------------------------- what it consists of

#: x86: the first pattern that an instruction's name matches tells its kind
_X86 = [(kind, re.compile(pattern)) for kind, pattern in (
    ("fma", r"v?f(n)?m(add|sub)"),
    ("shuffle", r"v?(shuf|perm|unpck|punpck|pshuf|pack|insert|extract|vbroadcast|broadcast"
                r"|pbroadcast|blend|pblend|movddup|movs[hl]dup|movlhps|movhlps|palignr|valign"
                r"|compress|expand|pinsr|pextr)"),
    ("branch", r"j\w+$|call|ret|loop"),
    ("compare", r"v?(p?cmp|u?comis|test|max|min|pmax|pmin)|set\w+$|cmov"),
    ("move", r"v?mov|push|pop|lea|kmov|prefetch|cvt|vcvt|xchg|vzero|vgather|vpgather|vscatter"
             r"|vpscatter"),
    ("arithmetic", r"v?(add|sub|mul|div|imul|idiv|sqrt|rsqrt|rcp|and|andn|or|xor|not|neg|shl|shr"
                   r"|sar|sal|inc|dec|padd|psub|pmul|pand|por|pxor|psll|psrl|psra|round|rndscale|abs"
                   r"|pabs|hadd|dp|ternlog|pternlog|rol|ror|bt|bz|pdep|rorx|shlx|shrx|sarx|cltq|cqto"
                   r"|cltd|cdq|cwt|scalef|k(and|or|xor|not|shift))"),
)]
_AARCH64 = [(kind, re.compile(pattern)) for kind, pattern in (
    ("fma", r"fml[as]|fn?m(add|sub)|m(la|ls|add|sub)$"),
    ("load", r"ld"),
    ("store", r"st"),
    ("shuffle", r"zip|uzp|trn|dup|ext$|tbl|rev|ins$"),
    ("branch", r"b$|b\.|cb|tb|ret|bl"),
    ("compare", r"f?c(m|cm|sel|set)|tst|f?(max|min)"),
    ("move", r"f?mov|adr|fcvt|scvt|ucvt"),
    ("arithmetic", r"f?(add|sub|mul|div|neg|abs|sqrt)|and|orr|eor|[la]s[lr]|[su](div|mul|bfx|xt)"),
)]
_ONE_ELEMENT = re.compile(r"(ss|sd|[dq]2s[sd]|s[sd]2[sd]|s[sd]2s?i|usi2s[sd])[lqbwz]?$|^v?mov[dq]$")
_WIDTHS = {"x": 128, "y": 256, "z": 512}


def _is_x86(lines: Iterable[str]) -> bool:
    return any("%r" in text or "%e" in text or "rsp" in text or "rdi" in text for text in lines)


def width_of(text: str) -> int:
    """Bits of the widest vector register that an instruction names; 0 for none.

    An instruction on one element of a vector register (`vaddss`, `fadd s0`) counts as scalar.
    """
    name = text.split(None, 1)[0] if text.strip() else ""
    found = [_WIDTHS[r] for r in re.findall(r"%?\b([xyz])mm\d+", text)]
    if found:
        scalar = _ONE_ELEMENT.search(name) and "broadcast" not in name
        return 0 if scalar and max(found) == 128 else max(found)
    if re.search(r"\bv\d+\.(16b|8h|4s|2d|\w\[)|\bq\d+\b", text):
        return 128
    if re.search(r"\bv\d+\.(8b|4h|2s|1d)", text):
        return 64
    return 0


_VECTOR = re.compile(r"<(\d+) x ([a-z]+)(\d*)>")
_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "ptr": 64}


def ir_width(text: str) -> int:
    """Bits of the widest vector that a line of LLVM IR names, masks apart; 0 for none."""
    sizes = [int(n) * (_BITS.get(kind) or int(bits or 0))
             for n, kind, bits in _VECTOR.findall(text) if (kind, bits) != ("i", "1")]
    return max(sizes, default=0) if "shufflevector" not in text or not sizes else sizes[0]


def kind_of(text: str, x86: bool = True) -> str:
    """What an instruction does: load, store, fma, arithmetic, shuffle, compare, move, branch."""
    parts = text.split(None, 1)
    name, rest = parts[0], parts[1] if len(parts) > 1 else ""
    rules = _X86 if x86 else _AARCH64
    kind = next((kind for kind, pattern in rules if pattern.match(name)), "other")
    if x86 and kind == "move" and not name.startswith("lea") and "(" in rest:
        return "store" if rest.rstrip().endswith(")") else "load"
    return kind


def mix(lines: Sequence[str]) -> dict[str, int]:
    """How many instructions there are of each kind and of each vector width, in lines of assembly
    (an instruction is indented).

    Keys: "instructions" (all), the kinds of `kind_of`, "memory operands" (x86: instructions that
    read memory beside what else they do), and "scalar", "64-bit", "128-bit", "256-bit", "512-bit"
    by `width_of`. Counts are of the text, not of what is executed.
    """
    x86 = _is_x86(lines)
    found: dict[str, int] = {"instructions": 0}

    def count(name: str) -> None:
        found[name] = found.get(name, 0) + 1

    for text in lines:
        if not text.startswith(" "):
            continue
        text = text.strip()
        count("instructions")
        kind = kind_of(text, x86)
        count(kind)
        if x86 and "(" in text and kind in ("fma", "arithmetic", "shuffle", "compare"):
            count("memory operands")
        width = width_of(text)
        count(f"{width}-bit" if width else "scalar")
    return found


__all__ = ["MachineCode", "ir_width", "kind_of", "machine_code", "marking", "mix", "width_of",
           "with_debug_info"]

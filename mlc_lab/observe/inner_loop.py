"""The inner loop of a program in machine code: where most of the work is done, and with what.

LLVM says in the comments of its assembly which loop each block of instructions belongs to, and
which loads and stores are there because registers ran out (spills). Each instruction knows the
lines of the program that it came from (`assembly.py`). Of the loops that have no loop inside, the
inner loop is the one of the line that does most of the work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..tir import stmt as s
from ..tir.function import PrimFunc
from . import flops

if TYPE_CHECKING:
    from ..ir.module import IRModule

#: a line of assembly that gives the line of the source for what follows
LOC = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)")
#: a label that begins a block, and not one that says where in it something is
_LABEL = re.compile(r"^(?!\.?L(?:tmp|func_))\.?L?(\w+):")
_FALLS_IN = re.compile(r"^\s*(#|//|;|@)\s*%bb\.\d+:")
_HEADER = re.compile(r"=>\s*This (Inner )?Loop Header: Depth[= ](\d+)")
_INSIDE = re.compile(r"in Loop: Header=(\w+) Depth[= ]\d+")
_REGISTER = re.compile(r"%[xyz]mm(\d+)|\bv(\d+)\.\w+|\bq(\d+)\b")
#: what tells which registers a value on the stack is for; those that are neither are general ones
_OF_VECTORS = re.compile(r"%[xyz]mm\d|\b[vqdsh]\d+\b")
_OF_MASKS = re.compile(r"%k\d")


@dataclass
class InnerLoop:
    """What one iteration of a loop in machine code consists of.

    `instructions` are their texts, `places` the lines of the program that each of them came from
    and `lines` all of these;
    `stored` and `loaded` the values that go to and come from the stack since registers ran out, by
    the kind of register ("vector", "general", "mask"), by the instructions `on_stack`; `spills` and
    `reloads` are those of vectors; `registers` how many vector registers are named.
    """

    instructions: list[str] = field(default_factory=list)
    places: list[tuple[int, ...]] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)
    stored: Counter[str] = field(default_factory=Counter)
    loaded: Counter[str] = field(default_factory=Counter)
    on_stack: set[int] = field(default_factory=set)
    depth: int = 0

    @property
    def spills(self) -> int:
        """How many values of vector registers are stored to the stack."""
        return self.stored["vector"]

    @property
    def reloads(self) -> int:
        """How many values are loaded from the stack into vector registers."""
        return self.loaded["vector"]

    @property
    def registers(self) -> int:
        """How many different vector registers the instructions name."""
        text = "\n".join(self.instructions)
        return len({name for found in _REGISTER.findall(text) for name in found if name})


def inner_loops(text: str, known: Mapping[int, tuple[int, ...]]) -> list[InnerLoop]:
    """The loops of an assembly text without loops inside; `known` gives the lines of the program
    for each number in its line table."""
    loops: dict[str, InnerLoop] = {}
    innermost: set[str] = set()
    label, loop = "", ""
    lines: tuple[int, ...] = ()
    for line in text.split("\n"):
        place = LOC.match(line)
        if place:
            lines = known.get(int(place[1]), ())
            continue
        named = _LABEL.match(line)
        if named or _FALLS_IN.match(line):
            label, loop = named[1] if named else "", ""
        header = _HEADER.search(line)
        if header:
            loop = label
            loops.setdefault(loop, InnerLoop()).depth = int(header[2])
            if header[1]:
                innermost.add(loop)
        elif inside := _INSIDE.search(line):
            loop = inside[1]
        elif loop and line[:1].isspace() and line.strip()[:1] not in ".#/;@":
            at = loops.setdefault(loop, InnerLoop())
            code, _, note = re.sub(r"\s(#|//|;|@)\s", "\0", line, count=1).partition("\0")
            at.instructions.append(code.strip().expandtabs(8))
            at.places.append(lines)
            at.lines.update(lines)
            if "Spill" in note or "Reload" in note:
                at.on_stack.add(len(at.instructions) - 1)
                (at.stored if "Spill" in note else at.loaded)[_register_of(code)] += 1
    return [loops[name] for name in loops if name in innermost]


def _register_of(code: str) -> str:
    """The kind of register that an instruction stores to the stack or loads from it. An address is
    no vector, and most programs with too many rows run out of registers for addresses first."""
    return ("vector" if _OF_VECTORS.search(code) else "mask" if _OF_MASKS.search(code)
            else "general")


def work_by_line(mod: IRModule, origins: Mapping[Any, Collection[int]],
                 sizes: Mapping[str, int] | None = None) -> dict[int, int]:
    """How often the statements on each line of a program run, times what each of them computes;
    `origins` gives the lines of a statement."""
    work: dict[int, int] = {}
    for statement, times in _leaves(mod, sizes):
        for line in origins.get(statement, ()):
            work[line] = work.get(line, 0) + times * (1 + flops.count_value(statement.value))
    return work


def statements_run(mod: IRModule, sizes: Mapping[str, int] | None = None) -> int:
    """How many statements a run of a program executes."""
    return sum(times for _, times in _leaves(mod, sizes))


def _leaves(mod: IRModule, sizes: Mapping[str, int] | None) -> Iterator[tuple[Any, int]]:
    """The statements that compute, and how often each of them runs. Where the program does not tell
    how often a loop runs, it counts as eight iterations."""
    stack = [(f.body, 1) for f in mod.functions.values() if type(f) is PrimFunc]
    while stack:
        node, times = stack.pop()
        if isinstance(node, (s.BufferStore, s.Evaluate)):
            yield node, times
            continue
        if isinstance(node, s.For):
            try:
                times *= max(flops.integer(node.extent, sizes or {}), 0)
            except flops.Uncountable:
                times *= 8
        stack += [(child, times) for child in node.children() if isinstance(child, s.Stmt)
                  and child is not getattr(node, "init", None)]


def main_loop(loops: list[InnerLoop], work: Mapping[int, int], width_of: Callable[[str], int]
              ) -> InnerLoop | None:
    """The loop that does most of the work; of those that do the same the one with the widest
    vectors (the others do what is left over), then the one with most instructions. `width_of` gives
    the width of an instruction's vectors."""
    def order(loop: InnerLoop) -> tuple[int, int, int]:
        widest = max(map(width_of, loop.instructions), default=0)
        return max((work.get(line, 0) for line in loop.lines), default=0), widest, \
            len(loop.instructions)

    return max(loops, key=order, default=None)


__all__ = ["InnerLoop", "LOC", "inner_loops", "main_loop", "statements_run", "work_by_line"]

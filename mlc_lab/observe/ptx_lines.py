"""The PTX of a program's kernels, each line with the lines of the program it came from.

The generator's instructions are marked as those for a CPU are (`assembly.py`); LLVM writes where
they came from as `.loc` lines, which are read and left out again. The read of an axis of threads
came from the loops that are bound to it, shared memory from its buffer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from ..backend import ptx
from ..backend.llvm_ptx import PTXGen
from ..ir.module import IRModule
from ..target import Target
from .assembly import marking, with_debug_info
from .inner_loop import LOC
from .lowering import Line

#: what only debug information needs
_IDLE = re.compile(r"\$L__(func_begin|func_end|tmp)\d+:|\s*\.file\s|\s*\.section\s+\.debug")
_SHARED = re.compile(r"\s*\.shared .* \.\w+ (\S+)\[\d+\];")


def ptx_lines(written: IRModule, target: Target, of: Callable[[str, Any], Iterable[int]]
              ) -> list[Line]:
    """The lines of the PTX of lowered kernels; `of(kernel, node)` says which lines of the program a
    statement, a loop variable, memory or the tag of an axis came from."""
    sets: dict[tuple[int, ...], int] = {}
    shared: dict[str, tuple[int, ...]] = {}

    def number(lines: Iterable[int]) -> int:
        found = tuple(lines)
        return sets.setdefault(found, len(sets) + 1) if found else 0

    class Traced(marking(PTXGen, lambda node: number(of("", node)))):
        def read_axis(self, s: Any) -> None:
            start = len(self.lines)
            super().read_axis(s)
            self.mark(start, number(of(self.function_name, str(s.node.thread_tag))))

        def global_name(self, memory: Any) -> str:
            name = super().global_name(memory)
            shared[name.strip('"')] = tuple(of("", memory))
            return name

    where = ptx.machine(target)
    text, dynamic = ptx.generate(written, where, Traced)
    asm = ptx.compiled(with_debug_info(text, "DebugDirectivesOnly"), where).asm
    known = {at: lines for lines, at in sets.items()}
    return _read(ptx.noted(asm, dynamic), known, shared)


def _read(text: str, known: dict[int, tuple[int, ...]], shared: dict[str, tuple[int, ...]]
          ) -> list[Line]:
    """The lines of PTX but those that say where the others came from."""
    out: list[Line] = []
    current: tuple[int, ...] = ()
    for line in text.rstrip("\n").split("\n"):
        place, memory = LOC.match(line), _SHARED.match(line)
        if place:
            current = known.get(int(place[1]), ())
        elif memory:
            out.append((line, shared.get(memory[1], ())))
        elif not _IDLE.match(line):
            is_instruction = line.startswith("\t") and line.endswith(";")
            out.append((line, current if is_instruction else ()))
            if line.startswith("}"):
                current = ()
    return out


__all__ = ["ptx_lines"]

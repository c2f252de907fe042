"""A program on its way down: each lowering stage as lines that know which lines they came from.

A line of the program as it was is known by its number. While the passes run, every rewrite of a
statement is followed (`tir.functor.following`), so each line of each later stage, and of the LLVM
IR and the assembly after that (`assembly.py`), says which lines of the program it came from. A loop
is known by its variable, a buffer by its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..backend.source import last_passes
from ..ir.module import IRModule
from ..lower import default_passes
from ..lower.pipeline import is_gpu, named_passes
from ..target import Target
from ..tir import stmt as s
from ..tir.expr import IterVar
from ..tir.functor import all_statements, following
from .program import KeyedPrinter, print_lines
from .recording import Recorder

if TYPE_CHECKING:
    from ..target.target import TargetLike

#: a line of code and the numbers of the program's lines that it came from
Line = tuple[str, tuple[int, ...]]
_LEAVES = (s.BufferStore, s.Evaluate)


@dataclass
class Stage:
    """The program after one pass: its lines, and whether the pass changed anything."""

    name: str
    lines: list[Line]
    changed: bool = True


@dataclass
class Lowered:
    """All stages of a program, and the last module with the origins of its statements."""

    module: IRModule
    stages: list[Stage] = field(default_factory=list)
    origins: dict[Any, frozenset[int]] = field(default_factory=dict)


class _ByOrigin(KeyedPrinter):
    """Notes for every line the origins of the statement or the loops on it."""

    def __init__(self, origins_of: Callable[[Any], Iterable[Any]]) -> None:
        super().__init__(Recorder())
        self.origins_of = origins_of

    def _keys_of(self, text: str, defines: Sequence[s.For | IterVar]) -> tuple[Any, ...]:
        node = self._stack[-1] if self._stack else None
        if self._buffer is not None:
            return tuple(self.origins_of(self._buffer.data))
        if type(node) is s.Allocate:
            return tuple(self.origins_of(node.buffer_var))
        if node is None or type(node) in (s.Block, s.BlockRealize):
            return ()
        if type(node) is s.For:
            variables = [loop.loop_var for loop in defines if isinstance(loop, s.For)]
            return tuple(dict.fromkeys(i for var in variables for i in self.origins_of(var)))
        return tuple(self.origins_of(node))


class Origins:
    """Which lines of a program each statement, loop variable and memory came from.

    `rewritten` is told of every rewrite: `with following(origins.rewritten): ...`
    """

    def __init__(self, mod: IRModule) -> None:
        self.table: dict[Any, frozenset[int]] = {}
        for number, (_, nodes) in enumerate(print_lines(mod, _ByOrigin(lambda node: (node,)))):
            for node in nodes:
                self.add(node, number)

    def add(self, node: object, line: int) -> None:
        self.table[node] = self.table.get(node, frozenset()) | {line}

    def of(self, node: object) -> Iterable[int]:
        return sorted(self.table.get(node, ()))

    def rewritten(self, old: Any, new: Any) -> None:
        """`old` became `new`: what is new in it came from the same lines."""
        if not isinstance(old, s.Stmt) or not isinstance(new, s.Stmt):
            return
        lines = self.table.get(old.loop_var if isinstance(old, s.For) else old)
        if lines is None:
            return
        if isinstance(old, s.For):
            for node in all_statements(new):
                if type(node) is s.For:
                    self.table.setdefault(node.loop_var, lines)
            return
        self.table[new] = self.table.get(new, frozenset()) | lines
        if isinstance(new, _LEAVES):
            return
        for node in all_statements(new):
            if isinstance(node, _LEAVES):
                self.table.setdefault(node, lines)


def lower_traced(mod: IRModule, target: TargetLike = None, stages: bool = True) -> Lowered:
    """Run the lowering passes of a target, following every statement.

    The first stage, "input", is the program itself. Without `stages` none is printed. Raises what
    the passes raise; the stages up to there are in the error's `stages`.
    """
    origins = Origins(mod)
    made = Lowered(mod, origins=origins.table)
    if stages:
        made.stages.append(Stage("input", print_lines(mod, _ByOrigin(origins.of))))
    try:
        passes = default_passes(target)
        if is_gpu(target):
            passes += last_passes(Target(target))
        for name, step in named_passes(passes):
            with following(origins.rewritten):
                after = step(mod)
            changed = after is not mod
            mod = after
            if not stages:
                continue
            lines = print_lines(mod, _ByOrigin(origins.of)) if changed else made.stages[-1].lines
            made.stages.append(Stage(name, lines, changed))
    except Exception as error:
        vars(error)["stages"] = made.stages
        raise
    made.module = mod
    return made


__all__ = ["Line", "Lowered", "Origins", "Stage", "lower_traced"]

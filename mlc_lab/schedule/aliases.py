"""Two names of one memory: a view that a block declares (`T.match_buffer`), and what it is a view
of or another view of that.

Seen from outside, a view is what it shows (`footprint`). Within the block that declares it, what
stands in a loop or in a block names the view alone, and nothing there says that a store to the one
changes the other. So where both are used and one of them is written, no step that moves or reorders
anything is taken in there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from ..ir.containers import is_sequence
from ..tir.expr import BufferLoad, Var
from ..tir.functor import pre_order
from ..tir.stmt import Block, BufferStore
from .error import Refusal
from .state import StmtSRef

#: steps that leave everything at its place, and in order
HARMLESS = frozenset(("AddUnitLoop", "Annotate", "Fuse", "Split", "Unannotate", "Unroll"))

_found: WeakKeyDictionary[Block, tuple[str, str] | None] = WeakKeyDictionary()


def names_are_one(arguments: Iterable[Any]) -> None:
    """Refuse a step on a loop or a block within a block that uses memory by two names."""
    for sref in _references(arguments):
        at = sref.parent
        while at is not None:
            block = at.stmt
            if type(block) is Block and block.match_buffers:
                if block not in _found:
                    _found[block] = _two_names(block)
                names = _found[block]
                if names is not None:
                    raise Refusal(
                        "one_name", f"block {block.name_hint} uses the memory of {names[0]} also "
                        f"as {names[1]}, and writes it: within the block nothing says that a store "
                        "to the one changes the other", nodes=[block],
                        hint="use one of the names only, or act on the block as a whole")
            at = at.parent


def _references(values: Iterable[Any]) -> Iterator[StmtSRef]:
    for value in values:
        if isinstance(value, StmtSRef):
            yield value
        elif is_sequence(value):
            yield from _references(value)


def _two_names(block: Block) -> tuple[str, str] | None:
    """Two names by which the body of a block uses one memory, of which one is written."""
    own = {m.buffer.data for m in block.match_buffers}
    #: a view -> what it is a view of
    source = {m.buffer.data: m.source.buffer.data for m in block.match_buffers}
    inner: dict[Var, Var] = {}
    used: set[Var] = set()
    written: set[Var] = set()
    for part in (block.body, *([block.init] if block.init is not None else [])):
        for node in pre_order(part):
            if type(node) is Block:
                inner.update((m.buffer.data, m.source.buffer.data) for m in node.match_buffers)
            elif type(node) in (BufferLoad, BufferStore):
                used.add(node.buffer.data)
                if type(node) is BufferStore:
                    written.add(node.buffer.data)
            elif isinstance(node, Var) and node.dtype == "handle":  # handed on: anything may happen
                used.add(node)
                written.add(node)

    def name(memory: Var) -> Var:
        """What the block itself calls it."""
        while memory not in own and memory in inner:
            memory = inner[memory]
        return memory

    def root(memory: Var) -> Var:
        while memory in source:
            memory = source[memory]
        return memory

    stored = {root(name(m)) for m in written}
    first: dict[Var, Var] = {}
    for memory in sorted(map(name, used), key=lambda v: v.name):
        other = first.setdefault(root(memory), memory)
        if other is not memory and root(memory) in stored:
            return other.name, memory.name
    return None


__all__ = ["HARMLESS", "names_are_one"]

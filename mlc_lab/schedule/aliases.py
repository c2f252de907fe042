"""Two names of one memory: a view that a block declares (`T.match_buffer`), and what it is a view
of or another view of that.

Seen from outside, a view is what it shows (`footprint`). Within the block that declares it, what
stands in a loop or in a block names the view alone, and nothing there says that a store to the one
changes the other. So where both may be of one element, of which one is written, no step that moves
or reorders anything is taken in there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from ..ir.containers import is_sequence
from ..tir.expr import BufferLoad, Var
from ..tir.functor import pre_order
from ..tir.stmt import Block, BufferStore
from .conflict import always, first_clash
from .error import Refusal
from .footprint import Access, footprint
from .repeatable import iterators
from .state import StmtSRef, blocks_under

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
    """Two names by which a block uses one memory, of which one is written, and that may be of the
    same element in one execution of the block. As it is walked as a whole, views are what they
    show."""
    views = {m.buffer.data: m.source.buffer.data for b in blocks_under(block)
             for m in b.match_buffers}
    own = {m.buffer.data for m in block.match_buffers}

    def named(memory: Var) -> Var:
        """What the block itself calls it."""
        while memory not in own and memory in views:
            memory = views[memory]
        return memory

    def name(access: Access) -> Var | None:
        """The name by which an access is made; None where a call is handed several."""
        if type(access.node) in (BufferLoad, BufferStore):
            return named(access.node.buffer.data)
        found = {named(n if isinstance(n, Var) else n.buffer.data) for n in pre_order(access.node)
                 if isinstance(n, Var) and n.dtype == "handle" or type(n) is BufferLoad}
        found = {n for n in found if views.get(n, n) is access.memory or n is access.memory}
        return found.pop() if len(found) == 1 else None

    groups: dict[Var, list[tuple[Access, Var | None]]] = {}
    for access in footprint(block):
        groups.setdefault(access.memory, []).append((access, name(access)))
    loops = iterators(block)
    for accesses in groups.values():
        if len({called for _, called in accesses}) == 1 and accesses[0][1] is not None:
            continue
        for write, called in accesses:
            others = [a for a, other in accesses if other is not called or called is None]
            if write.write and first_clash([write], others, bad=always, outer=loops) is not None:
                known = sorted({n.name for _, n in accesses if n is not None}) or [
                    write.memory.name]
                return known[0], known[-1]
    return None


__all__ = ["HARMLESS", "names_are_one"]

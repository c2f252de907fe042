"""What stands in a scope, in which order, and what must run before what.

A program is immutable, so what is found out about it holds for as long as it lives. It is
remembered with the program: another schedule of it, or the next candidate of a search, asks the
same questions of the same first steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from ..tir.buffer import Buffer
from ..tir.expr import IntImm, Var
from ..tir.stmt import (
    Allocate, AllocateConst, Block, BlockRealize, BufferStore, DeclBuffer, Evaluate, For, LetStmt,
    SeqStmt, Stmt,
)
from .footprint import Access, Loop, binding_reads, footprint, instance, loops_of

RAW, WAW, WAR = "RAW", "WAW", "WAR"
Fact = TypeVar("Fact")


class Dependency(NamedTuple):
    """`dst` must run after `src`, because of `buffer`."""

    src: Block
    dst: Block
    kind: str
    buffer: Buffer


#: around a site: the loops, the other statements with the number of loops outside of each, and in
#: which statement of each loop's body it is
Nest = tuple[For, ...]
Wrappers = tuple[tuple[int, Stmt], ...]
Place = tuple[int, ...]


class Site:
    """One place of a scope where something is read or written: a block, or a statement or an
    expression (a loop's bound, a condition) outside of blocks.

    `index` counts the sites of the scope in the order of the text. `loops` are those around it in
    the scope, outermost first, and `wrappers` the other statements around it, each with the number
    of loops outside of it. `items[n]` says in which statement it is of the body of the n-th loop,
    of the scope itself for n = 0.
    """

    __slots__ = ("index", "node", "loops", "wrappers", "items", "block", "reads", "writes",
                 "_accesses", "_facts")

    def __init__(self, index: int, node: Any, loops: Nest, wrappers: Wrappers, items: Place
                 ) -> None:
        self.index, self.node, self.loops, self.wrappers = index, node, loops, wrappers
        self.items = items
        self.block: Block | None = node.block if type(node) is BlockRealize else None
        self._accesses: tuple[Access, ...] | None = None
        self._facts: dict[Any, Any] = {}
        if self.block is not None:
            block = self.block
            reads = {r.buffer.data for r in block.reads}
            reads.update(a.memory for a in binding_reads(node))
            #: pointers to the memory that is read, and to that which is written
            self.reads, self.writes = reads, {w.buffer.data for w in block.writes}
        else:
            self.reads = {a.memory for a in self.accesses if not a.write}
            self.writes = {a.memory for a in self.accesses if a.write}

    @property
    def name(self) -> str:
        """What it is called in a message."""
        return self.block.name_hint if self.block is not None else "a statement outside of blocks"

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All accesses, in terms of the loops around."""
        if self._accesses is None:
            self._accesses = (instance(self.node) if self.block is not None
                              else footprint(self.node))
        return self._accesses

    def ask(self, question: Callable[[Any, Sequence[For]], Fact]) -> Fact:
        """What a function says of the block and the loops around it, asked once."""
        if question not in self._facts:
            self._facts[question] = question(self.node, self.loops)
        return self._facts[question]

    def within(self, depth: int) -> list[Access]:
        """All accesses, over all iterations of the loops inside the first `depth`."""
        return inside(self.accesses, self.loops[depth:])


def inside(accesses: Sequence[Access], loops: Sequence[For]) -> list[Access]:
    """Accesses over all iterations of loops around them."""
    if not loops:
        return list(accesses)
    around: tuple[Loop, ...] = tuple(loops_of(loops))
    return [a._replace(loops=(*around, *a.loops)) for a in accesses]


#: statements that define something for what stands within them
DEFINITIONS = (Allocate, AllocateConst, DeclBuffer, LetStmt)


def sites_of(scope: Block | For) -> list[Site]:
    """The sites of a scope (a block, or a loop), in the order of the text."""
    out: list[Site] = []

    def body(stmt: Stmt, loops: Nest, wrappers: Wrappers, items: Place) -> None:
        """The body of a loop or of the scope: its statements are counted, those within the
        definitions around all of them."""
        while isinstance(stmt, DEFINITIONS):
            expressions(stmt, loops, wrappers, (*items, 0))
            wrappers = (*wrappers, (len(loops), stmt))
            stmt = stmt.body
        for number, item in enumerate(stmt.seq if type(stmt) is SeqStmt else (stmt,)):
            walk(item, loops, wrappers, (*items, number))

    def expressions(stmt: Stmt, *where: Any) -> None:
        for item in stmt.children():
            if not (isinstance(item, (Stmt, Var)) or type(item) is IntImm) and footprint(item):
                out.append(Site(len(out), item, *where))

    def walk(stmt: Stmt, loops: Nest, wrappers: Wrappers, items: Place) -> None:
        if type(stmt) is SeqStmt:
            for item in stmt.seq:
                walk(item, loops, wrappers, items)
        elif type(stmt) is For:
            if type(stmt.min) is not IntImm or type(stmt.extent) is not IntImm:
                expressions(stmt, loops, wrappers, items)
            body(stmt.body, (*loops, stmt), wrappers, items)
        elif type(stmt) is BlockRealize or (
                type(stmt) is BufferStore or type(stmt) is Evaluate) and footprint(stmt):
            out.append(Site(len(out), stmt, loops, wrappers, items))
        elif type(stmt) is not BufferStore and type(stmt) is not Evaluate:
            around = (*wrappers, (len(loops), stmt))
            expressions(stmt, loops, around, items)
            for item in stmt.children():
                if isinstance(item, Stmt):
                    walk(item, loops, around, items)

    body(scope.body, (), (), ())
    return out


def _first(regions: Sequence[Any]) -> dict[Var, Buffer]:
    """The memory of regions, each with the first buffer in it."""
    out: dict[Var, Buffer] = {}
    for region in regions:
        out.setdefault(region.buffer.data, region.buffer)
    return out


class BlockScope:
    """The sites of a scope and the dependences among its blocks.

    Dependence is by memory, as in TVM: two blocks that touch one buffer, at least one of them
    writing, depend on each other in program order.
    """

    def __init__(self, scope: Block | For) -> None:
        #: not the scope itself: what is remembered of it must not keep it alive
        self.body = scope.body
        self.sites = sites_of(scope)
        #: pointers to memory that something in the scope writes
        self.written: set[Var] = {v for s in self.sites for v in s.writes}
        #: pointers to memory that is new in every execution of the scope
        self.own = {b.data for b in getattr(scope, "alloc_buffers", ())}
        #: the scope's own iterators, which stand still in it
        self.around: list[Loop] = [(iv.var, iv.dom.min, iv.dom.extent)
                                   for iv in getattr(scope, "iter_vars", ())]
        self.realizes = [s.node for s in self.sites if s.block is not None]
        self.blocks = [r.block for r in self.realizes]
        #: the blocks that write the memory of a pointer
        self.writers: dict[Var, list[Block]] = {}
        self.edges: list[Dependency] = []
        self._into: dict[Block, list[Dependency]] = {b: [] for b in self.blocks}
        self._from: dict[Block, list[Dependency]] = {b: [] for b in self.blocks}
        self._site = {s.block: s for s in self.sites if s.block is not None}
        #: see `order.flow`
        self.flow: Any = None
        #: what is known of this version of the scope, by question
        self.facts: dict[Any, Any] = {}
        readers: dict[Var, list[Block]] = {}
        for block in self.blocks:
            read, written = _first(block.reads), _first(block.writes)
            for memory, buffer in read.items():
                for writer in self.writers.get(memory, ()):
                    self._add(writer, block, RAW, buffer)
            for memory, buffer in written.items():
                for writer in self.writers.get(memory, ()):
                    self._add(writer, block, WAW, buffer)
                for reader in readers.get(memory, ()):
                    self._add(reader, block, WAR, buffer)
            for memory in read:
                readers.setdefault(memory, []).append(block)
            for memory in written:
                self.writers.setdefault(memory, []).append(block)

    def _add(self, src: Block, dst: Block, kind: str, buffer: Buffer) -> None:
        if src is dst:
            return
        edge = Dependency(src, dst, kind, buffer)
        self.edges.append(edge)
        self._into[dst].append(edge)
        self._from[src].append(edge)

    def site(self, block: Block) -> Site:
        """Where a block stands."""
        return self._site[block]

    def boundary(self, loops: Sequence[For], position: int) -> int:
        """The number of the first site at or behind the `position`-th statement in the body of the
        innermost of `loops` (of the scope, if there are none)."""
        depth, last = len(loops), -1
        for site in self.sites:
            if len(site.loops) >= depth and (depth == 0 or site.loops[depth - 1] is loops[-1]):
                if site.items[depth] >= position:
                    return site.index
                last = site.index
        return last + 1

    def steady(self, buffer: Buffer) -> bool:
        """Whether nothing in the scope writes a buffer."""
        return buffer.data not in self.written

    def writers_of(self, buffer: Buffer) -> list[Block]:
        """The blocks that write a buffer's memory, in program order."""
        return self.writers.get(buffer.data, [])

    def makes_all(self, block: Block, buffer: Buffer) -> bool:
        """Whether what is in a buffer, as far as anybody may read it, was written by a block: it is
        new in the scope, and nobody else writes it there, a statement outside of blocks neither."""
        return buffer.data in self.own and not any(
            buffer.data in s.writes for s in self.sites if s.block is not block)

    def deps_into(self, block: Block) -> list[Dependency]:
        """Dependences that end at `block`."""
        return self._into.get(block, [])

    def deps_from(self, block: Block) -> list[Dependency]:
        """Dependences that start at `block`."""
        return self._from.get(block, [])

    def producers(self, block: Block) -> list[Block]:
        """Blocks that write what `block` reads, in program order."""
        found = {d.src for d in self.deps_into(block) if d.kind == RAW}
        return [b for b in self.blocks if b in found]

    def consumers(self, block: Block) -> list[Block]:
        """Blocks that read what `block` writes, in program order."""
        found = {d.dst for d in self.deps_from(block) if d.kind == RAW}
        return [b for b in self.blocks if b in found]


_scopes: "WeakKeyDictionary[Block, BlockScope]" = WeakKeyDictionary()


def scope_of(block: Block) -> BlockScope:
    """The sites and dependences of a block's body, found once for as long as the block lives."""
    found = _scopes.get(block)
    if found is None:
        found = _scopes[block] = BlockScope(block)
    return found


__all__ = ["DEFINITIONS", "RAW", "WAR", "WAW", "BlockScope", "Dependency", "Site", "inside",
           "scope_of", "sites_of"]

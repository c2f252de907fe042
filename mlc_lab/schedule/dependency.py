"""Which block of a scope must run before which: reads after writes, writes after writes."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from ..tir.buffer import Buffer
from ..tir.stmt import Block, BlockRealize

RAW, WAW, WAR = "RAW", "WAW", "WAR"


class Dependency(NamedTuple):
    """`dst` must run after `src`, because of `buffer`."""

    src: Block
    dst: Block
    kind: str
    buffer: Buffer


class BlockScope:
    """The child blocks of a scope in program order and the dependences among them.

    Dependence is by buffer, as in TVM: two blocks that touch one buffer, at least one of them
    writing, depend on each other in program order.
    """

    def __init__(self, realizes: Sequence[BlockRealize]) -> None:
        self.realizes = list(realizes)
        self.blocks = [r.block for r in realizes]
        self.writers: dict[Buffer, list[Block]] = {}
        self.edges: list[Dependency] = []
        self._into: dict[Block, list[Dependency]] = {b: [] for b in self.blocks}
        self._from: dict[Block, list[Dependency]] = {b: [] for b in self.blocks}
        readers: dict[Buffer, list[Block]] = {}
        for block in self.blocks:
            read = list(dict.fromkeys(r.buffer for r in block.reads))
            written = list(dict.fromkeys(w.buffer for w in block.writes))
            for buffer in read:
                for writer in self.writers.get(buffer, ()):
                    self._add(writer, block, RAW, buffer)
            for buffer in written:
                for writer in self.writers.get(buffer, ()):
                    self._add(writer, block, WAW, buffer)
                for reader in readers.get(buffer, ()):
                    self._add(reader, block, WAR, buffer)
            for buffer in read:
                readers.setdefault(buffer, []).append(block)
            for buffer in written:
                self.writers.setdefault(buffer, []).append(block)

    def _add(self, src: Block, dst: Block, kind: str, buffer: Buffer) -> None:
        if src is dst:
            return
        edge = Dependency(src, dst, kind, buffer)
        self.edges.append(edge)
        self._into[dst].append(edge)
        self._from[src].append(edge)

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

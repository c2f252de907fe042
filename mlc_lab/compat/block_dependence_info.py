"""BlockDependenceInfo: which blocks of a program depend on which, without a schedule of it.

    info = BlockDependenceInfo(func)
    block = info.get_sref(consumer)
    info.get_block_scope(block.parent).get_deps_by_dst(block)
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from ..ir.module import IRModule
from ..ir.node import Node
from ..schedule.dependency import BlockScope as Scope
from ..schedule.dependency import Dependency, scope_of
from ..tir.function import PrimFunc
from ..tir.functor import pre_order
from ..tir.stmt import Block


class DepKind(IntEnum):
    """How a block depends on one before it."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


class BlockSRef:
    """A block of the program; `parent` is the block around it, None for the root."""

    __slots__ = ("parent", "stmt")

    def __init__(self, stmt: Block, parent: BlockSRef | None) -> None:
        self.stmt, self.parent = stmt, parent

    def __repr__(self) -> str:
        return f"BlockSRef({self.stmt.name_hint})"


class BlockDependency(NamedTuple):
    """`dst` must run after `src`."""

    src: BlockSRef
    dst: BlockSRef
    kind: DepKind


class BlockScope:
    """The dependences among the blocks right inside of one."""

    def __init__(self, scope: Scope, refs: dict[Block, BlockSRef]) -> None:
        self._scope, self._refs = scope, refs

    def _listed(self, found: list[Dependency]) -> list[BlockDependency]:
        return [BlockDependency(self._refs[d.src], self._refs[d.dst], DepKind[d.kind])
                for d in found]

    def get_deps_by_src(self, block: BlockSRef) -> list[BlockDependency]:
        """The dependences that start at a block."""
        return self._listed(self._scope.deps_from(block.stmt))

    def get_deps_by_dst(self, block: BlockSRef) -> list[BlockDependency]:
        """The dependences that end at a block."""
        return self._listed(self._scope.deps_into(block.stmt))


class BlockDependenceInfo:
    """The blocks of a module or function, and the dependences among them."""

    def __init__(self, mod: IRModule | PrimFunc) -> None:
        funcs = mod.functions.values() if isinstance(mod, IRModule) else [mod]
        self._refs: dict[Block, BlockSRef] = {}
        for func in funcs:
            if isinstance(func, PrimFunc):
                self._note(func.body, None)

    def _note(self, node: Node, parent: BlockSRef | None) -> None:
        blocks = [n for n in pre_order(node) if isinstance(n, Block)]
        inside: set[Block] = set()
        for block in blocks:
            if block not in inside:  # the others are noted with the block around them
                self._refs[block] = ref = BlockSRef(block, parent)
                for part in (block.init, block.body):
                    if part is not None:
                        inside.update(n for n in pre_order(part) if isinstance(n, Block))
                        self._note(part, ref)

    def get_sref(self, block: Block) -> BlockSRef | None:
        """The reference of a block; None if it is not in the program."""
        return self._refs.get(block)

    def get_block_scope(self, block_sref: BlockSRef) -> BlockScope:
        """The dependences among the blocks right inside of one."""
        return BlockScope(scope_of(block_sref.stmt), self._refs)


__all__ = ["BlockDependency", "BlockDependenceInfo", "BlockSRef", "BlockScope", "DepKind"]

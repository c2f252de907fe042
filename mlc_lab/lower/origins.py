"""Which block each store of a lowered program came from: lowering that keeps account.

Blocks disappear on the way down. While the passes run, every rewrite of a statement is followed
(`tir.functor.following`), so that generated code can say where its loops come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..ir.module import IRModule
from ..ir.transform import Pass
from ..tir.function import PrimFunc
from ..tir.functor import all_statements, following, pre_order
from ..tir.stmt import Block, BlockRealize, BufferStore, Evaluate
from .pipeline import default_passes, with_own

if TYPE_CHECKING:
    from ..target.target import TargetLike

_LEAVES = (BufferStore, Evaluate)


def _leaves_of(block: Block) -> Iterable[Any]:
    """The stores of a block that are in no block inside of it."""
    stack: list[Any] = [block.init, block.body]
    while stack:
        node = stack.pop()
        if node is None or type(node) in (Block, BlockRealize):
            continue
        if type(node) in _LEAVES:
            yield node
        stack.extend(node.children())


def lower_with_blocks(mod: IRModule, target: TargetLike, then: Sequence[Pass] = ()
                      ) -> tuple[IRModule, IRModule, dict[Any, str]]:
    """The program lowered for a target, the same after the passes `then`, and the name of the block
    that each store in either came from. Raises what the passes raise."""
    table: dict[Any, str] = {}
    for func in mod.functions.values():
        if type(func) is not PrimFunc:
            continue
        for s in pre_order(func.body):
            if type(s) is Block and s.name_hint != "root":
                for node in (s, *_leaves_of(s)):
                    table[node] = s.name_hint
            elif type(s) is BlockRealize and s.block.name_hint != "root":
                table[s] = s.block.name_hint

    def rewritten(old: Any, new: Any) -> None:
        name = table.get(old)
        if name is None or new is None:
            return
        table.setdefault(new, name)
        for node in all_statements(new):
            if type(node) in _LEAVES:
                table.setdefault(node, name)

    with following(rewritten):
        for step in with_own(default_passes(target)):
            mod = step(mod)
        after = mod
        for step in then:
            after = step(after)
    return mod, after, table


__all__ = ["lower_with_blocks"]

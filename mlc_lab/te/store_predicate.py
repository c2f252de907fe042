"""set_store_predicate of te: a block runs only in the threads for which a condition holds."""

from __future__ import annotations

from typing import Any, Mapping

from ..tir import op as O
from ..tir.expr import IterVar, PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, free_vars, substitute, uses_var
from ..tir.stmt import Block, BlockRealize, For, ForKind, Stmt


class _Guard(Mutator):
    """Adds conditions on thread axes to blocks; `loops` are those bound to an axis around here."""

    def __init__(self, guarded: Mapping[Block, PrimExpr], tags: Mapping[Var, str]) -> None:
        super().__init__()
        self.guarded, self.tags = guarded, tags
        self.loops: dict[str, Var] = {}

    def visit(self, node: Any) -> Any:
        """Expressions hold no blocks: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_For(self, node: For) -> Stmt:
        if node.kind is not ForKind.THREAD_BINDING:
            return self.default(node)
        tag = node.thread_tag
        before = self.loops.get(tag)
        self.loops[tag] = node.loop_var
        new = self.default(node)
        if before is None:
            del self.loops[tag]
        else:
            self.loops[tag] = before
        return new

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        predicate = self.guarded.get(node.block)
        if predicate is None:
            return self.default(node)
        table: dict[Var, PrimExpr] = {}
        for var in free_vars(predicate):
            loop = self.loops.get(self.tags.get(var, ""))
            if loop is None:
                raise ValueError(f"the store predicate of {node.block.name_hint} depends on "
                                 f"{var.name}, and no loop around it is bound to that thread axis")
            if _reduces_over(node, loop):
                return node  # the threads share one result, which is stored once
            table[var] = O.cast(loop, var.dtype)
        return BlockRealize(node.iter_values, O.logical_and(
            node.predicate, substitute(predicate, table)), node.block)


def _reduces_over(node: BlockRealize, loop: Var) -> bool:
    return any(iv.iter_type == IterVar.CommReduce and uses_var(value, loop)
               for iv, value in zip(node.block.iter_vars, node.iter_values))


def with_store_predicates(func: PrimFunc, guarded: Mapping[Block, PrimExpr],
                          tags: Mapping[Var, str]) -> PrimFunc:
    """The function with conditions on some of its blocks.

    `guarded` gives the condition of a block, `tags` the tags of the thread axes in conditions.
    Raises ValueError for a condition on a thread axis that is not around the block.
    """
    return func.with_body(_Guard(guarded, tags).visit(func.body))


__all__ = ["with_store_predicates"]

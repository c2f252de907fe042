"""LowerInitBlock: a block's init becomes a statement that runs at the first reduction iteration.

Before::

    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + A[vi, vk]

After::

    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        if vk == 0:
            C[vi] = T.float32(0)
        C[vi] = C[vi] + A[vi, vk]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..tir import op
from ..tir.expr import EQ, IterVar
from ..tir.function import PrimFunc
from ..tir.functor import Mutator
from ..tir.stmt import Block, IfThenElse, Stmt, seq
from .common import function_pass

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext


class _LowerInit(Mutator):
    def visit(self, node: Node) -> Any:
        """Expressions hold no blocks: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_Block(self, node: Block) -> Stmt:
        block = super().visit_Block(node)
        if block.init is None:
            return block
        starts = [EQ(iv.var, iv.dom.min) for iv in block.iter_vars
                  if iv.iter_type == IterVar.CommReduce]
        init = IfThenElse(op.all(*starts), block.init) if starts else block.init
        return block.replace(init=None, body=seq(init, block.body))


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Blocks' init statements as ordinary conditional statements."""
    return func.with_body(_LowerInit().visit(func.body))


def LowerInitBlock() -> Pass:
    """Make the init of a block a statement that runs at its first reduction iteration."""
    return function_pass("LowerInitBlock", _rewrite)

"""ConvertBlocksToOpaque: block iterators are replaced by the loop expressions bound to them.

Before::

    for i0, i1 in T.grid(8, 16):
        with T.block("B"):
            vi = T.axis.spatial(128, i0 * 16 + i1)
            B[vi] = A[vi] + 1

After::

    for i0, i1 in T.grid(8, 16):
        with T.block("B"):
            B[i0 * 16 + i1] = A[i0 * 16 + i1] + 1

What is left of a block is its predicate, its allocations and its annotations. An iterator that is
bound to data which the block writes becomes a variable of the block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.transform import Pass
from ..tir.expr import PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, uses_var
from ..tir.stmt import Block, BlockRealize, LetStmt, Stmt
from .common import LowerError, function_pass, may_change

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class _ToOpaque(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.values: dict[Var, PrimExpr] = {}

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.values.get(node, node)

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        block = node.block
        if block.init is not None:
            raise LowerError(f"block {block.name_hint!r} still has an init: run LowerInitBlock "
                             "before ConvertBlocksToOpaque")
        own = [iv.var for iv in block.iter_vars if uses_var(node.predicate, {iv.var})]
        if own:
            raise LowerError(f"the condition {node.predicate} of block {block.name_hint!r} uses "
                             f"{own[0].name}, which is known inside of the block only: write it "
                             "with what the iterators are bound to")
        for iv, value in zip(block.iter_vars, [self.visit(v) for v in node.iter_values]):
            self.values[iv.var] = value
        predicate = self.visit(node.predicate)
        new: Block = self.visit_Block(block)
        changing = [iv.var for iv, value in zip(block.iter_vars, node.iter_values)
                    if may_change((value,), block.body)]
        if changing:  # an iterator has the value of the time when the block began
            named = [(var.with_name(var.name), self.values[var]) for var in changing]
            self.values.update(zip(changing, (name for name, _ in named)))
            body = self.visit(block.body)
            for name, value in reversed(named):
                body = LetStmt(name, value, body)
            new = new.replace(body=body)
        if new.iter_vars:
            new = new.replace(iter_vars=())
        if not node.iter_values and predicate is node.predicate and new is block:
            return node
        return BlockRealize.from_fields((), predicate, new)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Blocks without iterators."""
    return func.with_body(_ToOpaque().visit(func.body))


def ConvertBlocksToOpaque() -> Pass:
    """Replace the iterators of blocks by the expressions of loops bound to them."""
    return function_pass("ConvertBlocksToOpaque", _rewrite)



"""Rewriting a function's bindings in the order they run, knowing what the earlier ones became."""

from __future__ import annotations

from ..normal import merge_blocks
from .rewriting import (
    BindingBlock, Expr, Function, If, Replacer, SeqExpr, same_parts, with_body,
)


class InOrder:
    """A walk of blocks in program order; a pass gives `block`, and `seq` where it needs more.

    `replace.vars` holds what takes the place of a variable from here on. What nothing was done to
    stays the same object.
    """

    def __init__(self) -> None:
        self.replace = Replacer()

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block with its bindings rewritten; one without bindings is dropped."""
        return block

    def expr(self, expr: Expr) -> Expr:
        """An expression: of those with blocks of their own, the blocks, else its variables."""
        if type(expr) is SeqExpr:
            return self.seq(expr)
        if type(expr) is If:
            cond = self.replace(expr.cond)
            yes, no = self.expr(expr.true_branch), self.expr(expr.false_branch)
            if cond is expr.cond and yes is expr.true_branch and no is expr.false_branch:
                return expr
            return If.from_fields(cond, yes, no, expr.struct_info_)
        if type(expr) is Function:
            return self.function(expr)
        return self.replace(expr)

    def seq(self, expr: SeqExpr) -> Expr:
        """Blocks and the value after them."""
        blocks = merge_blocks(list(map(self.block, expr.blocks)))
        body = self.expr(expr.body)
        if body is expr.body and same_parts(blocks, expr.blocks):
            return expr
        return SeqExpr.from_fields(tuple(blocks), body, body.struct_info_)

    def function(self, func: Function) -> Function:
        """A function inside of another."""
        return with_body(func, self.expr(func.body))

"""SkipAssert: nothing is made sure of any more; what stood under an assertion stays.

Before::

    assert n > 0, "there is nothing to do"
    A[0] = n

After::

    A[0] = n
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.transform import Pass
from ..tir.function import PrimFunc
from ..tir.functor import Mutator
from ..tir.stmt import AssertStmt, Stmt
from .common import function_pass

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class _Skip(Mutator):
    def visit_AssertStmt(self, node: AssertStmt) -> Stmt:
        return self.visit(node.body)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """No assertion is left."""
    return func.with_body(_Skip().visit(func.body))


def SkipAssert() -> Pass:
    """Assertions are left out."""
    return function_pass("SkipAssert", _rewrite)


__all__ = ["SkipAssert"]

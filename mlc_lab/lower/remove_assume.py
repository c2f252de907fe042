"""RemoveAssume: what was assumed is forgotten, and loops that only said so are gone.

Before::

    for i in range(16):
        T.evaluate(T.assume(A[i] == 0))
    A[0] = 10

After::

    A[0] = 10
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.transform import Pass
from ..tir.function import PrimFunc
from ..tir.functor import Mutator
from ..tir.stmt import Evaluate, Stmt
from .common import function_pass
from .contents import is_assumption
from .remove_no_op import without_no_ops
from .simplify import NO_OP

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class _Forget(Mutator):
    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        return NO_OP if is_assumption(node.value) else node


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Nothing is assumed any more."""
    body = _Forget().visit(func.body)
    return func if body is func.body else func.with_body(without_no_ops(body))


def RemoveAssume() -> Pass:
    """Assumptions are left out."""
    return function_pass("RemoveAssume", _rewrite)


__all__ = ["RemoveAssume"]

"""ConvertForLoopsToSerial: parallel loops run one iteration after the other.

Before::

    for i in T.parallel(8):
        A[i] = A[i] + 1.0

After::

    for i in range(8):
        A[i] = A[i] + 1.0

For machines of one core. Other kinds of loops stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.transform import Pass
from ..tir.function import PrimFunc
from ..tir.functor import Mutator
from ..tir.stmt import For, ForKind, Stmt
from .common import function_pass

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class _Serial(Mutator):
    def visit_For(self, node: For) -> Stmt:
        new = super().visit_For(node)
        assert isinstance(new, For)
        return new.replace(kind=ForKind.SERIAL) if new.kind is ForKind.PARALLEL else new


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Serial loops for parallel ones."""
    return func.with_body(_Serial().visit(func.body))


def ConvertForLoopsToSerial() -> Pass:
    """Let parallel loops run one iteration after the other."""
    return function_pass("ConvertForLoopsToSerial", _rewrite)

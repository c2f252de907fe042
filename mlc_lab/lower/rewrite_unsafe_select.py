"""RewriteUnsafeSelect: where an arm may only be computed if it is chosen, the choice comes first.

Before::

    B[i] = T.Select(i > 0, A[i - 1], 0.0)

After::

    B[i] = T.if_then_else(i > 0, A[i - 1], 0.0)

`T.Select` may compute both arms; `T.if_then_else` computes the one that is chosen. An arm with a
load or a call is not safe to compute in any case, unless it is within an `if_then_else` of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.node import Node
from ..ir.transform import Pass
from ..tir.expr import BufferLoad, Call, Let, PrimExpr, Select
from ..tir.function import PrimFunc
from ..tir.functor import Mutator
from ..tir.op import effect_of, if_then_else
from ..tir.op.intrinsic import PURE
from .common import function_pass

if TYPE_CHECKING:
    from ..ir.transform import PassContext


def _unsafe(e: Node) -> bool:
    """Whether computing an expression where it is not wanted may fail."""
    if isinstance(e, BufferLoad):
        return True
    if isinstance(e, Call):
        if getattr(e.op, "name", "") == "tir.if_then_else":
            return _unsafe(e.args[0])
        return effect_of(e) != PURE or any(map(_unsafe, e.children()))
    if isinstance(e, Select):
        return _unsafe(e.condition)  # its arms are seen to by themselves
    return isinstance(e, (PrimExpr, Let)) and any(map(_unsafe, e.children()))


class _Rewrite(Mutator):
    def visit_Select(self, node: Select) -> PrimExpr:
        new = self.default(node)
        arms = new.true_value, new.false_value
        if "x" in new.condition.dtype or not any(map(_unsafe, arms)):
            return new
        return if_then_else(new.condition, *arms)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Choices before what they choose."""
    return func.with_body(_Rewrite().visit(func.body))


def RewriteUnsafeSelect() -> Pass:
    """Where an arm may only be computed if it is chosen, let the choice come first."""
    return function_pass("RewriteUnsafeSelect", _rewrite)

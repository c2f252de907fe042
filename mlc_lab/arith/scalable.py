"""Proofs about extents in units of `T.vscale()`, of which only the possible values are known.

Registers of such machines have a power of two times 128 bits (64 bits on RISC-V, up to 65536).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tir.expr import Call, IntImm, PrimExpr
from ..tir.functor import Mutator, pre_order

if TYPE_CHECKING:
    from .analyzer import Analyzer

#: what T.vscale() may be
VALUES = tuple(2 ** n for n in range(11))


def can_prove_for_each_vscale(analyzer: Analyzer, condition: PrimExpr) -> bool:
    """Whether a condition holds, whatever the machine's `T.vscale()` is."""
    if analyzer.can_prove(condition):
        return True
    return any(map(_is_vscale, pre_order(condition))) and all(
        analyzer.can_prove(_WithValue(value).visit(condition)) for value in VALUES)


def _is_vscale(e: object) -> bool:
    return type(e) is Call and getattr(e.op, "name", "") == "tir.vscale"


class _WithValue(Mutator):
    """A number in the place of T.vscale()."""

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value

    def visit_Call(self, node: Call) -> PrimExpr:
        return IntImm(node.dtype, self.value) if _is_vscale(node) else self.default(node)


__all__ = ["can_prove_for_each_vscale"]

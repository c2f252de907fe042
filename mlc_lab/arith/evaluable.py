"""Whether an index can be evaluated where the program does not evaluate it: its memory is read
inside of its bounds, and nothing is divided by what may be zero there.

`P[at[v - 1]]` may be read under a condition, `v % n` be computed in a loop over `range(n)` only.
What places loops or conditions by such an index evaluates it elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import dtype as dt
from ..ir.structural import structural_equal
from ..tir import op
from ..tir.expr import (
    BinaryOp, BufferLoad, Cast, Div, FloorDiv, FloorMod, IntImm, Mod, Mul, PrimExpr, Var,
)
from ..tir.functor import pre_order
from .analyzer import Analyzer

_DIVISIONS = (FloorDiv, FloorMod, Div, Mod)


def fragile_in(e: PrimExpr) -> list[BufferLoad | BinaryOp]:
    """What of an expression has no value everywhere: loads, and integers divided by what is no
    number but zero."""
    if type(e) is IntImm or isinstance(e, Var):
        return []
    return [n for n in pre_order(e) if isinstance(n, BufferLoad) or isinstance(n, _DIVISIONS) and (
        type(n.b) is not IntImm or n.b.value == 0) and not dt.is_float(n.dtype)]


def is_evaluable(e: PrimExpr, running: Sequence[PrimExpr], analyzer: Analyzer) -> bool:
    """Whether an expression can be evaluated in a place.

    `running` has the extents of the loops and iterators around the place: none is zero there. The
    analyzer knows their domains.
    """
    return all(_has_value(node, running, analyzer) for node in fragile_in(e))


def _has_value(node: BufferLoad | BinaryOp, running: Sequence[PrimExpr],
               analyzer: Analyzer) -> bool:
    if isinstance(node, BufferLoad):
        return all(analyzer.can_prove(op.logical_and(op.less_equal(0, i), op.less(i, dim)))
                   for i, dim in zip(node.indices, node.buffer.shape))
    divisor = node.b
    known = [factor for extent in running for factor in _factors(extent)]
    return all(any(structural_equal(f, other) for other in known) for f in _factors(divisor)) or (
        analyzer.can_prove(op.not_equal(divisor, 0)))


def _factors(e: PrimExpr) -> list[PrimExpr]:
    """What multiplied gives an expression; without numbers that are not zero."""
    if type(e) is Mul:
        return _factors(e.a) + _factors(e.b)
    if type(e) is Cast and dt.bits_of(e.dtype) >= dt.bits_of(e.value.dtype):
        return _factors(e.value)
    return [] if type(e) is IntImm and e.value != 0 else [e]


__all__ = ["fragile_in", "is_evaluable"]

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
from ..tir.expr import BufferLoad, Cast, Div, FloorDiv, FloorMod, IntImm, Mod, Mul, PrimExpr, Var
from ..tir.functor import pre_order
from .analyzer import Analyzer

_DIVISIONS = (FloorDiv, FloorMod, Div, Mod)


def is_evaluable(e: PrimExpr, running: Sequence[PrimExpr], analyzer: Analyzer) -> bool:
    """Whether an expression can be evaluated in a place.

    `running` has the extents of the loops and iterators around the place: none is zero there. The
    analyzer knows their domains.
    """
    if type(e) is IntImm or isinstance(e, Var):
        return True
    for node in pre_order(e):
        if type(node) is BufferLoad:
            if not all(analyzer.can_prove(op.logical_and(op.less_equal(0, i), op.less(i, dim)))
                       for i, dim in zip(node.indices, node.buffer.shape)):
                return False
        elif isinstance(node, _DIVISIONS) and not dt.is_float(node.dtype):
            if not _is_nonzero(node.b, running, analyzer):
                return False
    return True


def _is_nonzero(e: PrimExpr, running: Sequence[PrimExpr], analyzer: Analyzer) -> bool:
    if type(e) is IntImm:
        return e.value != 0
    known = [factor for extent in running for factor in _factors(extent)]
    return all(any(structural_equal(f, other) for other in known) for f in _factors(e)) or (
        analyzer.can_prove(op.not_equal(e, 0)))


def _factors(e: PrimExpr) -> list[PrimExpr]:
    """What multiplied gives an expression; without numbers that are not zero."""
    if type(e) is Mul:
        return _factors(e.a) + _factors(e.b)
    if type(e) is Cast and dt.bits_of(e.dtype) >= dt.bits_of(e.value.dtype):
        return _factors(e.value)
    return [] if type(e) is IntImm and e.value != 0 else [e]


__all__ = ["is_evaluable"]

"""Whether an index can be evaluated where the program does not evaluate it: its memory is read
inside of its bounds, and nothing is divided by what may be zero there.

The ends of a region are evaluated by the loops that run over it, also where what reads the region
does not run: `P[at[v - 1]]` is read under a condition, `P[v % n]` in a loop over `range(n)`.
"""

from __future__ import annotations

from ..arith import Analyzer, IntSet
from ..ir import dtype as dt
from ..tir import op
from ..tir.expr import BufferLoad, Cast, Div, FloorDiv, FloorMod, IntImm, Mod, Mul, PrimExpr, Var
from ..tir.functor import pre_order
from ..tir.stmt import For
from .state import ScheduleState, StmtSRef

_DIVISIONS = (FloorDiv, FloorMod, Div, Mod)


def loads_in(found: IntSet) -> list[BufferLoad]:
    """What the ends of an interval read from memory."""
    return [n for n in _inside(found) if type(n) is BufferLoad]


def is_evaluable(found: IntSet, state: ScheduleState, at: StmtSRef, analyzer: Analyzer) -> bool:
    """Whether the ends of an interval can be evaluated in each iteration of `at`, a loop or block,
    and of what is around it; the analyzer knows the domains of these loops."""
    for node in _inside(found):
        if type(node) is BufferLoad:
            if not all(analyzer.can_prove(op.logical_and(op.less_equal(0, i), op.less(i, dim)))
                       for i, dim in zip(node.indices, node.buffer.shape)):
                return False
        elif isinstance(node, _DIVISIONS) and not dt.is_float(node.dtype):
            if type(node.b) is IntImm:
                if node.b.value == 0:
                    return False
            elif not (set(_factors(node.b)) <= _positive(state, at)
                      or analyzer.can_prove(op.not_equal(node.b, 0))):
                return False
    return True


def _inside(found: IntSet) -> list[PrimExpr]:
    return [n for end in (found.min_value, found.max_value)
            if type(end) is not IntImm and not isinstance(end, Var) for n in pre_order(end)]


def _factors(e: PrimExpr) -> list[PrimExpr]:
    """What multiplied gives an expression; without numbers that are not zero."""
    if type(e) is Mul:
        return _factors(e.a) + _factors(e.b)
    if type(e) is Cast and dt.bits_of(e.dtype) >= dt.bits_of(e.value.dtype):
        return _factors(e.value)
    return [] if type(e) is IntImm and e.value != 0 else [e]


def _positive(state: ScheduleState, at: StmtSRef) -> set[PrimExpr]:
    """Factors of the extents of the loops and iterators around: where something runs in them, none
    is zero."""
    out: set[PrimExpr] = set()
    for sref in (at, *state.ancestors(at)):
        stmt = sref.stmt
        extents = [stmt.extent] if type(stmt) is For else [iv.dom.extent for iv in stmt.iter_vars]
        for extent in extents:
            out.update(e for e in _factors(extent) if isinstance(e, Var))
    return out


__all__ = ["is_evaluable", "loads_in"]

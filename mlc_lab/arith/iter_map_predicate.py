"""What predicates such as `i * 3 + j < 128` say of sums of iterators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Container, NamedTuple

from ..tir.expr import GE, GT, LE, LT, Add, IntImm, PrimExpr, Range, SizeVar, Sub, Var
from . import expr_util as U
from .expr_util import INDEX_DTYPES, conjuncts, imm
from .iter_map_expr import Number, Numbers, Unresolved, number

if TYPE_CHECKING:
    from .analyzer import Analyzer


class _Constraint(NamedTuple):
    expr: PrimExpr
    low: Number | None
    high: Number | None
    size: int


def uses_iter(e: PrimExpr, iters: Container[PrimExpr]) -> bool:
    """Whether one of `iters` occurs in `e`."""
    kind = type(e)
    if kind is IntImm:
        return False
    if kind is Var or kind is SizeVar:
        return e in iters
    return any(uses_iter(c, iters) for c in e.children() if isinstance(c, PrimExpr))


def _size(e: PrimExpr) -> int:
    return 1 + sum(_size(c) for c in e.children() if isinstance(c, PrimExpr))


def read_predicate(predicate: PrimExpr, iters: dict[Var, Range],
                   analyzer: Analyzer) -> list[_Constraint]:
    """The bounds that a conjunction of comparisons sets; narrows `iters` for single iterators.

    Raises Unresolved for a condition of another form that uses an iterator.
    """
    out: list[_Constraint] = []
    n = Numbers(analyzer)
    for item in conjuncts(predicate):
        kind = type(item)
        if not isinstance(item, (LT, LE, GT, GE)):
            if isinstance(item, PrimExpr) and not uses_iter(item, iters):
                continue
            raise Unresolved(f"a predicate of this form is not understood: {item!r}")
        a, b = item.a, item.b
        if kind in (GT, GE):
            a, b, kind = b, a, (LT if kind is GT else LE)
        left, right = uses_iter(a, iters), uses_iter(b, iters)
        if not left and not right:
            continue
        if a.dtype not in INDEX_DTYPES:
            raise Unresolved(f"a comparison of {a.dtype} is no bound on an iterator: {item!r}")
        if left and right:  # both sides: everything to the left
            a, b = analyzer.simplify(U.sub(a, b)), imm(0, a.dtype)
            right = False
            if not uses_iter(a, iters):
                continue
        step = 1 if kind is LE else 0
        if right:  # a < e: e >= a + 1
            expr, low, high = b, n.add(number(a), 1 - step), None
        else:
            expr, low, high = a, None, n.add(number(b), step)
        while isinstance(expr, (Add, Sub)) and type(expr.b) is IntImm:
            shift = expr.b.value if type(expr) is Add else -expr.b.value
            expr = expr.a
            low = None if low is None else n.sub(low, shift)
            high = None if high is None else n.sub(high, shift)
        if isinstance(expr, Var) and _narrow(expr, low, high, iters, n):
            continue
        out.append(_Constraint(expr, low, high, _size(expr)))
    out.sort(key=lambda c: c.size)
    return out


def _narrow(var: Var, low: Number | None, high: Number | None, iters: dict[Var, Range],
            n: Numbers) -> bool:
    """Shorten the range of one iterator if its ends are constant."""
    rng = iters[var]
    start, extent = number(rng.min), number(rng.extent)
    if type(start) is not int or type(extent) is not int:
        return False
    end = start + extent
    if (low is not None and type(low) is not int) or (high is not None and type(high) is not int):
        return False
    new_start = start if low is None else max(start, low)
    new_end = end if high is None else min(end, high)
    if (new_start, new_end) != (start, end):
        iters[var] = Range.from_min_extent(imm(new_start, var.dtype),
                                           imm(max(new_end - new_start, 0), var.dtype))
    return True

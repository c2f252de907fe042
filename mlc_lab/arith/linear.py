"""Linear equations: coefficients of variables, and bounds solved for a variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ..tir.expr import (
    EQ, GE, GT, LE, LT, Add, CmpOp, FloorDiv, IntImm, Mul, PrimExpr, SizeVar, Sub, Var, const_index,
)
from . import expr_util as U
from .expr_util import conjuncts, fitting_or, imm
from .int_set import NEG_INF_EXPR, POS_INF_EXPR, IntSet, as_set
from .interval_arithmetic import eval_set
from .iter_map_expr import new_analyzer

if TYPE_CHECKING:
    from .analyzer import Analyzer


def uses_any(e: PrimExpr, variables: Any) -> bool:
    """Whether one of `variables` occurs in `e`."""
    if type(e) is Var or type(e) is SizeVar:
        return e in variables
    return any(uses_any(c, variables) for c in e.children() if isinstance(c, PrimExpr))


@fitting_or(list)
def detect_linear_equation(e: Any, variables: Sequence[Var]) -> list[PrimExpr]:
    """Coefficients [c1, ..., cn, base] with e = c1*v1 + ... + cn*vn + base, none of which uses the
    variables; [] if `e` is not linear in them."""
    e = const_index(e)
    analyzer = new_analyzer(None)
    order = {v: i for i, v in enumerate(variables)}

    def visit(e: PrimExpr) -> tuple[dict[int, PrimExpr], PrimExpr | None] | None:
        if isinstance(e, Var) and e in order:
            return {order[e]: imm(1, e.dtype)}, None
        if isinstance(e, (Add, Sub)):
            a, b = visit(e.a), visit(e.b)
            if a is None or b is None:
                return None
            build = U.add if type(e) is Add else U.sub
            zero = imm(0, e.dtype)
            coefficients = dict(a[0])
            for place, value in b[0].items():
                coefficients[place] = build(coefficients.get(place, zero), value)
            if b[1] is None:
                return coefficients, a[1]
            return coefficients, build(a[1] if a[1] is not None else zero, b[1])
        if type(e) is Mul:
            a, b = visit(e.a), visit(e.b)
            if a is None or b is None or (a[0] and b[0]):
                return None
            if b[0]:
                a, b = b, a
            factor = b[1] if b[1] is not None else imm(0, e.dtype)
            return ({k: U.mul(v, factor) for k, v in a[0].items()},
                    None if a[1] is None else U.mul(a[1], factor))
        return None if uses_any(e, order) else ({}, e)

    found = visit(e)
    if found is None:
        return []
    coefficients, base = found
    zero = imm(0, e.dtype)
    out = [coefficients.get(i, zero) for i in range(len(order))] + [zero if base is None else base]
    return [analyzer.simplify(c) for c in out]


@fitting_or(list)
def detect_clip_bound(e: PrimExpr, variables: Sequence[Var]) -> list[PrimExpr | None]:
    """[min1, max1, ..., minn, maxn] from a conjunction of comparisons linear in one variable each;
    None where there is no bound, [] where a part is not understood."""
    analyzer = new_analyzer(None)
    bounds: dict[Var, list[PrimExpr | None]] = {v: [None, None] for v in variables}
    for item in conjuncts(e):
        kind = type(item)
        if not isinstance(item, (LT, LE, GT, GE, EQ)):
            return []
        a, b = item.a, item.b
        if kind in (GT, GE):
            a, b, kind = b, a, LT if kind is GT else LE
        diff = U.sub(a, b)  # diff < 0, <= 0 or == 0
        used = [v for v in variables if uses_any(diff, (v,))]
        if len(used) != 1:
            return []
        found = detect_linear_equation(diff, used)
        if not found or type(found[0]) is not IntImm or abs(found[0].value) != 1:
            return []
        rest = found[1]
        slack = 1 if kind is LT else 0
        low_high = bounds[used[0]]
        if found[0].value == 1 or kind is EQ:  # v + rest <= -slack
            value = rest if found[0].value == -1 else U.sub(imm(0, rest.dtype), rest)
            high = analyzer.simplify(U.sub(value, imm(slack, rest.dtype)))
            low_high[1] = high if low_high[1] is None else analyzer.simplify(
                U.minimum(low_high[1], high))
        if found[0].value == -1 or kind is EQ:  # rest - v <= -slack
            value = rest if found[0].value == -1 else U.sub(imm(0, rest.dtype), rest)
            low = analyzer.simplify(U.add(value, imm(slack if kind is LT else 0, rest.dtype)))
            low_high[0] = low if low_high[0] is None else analyzer.simplify(
                U.maximum(low_high[0], low))
    return [value for v in variables for value in bounds[v]]


_TURNED = {LT: GT, GT: LT, LE: GE, GE: LE, EQ: EQ}


@fitting_or(IntSet.nothing)
def deduce_bound(var: Var, cond: PrimExpr, hint_map: Mapping[Var, Any],
                 relax_map: Mapping[Var, Any]) -> IntSet:
    """Values of `var` for which `cond` certainly holds.

    `cond` is a comparison (or conjunction of them) in which `var` occurs on one side, under
    additions, multiplications by constants and floor divisions. `relax_map` gives the domains of
    variables over all of which it must hold; `hint_map` those of variables that are fixed. The
    answer is `nothing` if no bound can be deduced.
    """
    analyzer = new_analyzer(None)
    for name, dom in {**hint_map, **relax_map}.items():
        found = as_set(dom)
        if name is not var and found.has_lower_bound() and found.has_upper_bound():
            analyzer.bind(name, found.cover_range(), allow_override=True)
    low: PrimExpr = NEG_INF_EXPR
    high: PrimExpr = POS_INF_EXPR
    for item in conjuncts(cond):
        bound = _solve(var, item, relax_map, analyzer)
        if bound is None:
            return IntSet.nothing()
        if bound.min_value is not NEG_INF_EXPR:
            low = bound.min_value if low is NEG_INF_EXPR else analyzer.simplify(
                U.maximum(low, bound.min_value))
        if bound.max_value is not POS_INF_EXPR:
            high = bound.max_value if high is POS_INF_EXPR else analyzer.simplify(
                U.minimum(high, bound.max_value))
    return IntSet(low, high)


def _solve(var: Var, item: PrimExpr, relax: Mapping[Var, Any], analyzer: Analyzer
           ) -> IntSet | None:
    kind = type(item)
    if not isinstance(item, CmpOp) or kind not in _TURNED:
        return None
    a, b = item.a, item.b
    in_a, in_b = uses_any(a, (var,)), uses_any(b, (var,))
    if in_a and in_b:
        a, b = analyzer.simplify(U.sub(a, b)), imm(0, a.dtype)
        in_a, in_b = uses_any(a, (var,)), False
    if in_b:
        a, b, kind = b, a, _TURNED[kind]
    elif not in_a:
        return None
    while not (type(a) in U.VAR_TYPES and a is var):
        step = _peel(var, a, b, kind, analyzer)
        if step is None:
            return None
        a, b, kind = step
    one = imm(1, b.dtype)
    if kind is LT:
        b, kind = U.sub(b, one), LE
    elif kind is GT:
        b, kind = U.add(b, one), GE
    b = analyzer.simplify(b)
    values = eval_set(b, relax, analyzer)  # the bound must hold for every value of the relaxed
    if kind is LE:
        return IntSet(NEG_INF_EXPR, values.min_value) if values.has_lower_bound() else None
    if kind is GE:
        return IntSet(values.max_value, POS_INF_EXPR) if values.has_upper_bound() else None
    if values.is_single_point():
        return values
    return None


def _peel(var: Var, a: PrimExpr, b: PrimExpr, kind: type,
          analyzer: Analyzer) -> tuple[PrimExpr, PrimExpr, type] | None:
    """One operator of the left side moved to the right, the comparison kept equivalent."""
    if type(a) is Add:
        if uses_any(a.a, (var,)):
            return None if uses_any(a.b, (var,)) else (a.a, U.sub(b, a.b), kind)
        return a.b, U.sub(b, a.a), kind
    if type(a) is Sub:
        if uses_any(a.a, (var,)):
            return None if uses_any(a.b, (var,)) else (a.a, U.add(b, a.b), kind)
        return a.b, U.sub(a.a, b), _TURNED[kind]
    if type(a) is Mul:
        x, c = (a.a, a.b) if uses_any(a.a, (var,)) else (a.b, a.a)
        if uses_any(c, (var,)):
            return None
        return _peel_product(x, c, b, kind, analyzer)
    if type(a) is FloorDiv and type(a.b) is IntImm and a.b.value > 0 and uses_any(a.a, (var,)):
        c, one = a.b, imm(1, b.dtype)
        if kind is LT:
            return a.a, U.mul(b, c), LT
        if kind is LE:
            return a.a, U.mul(U.add(b, one), c), LT
        if kind is GE:
            return a.a, U.mul(b, c), GE
        if kind is GT:
            return a.a, U.mul(U.add(b, one), c), GE
    return None


def _peel_product(x: PrimExpr, c: PrimExpr, b: PrimExpr, kind: type,
                  analyzer: Analyzer) -> tuple[PrimExpr, PrimExpr, type] | None:
    one = imm(1, b.dtype)
    if analyzer.can_prove_less(c, 0):
        c = analyzer.simplify(U.sub(imm(0, c.dtype), c))
        b, kind = U.sub(imm(0, b.dtype), b), _TURNED[kind]
    elif not analyzer.can_prove_greater_equal(c, 1):
        return None
    if kind is EQ:
        exact = analyzer.can_prove(U.eq(U.floormod(b, c), imm(0, b.dtype)))
        return (x, U.floordiv(b, c), EQ) if exact else None
    if kind is LT:
        b, kind = U.sub(b, one), LE
    elif kind is GT:
        b, kind = U.add(b, one), GE
    if kind is LE:
        return x, U.floordiv(b, c), LE
    return x, U.floordiv(U.add(b, U.sub(c, one)), c), GE

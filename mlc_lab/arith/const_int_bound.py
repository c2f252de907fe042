"""Constant bounds of integer expressions: the smallest and largest value they can take.

Bounds are Python ints; `POS_INF` and `NEG_INF` (2**63 - 1 and its negative, as in TVM) stand for
"not bounded" and absorb arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, NamedTuple

from ..ir import dtype as dt
from ..tir.expr import (
    EQ, GE, GT, LE, LT, NE, Add, And, Call, Cast, CmpOp, Div, FloorDiv, FloorMod, IntImm, Let, Max,
    Min, Mod, Mul, Not, Or, PrimExpr, Range, Select, SizeVar, Sub, Var,
)
from ..tir.functor import uses_var
from .expr_util import INDEX_DTYPES, conjuncts, is_data, same, truncdiv

if TYPE_CHECKING:
    from .analyzer import Analyzer

POS_INF = (1 << 63) - 1
NEG_INF = -POS_INF


class ConstIntBound(NamedTuple):
    """min_value <= e <= max_value; `POS_INF` / `NEG_INF` where there is no bound."""

    min_value: int
    max_value: int

    POS_INF = POS_INF
    NEG_INF = NEG_INF


EVERYTHING = (NEG_INF, POS_INF)
BOOL = (0, 1)
_TYPE_BOUNDS: dict[str, tuple[int, int]] = {}


def type_bound(dtype: str) -> tuple[int, int]:
    """What the data type alone says."""
    found = _TYPE_BOUNDS.get(dtype)
    if found is None:
        element = dt.element_of(dtype) if dtype not in ("handle", "void") else dtype
        if dt.is_bool(element):
            found = BOOL
        elif dt.is_integer(element):
            low, high = dt.int_range(element)
            found = (max(low, NEG_INF), min(high, POS_INF))
        else:
            found = EVERYTHING
        _TYPE_BOUNDS[dtype] = found
    return found


def _clamp(value: int) -> int:
    return POS_INF if value >= POS_INF else NEG_INF if value <= NEG_INF else value


def inf_add(a: int, b: int) -> int:
    """a + b with infinities; of two opposite infinities the first wins."""
    if a >= POS_INF or a <= NEG_INF:
        return a
    if b >= POS_INF or b <= NEG_INF:
        return b
    return _clamp(a + b)


def inf_mul(a: int, b: int) -> int:
    """a * b with infinities and 0 * inf = 0."""
    if a == 0 or b == 0:
        return 0
    return _clamp(a * b)


def inf_floordiv(a: int, b: int) -> int:
    """a // b (b != 0) with infinities."""
    if a >= POS_INF or a <= NEG_INF:
        return a if b > 0 else -a
    if b >= POS_INF or b <= NEG_INF:
        return 0 if a == 0 or (a > 0) == (b > 0) else -1
    return a // b


def inf_truncdiv(a: int, b: int) -> int:
    """a / b rounded toward zero (b != 0) with infinities."""
    if a >= POS_INF or a <= NEG_INF:
        return a if b > 0 else -a
    if b >= POS_INF or b <= NEG_INF:
        return 0
    return truncdiv(a, b)


Bound = tuple


class ConstIntBoundAnalyzer:
    """Bounds of expressions under what is known of variables and the constraints in force."""

    def __init__(self, parent: Analyzer) -> None:
        self.parent = parent
        self.vars: dict[PrimExpr, Bound] = {}
        self.known: dict[type, list[tuple[PrimExpr, Bound]]] = {}  # of expressions, by type
        self.memo: dict[PrimExpr, Bound] = {}

    def of(self, e: PrimExpr) -> Bound:
        """(min, max) of an expression."""
        if type(e) is IntImm:
            return (e.value, e.value)
        kind = type(e)
        if kind is Var or kind is SizeVar:
            found = self.vars.get(e)
            if found is None:
                low, high = type_bound(e.dtype)
                found = (0, high) if kind is SizeVar else (low, high)
            return self.constrained(e, found) if self.known else found
        found = self.memo.get(e)
        if found is None:
            visit = _BOUND_OF.get(kind)
            found = visit(self, e) if visit is not None else type_bound(e.dtype)
            if kind in _GROWING and self.wraps(e, found):
                found = type_bound(e.dtype)
            elif self.known:
                found = self.constrained(e, found)
            self.memo[e] = found
        return found

    def wraps(self, e: PrimExpr, bound: Bound) -> bool:
        """Whether the result of an operation, exact if it is in `bound`, may wrap around."""
        dtype, low, high = e.dtype, *bound
        own = _TYPE_BOUNDS.get(dtype) or type_bound(dtype)
        inside = own[0] <= low and high <= own[1]
        if dtype not in INDEX_DTYPES:
            return not inside
        if inside and NEG_INF < low and high < POS_INF:
            return False
        return is_data(e, self.parent.data)

    def constrained(self, e: PrimExpr, bound: Bound) -> Bound:
        """`bound` narrowed by the facts about `e`."""
        for other, (low, high) in self.known.get(type(e), ()):
            if same(e, other):
                bound = (max(bound[0], low), min(bound[1], high))
        return bound

    def bind(self, var: Var, bound: Bound) -> None:
        """Say that a variable lies in `bound`."""
        self.vars[var] = bound
        self.memo.clear()

    def learn(self, facts: list[tuple[PrimExpr, Bound]]) -> None:
        """Say that expressions lie in bounds. The tables are replaced, never changed in place.

        There is one entry for each expression, however many conditions around are about it.
        """
        known = dict(self.known)
        for e, (low, high) in facts:
            entries = known[type(e)] = [*known.get(type(e), ())]
            for n, (other, bound) in enumerate(entries):
                if same(e, other):
                    entries[n] = (other, (max(bound[0], low), min(bound[1], high)))
                    break
            else:
                entries.append((e, (low, high)))
        self.known = known
        self.memo = {}

    def unlearn(self, var: Var) -> None:
        """Drop what was learnt of expressions that use a variable."""
        self.known = {kind: [fact for fact in facts if not uses_var(fact[0], var)]
                      for kind, facts in self.known.items()}
        self.memo = {}

    def enter(self, facts: list[tuple[PrimExpr, Bound]]) -> Callable[[], None]:
        """Take facts for true; the result of the call takes them back."""
        before, kept = self.known, self.memo
        self.learn(facts)

        def leave() -> None:
            self.known, self.memo = before, kept

        return leave


def constraint_bounds(cond: PrimExpr, wraps: Callable[[PrimExpr], bool]
                      ) -> list[tuple[PrimExpr, Bound]]:
    """(expression, bounds) pairs that follow from a conjunction of comparisons with constants.

    `wraps` says whether an expression may wrap around: then no term of it is moved across.
    """
    out: list[tuple[PrimExpr, Bound]] = []
    for item in conjuncts(cond):
        kind = type(item)
        if not isinstance(item, CmpOp) or kind not in _MIRROR:
            continue
        a, b = item.a, item.b
        if type(a) is IntImm and type(b) is not IntImm:
            a, b, kind = b, a, _MIRROR[kind]
        if type(b) is not IntImm or type(a) is IntImm:
            continue
        c = b.value
        bound = {LT: (NEG_INF, c - 1), LE: (NEG_INF, c), GT: (c + 1, POS_INF), GE: (c, POS_INF),
                 EQ: (c, c)}[kind]
        out.append((a, bound))
        if wraps(a):
            continue
        if type(a) is Add and type(a.b) is IntImm:  # x + c1 < c2 also says x < c2 - c1
            out.append((a.a, (inf_add(bound[0], -a.b.value), inf_add(bound[1], -a.b.value))))
        elif type(a) is Sub and type(a.b) is IntImm:
            out.append((a.a, (inf_add(bound[0], a.b.value), inf_add(bound[1], a.b.value))))
        elif type(a) is Mul and type(a.b) is IntImm and a.b.value > 0:
            c1 = a.b.value
            low = bound[0] if bound[0] == NEG_INF else -(-bound[0] // c1)
            out.append((a.a, (low, inf_floordiv(bound[1], c1))))
    return out


_MIRROR = {LT: GT, GT: LT, LE: GE, GE: LE, EQ: EQ}

# ------------------------------------------------------------------------------- by node type


def _add(s: ConstIntBoundAnalyzer, e: Add) -> Bound:
    a, b = s.of(e.a), s.of(e.b)
    return (inf_add(a[0], b[0]), inf_add(a[1], b[1]))


def _sub(s: ConstIntBoundAnalyzer, e: Sub) -> Bound:
    a, b = s.of(e.a), s.of(e.b)
    return (inf_add(a[0], -b[1]), inf_add(a[1], -b[0]))


def _corners(a: Bound, b: Bound, op: Callable[[int, int], int]) -> Bound:
    v = (op(a[0], b[0]), op(a[0], b[1]), op(a[1], b[0]), op(a[1], b[1]))
    return (min(v), max(v))


def _mul(s: ConstIntBoundAnalyzer, e: Mul) -> Bound:
    a = s.of(e.a)
    if type(e.b) is IntImm:
        c = e.b.value
        low, high = inf_mul(a[0], c), inf_mul(a[1], c)
        return (low, high) if c >= 0 else (high, low)
    return _corners(a, s.of(e.b), inf_mul)


def _divisor(b: Bound) -> Bound | None:
    """The divisor's bounds without zero at an end; None if nothing is left or it spans zero."""
    low, high = b
    if low == 0:
        low = 1
    if high == 0:
        high = -1
    if low > high or low <= 0 <= high:
        return None
    return (low, high)


def _floordiv(s: ConstIntBoundAnalyzer, e: FloorDiv) -> Bound:
    a, b = s.of(e.a), _divisor(s.of(e.b))
    if b is None:
        big = max(abs(a[0]), abs(a[1]))
        return (-big, big)
    return _corners(a, b, inf_floordiv)


def _div(s: ConstIntBoundAnalyzer, e: Div) -> Bound:
    if not dt.is_integer(e.dtype):
        return EVERYTHING
    a, b = s.of(e.a), _divisor(s.of(e.b))
    if b is None:
        big = max(abs(a[0]), abs(a[1]))
        return (-big, big)
    return _corners(a, b, inf_truncdiv)


def _floormod(s: ConstIntBoundAnalyzer, e: FloorMod) -> Bound:
    a, b = s.of(e.a), s.of(e.b)
    if b[0] > 0:
        cap = inf_add(b[1], -1)
        if a[0] >= 0:
            if a[1] < b[0]:
                return a
            cap = min(a[1], cap)
        elif b[0] == b[1] and a[0] > NEG_INF and a[1] < POS_INF and a[0] // b[0] == a[1] // b[0]:
            return (a[0] % b[0], a[1] % b[0])
        # 8 * x % 32 is 24 at most: only every coeff-th number from base on occurs
        coeff, base = s.parent.modular.of(e)
        if coeff > 1 and base <= cap < POS_INF:
            return (base, cap - (cap - base) % coeff)
        return (0, cap)
    low, high = b
    return (min(0, inf_add(low, 1)), max(0, inf_add(high, -1)))


def _mod(s: ConstIntBoundAnalyzer, e: Mod) -> Bound:
    a, b = s.of(e.a), s.of(e.b)
    big = inf_add(max(abs(b[0]), abs(b[1])), -1)
    if a[0] >= 0:
        if b[0] > 0 and a[1] < b[0]:
            return a
        return (0, min(a[1], big))
    return (max(a[0], -big) if a[0] <= 0 else 0, 0 if a[1] <= 0 else min(a[1], big))


def _min(s: ConstIntBoundAnalyzer, e: Min) -> Bound:
    a, b = s.of(e.a), s.of(e.b)
    return (min(a[0], b[0]), min(a[1], b[1]))


def _max(s: ConstIntBoundAnalyzer, e: Max) -> Bound:
    a, b = s.of(e.a), s.of(e.b)
    return (max(a[0], b[0]), max(a[1], b[1]))


def _select(s: ConstIntBoundAnalyzer, e: Select) -> Bound:
    a, b = s.of(e.true_value), s.of(e.false_value)
    return (min(a[0], b[0]), max(a[1], b[1]))


def _cast(s: ConstIntBoundAnalyzer, e: Cast) -> Bound:
    own = type_bound(e.dtype)
    if own is EVERYTHING or not (dt.is_integer(e.value.dtype) or dt.is_bool(e.value.dtype)):
        return own
    inner = s.of(e.value)
    if own[0] <= inner[0] and inner[1] <= own[1]:
        # a bound of uint64 that is infinite may be above the largest int64
        if inner[1] < POS_INF or dt.is_int(e.value.dtype):
            return inner
    return own


def _call(s: ConstIntBoundAnalyzer, e: Call) -> Bound:
    name = getattr(e.op, "name", None)
    if name == "tir.if_then_else":
        a, b = s.of(e.args[1]), s.of(e.args[2])
        return (min(a[0], b[0]), max(a[1], b[1]))
    if name == "tir.likely":
        return s.of(e.args[0])
    if name == "tir.shift_right":
        return _corners(s.of(e.args[0]), s.of(e.args[1]), _shift_right) \
            if s.of(e.args[1])[0] >= 0 else type_bound(e.dtype)
    if name == "tir.shift_left":
        a, b = s.of(e.args[0]), s.of(e.args[1])
        if a[0] >= 0 and 0 <= b[0] and b[1] < dt.bits_of(e.dtype):
            bound = _corners(a, b, lambda x, n: inf_mul(x, 1 << n))
            return bound if bound[1] <= type_bound(e.dtype)[1] else type_bound(e.dtype)
    if name == "tir.bitwise_and":
        a, b = s.of(e.args[0]), s.of(e.args[1])
        if b[0] >= 0:
            return (0, min(b[1], a[1]) if a[0] >= 0 else b[1])
        if a[0] >= 0:
            return (0, a[1])
    return type_bound(e.dtype)


def _shift_right(a: int, n: int) -> int:
    return inf_floordiv(a, 1 << n) if n < 64 else (0 if a >= 0 else -1)


def _let(s: ConstIntBoundAnalyzer, e: Let) -> Bound:
    if e.var not in s.vars:
        s.vars[e.var] = s.of(e.value)
    return s.of(e.body)


_BOUND_OF: dict[type, Callable] = {
    Add: _add, Sub: _sub, Mul: _mul, FloorDiv: _floordiv, FloorMod: _floormod, Div: _div,
    Mod: _mod, Min: _min, Max: _max, Select: _select, Cast: _cast, Call: _call, Let: _let,
    **{kind: (lambda s, e: BOOL) for kind in (EQ, NE, LT, LE, GT, GE, And, Or, Not)},
}


#: operations whose result may be larger than what goes in
_GROWING = frozenset((Add, Sub, Mul, Div, FloorDiv))


def range_bound(s: ConstIntBoundAnalyzer, rng: Range) -> Bound:
    """Bounds of a variable that runs over `rng`."""
    low = s.of(rng.min)
    extent = s.of(rng.extent)
    return (low[0], inf_add(inf_add(low[1], extent[1]), -1))

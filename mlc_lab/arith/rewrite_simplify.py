"""The rewrite simplifier: children first, then the rules of `rules.py` for the node itself.

Rules that compare operands ask the analyzer for constant bounds and modular sets of their
difference, so what is known of variables and the constraints in force is used everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..ir import dtype as dt
from ..tir import op
from ..tir.expr import (
    EQ, GE, GT, LE, LT, NE, Add, And, Broadcast, BufferLoad, Call, Cast, CmpOp, Div, FloatImm,
    FloorDiv, FloorMod, IntImm, Let, Max, Min, Mod, Mul, Not, Or, PrimExpr, Ramp, Reduce, Select,
    SizeVar, StringImm, Sub, Var,
)
from ..tir.numbers import shift_left, shift_right
from .const_int_bound import EVERYTHING, NEG_INF, POS_INF, inf_add
from .expr_util import (
    ARITHMETIC, BUILDERS, FALSE, INDEX_DTYPES, TRUE, DoesNotFit, imm, logical_and, logical_not,
    logical_or, negate, same, sub,
)

if TYPE_CHECKING:
    from .analyzer import Analyzer
    from .literals import Literals

#: (node type, type of a, type of b) -> compiled rules (or None where no rule fits)
_RULES: dict[tuple, Callable | None] = {}
_VECTORS = (Ramp, Broadcast)
#: operations whose rules hold for numbers that wrap around; and those whose rules do not
_RING = frozenset(ARITHMETIC)
_ORDERED = frozenset((Min, Max, FloorDiv, Div))
_MISSING: Any = object()


def _rules(key: tuple) -> Callable | None:
    found = _RULES.get(key, _MISSING)
    if found is _MISSING:
        from .pattern import matcher

        found = _RULES[key] = matcher(*key)
    return found


class RewriteSimplifier:
    """Simplifies by rules. One per Analyzer; results are remembered until a fact changes."""

    def __init__(self, parent: Analyzer) -> None:
        self.parent = parent
        self.memo: dict[PrimExpr, PrimExpr] = {}
        self.var_map: dict[PrimExpr, PrimExpr] = {}
        self.literals: Literals = parent.literals

    # ------------------------------------------------------------------- the walk

    def visit(self, e: PrimExpr) -> PrimExpr:
        """The simplified expression (the same object if there was nothing to do)."""
        kind = type(e)
        if kind is IntImm:
            return e
        if kind is Var or kind is SizeVar:
            found = self.var_map.get(e)
            return e if found is None else found
        memo = self.memo
        found = memo.get(e)
        if found is None:
            handler = _HANDLERS.get(kind)
            found = handler(self, e) if handler is not None else e.map_children(self.visit)
            memo[e] = found
            if found is not e:
                memo[found] = found
        return found

    def apply(self, cls: type, a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
        """The result of the first rule for cls(a, b) that applies."""
        ta, tb = type(a), type(b)
        key = (cls, ta, tb)
        rule = _RULES.get(key, _MISSING)
        if rule is _MISSING:
            rule = _rules(key)
        if rule is None:
            return None
        if cls is And or cls is Or:
            if cls is Or and (_is_of_floats(a) or _is_of_floats(b)) and not same(a, b):
                return None  # with a NaN neither x < y nor y <= x
        elif a.dtype not in INDEX_DTYPES:
            if ta not in _VECTORS and tb not in _VECTORS or dt.element_of(a.dtype) not in (
                    INDEX_DTYPES):
                return None
        elif self.parent.data_met and self._may_be_wrong(cls, a, b):
            return None
        try:
            return rule(self, a, b)
        except DoesNotFit:
            return None

    def _may_be_wrong(self, cls: type, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether the rules for cls(a, b) may be wrong as its operands may wrap around.

        Rules for sums and products hold in modular arithmetic, too. Those that move terms into or
        out of a comparison, minimum or division do not.
        """
        if cls in _RING:
            if type(a) not in _ORDERED and type(b) not in _ORDERED:
                return False
            inner = [c for e in (a, b) if isinstance(e, (Min, Max, FloorDiv, Div))
                     for c in (e.a, e.b)]
            return self.parent.may_wrap(cls(a, b), a, b, *inner)
        return self.parent.may_wrap(a, b)

    # ------------------------------------------------------------------- questions rules ask

    def difference(self, a: PrimExpr, b: PrimExpr) -> tuple[int, int]:
        """Constant bounds of a - b."""
        bound = self.parent.bounds.of
        if self.parent.data_met and self.parent.may_wrap(Sub(a, b), a, b):
            return self._wrapping_difference(a, b)
        if type(b) is IntImm:
            low, high = bound(a)
            c = b.value
            return (low if low == NEG_INF else low - c, high if high == POS_INF else high - c)
        if type(a) is IntImm:
            low, high = bound(b)
            c = a.value
            return (NEG_INF if high == POS_INF else c - high,
                    POS_INF if low == NEG_INF else c - low)
        try:
            return bound(self.visit(sub(a, b)))
        except DoesNotFit:
            return (NEG_INF, POS_INF)

    def _wrapping_difference(self, a: PrimExpr, b: PrimExpr) -> tuple[int, int]:
        """`difference` where a - b may wrap around: from the bounds of each."""
        if same(a, b):
            return (0, 0)
        known = EVERYTHING
        if type(a) not in ARITHMETIC and type(b) not in ARITHMETIC:
            known = self.parent.bounds.constrained(Sub(a, b), EVERYTHING)
        (low, high), (low2, high2) = self.parent.bounds.of(a), self.parent.bounds.of(b)
        return (max(known[0], inf_add(low, -high2)), min(known[1], inf_add(high, -low2)))

    def never_equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether modular sets tell that a != b."""
        if type(b) is IntImm:
            coeff, base = self.parent.modular.of(a)
            return coeff > 1 and (b.value - base) % coeff != 0
        if type(a) is IntImm or self.parent.data_met and self.parent.may_wrap(Sub(a, b), a, b):
            return False
        try:
            coeff, base = self.parent.modular.of(self.visit(sub(a, b)))
        except DoesNotFit:
            return False
        return coeff > 1 and base != 0

    def ge(self, a: PrimExpr, b: Any) -> bool:
        """Whether a >= b is certain."""
        if type(b) is int:
            return self._bound(a)[0] >= b
        return self.difference(a, b)[0] >= 0

    def lt(self, a: PrimExpr, b: Any) -> bool:
        """Whether a < b is certain."""
        if type(b) is int:
            return self._bound(a)[1] < b
        return self.difference(a, b)[1] < 0

    def _bound(self, e: PrimExpr) -> tuple[int, int]:
        return self.parent.bounds.of(e)

    def eq(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether a and b are equal for certain."""
        if same(a, b):
            return True
        return self.difference(a, b) == (0, 0)

    def always_le(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether a <= b is certain; the test of min and max."""
        return self.difference(a, b)[1] <= 0

    def has_remainder(self, e: PrimExpr, c: int) -> bool:
        """Whether e % c is the same for all values of e."""
        return self.parent.modular.of(e).coeff % c == 0

    def remainder(self, e: PrimExpr, c: int) -> PrimExpr:
        """That remainder."""
        return imm(self.parent.modular.of(e).base % c, e.dtype)

    def is_negative_product(self, e: PrimExpr) -> bool:
        """Whether e is a product with a negative constant: kept behind a minus sign."""
        return type(e) is Mul and type(e.b) is IntImm and e.b.value < 0

    def is_extremum(self, e: PrimExpr) -> bool:
        """Whether e is a min or max: two of them keep their order."""
        return type(e) is Min or type(e) is Max

    def literal(self, e: PrimExpr) -> PrimExpr:
        """True or False where a constraint in force says just that of `e`."""
        if self.literals.has(e):
            return TRUE
        return FALSE if self.literals.has(negate(e)) else e


# ------------------------------------------------------------------------------- handlers


def _rebuilt(e: Any, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return e if a is e.a and b is e.b else type(e)(a, b)


def _arith(s: RewriteSimplifier, e: Any) -> PrimExpr:
    a, b = s.visit(e.a), s.visit(e.b)
    cls = type(e)
    ta, tb = type(a), type(b)
    if ta is IntImm or tb is IntImm:
        try:
            folded: Any = BUILDERS[cls](a, b)
        except DoesNotFit:
            folded = op.fold_binary(cls, a, b) if ta is tb else None
            return _rebuilt(e, a, b) if folded is None else folded
        if type(folded) is not cls or folded.a is not a:
            return folded
    elif ta is FloatImm or tb is FloatImm:
        if type(b) is FloatImm and b.value == 0 and cls in (Div, Mod):
            return _rebuilt(e, a, b)
        folded = op.fold_binary(cls, a, b)
        if folded is not None:
            return folded
    result = s.apply(cls, a, b)
    if result is None and cls is Sub and dt.is_integer(a.dtype) and same(a, b):
        return op.const(0, a.dtype)  # of any type of integers, whether it wraps around or not
    return _rebuilt(e, a, b) if result is None else result


def _less(s: RewriteSimplifier, a: PrimExpr, b: PrimExpr, e: LT | None) -> PrimExpr:
    """a < b for simplified a and b."""
    if type(a) is type(b) and type(a) in (IntImm, FloatImm):
        return op.less(a, b)
    if a.dtype in INDEX_DTYPES:
        low, high = s.difference(a, b)
        if high < 0:
            return TRUE
        if low >= 0:
            return FALSE
    result = s.apply(LT, a, b)
    if result is not None:
        return result
    result = e if e is not None and e.a is a and e.b is b else LT(a, b)
    return s.literal(result) if s.literals else result


def _lt(s: RewriteSimplifier, e: LT) -> PrimExpr:
    return _less(s, s.visit(e.a), s.visit(e.b), e)


def _gt(s: RewriteSimplifier, e: GT) -> PrimExpr:
    return s.visit(LT(e.b, e.a))


def _le(s: RewriteSimplifier, e: LE) -> PrimExpr:
    if not _comparable(e.a.dtype):  # not (b < a) is no synonym where there are NaNs
        return _float_compare(s, e)
    a, b = s.visit(e.a), s.visit(e.b)
    if a.dtype in INDEX_DTYPES and not (type(a) is IntImm and type(b) is IntImm):
        low, high = s.difference(a, b)
        if high <= 0:
            return TRUE
        if low > 0:
            return FALSE
    result = _less(s, b, a, None)
    if type(result) is not LT:
        return s.visit(logical_not(result))
    a, b = result.b, result.a
    if a.dtype in INDEX_DTYPES:
        if s.difference(a, b)[0] >= 0:
            return s.visit(EQ(a, b))
        if s.never_equal(a, b):
            return _less(s, a, b, None)
    result = e if a is e.a and b is e.b else LE(a, b)
    return s.literal(result) if s.literals else result


def _ge(s: RewriteSimplifier, e: GE) -> PrimExpr:
    return s.visit(LE(e.b, e.a))


def _comparable(dtype: str) -> bool:
    return dtype in INDEX_DTYPES or not dt.is_float(dtype)


def _is_of_floats(e: PrimExpr) -> bool:
    return isinstance(e, (LT, LE, EQ, NE)) and not _comparable(e.a.dtype)


def _float_compare(s: RewriteSimplifier, e: CmpOp) -> PrimExpr:
    a, b = s.visit(e.a), s.visit(e.b)
    folded = op.fold_comparison(type(e), a, b)
    return _rebuilt(e, a, b) if folded is None else folded


def _eq(s: RewriteSimplifier, e: EQ) -> PrimExpr:
    a, b = s.visit(e.a), s.visit(e.b)
    if type(a) is type(b) and type(a) in (IntImm, FloatImm):
        return op.equal(a, b)
    if type(a) is StringImm and type(b) is StringImm:
        return TRUE if a.value == b.value else FALSE
    if a.dtype in INDEX_DTYPES:
        low, high = s.difference(a, b)
        if low == 0 and high == 0:
            return TRUE
        if low > 0 or high < 0:
            return FALSE
        if s.never_equal(a, b):
            return FALSE
    result = s.apply(EQ, a, b)
    if result is not None:
        return result
    if dt.is_integer(a.dtype) and dt.lanes_of(a.dtype) == 1 and same(a, b):
        return TRUE
    result = _rebuilt(e, a, b)
    return s.literal(result) if s.literals else result


def _ne(s: RewriteSimplifier, e: NE) -> PrimExpr:
    if not _comparable(e.a.dtype):
        return _float_compare(s, e)
    result = s.visit(EQ(e.a, e.b))
    if type(result) is EQ:
        return e if result.a is e.a and result.b is e.b else NE(result.a, result.b)
    return s.visit(logical_not(result))


def _and(s: RewriteSimplifier, e: And) -> PrimExpr:
    a, b = s.visit(e.a), s.visit(e.b)
    if type(a) is IntImm or type(b) is IntImm:
        return logical_and(a, b)
    result = s.apply(And, a, b)
    if result is not None:
        return result
    result = _rebuilt(e, a, b)
    return s.literal(result) if s.literals else result


def _or(s: RewriteSimplifier, e: Or) -> PrimExpr:
    a, b = s.visit(e.a), s.visit(e.b)
    if type(a) is IntImm or type(b) is IntImm:
        return logical_or(a, b)
    result = s.apply(Or, a, b)
    if result is not None:
        return result
    result = _rebuilt(e, a, b)
    return s.literal(result) if s.literals else result


def _not(s: RewriteSimplifier, e: Not) -> PrimExpr:
    a = s.visit(e.a)
    if type(a) is IntImm:
        return FALSE if a.value else TRUE
    if _is_of_floats(a):
        return e if a is e.a else Not(a)
    rule = _rules((Not, type(a), None))
    result = rule(s, a, None) if rule is not None else None
    if result is not None:
        return result
    return e if a is e.a else Not(a)


def _choice(s: RewriteSimplifier, cond: PrimExpr, a: PrimExpr, b: PrimExpr) -> tuple:
    """Both sides of a choice, each simplified knowing which way the condition went."""
    with s.parent.constraint_scope(cond):
        a = s.visit(a)
    with s.parent.constraint_scope(negate(cond)):
        b = s.visit(b)
    return a, b


def _select(s: RewriteSimplifier, e: Select) -> PrimExpr:
    cond = s.visit(e.condition)
    if type(cond) is IntImm:
        return s.visit(e.true_value if cond.value else e.false_value)
    if cond.dtype != "bool":
        a, b = s.visit(e.true_value), s.visit(e.false_value)
    else:
        a, b = _choice(s, cond, e.true_value, e.false_value)
    if same(a, b):
        return a
    if cond is e.condition and a is e.true_value and b is e.false_value:
        return e
    return Select(cond, a, b)


def _cast(s: RewriteSimplifier, e: Cast) -> PrimExpr:
    value = s.visit(e.value)
    if value.dtype not in INDEX_DTYPES:
        s.parent.data_met = True
    if type(value) in (IntImm, FloatImm, Broadcast) or value.dtype == e.dtype:
        whole = _whole(value, e.dtype)
        return op.cast(value, e.dtype) if whole is None else whole
    return e if value is e.value else Cast(e.dtype, value)


def _whole(value: PrimExpr, dtype: str) -> PrimExpr | None:
    """A floating point constant as an integer, rounded toward zero; None where it does not fit."""
    if type(value) is not FloatImm or not (dt.is_integer(dtype) or dt.is_bool(dtype)):
        return None
    if value.value != value.value or abs(value.value) >= 2.0 ** 63:
        return None
    if dt.is_bool(dtype):
        return TRUE if value.value else FALSE
    low, high = dt.int_range(dtype)
    number = int(value.value)
    return IntImm(dtype, number) if low <= number <= high else None


def _call(s: RewriteSimplifier, e: Call) -> PrimExpr:
    name = getattr(e.op, "name", None)
    if name == "tir.if_then_else":
        cond = s.visit(e.args[0])
        if type(cond) is IntImm:
            return s.visit(e.args[1] if cond.value else e.args[2])
        a, b = _choice(s, cond, e.args[1], e.args[2])
        if same(a, b):
            return a
        if cond is e.args[0] and a is e.args[1] and b is e.args[2]:
            return e
        return Call(e.dtype, e.op, (cond, a, b))
    s.parent.data_met = True
    new = e.map_children(s.visit)
    args = new.args
    if name == "tir.likely" and type(args[0]) is IntImm:
        return args[0]
    if name in _FOLD and all(type(a) is IntImm for a in args):
        try:
            return imm(_FOLD[name](dt.bits_of(e.dtype), *(a.value for a in args)), e.dtype)
        except DoesNotFit:
            return new
    if name == "tir.clz" and type(args[0]) is IntImm and args[0].value >= 0:
        return imm(dt.bits_of(args[0].dtype) - args[0].value.bit_length(), e.dtype)
    if name == "tir.shift_left" and type(args[1]) is IntImm and e.dtype in INDEX_DTYPES:
        if 0 <= args[1].value < 31:
            return s.visit(Mul(args[0], IntImm(e.dtype, 1 << args[1].value)))
    return new


#: (bits of the type, a, b) -> the value
_FOLD: dict[str, Callable[[int, int, int], int]] = {
    "tir.shift_left": lambda bits, a, n: shift_left(bits)(a, n),
    "tir.shift_right": lambda bits, a, n: shift_right(bits)(a, n),
    "tir.bitwise_and": lambda bits, a, b: a & b, "tir.bitwise_or": lambda bits, a, b: a | b,
    "tir.bitwise_xor": lambda bits, a, b: a ^ b,
}


def _let(s: RewriteSimplifier, e: Let) -> PrimExpr:
    value = s.visit(e.value)
    if type(value) in (IntImm, FloatImm, Var, SizeVar) or value.dtype in INDEX_DTYPES and (
            type(value) in _INLINE):
        s.parent.bind(e.var, value, allow_override=True)
        return s.visit(e.body)
    s.parent.name_data(e.var, value)
    body = s.visit(e.body)
    return e if value is e.value and body is e.body else Let(e.var, value, body)


_INLINE = {Add, Sub, Mul, FloorDiv, FloorMod, Min, Max}


def _load(s: RewriteSimplifier, e: BufferLoad) -> PrimExpr:
    s.parent.data_met = True
    return e.map_children(s.visit)


def _reduce(s: RewriteSimplifier, e: Reduce) -> PrimExpr:
    return e.map_children(lambda c: s.visit(c) if isinstance(c, PrimExpr) else c)


_HANDLERS: dict[type, Callable[[RewriteSimplifier, Any], PrimExpr]] = {
    **dict.fromkeys((Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max), _arith),
    LT: _lt, GT: _gt, LE: _le, GE: _ge, EQ: _eq, NE: _ne, And: _and, Or: _or, Not: _not,
    Select: _select, Cast: _cast, Call: _call, Let: _let, BufferLoad: _load, Reduce: _reduce,
    FloatImm: lambda s, e: e, StringImm: lambda s, e: e,
}

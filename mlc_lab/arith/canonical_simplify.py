"""The canonical simplifier: integer expressions as sums of split terms.

    sum   = term + ... + term + base                                  (base an integer)
    term  = ((index % upper) // lower) * scale                        (upper may be infinite)

Dividing such a sum by a constant, or taking its remainder, splits it into the terms that are
divisible and those that are not; `x // 4 * 4 + x % 4` becomes `x` because neighbouring terms of one
index join. Written out, a sum has its positive terms first, by falling scale, then the
constant, then what is subtracted: the form in which TVM prints schedules.

Everything else (comparisons, min and max, symbolic divisors) follows the rules of the rewrite
simplifier, from which this class derives.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ..tir.expr import (
    LT, Add, BufferLoad, Cast, Div, FloorDiv, FloorMod, IntImm, Mod, Mul, PrimExpr, SizeVar, Sub,
    Var,
)
from . import expr_util as U
from .expr_util import INDEX_DTYPES, DoesNotFit, imm, same
from .rewrite_simplify import _HANDLERS, RewriteSimplifier, _arith, _less, _rebuilt

if TYPE_CHECKING:
    from ..tir.expr import ExprLike

#: upper factor of a term whose index is not reduced
INF = (1 << 63) - 1
TRUNC, FLOOR = 0, 1

#: (index, lower, upper, scale, mode)
Term = tuple


class Sum:
    """A sum of terms under construction; the caller of a handler may change its result."""

    __slots__ = ("dtype", "terms", "base", "summed", "places")

    def __init__(self, dtype: str, terms: list[Term], base: int, summed: bool = False) -> None:
        self.dtype = dtype
        self.terms = terms
        self.base = base
        self.summed = summed  # whether it came from + or -: then -x is written 0 - x
        #: of a long sum: positions of the terms by the `outline` of their index
        self.places: dict[Any, list[int]] | None = None

    def scaled(self, factor: int) -> "Sum":
        """This sum times a constant."""
        return Sum(self.dtype, [(i, lo, up, s * factor, m) for i, lo, up, s, m in self.terms],
                   self.base * factor, self.summed)

    def divided(self, by: int) -> "Sum":
        """This sum divided by a constant that divides every scale and the base."""
        return Sum(self.dtype, [(i, lo, up, s // by, m) for i, lo, up, s, m in self.terms],
                   self.base // by, self.summed)

    def add_term(self, new: Term) -> None:
        """Add one term: next to those of its index, finer splits last; equal splits join."""
        index, lower, upper, scale, mode = new
        if scale == 0:
            return
        terms = self.terms
        if len(terms) < _LONG:
            place = 0
            for old in terms:
                if old[0] is index or same(old[0], index):
                    break
                place += 1
        else:
            place = self.place_of(index)
        while place < len(terms):
            old = terms[place]
            if not (old[0] is index or same(old[0], index)) or lower > old[1]:
                terms.insert(place, new)
                self.places = None
                return
            if old[1] == lower and old[2] == upper and old[4] == mode:
                terms[place] = (index, lower, upper, scale + old[3], mode)
                return
            place += 1
        terms.append(new)

    def place_of(self, index: PrimExpr) -> int:
        """The position of the first term of an index in a long sum; where there is none, the end,
        which is noted as the position of the term to be added."""
        terms, places = self.terms, self.places
        if places is None:
            places = self.places = {}
            for place, term in enumerate(terms):
                places.setdefault(outline(term[0]), []).append(place)
        candidates = places.setdefault(outline(index), [])
        for place in candidates:
            if same(terms[place][0], index):
                return place
        candidates.append(len(terms))
        return len(terms)

    def add(self, other: "Sum", factor: int = 1) -> None:
        """Add another sum times a constant."""
        for index, lower, upper, scale, mode in other.terms:
            self.add_term((index, lower, upper, scale * factor, mode))
        self.base += other.base * factor


#: sums of so many terms are searched by outline
_LONG = 24


def outline(e: PrimExpr, levels: int = 3) -> Any:
    """A key that equal expressions share (others may, too); cheaper than a hash."""
    if type(e) is IntImm:
        return e.value
    kind = type(e)
    if kind is Var or kind is SizeVar:
        return id(e)
    parts = [outline(item, levels - 1) for item in e.children()] if levels else ()
    return (kind, id(e.buffer) if type(e) is BufferLoad else 0, *parts)


def _join_splits(terms: list[Term]) -> list[Term]:
    """Join neighbours of one index: (x % (c*s) // c) * (c) + (x % c) is (x % (c*s))."""
    terms = list(terms)
    count = len(terms)
    for i in range(count):
        index, lower, upper, scale, mode = terms[i]
        if scale == 0:
            continue
        for j in range(i + 1, count):
            other, low2, up2, scale2, mode2 = terms[j]
            if not (other is index or same(other, index)) or upper < low2:
                break
            if mode != mode2:
                continue
            if upper == up2 and lower == low2:
                terms[j] = (other, low2, up2, scale + scale2, mode)
                terms[i] = (index, lower, upper, 0, mode)
                break
            if (lower == up2 and scale2 != 0 and scale % scale2 == 0
                    and lower == scale // scale2 * low2):
                terms[j] = (other, low2, upper, scale2, mode)
                terms[i] = (index, lower, upper, 0, mode)
                break
    return [t for t in terms if t[3] != 0]


_ORDER = lambda t: (-t[3], -t[1], -t[2], -t[4])


def split_text(term: Term, dtype: str, factor: int = 1) -> PrimExpr:
    """A term, times a constant, as an expression."""
    index, lower, upper, scale, mode = term
    scale *= factor
    if scale == 0:
        return imm(0, dtype)
    out = index
    if upper != INF:
        out = (U.floormod if mode == FLOOR else U.mod)(out, imm(upper, dtype))
    if lower != 1:
        out = (U.floordiv if mode == FLOOR else U.div)(out, imm(lower, dtype))
    return out if scale == 1 else U.mul(out, imm(scale, dtype))


def write_sum(dtype: str, terms: list[Term], base: int) -> PrimExpr:
    """Terms (already joined) in order as an expression."""
    if len(terms) > 1:
        terms = sorted(terms, key=_ORDER)
    out: PrimExpr | None = None
    negative = []
    for term in terms:
        if term[3] > 0:
            text = split_text(term, dtype)
            out = text if out is None else Add(out, text)
        else:
            negative.append(term)
    if base > 0:
        out = imm(base, dtype) if out is None else Add(out, imm(base, dtype))
    for term in negative:
        if out is None:
            out = imm(0, dtype)
        out = Sub(out, split_text(term, dtype, -1))
    if base < 0:
        out = imm(base, dtype) if out is None else Sub(out, imm(-base, dtype))
    return imm(0, dtype) if out is None else out


class CanonicalSimplifier(RewriteSimplifier):
    """Simplifies to canonical form. `mutate` answers with a Sum where it can, `visit` never."""

    def visit(self, e: PrimExpr) -> PrimExpr:
        """The canonical form of an expression."""
        kind = type(e)
        if kind is IntImm:
            return e
        if kind is Var or kind is SizeVar:
            found = self.var_map.get(e)
            return e if found is None else found
        memo = self.memo
        found = memo.get(e)
        if found is None:
            handler = _MUTATE.get(kind)
            if handler is not None and e.dtype in INDEX_DTYPES:
                try:
                    found = self.normal(handler(self, e))
                except DoesNotFit:
                    found = self.in_parts(e)
            else:
                handler = _CANONICAL.get(kind)
                found = handler(self, e) if handler is not None else e.map_children(self.visit)
            memo[e] = found
            if found is not e:
                memo[found] = found
        return found

    def in_parts(self, e: PrimExpr) -> PrimExpr:
        """An expression whose constants do not fit into its type when joined: its sum stays as
        it is written, each part canonical."""
        if type(e) is Cast:
            return e
        if not isinstance(e, (Add, Sub)):
            return _arith(self, e)
        a, b = [self.in_parts(item) if type(item) is Add or type(item) is Sub else self.visit(item)
                for item in (e.a, e.b)]
        return e if a is e.a and b is e.b else type(e)(a, b)

    def mutate(self, e: PrimExpr) -> Any:
        """A Sum for what is linear, otherwise the canonical expression."""
        handler = _MUTATE.get(type(e))
        if handler is not None and e.dtype in INDEX_DTYPES:
            return handler(self, e)
        return self.visit(e)

    def normal(self, value: Any) -> PrimExpr:
        """A Sum written out; an expression as it is."""
        if type(value) is not Sum:
            return value
        terms = value.terms
        if len(terms) == 1 and value.base == 0 and not (value.summed and terms[0][3] < 0):
            return split_text(terms[0], value.dtype)
        if len(terms) > 1:
            terms = _join_splits(terms)
        else:
            terms = [t for t in terms if t[3] != 0]
        return write_sum(value.dtype, terms, value.base)

    def to_sum(self, value: Any) -> Sum:
        """A fresh Sum that may be changed."""
        if type(value) is Sum:
            return Sum(value.dtype, list(value.terms), value.base, value.summed)
        if type(value) is IntImm:
            return Sum(value.dtype, [], value.value)
        return Sum(value.dtype, [(value, 1, INF, 1, FLOOR)], 0)

    def to_term(self, value: Any) -> Term:
        """One term that equals `value`."""
        if type(value) is Sum:
            if len(value.terms) == 1 and value.base == 0:
                return value.terms[0]
            value = self.normal(value)
        return (value, 1, INF, 1, FLOOR)

    def bound_of(self, value: Any) -> tuple[int, int]:
        """Constant bounds of a Sum or expression."""
        return self.parent.bounds.of(self.normal(value))

    def wraps(self, e: PrimExpr) -> bool:
        """Whether an expression may wrap around, so that its terms cannot be divided one by one."""
        return self.parent.data_met and self.parent.may_wrap(e)

    # ------------------------------------------------------------------- splitting one term

    def in_mode(self, term: Term, mode: int, dtype: str) -> Term:
        """The term with its divisions of the given kind."""
        index, lower, upper, scale, old = term
        if old == mode:
            return term
        if (lower == 1 and upper == INF) or type(index) is IntImm or (
                self.parent.bounds.of(index)[0] >= 0):
            return (index, lower, upper, scale, mode)
        return (split_text(term, dtype), 1, INF, 1, mode)

    def divide_term(self, term: Term, c: int, mode: int, dtype: str) -> Sum:
        """term // c for a constant c > 0."""
        index, lower, upper, scale, _ = term = self.in_mode(term, mode, dtype)
        if scale % c == 0:
            return Sum(dtype, [(index, lower, upper, scale // c, mode)], 0)
        if scale > 0 and c % scale == 0:
            lower2 = lower * (c // scale)
            if upper == INF or upper % lower2 == 0:
                return Sum(dtype, [(index, lower2, upper, 1, mode)], 0)
            if upper <= lower2:
                return Sum(dtype, [], 0)
            text = (U.floormod if mode == FLOOR else U.mod)(index, imm(upper, dtype))
            return Sum(dtype, [(text, lower2, INF, 1, mode)], 0)
        return Sum(dtype, [(split_text(term, dtype), c, INF, 1, mode)], 0)

    def reduce_term(self, term: Term, c: int, mode: int, dtype: str) -> Sum:
        """term % c for a constant c > 0."""
        index, lower, upper, scale, _ = term = self.in_mode(term, mode, dtype)
        if scale % c == 0:
            return Sum(dtype, [], 0)
        if scale > 0 and c % scale == 0:
            upper2 = lower * (c // scale)
            if upper == INF or upper % upper2 == 0:
                if upper2 < upper and upper != INF:
                    cls = FloorMod if mode == FLOOR else Mod
                    inner = self.mutate(cls(index, imm(upper2, dtype)))
                    if lower != 1:
                        return self.divide_term(self.to_term(inner), lower, mode,
                                                dtype).scaled(scale)
                    return self.to_sum(inner).scaled(scale)
                return Sum(dtype, [(index, lower, upper2, scale, mode)], 0)
            if upper2 % upper == 0:
                return Sum(dtype, [term], 0)
        return Sum(dtype, [(split_text(term, dtype), 1, c, 1, mode)], 0)

    def separate(self, value: Sum, c: int) -> tuple[Sum, Sum]:
        """The terms divisible by c and the others."""
        whole, rest = [], []
        for term in value.terms:
            (whole if term[3] % c == 0 else rest).append(term)
        base, left = (value.base, 0) if value.base % c == 0 else (0, value.base)
        return Sum(value.dtype, whole, base, True), Sum(value.dtype, rest, left, True)


# ------------------------------------------------------------------------------- + - *


def _add(s: CanonicalSimplifier, e: Add) -> Any:
    a, b = s.mutate(e.a), s.mutate(e.b)
    out = a if type(a) is Sum else s.to_sum(a)
    kind = type(b)
    if kind is IntImm:
        out.base += b.value
    elif kind is Sum:
        out.add(b)
    else:
        out.add_term((b, 1, INF, 1, FLOOR))
    out.summed = True
    return out


def _sub(s: CanonicalSimplifier, e: Sub) -> Any:
    a, b = s.mutate(e.a), s.mutate(e.b)
    out = a if type(a) is Sum else s.to_sum(a)
    kind = type(b)
    if kind is IntImm:
        out.base -= b.value
    elif kind is Sum:
        out.add(b, -1)
    else:
        out.add_term((b, 1, INF, -1, FLOOR))
    out.summed = True
    return out


def _mul(s: CanonicalSimplifier, e: Mul) -> Any:
    a, b = s.mutate(e.a), s.mutate(e.b)
    if type(a) is IntImm:
        a, b = b, a
    if type(b) is IntImm:
        if type(a) is IntImm:
            return imm(a.value * b.value, a.dtype)
        return s.to_sum(a).scaled(b.value)
    a, b = s.normal(a), s.normal(b)
    return _product(e, a, b)


def _factors(e: PrimExpr, out: list[PrimExpr]) -> None:
    if type(e) is Mul:
        _factors(e.a, out)
        _factors(e.b, out)
    else:
        out.append(e)


def _product(e: Mul, a: PrimExpr, b: PrimExpr) -> Any:
    """a * b of two non-constants: constant factors go last."""
    factors: list[PrimExpr] = []
    _factors(a, factors)
    _factors(b, factors)
    scale, out = 1, None
    for factor in factors:
        if type(factor) is IntImm:
            scale *= factor.value
        else:
            out = factor if out is None else Mul(out, factor)
    if out is None:
        return imm(scale, a.dtype)
    if same(out, e):
        out = e
    return out if scale == 1 else Sum(a.dtype, [(out, 1, INF, scale, FLOOR)], 0)


# ------------------------------------------------------------------------------- // and %


def _floordiv(s: CanonicalSimplifier, e: FloorDiv) -> Any:
    a, b = s.mutate(e.a), s.mutate(e.b)
    if not (type(b) is IntImm and 0 < b.value < INF) or s.wraps(e.a):
        return _symbolic(s, e, a, b)
    if type(a) is IntImm:
        return imm(a.value // b.value, a.dtype)
    c, dtype = b.value, e.dtype
    if c == 1:
        return a
    if type(a) is Sum and (a.summed or len(a.terms) != 1 or a.base):
        whole, rest = s.separate(a, c)
        whole = whole.divided(c)
        if not rest.terms:
            whole.base += rest.base // c
            return whole
        text = s.normal(rest)
        low, high = s.parent.bounds.of(text)
        if low >= 0 and high < c:
            return whole
        plain = len(rest.terms) == 1 and rest.base == 0 and rest.terms[0][3] > 0
        term = rest.terms[0] if plain else (text, 1, INF, 1, FLOOR)
        whole.add(s.divide_term(term, c, FLOOR, dtype))
        return whole
    low, high = s.bound_of(a)
    if low >= 0 and high < c:
        return imm(0, dtype)
    return s.divide_term(s.to_term(a), c, FLOOR, dtype)


def _floormod(s: CanonicalSimplifier, e: FloorMod) -> Any:
    a, b = s.mutate(e.a), s.mutate(e.b)
    if not (type(b) is IntImm and 0 < b.value < INF) or s.wraps(e.a):
        return _symbolic(s, e, a, b)
    if type(a) is IntImm:
        return imm(a.value % b.value, a.dtype)
    c, dtype = b.value, e.dtype
    if c == 1:
        return imm(0, dtype)
    if type(a) is Sum and (a.summed or len(a.terms) != 1 or a.base):
        _, rest = s.separate(a, c)
        if not rest.terms:
            return imm(rest.base % c, dtype)
        text = s.normal(rest)
        low, high = s.parent.bounds.of(text)
        if low >= 0 and high < c:
            return rest
        rest.base %= c
        if len(rest.terms) == 1 and rest.base == 0 and rest.terms[0][3] > 0:
            return s.reduce_term(rest.terms[0], c, FLOOR, dtype)
        return s.reduce_term((s.normal(rest), 1, INF, 1, FLOOR), c, FLOOR, dtype)
    low, high = s.bound_of(a)
    if low >= 0 and high < c:
        return a
    return s.reduce_term(s.to_term(a), c, FLOOR, dtype)


def _div(s: CanonicalSimplifier, e: Div) -> Any:
    a, b = s.mutate(e.a), s.mutate(e.b)
    if not (type(b) is IntImm and 0 < b.value < INF) or s.wraps(e.a):
        return _symbolic(s, e, a, b)
    if type(a) is IntImm:
        return imm(U.truncdiv(a.value, b.value), a.dtype)
    c, dtype = b.value, e.dtype
    if c == 1:
        return a
    if type(a) is Sum:
        whole, rest = s.separate(a, c)
        if not rest.terms and rest.base == 0:
            return whole.divided(c)
        if s.bound_of(whole)[0] >= 0 and s.bound_of(rest)[0] >= 0:
            whole = whole.divided(c)
            text = s.normal(rest)
            if type(text) is IntImm:
                whole.base += text.value // c
            elif s.parent.bounds.of(text)[1] >= c:
                whole.add(s.divide_term(s.to_term(rest), c, TRUNC, dtype))
            return whole
    low, high = s.bound_of(a)
    if low > -c and high < c:
        return imm(0, dtype)
    return s.divide_term(s.to_term(a), c, TRUNC, dtype)


def _mod(s: CanonicalSimplifier, e: Mod) -> Any:
    a, b = s.mutate(e.a), s.mutate(e.b)
    if not (type(b) is IntImm and 0 < b.value < INF) or s.wraps(e.a):
        return _symbolic(s, e, a, b)
    if type(a) is IntImm:
        return imm(U.truncmod(a.value, b.value), a.dtype)
    c, dtype = b.value, e.dtype
    if c == 1:
        return imm(0, dtype)
    if type(a) is Sum:
        whole, rest = s.separate(a, c)
        if not rest.terms and rest.base == 0:
            return imm(0, dtype)
        if s.bound_of(whole)[0] >= 0 and s.bound_of(rest)[0] >= 0:
            text = s.normal(rest)
            if type(text) is IntImm:
                return imm(text.value % c, dtype)
            if s.parent.bounds.of(text)[1] < c:
                return rest
            return s.reduce_term(s.to_term(rest), c, TRUNC, dtype)
    low, high = s.bound_of(a)
    if low > -c and high < c:
        return a
    return s.reduce_term(s.to_term(a), c, TRUNC, dtype)


def _symbolic(s: CanonicalSimplifier, e: PrimExpr, a: ExprLike, b: ExprLike) -> PrimExpr:
    """A division by something that is not a positive constant: the rewrite rules apply."""
    a, b = s.normal(a), s.normal(b)
    if type(a) is IntImm and type(b) is IntImm and b.value:
        return U.BUILDERS[type(e)](a, b)
    result = s.apply(type(e), a, b)
    return _rebuilt(e, a, b) if result is None else result


# ------------------------------------------------------------------------------- comparisons


def _lt(s: CanonicalSimplifier, e: LT) -> PrimExpr:
    """a < b; a common factor of all terms of a - b but a small rest is divided out."""
    if e.a.dtype in INDEX_DTYPES:
        try:
            found = _divide_out(s, e)
        except DoesNotFit:
            found = None
        if found is not None:
            return found
    return _less(s, s.visit(e.a), s.visit(e.b), e)


def _divide_out(s: CanonicalSimplifier, e: LT) -> PrimExpr | None:
    diff = s.mutate(Sub(e.a, e.b))
    if type(diff) is not Sum:
        return None
    if s.parent.data_met and s.parent.may_wrap(Sub(e.a, e.b), e.a, e.b):
        return None
    factor, scaled = diff.base, False
    for term in diff.terms:
        if abs(term[3]) > 1:
            scaled = True
            factor = gcd(factor, term[3])
    factor = abs(factor)
    if not scaled or factor <= 1:
        return None
    whole, rest = s.separate(diff, factor)
    zero = imm(0, diff.dtype)
    if not rest.terms and rest.base == 0:
        return _less(s, s.normal(whole.divided(factor)), zero, None)
    text = s.normal(rest)
    low, high = s.parent.bounds.of(text)
    if low >= 0 and high < factor:
        return _less(s, s.normal(whole.divided(factor)), zero, None)
    if len(rest.terms) == 1 and rest.base == 0:
        index, lower, upper, scale, mode = rest.terms[0]
        if scale == 1 and upper != INF and mode == FLOOR and upper % (factor * lower) == 0:
            out = whole.divided(factor)
            out.add_term((index, lower * factor, upper, 1, mode))
            return _less(s, s.normal(out), zero, None)
    return None


def _cast(s: CanonicalSimplifier, e: Cast) -> Any:
    """Widening goes into the terms, so that int32 indices cast to int64 still combine."""
    value = s.mutate(e.value)
    if type(value) is IntImm:
        return imm(value.value, e.dtype)
    if e.value.dtype not in INDEX_DTYPES:
        s.parent.data_met = True
    widens = type(value) is Sum and value.dtype == "int32" and e.dtype == "int64"
    if widens and not s.wraps(e.value):
        terms = [(_widen(i, e.dtype), lo, up, k, m) for i, lo, up, k, m in value.terms]
        return Sum(e.dtype, terms, value.base)
    value = s.normal(value)
    if value.dtype == e.dtype:
        return value
    return e if value is e.value else Cast(e.dtype, value)


def _widen(index: PrimExpr, dtype: str) -> PrimExpr:
    return imm(index.value, dtype) if type(index) is IntImm else Cast(dtype, index)


_MUTATE: dict[type, Callable[[CanonicalSimplifier, Any], Any]] = {
    Add: _add, Sub: _sub, Mul: _mul, FloorDiv: _floordiv, FloorMod: _floormod, Div: _div,
    Mod: _mod, Cast: _cast,
}
_CANONICAL: dict[type, Callable] = {**_HANDLERS, LT: _lt}

# ------------------------------------------------------------------------------- a short cut


def affine_form(e: PrimExpr, var_map: Mapping[PrimExpr, PrimExpr]) -> PrimExpr | None:
    """The canonical form of a sum of variables times constants; None if `e` is no such sum.

    These most common expressions need neither rules nor bounds.
    """
    terms: dict[Any, int] = {}
    base = _collect(e, 1, terms, var_map)
    if base is None:
        return None
    dtype = e.dtype
    try:
        items = [(v, 1, INF, c, FLOOR) for v, c in terms.items() if c]
        if len(items) == 1 and base == 0:
            var, _, _, scale, _ = items[0]
            if scale == 1:
                return var
            if scale == -1 and not _is_product(e):
                return Sub(imm(0, dtype), var)
            return Mul(var, imm(scale, dtype))
        return write_sum(dtype, items, base)
    except DoesNotFit:
        return None


def _is_product(e: PrimExpr) -> bool:
    """Whether e is a variable times constants, written without a sum."""
    while type(e) is Mul:
        e = e.b if type(e.a) is IntImm else e.a
    return type(e) in U.VAR_TYPES


def _collect(e: Any, scale: int, terms: dict, var_map: Mapping) -> int | None:
    """Add scale * e to `terms`; the constant part, or None if e is not affine."""
    kind = type(e)
    if kind is Var or kind is SizeVar:
        if e in var_map:
            return None
        terms[e] = terms.get(e, 0) + scale
        return 0
    if kind is IntImm:
        return e.value * scale
    if kind is Add or kind is Sub:
        a = _collect(e.a, scale, terms, var_map)
        if a is None:
            return None
        b = _collect(e.b, scale if kind is Add else -scale, terms, var_map)
        return None if b is None else a + b
    if kind is Mul:
        if type(e.b) is IntImm:
            return _collect(e.a, scale * e.b.value, terms, var_map)
        if type(e.a) is IntImm:
            return _collect(e.b, scale * e.a.value, terms, var_map)
    return None

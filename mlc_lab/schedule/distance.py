"""How far apart iterations may be that touch one element, as an interval a loop: the quick answer.

The *distance* of two accesses is, for each loop around both, the value that it has where the second
happens less the value where the first happens. Each dimension says that a sum of factor * distance
lies in an interval, and intervals are narrowed by all dimensions until nothing changes: which is
the mixed radix argument for split loops, the test of the greatest common divisor, and the
disjointness of boxes in one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, inf
from typing import Any, Literal, NamedTuple

from ..arith.expr_util import INDEX_DTYPES
from ..ir import dtype as dt
from ..ir.containers import is_tuple
from ..tir import op
from ..tir.buffer import may_overlap
from ..tir.expr import (
    EQ, Add, Cast, FloorDiv, FloorMod, IntImm, Max, Min, Mul, PrimExpr, Select, SizeVar, Sub, Var,
)
from .footprint import Access, Loop

Interval = tuple[float, float]
#: for each shared loop the interval of its distance
Distance = dict[Any, Interval]
#: whole numbers by atom: a sum of factor * atom
Factors = dict[Any, Any]
#: (factors, low, high): the sum of factor * atom plus something in low .. high
Form = tuple[Factors, float, float]

#: how often all equations are used to narrow the distances
ROUNDS = 16

ZERO: Interval = (0, 0)

# ------------------------------------------------------------------------------- linear indices


class _Linear:
    """Indices as sums of factor * atom + constant, with what is known of the atoms.

    An atom is a variable, or the quotient or remainder of such a sum by a constant (a tuple). A
    part that is neither becomes an interval. `ranges` gives the values of variables.
    """

    def __init__(self, ranges: Mapping[Any, Interval]) -> None:
        self.ranges = dict(ranges)
        self._known: dict[Any, Any] = {}

    def of(self, e: PrimExpr) -> Form | None:
        """(factors, low, high): e is the sum of factor * atom plus something in low .. high."""
        if e in self._known:
            return self._known[e]
        form = self._known[e] = self._of(e)
        return form

    def _of(self, e: PrimExpr) -> Form | None:
        if type(e) is IntImm:
            return {}, e.value, e.value
        if type(e) is Var or type(e) is SizeVar:
            return {e: 1}, 0, 0
        form = self._unbounded(e)
        if (type(e) is not Cast and e.dtype in INDEX_DTYPES) or (
                type(e) is Cast and _holds(e.dtype, e.value.dtype)):
            return form
        # what does not fit into the type wraps around
        bounds = _bounds(e.dtype)
        if bounds is None:
            return None
        low, high = self.span(form)
        return form if bounds[0] <= low and high <= bounds[1] else ({}, *bounds)

    def _unbounded(self, e: PrimExpr) -> Form | None:
        """The form where numbers of all types are integers without bounds."""
        if type(e) is Add or type(e) is Sub:
            a, b = self.of(e.a), self.of(e.b)
            if a is None or b is None:
                return None
            return _sum(a, b, 1 if type(e) is Add else -1)
        if type(e) is Mul:
            a, b = self.of(e.a), self.of(e.b)
            if a is None or b is None:
                return None
            if not a[0]:
                a, b = b, a
            if b[0] or b[1] != b[2]:
                return None
            return _times(a, b[1])
        if type(e) is FloorDiv or type(e) is FloorMod:
            return self.divided(e)
        if type(e) is Cast:
            return self.of(e.value)
        if isinstance(e, (Min, Max, Select)):
            parts = (e.true_value, e.false_value) if isinstance(e, Select) else (e.a, e.b)
            spans = [self.span(self.of(p)) for p in parts]
            choose = (min, min) if type(e) is Min else (max, max) if type(e) is Max else (min, max)
            low, high = (f(s[i] for s in spans) for i, f in enumerate(choose))
            return {}, low, high
        return None

    def divided(self, e: FloorDiv | FloorMod) -> Form | None:
        by = op.as_int(e.b)
        inner = self.of(e.a)
        if by is None or by <= 0 or inner is None:
            return None
        factors, low, high = inner
        if low != high or low in (inf, -inf):
            span = self.span(inner)
            if type(e) is FloorMod:
                return {}, 0, by - 1
            return {}, _floor(span[0], by), _floor(span[1], by)
        # multiples of the divisor come out of the quotient and drop out of the remainder
        whole = {k: f // by for k, f in factors.items() if f % by == 0}
        rest = {k: f for k, f in factors.items() if f % by}
        quotient, low = divmod(low, by)
        span = self.span((rest, low, low))
        if span[0] >= 0 and span[1] < by:
            return (whole, quotient, quotient) if type(e) is FloorDiv else (rest, low, low)
        atom = (type(e).__name__, frozenset(rest.items()), low, by)
        if atom not in self.ranges:
            self.ranges[atom] = (0, by - 1) if type(e) is FloorMod else (
                _floor(span[0], by), _floor(span[1], by))
        if type(e) is FloorMod:
            return {atom: 1}, 0, 0
        whole[atom] = whole.get(atom, 0) + 1
        return whole, quotient, quotient

    def span(self, form: Form | None) -> Interval:
        """The values that a sum takes."""
        if form is None:
            return -inf, inf
        factors, low, high = form
        for atom, factor in factors.items():
            if not factor:
                continue
            a, b = self.ranges.get(atom, (-inf, inf))
            low += min(factor * a, factor * b)
            high += max(factor * a, factor * b)
        return low, high


def _bounds(dtype: str) -> Interval | None:
    """The least and the greatest number of a scalar integer type; None for other types."""
    code, _, lanes = dt.parse(dtype)
    if code == "bool":
        return 0, 1
    return dt.int_range(dtype) if code in ("int", "uint") and lanes == 1 else None


def _holds(dtype: str, other: str) -> bool:
    """Whether a type has all numbers of another, so that a cast to it changes none."""
    if dtype == other:
        return True
    one, two = _bounds(dtype), _bounds(other)
    return one is not None and two is not None and one[0] <= two[0] and two[1] <= one[1]


def _floor(x: float, by: int) -> float:
    return x // by if x not in (inf, -inf) else x


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


def _times(form: Form, factor: float) -> Form:
    if factor == 0:
        return {}, 0, 0
    low, high = form[1] * factor, form[2] * factor
    return {k: f * factor for k, f in form[0].items()}, min(low, high), max(low, high)


def _sum(a: Form, b: Form, sign: int) -> Form:
    factors = dict(a[0])
    for atom, factor in b[0].items():
        total = factors.get(atom, 0) + sign * factor
        if total:
            factors[atom] = total
        else:
            del factors[atom]
    if sign > 0:
        return factors, a[1] + b[1], a[2] + b[2]
    return factors, a[1] - b[2], a[2] - b[1]


def _atom_vars(atom: Any) -> set[Any]:
    """The variables in an atom."""
    if not is_tuple(atom):
        return {atom}
    found: set[Any] = set()
    return found.union(*(_atom_vars(a) for a, _ in atom[1]))


def ranges_of(loops: Sequence[Loop], known: Mapping[Any, Interval] | None = None
              ) -> dict[Any, Interval]:
    """The values that each loop takes, outer loops relaxed."""
    out = dict(known or {})
    for var, low, extent in loops:
        if type(low) is IntImm and type(extent) is IntImm:
            out[var] = (low.value, low.value + extent.value - 1)
            continue
        linear = _Linear(out)
        first, length = linear.of(low), linear.of(extent)
        last = linear.span(_sum(first, length, 1))[1] - 1 if first and length else inf
        out[var] = (linear.span(first)[0], last)
    return out


# ------------------------------------------------------------------------------- distances


class _Equation(NamedTuple):
    """The sum of factors[v] * distance of v lies in low .. high."""

    factors: dict[Any, int]
    low: float
    high: float


class Distances:
    """Distances of accesses of one nest, which share what is known of its loops.

    `shared` are the loops that count; `outer` are loops around them that stand still.
    """

    def __init__(self, shared: Sequence[Loop], outer: Sequence[Loop] = ()) -> None:
        self.known = ranges_of([*outer, *shared])
        self.names = {var for var, _, _ in shared}
        self._sides: dict[tuple[Any, ...], _Side] = {}
        self._found: dict[tuple[Any, ...], Distance | None] = {}
        self._linear = _Linear(self.known)
        self._sums: dict[tuple[Any, ...], list[Var] | None] = {}
        self._ends: dict[tuple[PrimExpr, ...], dict[Any, Interval]] = {}
        self.box: Distance | None = {}
        for var, _, _ in shared:
            low, high = self.known[var]
            if low > high:
                self.box = None
                break
            self.box[var] = (low - high, high - low)

    def __call__(self, a: Access, b: Access) -> Distance | None:
        """How far apart iterations may be that touch one element; None: there are none."""
        first, second = self._fixed(a.conditions), self._fixed(b.conditions)
        if not first and not second:
            return self.anywhere(a, b)
        if self.box is None:
            return None
        box = dict(self.box)
        for v in {**first, **second}:
            low, high = self.known[v]
            start, end = first.get(v, (low, high))
            low, high = second.get(v, (low, high))
            box[v] = (low - end, high - start)
        return self._within(a, b, box)

    def anywhere(self, a: Access, b: Access) -> Distance | None:
        """The same where conditions are not known of: there are no more of these than accesses of
        different elements."""
        key = (a.buffer, a.spans, a.loops, b.buffer, b.spans, b.loops)
        if key not in self._found:
            self._found[key] = None if self.box is None else self._within(a, b, dict(self.box))
        return self._found[key]

    def _within(self, a: Access, b: Access, box: Distance) -> Distance | None:
        """The distances within a box, which is changed."""
        if a.spans is None or b.spans is None or a.buffer is not b.buffer or a.buffer is None or (
                a.buffer.strides and may_overlap(a.buffer)):
            return box
        same = self._digits_of_both(a, b)
        if same is not None:
            if not all(box[v][0] <= 0 <= box[v][1] for v in same):
                return None
            box.update((v, ZERO) for v in same)
            return box
        return self._solve(a, b, box)

    def _digits_of_both(self, a: Access, b: Access) -> list[Var] | None:
        """The shared loops that are the same wherever two accesses meet, if their indices are the
        same sums, the digits of which are loops: i_0 * 8 + i_1; loops of their own may differ. None
        if they are others. Most accesses of one array are of this kind."""
        out: list[Var] = []
        for left, right in zip(a.spans or (), b.spans or ()):
            if left is None or right is None or not (
                    op.is_const_int(left[1], 1) and op.is_const_int(right[1], 1)):
                return None
            same = left[0] is right[0]
            if same and type(left[0]) is Var and left[0] in self.known:
                if left[0] in self.names:
                    out.append(left[0])
            elif same and len(a.loops) == len(b.loops) and all(
                    x[0] is y[0] for x, y in zip(a.loops, b.loops)):
                key = (left[0], a.loops)
                if key not in self._sums:
                    self._sums[key] = self._digits(left[0], self._side(a, 0))
                found = self._sums[key]
                if found is None:
                    return None
                out += found
            else:
                found = self._shared_digits(left[0], right[0], self._side(a, 0), self._side(b, 1))
                if found is None:
                    return None
                out += found
        return out

    def _shared_digits(self, x: PrimExpr, y: PrimExpr, a: _Side, b: _Side) -> list[Var] | None:
        """The shared loops among the digits of two indices that differ in loops of their own only,
        i_0 * 8 + i_1 and i_0 * 8 + k, where these reach no farther than the digits that are shared.
        None if they do, or if it depends on them whether the indices meet at all."""
        first, second = a.linear.of(x), b.linear.of(y)
        if first is None or second is None or not first[1] == first[2] == second[1] == second[2]:
            return None
        common: list[Factors] = []
        spans: list[Interval] = []
        for side, (factors, _, _) in ((a, first), (b, second)):
            others: Factors = {}
            low = high = 0.0
            for v, factor in factors.items():
                if type(v) is tuple:
                    return None
                if v not in side.own:
                    others[v] = factor
                    continue
                start, end = side.linear.ranges.get(v, (-inf, inf))
                if not start <= 0 <= end:
                    return None
                low += min(factor * start, factor * end)
                high += max(factor * start, factor * end)
            common.append(others)
            spans.append((low, high))
        if common[0] != common[1]:
            return None
        reach = max(spans[0][1] - spans[1][0], spans[1][1] - spans[0][0])
        digits = sorted([(abs(f), v) for v, f in common[0].items() if v in self.names], key=_first)
        for factor, v in digits:
            if factor <= reach:
                return None
            low, high = self.known[v]
            reach += factor * (high - low)
        return [v for _, v in digits]

    def _digits(self, e: PrimExpr, side: _Side) -> list[Var] | None:
        """The shared loops among the digits of an index; None if it has one value twice, for
        different values of the loops."""
        form = side.linear.of(e)
        if form is None or form[1] != form[2]:
            return None
        moving = [(abs(factor), v) for v, factor in form[0].items()
                  if is_tuple(v) or v in self.names or v in side.own]
        reach: float = 0
        for factor, v in sorted(moving, key=_first):
            if type(v) is tuple or factor <= reach:
                return None
            low, high = side.linear.ranges.get(v, (-inf, inf))
            reach += factor * (high - low)
        return [v for _, v in moving if isinstance(v, Var) and v in self.names]

    def _fixed(self, conditions: tuple[PrimExpr, ...]) -> Mapping[Any, Interval]:
        """The loops of which conditions leave one value: an index that equals its least or its
        greatest value, as where a reduction starts."""
        found = self._ends.get(conditions)
        if found is None:
            found = self._ends[conditions] = {}
            for condition in conditions:
                if type(condition) is EQ:
                    found.update(self._at_an_end(condition))
        return found

    def _at_an_end(self, equation: EQ) -> dict[Any, Interval]:
        left, right = self._linear.of(equation.a), self._linear.of(equation.b)
        if left is None or right is None:
            return {}
        form = _sum(left, right, -1)
        if form[1] != form[2]:
            return {}
        least, greatest = self._linear.span(form)
        if 0 not in (least, greatest):
            return {}
        return {v: (end, end) for v, factor in form[0].items() if v in self.names
                for end in [self.known[v][(factor > 0) is (least != 0)]]}

    def _solve(self, a: Access, b: Access, box: Distance) -> Distance | None:
        equations: list[_Equation] = []
        first, second = self._side(a, 0), self._side(b, 1)
        for left, right in zip(a.spans or (), b.spans or ()):
            if left is None or right is None:
                continue
            found = _equation(left, right, first, second, self.names, box)
            if found is False:
                return None
            if found is not None:
                equations.append(found)
        for _ in range(ROUNDS):
            narrowed = _narrow(equations, box)
            if narrowed is None:
                return None
            if not narrowed and not _tie(box, self.names):
                break
        return {v: box[v] for v in self.names}

    def _side(self, x: Access, number: int) -> _Side:
        key = (number, x.loops)
        found = self._sides.get(key)
        if found is None:
            found = self._sides[key] = _Side(_Linear(ranges_of(x.loops, self.known)),
                                             {v for v, _, _ in x.loops})
        return found


def distance(a: Access, b: Access, shared: Sequence[Loop], outer: Sequence[Loop] = ()
             ) -> Distance | None:
    """How far apart iterations of `shared` may be that touch one element; None: there are none.

    `outer` are loops around them that stand still.
    """
    return Distances(shared, outer)(a, b)


class _Side(NamedTuple):
    """One of the two accesses: how its indices are read, and its own loops."""

    linear: _Linear
    own: set[Any]

    def split(self, e: PrimExpr, shared: set[Any]
              ) -> tuple[Factors, Factors, Factors, float, float] | None:
        """(moving, shared, still, low, high): an index as three sums and the rest."""
        form = self.linear.of(e)
        if form is None:
            return None
        moving: Factors = {}
        mine: Factors = {}
        still: Factors = {}
        for atom, factor in form[0].items():
            used = _atom_vars(atom)
            (moving if used & self.own else mine if used & shared else still)[atom] = factor
        return moving, mine, still, form[1], form[2]

    def length(self, span: Any) -> float:
        """The longest that a region is."""
        return self.linear.span(self.linear.of(span[1]))[1]


def _equation(left: Any, right: Any, a: _Side, b: _Side, shared: set[Any], box: Distance
              ) -> _Equation | None | Literal[False]:
    """What one dimension says of the distances; None: nothing, False: it is never the same."""
    if type(left[0]) is Var and type(right[0]) is Var and (
            op.is_const_int(left[1], 1) and op.is_const_int(right[1], 1)):
        return _of_variables(left[0], right[0], a, b, shared)
    first, second = a.split(left[0], shared), b.split(right[0], shared)
    if first is None or second is None:
        return None
    factors: dict[Any, int] = {}
    # a's index less b's at distance 0: `still` and what lies in low .. high
    still, low, high = _sum(first[2:], second[2:], -1)
    steps = [*first[0].values(), *second[0].values(), *still.values()]
    constant = low if low == high else None
    for side, moving in ((a, first[0]), (b, second[0])):
        span = side.linear.span((moving, 0, 0))
        low, high = (low + span[0], high + span[1]) if side is a else (low - span[1],
                                                                       high - span[0])
    for atom in {**first[1], **second[1]}:
        x, y = first[1].get(atom, 0), second[1].get(atom, 0)
        steps += [x, y]
        if x == y:
            factors[atom] = x
            if atom not in box:
                start, end = a.linear.ranges[atom]
                box[atom] = (start - end, end - start)
            continue
        one, other = a.linear.span(({atom: x}, 0, 0)), b.linear.span(({atom: y}, 0, 0))
        low, high = low + one[0] - other[1], high + one[1] - other[0]
    span = a.linear.span((still, 0, 0))
    reach = (b.length(right) - 1, a.length(left) - 1)
    low, high = low + span[0] - reach[0], high + span[1] + reach[1]
    step = gcd(*steps) if steps else 0
    if constant is not None and step and inf not in reach:
        # all else is a multiple of step
        if (constant + reach[1]) // step * step < constant - reach[0]:
            return False
    if not factors and not low <= 0 <= high:
        return False
    return _Equation(factors, low, high)


def _of_variables(x: Var, y: Var, a: _Side, b: _Side, shared: set[Any]
                  ) -> _Equation | None | Literal[False]:
    """`_equation` where both indices are variables, as most are."""
    if x is y and x not in a.own and x not in b.own:
        return _Equation({x: 1}, 0, 0) if x in shared else None
    one, other = a.linear.ranges.get(x), b.linear.ranges.get(y)
    if one is not None and other is not None and (one[1] < other[0] or other[1] < one[0]):
        return False
    return None


def _narrow(equations: Sequence[_Equation], box: Distance) -> bool | None:
    """Narrow the intervals by every equation; whether one changed, None if one is empty."""
    changed = False
    for factors, low, high in equations:
        spans = {v: sorted((f * box[v][0], f * box[v][1])) for v, f in factors.items()}
        for v, factor in factors.items():
            first = low - sum(s[1] for u, s in spans.items() if u is not v)
            last = high - sum(s[0] for u, s in spans.items() if u is not v)
            if factor < 0:
                first, last = -last, -first
            old = box[v]
            new = (max(old[0], _ceil(first, abs(factor))), min(old[1], _floor(last, abs(factor))))
            if new[0] > new[1]:
                return None
            if new != old:
                box[v] = new
                spans[v] = sorted((factor * new[0], factor * new[1]))
                changed = True
    return changed


def _ceil(x: float, by: int) -> float:
    return -((-x) // by) if x not in (inf, -inf) else x


def _tie(box: Distance, names: set[Any]) -> bool:
    """A variable all parts of which (f // 6, f % 6) do not differ does not differ itself."""
    changed = False
    for var in names:
        if box[var] == ZERO:
            continue
        segments = sorted(s for atom, d in box.items() if type(atom) is tuple and d == ZERO
                          for s in [_segment(atom, var)] if s)
        reach: float = 1
        for low, high in segments:
            if low <= reach:
                reach = max(reach, high)
        if reach > max(-box[var][0], box[var][1]):
            box[var] = ZERO
            changed = True
    return changed


def _segment(atom: Any, var: Var) -> tuple[float, float] | None:
    """(low, high): the atom is var // low % (high / low); None if it is not of this form."""
    if atom is var:
        return 1, inf
    if not is_tuple(atom):
        return None
    kind, terms, base, by = atom
    if len(terms) != 1 or base:
        return None
    inner, factor = next(iter(terms))
    if factor != 1:
        return None
    found = _segment(inner, var)
    if found is None:
        return None
    low, high = found
    if kind == "FloorDiv":
        return (low * by, high) if low * by < high else None
    return low, min(high, low * by)


__all__ = ["Distance", "Distances", "Interval", "ZERO", "distance", "ranges_of"]

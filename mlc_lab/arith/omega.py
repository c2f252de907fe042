"""Whether linear equations and inequalities have a solution in integers: the Omega test.

A *form* is a linear expression as a dict {unknown: coefficient}, its constant under None; unknowns
are any hashable objects. A `System` collects forms that are zero and forms that are not negative.

    s = System()
    s.zero({"i": 16, "j": 1, "k": -16})      # 16 i + j == 16 k
    s.not_negative({"j": 1, None: -1})       # 1 <= j
    s.not_negative({"j": -1, None: 15})      #      j <= 15
    s.impossible()                           # True

Equations are solved for an unknown (with a new one where no coefficient is 1 or -1), and
inequalities are combined until no unknown is left, rounded to integers at each step. "Impossible"
is certain; "possible" may be wrong where two coefficients larger than 1 meet.
Reference: W. Pugh, "The Omega test" (1991), without its dark shadow.
"""

from __future__ import annotations

from math import gcd
from typing import Any, Hashable, Mapping

Form = dict[Any, int]

#: inequalities at which the search gives up and calls the system possible
_LIMIT = 600


def plus(a: Mapping[Any, int], b: Mapping[Any, int], factor: int = 1) -> Form:
    """a + factor * b."""
    out = dict(a)
    for key, value in b.items():
        total = out.get(key, 0) + factor * value
        if total:
            out[key] = total
        else:
            out.pop(key, None)
    return out


def times(a: Mapping[Any, int], factor: int) -> Form:
    """a * factor."""
    return {k: v * factor for k, v in a.items()} if factor else {}


class _Fresh:
    """An unknown that the solver made."""

    __slots__ = ()


class System:
    """Linear constraints over integers."""

    __slots__ = ("equations", "bounds")

    def __init__(self, equations: Any = (), bounds: Any = ()) -> None:
        self.equations: list[Form] = list(equations)
        self.bounds: list[Form] = list(bounds)

    def copy(self) -> "System":
        """A system of its own with the same constraints."""
        return System(self.equations, self.bounds)

    def zero(self, form: Form) -> None:
        """form == 0"""
        self.equations.append(form)

    def not_negative(self, form: Form) -> None:
        """form >= 0"""
        self.bounds.append(form)

    def within(self, form: Form, low: int, high: int) -> None:
        """low <= form <= high"""
        self.bounds.append(plus(form, {None: -low} if low else {}))
        self.bounds.append(plus({None: high} if high else {}, form, -1))

    def impossible(self) -> bool:
        """Whether it is certain that no integers satisfy all constraints."""
        equations, bounds = list(self.equations), list(self.bounds)
        while True:
            solved = _solve(equations, bounds)
            if solved is None:
                return True
            bounds = solved
            found = _tighten(bounds)
            if found is None:
                return True
            bounds, equations = found
            if equations:
                continue
            if not bounds:
                return False
            step = _eliminate(bounds)
            if step is None or len(step) > _LIMIT:
                return False
            bounds = step


def _solve(equations: list[Form], bounds: list[Form]) -> list[Form] | None:
    """The inequalities with all equations solved and put in; None if an equation has no solution.

    An equation without a coefficient of 1 or -1 gets one through a new unknown (Pugh's symmetric
    remainder); the largest coefficient shrinks each time, so this ends.
    """
    pending = list(equations)
    while pending:
        form = pending.pop()
        constant = form.get(None, 0)
        terms = {k: v for k, v in form.items() if k is not None and v}
        if not terms:
            if constant:
                return None
            continue
        divisor = gcd(*terms.values())
        if constant % divisor:
            return None
        if divisor > 1:
            terms = {k: v // divisor for k, v in terms.items()}
            constant //= divisor
        unknown = min(terms, key=lambda k: abs(terms[k]))
        factor = terms[unknown]
        if abs(factor) == 1:
            value = {k: -v * factor for k, v in terms.items() if k is not unknown}
            if constant:
                value[None] = -constant * factor
        else:
            modulus, sign = abs(factor) + 1, 1 if factor > 0 else -1
            value = {k: sign * _remainder(v, modulus) for k, v in terms.items()
                     if k is not unknown}
            value[None] = sign * _remainder(constant, modulus)
            value[_Fresh()] = -sign * modulus
            pending.append({**terms, None: constant})
        pending = [_put(f, unknown, value) for f in pending]
        bounds = [_put(f, unknown, value) for f in bounds]
    return bounds


def _remainder(value: int, modulus: int) -> int:
    """The remainder of smallest size, between -modulus / 2 and modulus / 2."""
    return value - modulus * ((2 * value + modulus) // (2 * modulus))


def _put(form: Form, unknown: Hashable, value: Form) -> Form:
    """`form` with an unknown replaced by its value."""
    factor = form.get(unknown)
    if not factor:
        return form
    out = plus(form, value, factor)
    del out[unknown]
    return out


def _tighten(bounds: list[Form]) -> tuple[list[Form], list[Form]] | None:
    """The inequalities rounded to integers, the strongest of each direction, and the equations that
    opposite ones make; None if two contradict each other."""
    best: dict[frozenset, int] = {}
    for form in bounds:
        constant = form.get(None, 0)
        terms = {k: v for k, v in form.items() if k is not None and v}
        if not terms:
            if constant < 0:
                return None
            continue
        divisor = gcd(*terms.values())
        if divisor > 1:
            terms = {k: v // divisor for k, v in terms.items()}
            constant //= divisor
        key = frozenset(terms.items())
        known = best.get(key)
        if known is None or constant < known:
            best[key] = constant
    kept, equations = [], []
    for key, constant in best.items():
        other = best.get(frozenset((k, -v) for k, v in key))
        if other is not None:
            if constant + other < 0:
                return None
            if constant + other == 0:
                equations.append(_form(key, constant))
                continue
        kept.append(_form(key, constant))
    return kept, equations


def _form(key: frozenset, constant: int) -> Form:
    out = dict(key)
    if constant:
        out[None] = constant
    return out


def _eliminate(bounds: list[Form]) -> list[Form] | None:
    """The inequalities without one of their unknowns; None if none is left."""
    lows: dict[Any, int] = {}
    highs: dict[Any, int] = {}
    rough: set = set()
    for form in bounds:
        for key, value in form.items():
            if key is None:
                continue
            side = lows if value > 0 else highs
            side[key] = side.get(key, 0) + 1
            if abs(value) > 1:
                rough.add(key)
    unknowns = lows.keys() | highs.keys()
    if not unknowns:
        return None
    free = {k for k in unknowns if k not in lows or k not in highs}
    if free:  # not bounded on one side: such an unknown can always be chosen to fit
        return [f for f in bounds if free.isdisjoint(f)]
    unknown = min(unknowns, key=lambda k: (k in rough, lows[k] * highs[k]))
    out, low, high = [], [], []
    for form in bounds:
        factor = form.get(unknown, 0)
        (low if factor > 0 else high if factor < 0 else out).append(form)
    for a in low:
        for b in high:
            total = plus(times(a, -b[unknown]), b, a[unknown])
            total.pop(unknown, None)
            out.append(total)
    return out


__all__ = ["Form", "System", "plus", "times"]

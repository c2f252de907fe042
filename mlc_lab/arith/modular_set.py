"""Modular sets: facts of the form e = coeff * k + base for some integer k.

coeff 0 means the constant `base`; coeff 1 means that nothing is known. 0 <= base < coeff otherwise.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Callable, NamedTuple

from ..ir import dtype as dt
from ..tir.expr import (
    EQ, Add, BinaryOp, Call, Cast, Div, FloorDiv, FloorMod, IntImm, Let, Max, Min, Mod, Mul,
    PrimExpr, Select, SizeVar, Sub, Var,
)
from .expr_util import ARITHMETIC, INDEX_DTYPES, conjuncts

if TYPE_CHECKING:
    from .analyzer import Analyzer


class ModularSet(NamedTuple):
    """The integers coeff * k + base."""

    coeff: int
    base: int


ANYTHING = ModularSet(1, 0)


def make(coeff: int, base: int) -> ModularSet:
    """The set in normal form."""
    coeff = abs(coeff)
    return ModularSet(coeff, base % coeff if coeff else base)


def union(a: ModularSet, b: ModularSet) -> ModularSet:
    """The smallest modular set that contains both."""
    return make(gcd(gcd(a.coeff, b.coeff), abs(a.base - b.base)), a.base)


def intersect(a: ModularSet, b: ModularSet) -> ModularSet:
    """The set of members of both; `a` if there are none or they are of no one modular set."""
    if a.coeff == 0 or b.coeff == 0:
        return a if a.coeff == 0 else b
    step = gcd(a.coeff, b.coeff)
    if (a.base - b.base) % step:
        return a
    x = a.base
    while x % b.coeff != b.base:
        x += a.coeff
    return make(a.coeff // step * b.coeff, x)


class ModularSetAnalyzer:
    """Modular sets of expressions under what is known of variables."""

    def __init__(self, parent: Analyzer) -> None:
        self.parent = parent
        self.vars: dict[PrimExpr, ModularSet] = {}
        self.memo: dict[PrimExpr, ModularSet] = {}

    def of(self, e: PrimExpr) -> ModularSet:
        """The modular set of an integer expression."""
        if type(e) is IntImm:
            return ModularSet(0, e.value)
        kind = type(e)
        if kind is Var or kind is SizeVar:
            return self.vars.get(e, ANYTHING)
        visit = _SET_OF.get(kind)
        if visit is None:
            return ANYTHING
        found = self.memo.get(e)
        if found is None:
            found = visit(self, e)
            if found.coeff > 1 and kind in ARITHMETIC and self.parent.may_wrap(e):
                found = make(found.coeff & -found.coeff, found.base)  # 2^32 is no multiple of 3
            self.memo[e] = found
        return found

    def bind(self, var: Var, value: ModularSet) -> None:
        """Say that a variable is in the set."""
        if value == ANYTHING and var not in self.vars:
            return
        self.vars[var] = value
        self.memo.clear()

    def enter(self, cond: PrimExpr) -> Callable[[], None]:
        """Take a condition for true; the result of the call undoes it."""
        before, kept = self.vars, self.memo
        self.vars, self.memo = dict(before), {}
        for item in conjuncts(cond):
            if type(item) is not EQ or type(item.b) is not IntImm:
                continue
            lhs, value = item.a, item.b.value
            if isinstance(lhs, Var):
                fact = ModularSet(0, value)
            elif (isinstance(lhs, (FloorMod, Mod)) and isinstance(lhs.a, Var)
                  and type(lhs.b) is IntImm and lhs.b.value > 0
                  and (value >= 0 if type(lhs) is FloorMod else value == 0)):
                lhs, fact = lhs.a, make(lhs.b.value, value)
            else:
                continue
            self.vars[lhs] = intersect(self.vars.get(lhs, ANYTHING), fact)

        def leave() -> None:
            self.vars, self.memo = before, kept

        return leave


def _add(s: ModularSetAnalyzer, e: Add) -> ModularSet:
    a, b = s.of(e.a), s.of(e.b)
    return make(gcd(a.coeff, b.coeff), a.base + b.base)


def _sub(s: ModularSetAnalyzer, e: Sub) -> ModularSet:
    a, b = s.of(e.a), s.of(e.b)
    return make(gcd(a.coeff, b.coeff), a.base - b.base)


def _mul(s: ModularSetAnalyzer, e: Mul) -> ModularSet:
    a, b = s.of(e.a), s.of(e.b)
    return make(gcd(gcd(a.coeff * b.coeff, a.coeff * b.base), a.base * b.coeff), a.base * b.base)


def _divide(s: ModularSetAnalyzer, e: BinaryOp) -> ModularSet:
    if type(e.b) is not IntImm or e.b.value == 0 or not dt.is_integer(e.dtype):
        return ANYTHING
    a, c = s.of(e.a), e.b.value
    if a.coeff == 0:
        exact = a.base // c if type(e) is FloorDiv else int(abs(a.base) // abs(c)) * (
            1 if (a.base < 0) == (c < 0) else -1)
        return ModularSet(0, exact)
    if a.coeff % c:
        return ANYTHING
    if a.base == 0:
        return make(a.coeff // c, 0)
    if c > 0 and (type(e) is FloorDiv or s.parent.const_int_bound_tuple(e.a)[0] >= 0):
        return make(a.coeff // c, a.base // c)
    return ANYTHING


def _modulo(s: ModularSetAnalyzer, e: BinaryOp) -> ModularSet:
    if type(e.b) is not IntImm or e.b.value == 0:
        return ANYTHING
    a, c = s.of(e.a), abs(e.b.value)
    step = gcd(a.coeff, c)
    if a.base % step == 0:
        if step == c and type(e) is FloorMod:
            return ModularSet(0, 0)
        return make(step, 0)
    if type(e) is FloorMod and e.b.value > 0:
        return ModularSet(0, a.base % step) if step == c else make(step, a.base)
    return make(step, a.base) if s.parent.const_int_bound_tuple(e.a)[0] >= 0 else ANYTHING


def _either(s: ModularSetAnalyzer, e: BinaryOp) -> ModularSet:
    return union(s.of(e.a), s.of(e.b))


def _select(s: ModularSetAnalyzer, e: Select) -> ModularSet:
    return union(s.of(e.true_value), s.of(e.false_value))


def _cast(s: ModularSetAnalyzer, e: Cast) -> ModularSet:
    if e.dtype not in INDEX_DTYPES or not dt.is_integer(e.value.dtype):
        return ANYTHING
    return s.of(e.value)


def _call(s: ModularSetAnalyzer, e: Call) -> ModularSet:
    name = getattr(e.op, "name", None)
    if name == "tir.if_then_else":
        return union(s.of(e.args[1]), s.of(e.args[2]))
    if name == "tir.shift_left" and type(e.args[1]) is IntImm and 0 <= e.args[1].value < 63:
        a, n = s.of(e.args[0]), e.args[1].value
        return make(a.coeff << n, a.base << n)
    if name == "tir.shift_right" and type(e.args[1]) is IntImm and 0 <= e.args[1].value < 31:
        return _divide(s, FloorDiv(e.args[0], IntImm(e.dtype, 1 << e.args[1].value)))
    if name == "tir.bitwise_and" and type(e.args[1]) is IntImm and e.dtype in INDEX_DTYPES:
        mask = e.args[1].value
        if mask > 0 and mask & (mask + 1) == 0 and mask < 2 ** 30:  # the last bits
            return _modulo(s, FloorMod(e.args[0], IntImm(e.dtype, mask + 1)))
    return ANYTHING


def _let(s: ModularSetAnalyzer, e: Let) -> ModularSet:
    s.vars.setdefault(e.var, s.of(e.value))
    return s.of(e.body)


_SET_OF: dict[type, Callable] = {
    Add: _add, Sub: _sub, Mul: _mul, FloorDiv: _divide, Div: _divide, FloorMod: _modulo,
    Mod: _modulo, Min: _either, Max: _either, Select: _select, Cast: _cast, Call: _call,
    Let: _let,
}

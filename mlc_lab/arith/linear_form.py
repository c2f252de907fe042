"""Index expressions and conditions as linear constraints, at several points of an iteration space.

A `Reader` turns expressions into forms over the unknowns of a `System` (`omega.py`). A *point* says
what the variables are there: {variable: form}. Variables that a point does not name stand for
themselves, the same at every point: sizes, loops that stand still.

    reader = Reader()
    p, q = {i: {"i": 1}}, {i: {"i'": 1}}
    reader.zero(plus(reader.form(i // 4, p), reader.form(i // 4 + 1, q), -1))
    reader.require(i < 16, p)
    reader.impossible()

Quotients and remainders by constants, minima and maxima become unknowns with their bounds. So do
quotients and products of two unknowns, of which is kept what can be said without knowing them:
equal factors have equal products, a larger factor a larger product. What is not understood (a
value in memory, the result of a call) is an unknown without bounds: the same one wherever the
expression and all it depends on are the same. Conditions that are not understood are left out. So
"impossible" is certain, whatever the expressions are.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence
from weakref import WeakSet

from ..tir.expr import (
    EQ, GE, GT, LE, LT, NE, Add, And, BufferLoad, Call, Cast, CmpOp, FloatImm, FloorDiv, FloorMod,
    IntImm, Max, Min, Mul, Not, Or, PrimExpr, SizeVar, StringImm, Sub, Var,
)
from ..tir.functor import pre_order
from .expr_util import INDEX_DTYPES
from .omega import Form, System, plus, times

Point = Mapping[Var, Form]

_TURNED = {LT: GE, GE: LT, LE: GT, GT: LE, EQ: NE, NE: EQ}
_WIDTH = {"bool": 1, "uint8": 8, "int8": 8, "uint16": 16, "int16": 16, "uint32": 32, "int32": 32,
          "int64": 64}
#: products of unknowns that are compared; each may be tried in three cases
_PRODUCTS = 6


#: variables that stand for what may be another value each time that it is looked at
_unsteady: WeakSet[Var] = WeakSet()


def unsteady(name: str, dtype: str) -> Var:
    """A variable of which a `Reader` takes nothing for granted: not that it is the same at another
    point, nor at this one."""
    var = Var(name, dtype)
    _unsteady.add(var)
    return var


def is_steady(e: PrimExpr) -> bool:
    """Whether no such variable occurs in an expression."""
    return not any(isinstance(n, Var) and n in _unsteady for n in pre_order(e))


class _Unknown:
    """An unknown that stands for a part of an expression."""

    __slots__ = ()


class Reader:
    """A system of constraints with what it takes to add expressions to it.

    `steady` says of a buffer that its contents are the same at all points; `positive` holds
    variables that are at least 1, as the extents of loops that run.
    """

    def __init__(self, steady: Callable[[Any], bool] = lambda buffer: False,
                 positive: frozenset = frozenset()) -> None:
        self.system = System()
        self.steady, self.positive = steady, positive
        self._known: dict[Any, Any] = {}
        #: (unknown, form, form): products of two forms
        self._products: list[tuple[_Unknown, Form, Form]] = []

    def zero(self, form: Form) -> None:
        """form == 0"""
        self.system.zero(form)

    def not_negative(self, form: Form) -> None:
        """form >= 0"""
        self.system.not_negative(form)

    # ------------------------------------------------------------------- expressions

    def form(self, e: Any, point: Point) -> Form:
        """An integer expression at a point."""
        kind = type(e)
        if kind is IntImm:
            return {None: e.value} if e.value else {}
        if kind is Var or kind is SizeVar:
            found = point.get(e)
            if found is None:
                return self._new(object())[0] if e in _unsteady else {e: 1}
            return dict(found)
        if e.dtype not in INDEX_DTYPES:
            return self._opaque(e, point)
        if kind is Add or kind is Sub:
            return plus(self.form(e.a, point), self.form(e.b, point), 1 if kind is Add else -1)
        if kind is Mul:
            return self._product(self.form(e.a, point), self.form(e.b, point))
        if kind is FloorDiv or kind is FloorMod:
            a, b = self.form(e.a, point), self.form(e.b, point)
            quotient = self._quotient(a, b)
            if quotient is None:
                return self._opaque(e, point)
            return quotient if kind is FloorDiv else plus(a, self._product(quotient, b), -1)
        if kind is Min or kind is Max:
            return self._extreme(kind, self.form(e.a, point), self.form(e.b, point))
        if kind is Cast and _WIDTH.get(e.value.dtype, 99) <= _WIDTH[e.dtype]:
            return self.form(e.value, point)
        if kind is Call:
            shifted = self._shift(e, point)
            if shifted is not None:
                return shifted
        return self._opaque(e, point)

    def _new(self, key: Any) -> tuple[Form, bool]:
        """The unknown for a key, and whether it is there for the first time."""
        found = self._known.get(key)
        if found is not None:
            return found, False
        self._known[key] = made = {_Unknown(): 1}
        return made, True

    def _product(self, a: Form, b: Form) -> Form:
        if all(k is None for k in b):
            return times(a, b.get(None, 0))
        if all(k is None for k in a):
            return times(b, a.get(None, 0))
        x, y = sorted((_frozen(a), _frozen(b)), key=lambda f: hash(f))
        made, fresh = self._new(("*", x, y))
        if fresh:
            self._products.append((next(iter(made)), dict(x), dict(y)))
        return made

    def _quotient(self, a: Form, b: Form) -> Form | None:
        """a // b, rounded down."""
        by = b.get(None, 0)
        if all(k is None for k in b):
            if by <= 0:
                return None
            whole = {k: v // by for k, v in a.items() if v % by == 0 and k is not None}
            rest = {k: v for k, v in a.items() if v % by or k is None}
            constant = rest.pop(None, 0)
            if constant // by:
                whole[None] = constant // by
            if constant % by:
                rest[None] = constant % by
            if all(k is None for k in rest):
                return whole
            quotient, fresh = self._new(("//", _frozen(rest), by))
            if fresh:
                self.system.within(plus(rest, quotient, -by), 0, by - 1)
            return plus(whole, quotient)
        if len(b) != 1 or next(iter(b)) not in self.positive or b != {next(iter(b)): 1}:
            return None
        quotient, fresh = self._new(("//", _frozen(a), _frozen(b)))
        if fresh:
            rest = plus(a, self._product(quotient, b), -1)
            self.not_negative(rest)
            self.not_negative(plus(plus(b, rest, -1), {None: -1}))
        return quotient

    def _extreme(self, kind: type, a: Form, b: Form) -> Form:
        made, fresh = self._new((kind, frozenset((_frozen(a), _frozen(b)))))
        if fresh:
            sign = 1 if kind is Min else -1
            self.not_negative(times(plus(a, made, -1), sign))
            self.not_negative(times(plus(b, made, -1), sign))
        return made

    def _shift(self, e: Call, point: Point) -> Form | None:
        """Shifts by constants, and the low bits of a number."""
        name = getattr(e.op, "name", "")
        if name in ("tir.shift_left", "tir.shift_right", "tir.bitwise_and") and (
                type(e.args[1]) is IntImm and 0 <= e.args[1].value < 2**31):
            value, by = self.form(e.args[0], point), e.args[1].value
            if name == "tir.bitwise_and":
                if by & (by + 1):
                    return None
                return plus(value, self._quotient(value, {None: by + 1}) or {}, -(by + 1))
            return times(value, 1 << by) if name == "tir.shift_left" and by < 31 else (
                self._quotient(value, {None: 1 << by}))
        return None

    def _opaque(self, e: PrimExpr, point: Point) -> Form:
        return self._new(self._key(e, point))[0]

    def _key(self, e: PrimExpr, point: Point) -> Any:
        """What an expression that is not linear depends on: equal keys mean equal values."""
        if isinstance(e, (IntImm, FloatImm, StringImm)):
            return e.dtype, e.value
        if isinstance(e, PrimExpr) and e.dtype in INDEX_DTYPES and type(e) in (
                Var, SizeVar, Add, Sub, Mul):
            return _frozen(self.form(e, point))
        if isinstance(e, Var):
            return _frozen(point[e]) if e in point else object() if e in _unsteady else e
        if type(e) is BufferLoad:
            if not self.steady(e.buffer) or e.predicate is not None:
                return object()
            return e.buffer, tuple(_frozen(self.form(i, point)) for i in e.indices)
        if type(e) is Call:
            from ..tir.op.intrinsic import PURE, effect_of

            if effect_of(e) != PURE:
                return object()
            return e.op, e.dtype, tuple(self._key(a, point) for a in e.args)
        return type(e), e.dtype, tuple(self._key(k, point) for k in e.children())

    # ------------------------------------------------------------------- conditions

    def require(self, e: PrimExpr, point: Point, holds: bool = True) -> None:
        """Take a condition for true (or false) at a point, as far as it is understood."""
        if isinstance(e, Not):
            self.require(e.a, point, not holds)
        elif isinstance(e, And if holds else Or):
            self.require(e.a, point, holds)
            self.require(e.b, point, holds)
        elif isinstance(e, Call) and getattr(e.op, "name", "") == "tir.likely":
            self.require(e.args[0], point, holds)
        elif isinstance(e, IntImm):
            if bool(e.value) is not holds:
                self.zero({None: 1})
        elif isinstance(e, CmpOp) and e.a.dtype in INDEX_DTYPES:
            kind = type(e) if holds else _TURNED[type(e)]
            if kind is NE:
                return
            difference = plus(self.form(e.b, point), self.form(e.a, point), -1)
            if kind is EQ:
                self.zero(difference)
            elif kind in (LT, LE):
                self.not_negative(plus(difference, {None: -1}) if kind is LT else difference)
            else:
                difference = times(difference, -1)
                self.not_negative(plus(difference, {None: -1}) if kind is GT else difference)

    # ------------------------------------------------------------------- the answer

    def impossible(self) -> bool:
        """Whether it is certain that the constraints contradict each other."""
        if not self._products:
            return self.system.impossible()
        pairs = []
        for at, (p, a, b) in enumerate(self._products):
            for x, n in ((a, b), (b, a)):
                if not self._at_least(n, 1):
                    continue
                if self._at_least(x, 0):  # x * n >= x
                    self.not_negative(plus({p: 1}, x, -1))
                pairs += [(p, q, x, y, n) for q, c, d in self._products[at + 1:]
                          for y, m in ((c, d), (d, c)) if n == m]
        return self._split(self.system, pairs[:_PRODUCTS])

    def _at_least(self, form: Form, least: int) -> bool:
        """Whether a form certainly has no lower value."""
        if len(form) == 1 and next(iter(form)) in self.positive:
            return form[next(iter(form))] >= least
        less = self.system.copy()
        less.not_negative(plus({None: least - 1}, form, -1))
        return less.impossible()

    def _split(self, system: System, pairs: list) -> bool:
        """x * n and y * n: impossible if it is for x < y, for x == y and for x > y."""
        if system.impossible():
            return True
        if not pairs:
            return False
        p, q, x, y, n = pairs[0]
        for sign in (0, 1, -1):
            case = system.copy()
            difference, products = plus(x, y, -1), {p: 1, q: -1}
            if not sign:
                case.zero(difference)
                case.zero(products)
            else:  # x >= y + 1: x * n >= y * n + n
                case.not_negative(plus(times(difference, sign), {None: -1}))
                case.not_negative(plus(times(products, sign), n, -1))
            if not self._split(case, pairs[1:]):
                return False
        return True


def follows(goal: PrimExpr, loops: Sequence[tuple[Var, PrimExpr, PrimExpr]] = (),
            conditions: Sequence[PrimExpr] = ()) -> bool:
    """Whether a condition certainly holds inside of loops, (variable, first value, extent) each,
    wherever `conditions` hold."""
    if isinstance(goal, And):
        return follows(goal.a, loops, conditions) and follows(goal.b, loops, conditions)
    if isinstance(goal, IntImm):
        return bool(goal.value)
    if isinstance(goal, EQ):
        return all(follows(part(goal.a, goal.b), loops, conditions) for part in (LE, GE))
    if not isinstance(goal, (LT, LE, GT, GE)):
        return False
    sizes = [extent for _, _, extent in loops]
    loops, conditions = _about(goal, loops, conditions)
    reader = Reader(lambda buffer: True, frozenset(e for e in sizes if isinstance(e, Var)))
    for var, low, extent in loops:
        if type(extent) is Max and type(extent.b) is IntImm and extent.b.value <= 0:
            extent = extent.a  # where a loop runs
        at = plus({var: 1}, reader.form(low, {}), -1)
        reader.not_negative(at)
        reader.not_negative(plus(plus(reader.form(extent, {}), at, -1), {None: -1}))
    for condition in conditions:
        reader.require(condition, {})
    reader.require(goal, {}, False)
    return reader.impossible()


def _about(goal: PrimExpr, loops: Sequence[tuple[Var, PrimExpr, PrimExpr]],
           conditions: Sequence[PrimExpr]) -> tuple[
               list[tuple[Var, PrimExpr, PrimExpr]], list[PrimExpr]]:
    """The loops and conditions that share unknowns with a goal, directly or by others of them: the
    rest says nothing of it."""
    of_loops = [{var} | _atoms(low) | _atoms(extent) for var, low, extent in loops]
    of_conditions = [_atoms(c) for c in conditions]
    wanted = _atoms(goal)
    size = -1
    while size != len(wanted):
        size = len(wanted)
        for own in (*of_loops, *of_conditions):
            if not own.isdisjoint(wanted):
                wanted |= own
    return ([loop for loop, own in zip(loops, of_loops) if not own.isdisjoint(wanted)],
            [c for c, own in zip(conditions, of_conditions) if not own.isdisjoint(wanted)])


def _atoms(e: PrimExpr) -> set[Any]:
    """The variables of an expression, and the buffers that it reads."""
    found: set[Any] = set()
    stack: list[Any] = [e]
    while stack:
        item = stack.pop()
        if isinstance(item, Var):
            found.add(item)
        elif type(item) is not IntImm:
            if isinstance(item, BufferLoad):
                found.add(item.buffer)
            elif isinstance(item, Call):
                found.add(item.op)
            stack += item.children()
    return found


def _frozen(form: Mapping[Any, int]) -> frozenset:
    return frozenset(form.items())


__all__ = ["Point", "Reader", "follows"]

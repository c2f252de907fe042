"""Small helpers every part of `arith` uses: fast sameness, fast constants, fast builders.

The builders here assume operands of one type (true inside a simplifier, which only takes apart
what was well typed) and fold constants; `tir/op/` has the ones that match types.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, ParamSpec, TypeVar

from ..ir.dtype import int_range, is_float
from ..ir.structural import structural_equal
from ..tir.expr import (
    EQ, GE, GT, LE, LT, NE, Add, And, BinaryOp, Broadcast, BufferLoad, Call, Cast, CmpOp, Div,
    FloatImm, FloorDiv, FloorMod, IntImm, Max, Min, Mod, Mul, Not, Or, PrimExpr, ProducerLoad, Ramp,
    Select, SizeVar, StringImm, Sub, Var, int32,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")

TRUE = IntImm("bool", 1)
FALSE = IntImm("bool", 0)

#: scalar types that indices have; only these follow the rules of the integers without overflow
INDEX_DTYPES = frozenset(("int32", "int64"))
VAR_TYPES = (Var, SizeVar)
LEAF_TYPES = frozenset((Var, SizeVar, IntImm, FloatImm, StringImm))


class DoesNotFit(Exception):
    """A constant left the range of its type: the rewrite that made it is given up."""


def imm(value: int, dtype: str) -> IntImm:
    """An integer constant; raises DoesNotFit where `dtype` cannot hold it."""
    if dtype == "int32":
        if -2147483648 <= value <= 2147483647:
            return int32(value)
        raise DoesNotFit
    if dtype == "bool":
        return TRUE if value else FALSE
    low, high = int_range(dtype)
    if low <= value <= high:
        return IntImm(dtype, value)
    raise DoesNotFit


def fitting_or(otherwise: Callable[[], Any]) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Decorates a function that gives `otherwise()` where a constant does not fit its type."""

    def decorate(func: Callable[_P, _T]) -> Callable[_P, _T]:
        @functools.wraps(func)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            try:
                return func(*args, **kwargs)
            except DoesNotFit:
                return otherwise()

        return call

    return decorate


def truncdiv(a: int, b: int) -> int:
    """C's division of integers."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def truncmod(a: int, b: int) -> int:
    """The remainder that goes with C's division."""
    return a - truncdiv(a, b) * b


# ------------------------------------------------------------------------------- sameness


def same(a: Any, b: Any) -> bool:
    """Whether two expressions are the same tree (variables by identity)."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b) or kind is Var or kind is SizeVar:
        return False
    if kind is IntImm:
        return a.value == b.value and a.dtype == b.dtype
    if isinstance(a, BinaryOp):
        return same(a.a, b.a) and same(a.b, b.b)
    if kind is Cast:
        return a.dtype == b.dtype and same(a.value, b.value)
    if kind is Call:
        return (a.op is b.op and a.dtype == b.dtype and len(a.args) == len(b.args)
                and all(map(same, a.args, b.args)))
    if kind is BufferLoad:
        return (a.buffer is b.buffer and a.predicate is b.predicate
                and len(a.indices) == len(b.indices) and all(map(same, a.indices, b.indices)))
    return structural_equal(a, b) is True


# ------------------------------------------------------------------------------- data

#: arithmetic whose result may leave the range of its type, where it then wraps around
ARITHMETIC = (Add, Sub, Mul)
_OF_TWO = frozenset((Add, Sub, Mul, FloorDiv, FloorMod, Min, Max, LT, LE, GT, GE, EQ, NE, And, Or))
_CHOICES = ("tir.if_then_else", "tir.likely")


def is_data(e: Any, memo: dict[PrimExpr, bool]) -> bool:
    """Whether a number that the program computes is in `e`: read from memory, given by a function,
    or converted from a type that is none of indices.

    Arithmetic on indices (loop variables, sizes) does not overflow; on data it may.
    """
    kind = type(e)
    if kind in LEAF_TYPES:
        return kind is Var and e in memo  # a name that was given to data
    found = memo.get(e)
    if found is None:
        if kind in _OF_TWO:  # nearly all that is asked about; operands by name, which is quick
            a, b = e.a, e.b
            # index arithmetic on constants would have been folded
            found = type(a) is type(b) is IntImm and kind in ARITHMETIC or (
                is_data(a, memo) or is_data(b, memo))
        elif kind is Call and getattr(e.op, "name", "") not in _CHOICES:
            found = True
        elif kind is Cast and e.value.dtype not in INDEX_DTYPES:
            found = True
        elif kind is BufferLoad or kind is ProducerLoad:
            found = True
        elif kind is Call:
            found = any(is_data(a, memo) for a in e.args[-2:])
        else:
            found = any(is_data(c, memo) for c in e.children() if isinstance(c, PrimExpr))
        memo[e] = found
    return found


# ------------------------------------------------------------------------------- builders


def add(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a + b with constants folded."""
    if type(a) is IntImm:
        if type(b) is IntImm:
            return imm(a.value + b.value, a.dtype)
        if a.value == 0:
            return b
    elif type(b) is IntImm and b.value == 0:
        return a
    return Add(a, b)


def sub(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a - b with constants folded."""
    if type(b) is IntImm:
        if type(a) is IntImm:
            return imm(a.value - b.value, a.dtype)
        if b.value == 0:
            return a
    return Sub(a, b)


def mul(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a * b with constants folded."""
    if type(a) is IntImm:
        if type(b) is IntImm:
            return imm(a.value * b.value, a.dtype)
        if a.value == 1:
            return b
        if a.value == 0:
            return a
    elif type(b) is IntImm:
        if b.value == 1:
            return a
        if b.value == 0:
            return b
    return Mul(a, b)


def floordiv(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a // b with constants folded."""
    if type(b) is IntImm and b.value != 0:
        if type(a) is IntImm:
            return imm(a.value // b.value, a.dtype)
        if b.value == 1:
            return a
    elif type(a) is IntImm and a.value == 0:
        return a
    return FloorDiv(a, b)


def floormod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a % b with constants folded."""
    if type(b) is IntImm and b.value != 0:
        if type(a) is IntImm:
            return imm(a.value % b.value, a.dtype)
        if b.value == 1:
            return imm(0, a.dtype)
    elif type(a) is IntImm and a.value == 0:
        return a
    return FloorMod(a, b)


def div(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Truncated a / b with constants folded."""
    if type(b) is IntImm and b.value != 0:
        if type(a) is IntImm:
            return imm(truncdiv(a.value, b.value), a.dtype)
        if b.value == 1:
            return a
    elif type(a) is IntImm and a.value == 0:
        return a
    return Div(a, b)


def mod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Truncated remainder with constants folded."""
    if type(b) is IntImm and b.value != 0:
        if type(a) is IntImm:
            return imm(truncmod(a.value, b.value), a.dtype)
        if b.value == 1:
            return imm(0, a.dtype)
    elif type(a) is IntImm and a.value == 0:
        return a
    return Mod(a, b)


def minimum(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """min(a, b) with constants folded."""
    if a is b:
        return a
    if type(a) is IntImm and type(b) is IntImm:
        return a if a.value <= b.value else b
    return Min(a, b)


def maximum(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """max(a, b) with constants folded."""
    if a is b:
        return a
    if type(a) is IntImm and type(b) is IntImm:
        return a if a.value >= b.value else b
    return Max(a, b)


def _comparison(cls: type, fold: Callable[[int, int], bool]) -> Callable:
    def build(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        if type(a) is IntImm and type(b) is IntImm:
            return TRUE if fold(a.value, b.value) else FALSE
        return cls(a, b)

    build.__doc__ = f"{cls.__doc__}, constants folded."
    return build


eq = _comparison(EQ, lambda a, b: a == b)
ne = _comparison(NE, lambda a, b: a != b)
lt = _comparison(LT, lambda a, b: a < b)
le = _comparison(LE, lambda a, b: a <= b)
gt = _comparison(GT, lambda a, b: a > b)
ge = _comparison(GE, lambda a, b: a >= b)


def logical_and(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a and b with constants folded."""
    if type(a) is IntImm:
        return b if a.value else a
    if type(b) is IntImm:
        return a if b.value else b
    return And(a, b)


def logical_or(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a or b with constants folded."""
    if type(a) is IntImm:
        return a if a.value else b
    if type(b) is IntImm:
        return b if b.value else a
    return Or(a, b)


def logical_not(a: PrimExpr) -> PrimExpr:
    """not a with constants folded."""
    if type(a) is IntImm:
        return FALSE if a.value else TRUE
    return Not(a)


#: the folding builder of each binary node
BUILDERS: dict[type, Callable[[PrimExpr, PrimExpr], PrimExpr]] = {
    Add: add, Sub: sub, Mul: mul, FloorDiv: floordiv, FloorMod: floormod, Div: div, Mod: mod,
    Min: minimum, Max: maximum, EQ: eq, NE: ne, LT: lt, LE: le, GT: gt, GE: ge,
    And: logical_and, Or: logical_or,
}

#: constructors of the node types that patterns can name, in the pattern language
PATTERN_NODES: dict[str, type] = {
    "min": Min, "max": Max, "div": Div, "mod": Mod, "ramp": Ramp, "bcast": Broadcast,
    "select": Select,
}


def as_expr(value: Any, dtype: str = "int32") -> PrimExpr:
    """An expression as it is; a Python int or bool as a constant of `dtype`."""
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return imm(int(value), dtype)


def conjuncts(cond: PrimExpr) -> list[PrimExpr]:
    """The conditions that `and` joins in `cond`, left to right; [] for True."""
    out: list[PrimExpr] = []
    stack = [cond]
    while stack:
        item = stack.pop()
        if type(item) is And:
            stack.append(item.b)
            stack.append(item.a)
        elif type(item) is Call and item.op.name == "tir.likely":
            stack.append(item.args[0])
        elif not (type(item) is IntImm and item.value):
            out.append(item)
    return out


def negate(cond: PrimExpr) -> PrimExpr:
    """The opposite condition, comparisons turned around (but those of floats that NaN decides)."""
    if isinstance(cond, CmpOp) and (isinstance(cond, (EQ, NE)) or not is_float(cond.a.dtype)):
        return _NEGATED[type(cond)](cond.a, cond.b)
    if type(cond) is Not:
        return cond.a
    return logical_not(cond)


_NEGATED = {LT: GE, LE: GT, GT: LE, GE: LT, EQ: NE, NE: EQ}


def is_one(e: PrimExpr) -> bool:
    """Whether e is the constant 1."""
    return type(e) is IntImm and e.value == 1

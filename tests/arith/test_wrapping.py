"""Rules for integers without bounds are kept from data, which wraps around, and from NaN.

Each expression is simplified, and gives the same as before for every special value.
"""

import itertools

import pytest

from mlc_lab.arith import Analyzer
from mlc_lab.tir import (
    Add, And, BufferLoad, Cast, Div, EQ, FloatImm, FloorDiv, FloorMod, IntImm, LE, LT, Max, Min,
    Mul, Not, Or, Select, Sub, Var, decl_buffer,
)  # fmt: skip
from mlc_lab.tir import numbers

MOST = 2 ** 31 - 1
VALUES = [0, 1, -1, 7, MOST, MOST - 1, -MOST - 1, -MOST, 2 ** 30, 123456789]
FLOATS = [0.0, -0.0, 1.0, -2.5, float("inf"), float("-inf"), float("nan")]

X, Y = (BufferLoad(decl_buffer((8,), "int32", n), [0]) for n in "XY")
F, G = (BufferLoad(decl_buffer((8,), "float32", n), [0]) for n in "FG")
U = Cast("int32", BufferLoad(decl_buffer((8,), "uint8", "U"), [0]))


def c(value):
    return IntImm("int32", value)


def value_of(e, table):
    """The value of an expression, loads by the table, wrapping around."""
    if e in table:
        return table[e]
    if type(e) in (IntImm, FloatImm):
        return e.value
    kind = type(e)
    if kind is Not:
        return not value_of(e.a, table)
    if kind is Select:
        return value_of(e.true_value if value_of(e.condition, table) else e.false_value, table)
    if kind is Cast:
        return numbers.convert(value_of(e.value, table), e.value.dtype, e.dtype)
    a, b = value_of(e.a, table), value_of(e.b, table)
    if kind is And or kind is Or:
        return (a and b) if kind is And else (a or b)
    if kind in numbers.COMPARE:
        return numbers.COMPARE[kind](a, b)
    ops = numbers.FLOAT_OPS if e.dtype.startswith("float") else numbers.INT_OPS
    return numbers.fit(e.dtype)(ops[kind](a, b))


def keeps_its_value(e, loads, values):
    simple = Analyzer().simplify(e)
    for row in itertools.product(values, repeat=len(loads)):
        table = dict(zip(loads, row))
        before, after = value_of(e, table), value_of(simple, table)
        assert before == after or before != before, (e, simple, row, before, after)
    return simple


ONE_SUM = [LT(X, Add(X, c(1))), LT(Sub(X, c(1)), X), LE(X, Add(X, c(5))), LT(Mul(X, c(2)), c(6)),
           FloorDiv(Mul(X, c(4)), c(4)), FloorMod(Mul(X, c(6)), c(3)), Div(Mul(X, c(2)), c(2)),
           FloorDiv(Add(Mul(X, c(8)), c(3)), c(8)),
           FloorMod(Add(Mul(X, c(1103515245)), c(7)), c(1023)),
           EQ(Mul(X, c(2)), c(0)), Min(Add(X, c(1)), Add(X, c(2))), Max(X, Add(X, c(1))),
           Sub(Min(X, c(9)), X),
           Add(FloorDiv(Add(FloorMod(X, c(4)), c(3)), c(4)), FloorDiv(X, c(4))),
           Cast("int32", LT(Add(X, c(1)), c(0))), Cast("int64", Add(X, c(1))),
           FloorMod(FloorMod(Mul(X, c(3)), c(9)), c(3))]  # fmt: skip
TWO = [LT(X, Add(X, Y)), LT(Add(X, Y), Add(X, c(3))), LT(Sub(X, Y), c(0)), LE(Sub(c(4), X), Y),
       Min(Sub(X, Y), c(3)), Max(Add(X, Y), Y), Sub(Min(X, Y), X),
       FloorDiv(Add(Mul(X, c(4)), Y), c(4)),
       EQ(Add(X, Y), Add(Y, X)), Sub(Add(X, Y), Y), Sub(Sub(X, Y), Sub(c(0), Y))]  # fmt: skip


@pytest.mark.parametrize("e", ONE_SUM, ids=str)
def test_sums_of_one_load(e):
    keeps_its_value(e, [X], VALUES)


@pytest.mark.parametrize("e", TWO, ids=str)
def test_sums_of_two_loads(e):
    keeps_its_value(e, [X, Y], VALUES)


def test_what_cannot_wrap_is_still_simplified():
    assert keeps_its_value(Sub(Add(X, Y), Y), [X, Y], VALUES) is X
    narrow = U.value
    for e, want in ((LT(U, Add(U, c(1))), 1), (LT(Mul(U, c(2)), c(512)), 1),
                    (FloorMod(Mul(U, c(6)), c(3)), 0)):
        assert keeps_its_value(e, [narrow], [0, 1, 255]).value == want
    assert Analyzer().simplify(FloorDiv(Mul(U, c(4)), c(4))) is U
    i = Var("i")
    assert Analyzer().simplify(LT(i, Add(i, c(1)))).value == 1  # an index does not wrap around


def test_narrow_integers_wrap_around_inside_of_casts():
    u = BufferLoad(decl_buffer((8,), "uint8", "V"), [0])
    for e in (LT(Cast("int32", Add(u, IntImm("uint8", 1))), c(1)),
              FloorMod(Cast("int32", Mul(u, IntImm("uint8", 3))), c(3))):
        keeps_its_value(e, [u], [0, 1, 85, 86, 255])


def test_a_fact_about_data_says_nothing_of_what_wraps_around():
    a = Analyzer()
    with a.constraint_scope(LT(X, Y)):
        assert a.can_prove(LT(X, Y))
        assert not a.can_prove(LT(Sub(X, Y), c(0)))  # -2^31 < 1, and their difference is positive
    with a.constraint_scope(LT(Add(X, c(1)), c(5))):
        assert not a.can_prove(LT(X, c(4)))
    with a.constraint_scope(LT(X, c(5))):
        assert a.can_prove(LT(X, c(6)))


def test_a_name_for_data_is_data():
    a, name = Analyzer(), Var("name")
    a.name_data(name, X)
    assert not a.can_prove(LT(name, Add(name, c(1))))


FLOAT_CONDITIONS = [
    Or(LT(F, G), LE(G, F)), Or(LE(F, G), LE(G, F)), Or(LT(F, G), LT(G, F)), And(LE(F, G), LE(G, F)),
    Not(LT(F, G)), Not(LE(F, G)), EQ(F, F), Not(EQ(F, F)), LE(F, F), Or(LT(F, G), EQ(F, G)),
    Select(LT(F, G), c(1), Cast("int32", LE(G, F))),
    Select(LE(F, G), c(1), Cast("int32", LT(G, F))),
    Select(LE(F, G), Cast("int32", LT(G, F)), c(2)),
]  # fmt: skip


@pytest.mark.parametrize("e", FLOAT_CONDITIONS, ids=str)
def test_conditions_of_floats(e):
    keeps_its_value(e, [F, G], FLOATS)


def test_the_largest_int64_is_a_divisor_as_others_are():
    x = BufferLoad(decl_buffer((8,), "int64", "W"), [0])
    most = 2 ** 63 - 1
    for kind in (FloorMod, FloorDiv, Div):
        keeps_its_value(kind(x, IntImm("int64", most)), [x], [0, 5, -5, most, most - 1, -most])


def test_floats_are_not_numbers_of_a_field():
    zero = FloatImm("float32", 0.0)
    for e in (Sub(F, F), Mul(F, zero), Add(F, zero), Div(zero, F), Min(F, G), Max(F, F),
              Sub(Add(F, G), G)):
        simple = Analyzer().simplify(e)
        assert simple is e or type(e) is Max, (e, simple)

"""Building expressions: constants fold, types match, refusals explain."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from mlc_lab.ir.transform import PassContext
from mlc_lab.tir import FloatImm, IntImm, Var, const, op, substitute
from mlc_lab.tir.expr import (
    EQ, Add, And, Broadcast, Call, Cast, Div, FloorDiv, Mul, Ramp, Sub,
)

ints = st.integers(-50, 50)


@given(ints, ints)
def test_integer_constants_fold_as_python_computes(a, b):
    x, y = op.const(a), op.const(b)
    assert (x + y).value == a + b and (x - y).value == a - b and (x * y).value == a * b
    assert (x < y).value == (a < b) and op.max(x, y).value == max(a, b)
    if b:
        assert (x // y).value == a // b and (x % y).value == a % b
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        assert op.truncdiv(x, y).value == quotient
        assert op.truncmod(x, y).value == a - quotient * b


def test_neutral_elements_vanish():
    i = Var("i")
    assert (i + 0) is i and (0 + i) is i and (i * 1) is i and (i - 0) is i and (i // 1) is i
    assert (i * 0).value == 0 and (i % 1).value == 0
    assert type(i + 1) is Add and type(i * 2) is Mul


def test_numbers_take_the_type_of_the_other_side():
    n, x, h = Var("n", "int64"), Var("x", "float32"), Var("h", "float16")
    assert (n + 1).b.dtype == "int64" and (x * 2).b.dtype == "float32"
    assert (h + 1.5).dtype == "float16"


def test_types_meet_at_the_wider_one():
    i, n, x = Var("i", "int32"), Var("n", "int64"), Var("x", "float32")
    assert (i + n).dtype == "int64" and type((i + n).a) is Cast
    assert (i * x).dtype == "float32"
    v = Ramp(i, op.const(1), 4)
    assert (v + i).dtype == "int32x4" and type((v + i).b) is Broadcast


def test_a_comparison_is_an_expression_and_knows_identity():
    i, j = Var("i"), Var("j")
    assert type(i == j) is EQ and not (i == j) and bool(i == i)
    assert (i == None) is False  # noqa: E711
    with pytest.raises(ValueError, match="truth value"):
        bool(i < j)


def test_conditions_must_be_bool():
    i = Var("i")
    with pytest.raises(TypeError, match="condition"):
        op.logical_and(i, i > 0)
    assert type(op.all(i > 0, i < 4)) is And
    assert op.any(True, i < 4).value == 1


def test_intrinsics_check_their_arguments():
    x = Var("x", "float32")
    call = op.exp(x)
    assert type(call) is Call and call.dtype == "float32" and call.op.name == "tir.exp"
    with pytest.raises(TypeError, match="takes 1"):
        op.exp(x, x)
    i = Var("i")
    assert op.floor(i) is i
    assert op.tanh(i).dtype == "float32"


def test_division_by_constant_zero_is_refused():
    with pytest.raises(ZeroDivisionError):
        Var("i") // 0


def test_limits():
    assert op.min_value("int8").value == -128 and op.max_value("uint8").value == 255
    assert isinstance(op.max_value("float16"), FloatImm)
    assert op.const(300, "uint8").value == 300 - 256 and isinstance(op.const(1), IntImm)


def test_floats_are_folded_only_where_the_result_is_that_of_every_number():
    x = Var("x", "float32")
    zero, minus, one = (const(v, "float32") for v in (0.0, -0.0, 1.0))
    for built, kind in ((x * zero, Mul), (zero * x, Mul), (zero / x, Div), (x + zero, Add),
                        (zero + x, Add), (x - minus, Sub), (x // one, FloorDiv), (zero - x, Sub)):
        assert type(built) is kind
    for built in (x * one, one * x, x / one, x - zero, x + minus, minus + x):
        assert built is x
    with PassContext(config={"tir.fast_math": True}):
        assert (x * zero) is zero and (zero / x) is zero
        assert (x + zero) is x and (zero + x) is x and (x - minus) is x
    i = Var("i")
    assert (i * 0).value == 0 and i + 0 is i


def test_constants_are_rounded_before_and_after_they_are_folded():
    f = np.float32
    assert (const(0.1, "float32") + const(0.2, "float32")).value == f(0.1) + f(0.2)
    assert (const(3e38, "float32") + const(3e38, "float32")).value == np.inf
    assert (const(2048.0, "float16") + const(1.0, "float16")).value == 2048
    assert (const(0.1, "float32") == const(float(f(0.1)), "float32")).value == 1
    assert op.cast(const(0.1, "float32"), "float64").value == float(f(0.1))
    assert op.cast(const(0.1, "float64"), "float32").value == 0.1  # written as it was


def test_folded_minimum_and_maximum_keep_nan_and_the_first_of_equals():
    nan, one = const(np.nan, "float32"), const(1.0, "float32")
    for fn in (op.max_value_of, op.min_value_of):
        assert np.isnan(fn(nan, one).value) and np.isnan(fn(one, nan).value)
        first = fn(const(-0.0, "float32"), const(0.0, "float32"))
        assert np.signbit(first.value)
    assert (nan == nan).value == 0 and (nan != nan).value == 1


def test_folded_shifts_by_large_counts_take_no_time():
    assert op.shift_left(const(1), const(40)).value == 0
    assert op.shift_right(const(-8), const(2 ** 31 - 1)).value == -1
    assert op.shift_left(const(1), const(31)).value == -2 ** 31


def test_minus_an_unsigned_number_keeps_its_type():
    x = Var("x", "uint8")
    assert (-x).dtype == "uint8" and op.neg(const(3, "uint8")).value == 253


def test_a_division_by_zero_that_a_substitution_makes_is_left_to_the_run():
    i, j = Var("i"), Var("j")
    left = substitute(i // j, {j: const(0)})
    assert type(left) is FloorDiv and left.b.value == 0

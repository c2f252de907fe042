"""Building expressions: constants fold, types match, refusals explain."""

import pytest
from hypothesis import given, strategies as st

from mlc_lab.tir import FloatImm, IntImm, Var, op
from mlc_lab.tir.expr import Add, And, Broadcast, Call, Cast, EQ, Mul, Ramp

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

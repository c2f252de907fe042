"""Elementwise, broadcast and logical operators against numpy."""

import numpy as np
import pytest
from topi.running import array, check, run

from mlc_lab import te, topi

UNARY = [("exp", np.exp, -2, 2), ("log", np.log, 0.1, 5), ("log2", np.log2, 0.1, 5),
         ("log10", np.log10, 0.1, 5), ("sqrt", np.sqrt, 0, 4), ("sin", np.sin, -3, 3),
         ("cos", np.cos, -3, 3), ("tan", np.tan, -1, 1), ("asin", np.arcsin, -1, 1),
         ("acos", np.arccos, -1, 1), ("atan", np.arctan, -3, 3), ("sinh", np.sinh, -2, 2),
         ("cosh", np.cosh, -2, 2), ("asinh", np.arcsinh, -2, 2), ("acosh", np.arccosh, 1, 4),
         ("atanh", np.arctanh, -0.9, 0.9), ("tanh", np.tanh, -3, 3), ("floor", np.floor, -3, 3),
         ("ceil", np.ceil, -3, 3), ("trunc", np.trunc, -3, 3), ("round", np.round, -3, 3),
         ("abs", np.abs, -3, 3), ("negative", np.negative, -3, 3), ("sign", np.sign, -3, 3),
         ("square", np.square, -3, 3), ("reciprocal", np.reciprocal, 0.5, 3),
         ("identity", lambda x: x, -1, 1), ("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 4),
         ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), -4, 4)]


@pytest.mark.parametrize("name, expected, low, high", UNARY, ids=[c[0] for c in UNARY])
def test_functions_of_one_element(name, expected, low, high):
    x = array(3, 5, low=low, high=high)
    check(getattr(topi, name), [x], expected(x))


def test_erf_agrees_with_the_standard_library():
    import math

    x = array(17)
    check(topi.erf, [x], np.vectorize(math.erf)(x))


BINARY = [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply),
          ("divide", np.divide), ("maximum", np.maximum), ("minimum", np.minimum),
          ("power", np.power), ("atan2", np.arctan2), ("log_add_exp", np.logaddexp),
          ("equal", np.equal), ("less", np.less), ("less_equal", np.less_equal),
          ("greater", np.greater), ("greater_equal", np.greater_equal),
          ("not_equal", np.not_equal), ("floor_mod", np.mod), ("mod", np.fmod)]


@pytest.mark.parametrize("name, expected", BINARY, ids=[c[0] for c in BINARY])
def test_functions_of_two_broadcast_tensors(name, expected):
    x, y = array(2, 1, 4, low=0.5), array(3, 1, low=0.5)
    check(getattr(topi, name), [x, y], expected(x, y))


INTEGER = [("floor_divide", np.floor_divide), ("floor_mod", np.mod), ("left_shift", np.left_shift),
           ("right_shift", np.right_shift), ("bitwise_and", np.bitwise_and),
           ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor),
           ("mod", np.fmod), ("add", np.add), ("maximum", np.maximum)]


@pytest.mark.parametrize("name, expected", INTEGER, ids=[c[0] for c in INTEGER])
def test_integers(name, expected):
    x, y = array(6, dtype="int32", low=-9, high=9), array(6, dtype="int32", low=1, high=5)
    check(getattr(topi, name), [x, y], expected(x, y))


@pytest.mark.parametrize("name, expected", [
    ("logical_and", np.logical_and), ("logical_or", np.logical_or),
    ("logical_xor", np.logical_xor), ("bitwise_and", np.logical_and)])
def test_conditions(name, expected):
    x, y = array(4, 5, dtype="bool"), array(5, dtype="bool")
    check(getattr(topi, name), [x, y], expected(x, y))


def test_not():
    x = array(9, dtype="bool")
    check(topi.logical_not, [x], ~x)
    i = array(9, dtype="int32", low=-5, high=5)
    check(topi.bitwise_not, [i], ~i)


def test_kinds_of_floats():
    x = np.array([1, np.nan, np.inf, -np.inf, 0], "float32")
    for name in ("isnan", "isinf", "isfinite"):
        np.testing.assert_array_equal(run(getattr(topi, name), x), getattr(np, name)(x))


def test_clip_cast_where_and_sums():
    x, y = array(3, 4), array(3, 4)
    c = array(3, 1, dtype="bool")
    check(lambda t: topi.clip(t, -0.5, 1), [x], x.clip(-0.5, 1))
    check(lambda t: topi.cast(t, "int32"), [x], x.astype("int32"))
    check(lambda t: topi.cast(t, "float64"), [x], x.astype("float64"))
    check(topi.where, [c, x, y], np.where(c, x, y))
    check(lambda a, b: topi.elemwise_sum([a, b, a]), [x, y], x + y + x)
    check(lambda t: topi.reinterpret(t, "int32"), [x], x.view("int32"))
    check(lambda t: 2.0 - t * 3.0, [x], 2 - x * 3)
    check(lambda t: topi.broadcast_to(t, (2, 3, 4)), [x], np.broadcast_to(x, (2, 3, 4)))


def test_shapes_that_do_not_fit_are_both_named():
    a, b = te.placeholder((3, 4)), te.placeholder((5,))
    for operator in (topi.add, topi.logical_or, lambda x, y: topi.where(x, y, y)):
        with pytest.raises(ValueError, match=r"\(3, 4\) and \(5\) cannot be broadcast"):
            operator(a, b)
    with pytest.raises(ValueError, match=r"\(3, 4\) cannot be broadcast to \(3, 5\)"):
        topi.broadcast_to(a, (3, 5))


def test_operators_bear_tags_of_what_they_are():
    tag = topi.tag
    x, y, n = te.placeholder((4, 5)), te.placeholder((5,)), te.var("n")
    for made, want in ((topi.add(x, y), tag.BROADCAST), (x * 2, tag.ELEMWISE),
                       (n - x, tag.ELEMWISE), (topi.exp(x), tag.ELEMWISE),
                       (topi.sum(x, axis=0), tag.COMM_REDUCE),
                       (topi.argmax(x, axis=0), tag.COMM_REDUCE_IDX),
                       (topi.transpose(x), tag.INJECTIVE)):
        assert made.op.tag == want
    assert tag.is_broadcast(tag.ELEMWISE) and not tag.is_broadcast(tag.INJECTIVE)
    assert tag.is_injective(tag.BROADCAST) and not tag.is_injective(tag.COMM_REDUCE)

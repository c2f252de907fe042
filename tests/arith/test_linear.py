"""Linear equations, clip bounds and deduced bounds, checked by trying all values."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mlc_lab import tir
from mlc_lab.arith import IntSet, deduce_bound, detect_clip_bound, detect_linear_equation
from mlc_lab.arith.int_set import intersect, union
from mlc_lab.tir import Range, Var

from .common import expressions, function_of

X, Y, Z = VARS = tuple(Var(n, "int32") for n in "xyz")


@settings(max_examples=200, deadline=None)
@given(expressions(VARS, 6))
def test_coefficients_make_up_the_expression(e):
    found = detect_linear_equation(e, [X, Y])
    if found:
        total = X * found[0] + Y * found[1] + found[2]
        assert not any(tir.uses_var(c, v) for c in found for v in (X, Y))
        f, g = function_of(e, VARS), function_of(total, VARS)
        for point in [(0, 0, 0), (1, 0, 5), (-3, 4, 2), (7, -8, -9)]:
            assert f(*point) == g(*point)


def test_linear_equations():
    found = detect_linear_equation(X * 4 + Y * Z - 3 + X, [X, Y])
    assert [repr(c) for c in found] == ["5", "z", "-3"]
    assert detect_linear_equation(X * Y, [X, Y]) == []
    assert detect_linear_equation(X // 2, [X]) == []


def test_clip_bounds():
    found = detect_clip_bound(tir.all(X < 10, X >= 2, Y <= Z), [X, Y])
    assert [None if b is None else repr(b) for b in found] == ["2", "9", None, "z"]
    assert detect_clip_bound(tir.all(X * 2 < 10), [X]) == []


def solvable():
    side = st.recursive(st.just(X), lambda e: st.one_of(
        st.builds(lambda a, c: a * c, e, st.sampled_from([-3, -1, 2, 4])),
        st.builds(lambda a, c: a + c, e, st.integers(-5, 5)),
        st.builds(lambda a, c: c - a, e, st.integers(-5, 5)),
        st.builds(lambda a, c: a + Y * c, e, st.sampled_from([1, 2, -1])),
        st.builds(lambda a, c: a // c, e, st.sampled_from([2, 3]))), max_leaves=3)
    op = st.sampled_from([tir.less, tir.less_equal, tir.greater, tir.greater_equal])
    return st.builds(lambda f, a, c: f(a, c), op, side, st.integers(-20, 20))


@settings(max_examples=400, deadline=None)
@given(solvable(), st.integers(-3, 3), st.integers(1, 4))
def test_a_deduced_bound_makes_the_condition_true(cond, low, extent):
    assume(not isinstance(cond, tir.IntImm))
    found = deduce_bound(X, cond, {}, {Y: IntSet.interval(low, low + extent - 1)})
    holds = function_of(cond, VARS)
    if found.is_nothing():
        return
    lows = function_of(found.min_value, VARS)(0, 0, 0) if found.has_lower_bound() else -60
    highs = function_of(found.max_value, VARS)(0, 0, 0) if found.has_upper_bound() else 60
    once = sum(item is Y for item in tir.pre_order(cond)) <= 1
    for x in range(-60, 61):
        if once and all(holds(x, y, 0) for y in range(low, low + extent)):
            assert lows <= x <= highs  # as large as it can be
        if lows <= x <= highs:
            assert all(holds(x, y, 0) for y in range(low, low + extent))


def test_a_loop_is_partitioned_where_its_predicate_holds():
    found = deduce_bound(X, X * 4 + Y < 126, {}, {Y: Range(0, 4)})
    assert repr(found.max_value) == "30"
    assert not found.has_lower_bound()


def test_sets_are_joined_and_cut():
    a, b = IntSet.interval(0, 4), IntSet.interval(8, 9)
    assert repr(union([a, b])) == "IntSet[0, 9]"
    assert intersect([a, b]).is_nothing()
    assert repr(intersect([a, IntSet.interval(3, 9)])) == "IntSet[3, 4]"
    assert union([IntSet.nothing(), a]).max_value.value == 4
    assert intersect([IntSet.everything(), b]).min_value.value == 8
    assert IntSet.everything().is_everything() and IntSet.nothing().is_nothing()
    assert IntSet.single_point(X).is_single_point()
    assert int(IntSet.interval(2, 5).cover_range().extent) == 4
    ramp = IntSet.vector(tir.Ramp(tir.const(3), tir.const(2), 4))
    assert repr(ramp) == "IntSet[3, 9]"

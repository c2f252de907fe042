"""What the Analyzer says is true: values kept, bounds and modular sets that contain them."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlc_lab import tir
from mlc_lab.arith import NEG_INF, POS_INF, Analyzer, eval_set
from mlc_lab.tir import IntImm, Range, SizeVar, Var
from mlc_lab.tir import expr as E

from .common import expressions, function_of

X, Y, Z = (Var(n, "int32") for n in "xyz")
VARS = (X, Y, Z)
DOMAINS = st.lists(st.tuples(st.integers(-4, 5), st.integers(1, 5)), min_size=3, max_size=3)


def bound(doms):
    analyzer = Analyzer()
    for var, (low, extent) in zip(VARS, doms):
        analyzer.bind(var, Range(low, low + extent))
    return analyzer, list(itertools.product(*(range(lo, lo + n) for lo, n in doms)))


def assert_same_values(before, after, points):
    f, g = function_of(before, VARS), function_of(after, VARS)
    for point in points:
        assert f(*point) == g(*point), (before, after, dict(zip("xyz", point)))


@settings(max_examples=400, deadline=None)
@given(expressions(VARS, 9), DOMAINS)
def test_simplify_keeps_the_value(e, doms):
    analyzer, points = bound(doms)
    assert_same_values(e, analyzer.simplify(e), points)
    assert_same_values(e, analyzer.rewrite_simplify(e), points)
    assert_same_values(e, analyzer.canonical_simplify(e), points)


@settings(max_examples=300, deadline=None)
@given(expressions(VARS, 5, conditions=True), DOMAINS)
def test_simplify_keeps_the_truth(e, doms):
    analyzer, points = bound(doms)
    assert_same_values(e, analyzer.simplify(e), points)


@settings(max_examples=200, deadline=None)
@given(expressions(VARS, 9))
def test_simplify_keeps_the_value_of_variables_without_bounds(e):
    points = list(itertools.product((-7, -2, 0, 1, 5, 30), repeat=3))
    assert_same_values(e, Analyzer().simplify(e), points)


@settings(max_examples=300, deadline=None)
@given(expressions(VARS, 9), DOMAINS)
def test_bounds_and_modular_sets_contain_every_value(e, doms):
    analyzer, points = bound(doms)
    low, high = analyzer.const_int_bound(e)
    coeff, base = analyzer.modular_set(e)
    f = function_of(e, VARS)
    for point in points:
        value = f(*point)
        assert low <= value <= high
        assert value == base if coeff == 0 else (value - base) % coeff == 0


@settings(max_examples=200, deadline=None)
@given(expressions(VARS, 6), DOMAINS, st.sets(st.sampled_from(VARS), min_size=1))
def test_interval_sets_contain_every_value(e, doms, relaxed):
    ranges = {v: Range(lo, lo + n) for v, (lo, n) in zip(VARS, doms)}
    found = eval_set(e, {v: r for v, r in ranges.items() if v in relaxed})
    points = itertools.product(*(range(lo, lo + n) for lo, n in doms))
    f = function_of(e, VARS)
    lows = function_of(found.min_value, VARS) if found.has_lower_bound() else None
    highs = function_of(found.max_value, VARS) if found.has_upper_bound() else None
    for point in points:
        assert lows is None or lows(*point) <= f(*point)
        assert highs is None or f(*point) <= highs(*point)


@settings(max_examples=200, deadline=None)
@given(expressions(VARS, 4, conditions=True), expressions(VARS, 5, conditions=True), DOMAINS)
def test_under_a_constraint_the_truth_is_kept_where_it_holds(constraint, e, doms):
    analyzer, points = bound(doms)
    holds = function_of(constraint, VARS)
    points = [p for p in points if holds(*p)]
    with analyzer.constraint_scope(constraint):
        assert_same_values(e, analyzer.simplify(e), points)
    assert_same_values(e, analyzer.simplify(e), bound(doms)[1])


@settings(max_examples=150, deadline=None)
@given(expressions(VARS, 6), expressions(VARS, 6), DOMAINS)
def test_what_is_proved_holds(a, b, doms):
    analyzer, points = bound(doms)
    f, g = function_of(a, VARS), function_of(b, VARS)
    if analyzer.can_prove(a < b):
        assert all(f(*p) < g(*p) for p in points)
    if analyzer.can_prove_equal(a, b):
        assert all(f(*p) == g(*p) for p in points)
    if analyzer.can_prove_greater_equal(a, 3):
        assert all(f(*p) >= 3 for p in points)
    if analyzer.can_prove_less(a, 3):
        assert all(f(*p) < 3 for p in points)


@settings(max_examples=100, deadline=None)
@given(expressions(VARS, 8))
def test_simplifying_twice_changes_nothing_more_for_affine_results(e):
    analyzer = Analyzer()
    once = analyzer.simplify(e)
    assert analyzer.simplify(once) is once


FORMS = [
    (lambda j0, j1: j0 * 4 + j1, "j0 * 4 + j1"),
    (lambda j0, j1: j1 + j0 * 4, "j0 * 4 + j1"),
    (lambda j0, j1: (j0 * 4 + j1) // 4, "j0"),
    (lambda j0, j1: (j0 * 4 + j1) % 4, "j1"),
    (lambda j0, j1: (j0 * 8 + j1) // 4, "j0 * 2"),
    (lambda j0, j1: (j0 * 2 + j1) // 4, "(j0 * 2 + j1) // 4"),
    (lambda j0, j1: j0 // 2 % 4, "j0 % 8 // 2"),
    (lambda j0, j1: j0 // 4 * 4 + j0 % 4, "j0"),
    (lambda j0, j1: j0 * 4 + j1 - 3 - j0 * 4, "j1 - 3"),
    (lambda j0, j1: j0 * 3 + j1 < 128, "T.bool(True)"),
    (lambda j0, j1: j0 * 3 + j1 < 40, "j0 * 3 + j1 < 40"),
    (lambda j0, j1: j0 * 4 + j1 < 24, "j0 < 6"),
    (lambda j0, j1: j0 > 3, "3 < j0"),
    (lambda j0, j1: tir.min(j0 * 4, j1 * 4), "T.min(j0, j1) * 4"),
]


@pytest.mark.parametrize("make,text", FORMS, ids=[t for _, t in FORMS])
def test_results_have_the_form_of_tvm(make, text):
    j0, j1 = Var("j0", "int32"), Var("j1", "int32")
    analyzer = Analyzer()
    analyzer.bind(j0, Range(0, 32))
    analyzer.bind(j1, Range(0, 4))
    assert repr(analyzer.simplify(make(j0, j1))) == text


def test_an_expression_that_is_simple_comes_back_as_the_same_object():
    e = X * 4 + Y
    assert Analyzer().simplify(e) is e
    e = (X * 3 + Y) // 4
    assert Analyzer().simplify(e) is e


def test_int64_constants_stay_int64():
    i, j = Var("i", "int64"), Var("j", "int64")
    e = Analyzer().simplify(i * 2 + j + i * 2 + IntImm("int64", 3))
    assert e.dtype == "int64"
    assert e.b.dtype == "int64" and e.a.a.b.dtype == "int64" and e.a.a.b.value == 4


def test_a_variable_of_extent_one_is_its_value():
    analyzer = Analyzer()
    analyzer.bind(X, Range(3, 4))
    assert repr(analyzer.simplify(X * 4 + Y)) == "y + 12"


def test_rebinding_needs_consent():
    analyzer = Analyzer()
    analyzer.bind(X, Range(0, 4))
    analyzer.bind(X, Range(0, 4))
    with pytest.raises(ValueError, match="allow_override"):
        analyzer.bind(X, Range(0, 8))
    analyzer.bind(X, Range(0, 8), allow_override=True)
    assert analyzer.const_int_bound(X) == (0, 7)


def test_symbolic_extents_bound_their_variable():
    n = SizeVar("n", "int32")
    analyzer = Analyzer()
    analyzer.bind(X, Range(0, n))
    assert analyzer.can_prove(X < n)
    assert analyzer.can_prove(X + 4 < n + 4)
    assert not analyzer.can_prove(X + 1 < n)
    assert analyzer.can_prove(n >= 0)


def test_bounds_are_infinite_where_nothing_is_known():
    e = Var("i", "int64")
    assert Analyzer().const_int_bound(e) == (NEG_INF, POS_INF)
    assert Analyzer().const_int_bound(e // 4) == (NEG_INF, POS_INF)
    assert Analyzer().const_int_bound(e % 4) == (0, 3)


def test_a_constraint_ends_with_its_scope():
    analyzer = Analyzer()
    with analyzer.constraint_scope(tir.all(X >= 0, X < 8)):
        assert analyzer.const_int_bound(X) == (0, 7)
        assert analyzer.can_prove(X // 8 == 0)
    assert analyzer.const_int_bound(X).min_value < 0
    assert not analyzer.can_prove(X // 8 == 0)


def test_a_modular_constraint_is_used():
    analyzer = Analyzer()
    with analyzer.constraint_scope(tir.EQ(X % 4, IntImm("int32", 0))):
        assert analyzer.modular_set(X) == (4, 0)
        assert analyzer.can_prove((X * 3) % 4 == 0)


def test_a_clone_is_independent():
    analyzer = Analyzer()
    analyzer.bind(X, Range(0, 4))
    other = analyzer.clone()
    other.bind(Y, Range(0, 2))
    assert other.const_int_bound(X + Y) == (0, 4)
    assert analyzer.const_int_bound(Y).max_value > 2


def test_both_sides_of_a_choice_know_the_condition():
    e = tir.Select(X < 4, tir.min(X, 10), X)
    assert repr(Analyzer().simplify(e)) == "x"


def test_constants_that_do_not_fit_are_not_made():
    big = IntImm("int32", 2**30)
    e = X // big // big
    assert_same_values(e, Analyzer().simplify(e), [(v, 0, 0) for v in (-5, 0, 5)])
    assert isinstance(Analyzer().simplify(E.Mul(big, big)), E.PrimExpr)


@pytest.mark.parametrize("cls", [E.LT, E.LE, E.GT, E.GE, E.EQ, E.NE])
def test_known_floats_are_compared(cls):
    for a, b in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0)):
        found = Analyzer().simplify(cls(E.FloatImm("float32", a), E.FloatImm("float32", b)))
        assert type(found) is IntImm, found

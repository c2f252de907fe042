"""Expressions as linear constraints, against trying all values of the variables."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from mlc_lab import tir
from mlc_lab.arith.linear_form import Reader
from mlc_lab.arith.omega import plus
from mlc_lab.tir import Var

from .common import function_of

X, Y = VARS = tuple(Var(n, "int32") for n in "xy")
N = Var("n", "int32")


def indices():
    """Index expressions over x and y."""
    return st.recursive(st.sampled_from([X, Y, tir.const(1), tir.const(-2)]), lambda e: st.one_of(
        st.builds(lambda a, b: a + b, e, e), st.builds(lambda a, b: a - b, e, e),
        st.builds(lambda a, c: a * c, e, st.sampled_from([-2, 2, 3, 4])),
        st.builds(lambda a, b: a * b, e, e),
        st.builds(lambda a, c: a // c, e, st.sampled_from([2, 3, 4])),
        st.builds(lambda a, c: a % c, e, st.sampled_from([2, 3, 4])),
        st.builds(lambda a, b: tir.min(a, b), e, e),
        st.builds(lambda a, c: a << c, e, st.integers(0, 2)),
        st.builds(lambda a, c: a & c, e, st.sampled_from([1, 3])),
        st.builds(lambda a, c: a >> c, e, st.integers(0, 2))), max_leaves=5)


def conditions():
    side = indices()
    plain = st.builds(lambda f, a, b: f(a, b), st.sampled_from(
        [tir.less, tir.less_equal, tir.greater, tir.greater_equal, tir.equal, tir.not_equal]),
        side, side)
    return st.one_of(plain, st.builds(tir.logical_and, plain, plain),
                     st.builds(tir.logical_or, plain, plain), st.builds(tir.logical_not, plain))


def box(reader, extents):
    """A point in [0, extents) with unknowns of its own."""
    point = {}
    for v, extent in zip(VARS, extents):
        unknown = object()
        reader.system.within({unknown: 1}, 0, extent - 1)
        point[v] = {unknown: 1}
    return point


@settings(max_examples=200, deadline=None)
@given(indices(), indices(), conditions(), st.booleans(),
       st.tuples(st.integers(1, 6), st.integers(1, 6)))
def test_what_is_called_impossible_happens_nowhere(a, b, condition, holds, extents):
    reader = Reader()
    p, q = box(reader, extents), box(reader, extents)
    reader.zero(plus(reader.form(a, p), reader.form(b, q), -1))
    reader.require(condition, p, holds)
    if not reader.impossible():
        return
    f, g, c = (function_of(e, VARS) for e in (a, b, condition))
    points = list(itertools.product(*map(range, extents)))
    assert not any(f(*x) == g(*y) for x in points for y in points if bool(c(*x)) is holds)


def between(reader, point, variable, extent):
    """0 <= variable < extent at a point."""
    at = reader.form(variable, point)
    reader.not_negative(at)
    reader.not_negative(plus(plus(reader.form(extent, {}), at, -1), {None: -1}))


def test_rows_of_symbolic_length_do_not_overlap():
    reader = Reader(positive=frozenset([N]))
    p, q = {X: {"x": 1}, Y: {"y": 1}}, {X: {"x'": 1}, Y: {"y'": 1}}
    for point in (p, q):
        between(reader, point, Y, N)
    reader.zero(plus(reader.form(X * N + Y, p), reader.form(X * N + Y, q), -1))
    assert not reader.impossible()
    reader.not_negative({"x'": 1, "x": -1, None: -1})
    assert reader.impossible()


def test_a_fused_index_of_symbolic_parts_is_known_by_its_parts():
    reader = Reader(positive=frozenset([N]))
    p, q = {X: {"x": 1}}, {X: {"x'": 1}}
    for e in (X // N, X % N):
        reader.zero(plus(reader.form(e, p), reader.form(e, q), -1))
    assert not reader.impossible()
    reader.not_negative({"x'": 1, "x": -1, None: -1})
    assert reader.impossible()


def test_a_value_in_memory_is_the_same_where_nothing_writes_it():
    buffer = tir.decl_buffer([8], "int32", "I")
    index = tir.BufferLoad(buffer, [X]) * 4 + Y
    for steady in (True, False):
        reader = Reader(lambda b, answer=steady: answer)
        p, q = {X: {"x": 1}, Y: {"y": 1}}, {X: {"x": 1}, Y: {"y'": 1}}
        reader.zero(plus(reader.form(index, p), reader.form(index, q), -1))
        reader.not_negative({"y'": 1, "y": -1, None: -1})
        assert reader.impossible() is steady

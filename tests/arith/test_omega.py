"""The Omega test against trying all integers of a box."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from mlc_lab.arith.omega import System

NAMES = "xyz"


def forms():
    return st.dictionaries(st.sampled_from([*NAMES, None]), st.integers(-4, 4), max_size=4)


@st.composite
def systems(draw):
    """Random constraints over a box of 5 values each."""
    s = System()
    for name in NAMES:
        low = draw(st.integers(-3, 3))
        s.within({name: 1}, low, low + draw(st.integers(0, 4)))
    for _ in range(draw(st.integers(0, 3))):
        s.zero(draw(forms()))
    for _ in range(draw(st.integers(0, 3))):
        s.not_negative(draw(forms()))
    return s


def value(form, point):
    return sum(c if k is None else c * point[k] for k, c in form.items())


def has_solution(s):
    for values in itertools.product(range(-3, 8), repeat=len(NAMES)):
        point = dict(zip(NAMES, values))
        if all(value(f, point) == 0 for f in s.equations) and all(
                value(f, point) >= 0 for f in s.bounds):
            return True
    return False


@settings(max_examples=200, deadline=None)
@given(systems())
def test_what_is_called_impossible_has_no_solution(s):
    if s.impossible():
        assert not has_solution(s)


@settings(max_examples=200, deadline=None)
@given(systems())
def test_unit_coefficients_are_decided_exactly(s):
    exact = System([{k: max(-1, min(1, v)) if k is not None else v for k, v in f.items()}
                    for f in s.equations[:1]], s.bounds[:2 * len(NAMES)])
    assert exact.impossible() is not has_solution(exact)


def test_fused_and_split_indices():
    s = System()
    s.zero({"i": 16, "j": 1, "i2": -16, "j2": -1})
    for name in ("j", "j2"):
        s.within({name: 1}, 0, 15)
    same = s.copy()
    s.not_negative({"i2": 1, "i": -1, None: -1})
    assert s.impossible()
    assert not same.impossible()


def test_parity():
    s = System()
    s.zero({"x": 2, "y": -4, None: -1})
    assert s.impossible()
    s = System()
    s.zero({"x": 7, "y": 12, None: -1})
    assert not s.impossible()
    s.within({"x": 1}, 0, 6)
    assert s.impossible()  # 7 * 7 - 12 * 4: x is 7 modulo 12

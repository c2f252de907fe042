"""Reductions against numpy."""

import numpy as np
import pytest
from topi.running import array, check

from mlc_lab import te, topi

AXES = [(None, False), (0, False), (-1, True), ((0, 2), False), ((1, 2), True)]


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("axis, keepdims", AXES)
def test_numbers(name, axis, keepdims):
    x = array(2, 3, 4)
    check(lambda t: getattr(topi, name)(t, axis, keepdims), [x],
          getattr(np, name)(x, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("name", ["all", "any"])
@pytest.mark.parametrize("axis", [None, 1, (0, 1)])
def test_conditions(name, axis):
    x = array(3, 4, dtype="bool")
    check(lambda t: getattr(topi, name)(t, axis), [x], getattr(np, name)(x, axis=axis))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis, keepdims", [(None, False), (0, False), (2, True)])
def test_positions(name, axis, keepdims):
    x = array(2, 3, 4, dtype="int32", low=0, high=3)  # with ties: the first one counts
    check(lambda t: getattr(topi, name)(t, axis, keepdims), [x],
          getattr(np, name)(x, axis=axis, keepdims=keepdims))


def test_last_of_equal_ones():
    x = np.array([[1, 5, 5, 0], [2, 2, 2, 2]], "float32")
    check(lambda t: topi.argmax(t, 1, select_last_index=True), [x], [2, 3])


def test_wrong_axis():
    with pytest.raises(ValueError, match="axis 3 is not one of the 2 dimensions"):
        topi.sum(te.placeholder((2, 3)), 3)
    with pytest.raises(ValueError, match="prod: axis 3"):
        topi.prod(te.placeholder((2, 3)), 3)
    for axis in (1.5, "0", [0.5], True):
        with pytest.raises(ValueError, match="argmax: axis .* is no whole number"):
            topi.argmax(te.placeholder((2, 3)), axis)

"""Sorting and running totals against numpy."""

import numpy as np
import pytest
from topi.running import array, check, run

from mlc_lab import te, topi
from mlc_lab.backend.interp import interpret


@pytest.mark.parametrize("shape, axis", [((7,), 0), ((3, 1), -1), ((2, 8, 3), 1), ((5, 13), -1)])
def test_sort(shape, axis):
    x = array(*shape)
    check(lambda t: topi.sort(t, axis), [x], np.sort(x, axis))
    check(lambda t: topi.sort(t, axis, False), [x], -np.sort(-x, axis))
    i = array(*shape, dtype="int32", low=0, high=4)  # with ties: they stay in order
    check(lambda t: topi.argsort(t, None, axis, 1, "int32"), [i],
          np.argsort(i, axis, kind="stable"))
    check(lambda t: topi.argsort(t, None, axis, 0, "int64"), [i],
          np.argsort(-i, axis, kind="stable"))


def test_not_a_number_goes_to_the_end():
    x = np.array([2, np.nan, 1, 3], "float32")
    np.testing.assert_array_equal(run(topi.sort, x), np.sort(x))


def test_only_the_valid_part_is_sorted():
    x, count = np.array([[3, 1, 2, 0.0], [9, 8, 7, 6]], "float32"), np.array([3, 2], "int32")
    check(lambda t, n: topi.argsort(t, n, 1, 1, "int32"), [x, count],
          [[1, 2, 0, 3], [1, 0, 2, 3]])


@pytest.mark.parametrize("k, axis", [(3, -1), (2, 0), (0, 1)])
def test_topk(k, axis):
    x = array(4, 6)
    order = np.argsort(-x, axis, kind="stable")
    keep = np.take(order, np.arange(k or x.shape[axis]), axis)
    check(lambda t: topi.topk(t, k, axis), [x], [np.take_along_axis(x, keep, axis), keep])
    check(lambda t: topi.topk(t, k, axis, "values"), [x], np.take_along_axis(x, keep, axis))
    check(lambda t: topi.topk(t, k, axis, "indices", dtype="int32"), [x], keep)


def test_searchsorted():
    s, v = np.sort(array(9)), array(2, 5)
    check(topi.searchsorted, [s, v], np.searchsorted(s, v))
    i = array(9, dtype="int32", low=0, high=4)
    i.sort()
    check(lambda a, b: topi.searchsorted(a, b, True), [i, i], np.searchsorted(i, i, "right"))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_running_totals(axis):
    x = array(3, 4, 2)
    check(lambda t: topi.cumsum(t, axis), [x], np.cumsum(x, axis))
    check(lambda t: topi.cumprod(t, axis), [x], np.cumprod(x, axis))


def test_running_totals_without_axis_and_exclusive():
    x = array(3, 4)
    check(topi.cumsum, [x], np.cumsum(x))
    check(lambda t: topi.cumsum(t, 1, "float64", True), [x],
          np.cumsum(x, 1).astype("float64") - x)


def test_sorting_is_tensorir_that_the_interpreter_runs_too():
    x = te.placeholder((2, 5), name="x")
    a = array(2, 5)
    out = np.empty_like(a)
    interpret(te.create_prim_func([x, topi.sort(x)]), a, out)
    np.testing.assert_array_equal(out, np.sort(a))


def test_refusals():
    with pytest.raises(ValueError, match="9 of the 6 elements"):
        topi.topk(te.placeholder((4, 6)), 9)

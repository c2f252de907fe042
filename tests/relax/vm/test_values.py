"""Summaries of tensors: statistics, numbers of small ones, pictures of large ones."""

import json

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.relax.vm.values import COLUMNS, HUGE, ROWS, Summaries, summary


def test_a_small_tensor_is_told_in_numbers():
    found = summary(np.array([[1, 0], [-2, 4]], "int32"))
    assert found["numbers"] == [1, 0, -2, 4] and found["picture"] is None
    assert (found["min"], found["max"], found["mean"], found["zeros"]) == (-2, 4, 0.75, 1)


def test_what_is_not_finite_is_counted_and_left_out_of_the_rest():
    found = summary(np.array([1.0, np.nan, np.inf, -np.inf, 3.0], "float32"))
    assert (found["nan"], found["inf"]) == (1, 2)
    assert (found["min"], found["max"], found["mean"]) == (1, 3, 2)
    assert found["numbers"] == [1.0, "nan", "inf", "-inf", 3.0]
    none = summary(np.array([np.nan], "float32"))
    assert none["min"] is None and none["mean"] is None
    json.dumps(found, allow_nan=False)


def test_a_picture_has_the_means_of_blocks():
    array = np.zeros((2 * ROWS, 4 * COLUMNS), "float32")
    array[:2, :4], array[-2:, -4:] = 8, -4
    picture = summary(array)["picture"]
    assert (picture["rows"], picture["columns"]) == (ROWS, COLUMNS)
    assert (picture["low"], picture["high"]) == (-8, 8)  # zero is in the middle
    assert picture["cells"][0] == "8" and picture["cells"][-1] == "2"
    assert set(picture["cells"][1:-1]) == {"4"}


def test_without_negative_numbers_a_picture_goes_from_the_least_to_the_most():
    picture = summary(np.arange(80, dtype="float64").reshape(1, 80))["picture"]
    assert picture["rows"] == 1 and picture["columns"] == COLUMNS
    assert picture["cells"][0] == "0" and picture["cells"][-1] == "8"
    assert picture["cells"] == "".join(sorted(picture["cells"]))


def test_a_block_that_is_not_finite_is_marked():
    array = np.ones((ROWS, COLUMNS), "float16")
    array[3, 5] = np.nan
    cells = summary(array)["picture"]["cells"]
    assert cells[3 * COLUMNS + 5] == "x" and cells.count("x") == 1
    assert set(summary(np.full((9, 9), np.inf, "float32"))["picture"]["cells"]) == {"x"}


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (65,), (2, 3, 4, 5)])
def test_tensors_of_all_shapes(shape):
    found = summary(np.ones(shape, "bool"))
    assert found["shape"] == list(shape) and found["zeros"] == 0
    assert (found["numbers"] is None) == (np.prod(shape) > 64)


def test_looking_ends_with_the_time_and_at_huge_tensors():
    one = tvm.nd.array(np.ones(4, "float32"))
    looks = Summaries(most=2)
    assert [looks.of(one) is None for _ in range(3)] == [False, False, True]
    assert Summaries(seconds=0.0).of(one) is None

    class Huge:
        dtype = "float32"

        def _view(self):
            return np.broadcast_to(np.float32(1), (HUGE,))

    assert Summaries().of(Huge()) is None


def test_a_brain_float_is_read_as_a_number():
    found = Summaries().of(tvm.nd.array(np.array([1.5, -2.0], "float32")).astype("bfloat16")
                           if hasattr(tvm.nd.NDArray, "astype") else tvm.nd.empty((2,), "bfloat16"))
    assert found["dtype"] == "bfloat16" and len(found["numbers"]) == 2


def test_what_works_on_values_alone_is_called_by_name():
    """Programs around a language model give the result of one function another shape."""
    x = tvm.nd.array(np.arange(6, dtype="float32"))
    y = tvm.get_global_func("vm.builtin.reshape")(x, tvm.runtime.ShapeTuple([2, 3]))
    assert y.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tuple(tvm.get_global_func("vm.builtin.shape_of")(y)) == (2, 3)
    assert tvm.get_global_func("vm.builtin.copy")(y).numpy().tolist() == y.numpy().tolist()
    pair = tvm.get_global_func("vm.builtin.make_tuple")(x, y)
    assert tvm.get_global_func("vm.builtin.tuple_getitem")(pair, 1).shape == (2, 3)

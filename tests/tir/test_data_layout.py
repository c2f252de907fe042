"""Layouts of data: their axes, and indices and shapes from one to another."""

import numpy as np
import pytest

from mlc_lab import tir


def numbers(values):
    return [int(v) for v in values]


def test_a_layout_says_its_axes():
    layout = tir.layout("NCHW16c")
    assert isinstance(layout, tir.Layout) and len(layout) == 5
    assert (layout[0], layout[-1], layout.index_of("H"), layout.index_of("O")) == ("N", "c", 2, -1)
    assert (layout.factor_of("c"), layout.factor_of("C"), layout.factor_of("N")) == (16, 16, -1)
    assert "c" in layout and "O" not in layout
    assert tir.layout("NCHW", dtype="int64").axes[2].dom.extent.dtype == "int64"
    for wrong in ("NC16", "NHW4c", "NN"):
        with pytest.raises(ValueError):
            tir.layout(wrong)
    with pytest.raises(TypeError, match="int32 or int64"):
        tir.layout("NCHW", dtype="float32")


def test_indices_and_shapes_go_to_another_layout_and_back():
    there = tir.bijective_layout("NCHW", "NHWC8c")
    shape = numbers(there.forward_shape((2, 16, 3, 5)))
    assert shape == [2, 3, 5, 2, 8]
    assert numbers(there.backward_shape(shape)) == [2, 16, 3, 5]
    for index in np.ndindex(2, 16, 3, 5):
        new = numbers(there.forward_index(index))
        assert all(0 <= i < n for i, n in zip(new, shape))
        assert tuple(numbers(there.backward_index(new))) == index
    with pytest.raises(ValueError, match="no multiple of 8"):
        there.forward_shape((2, 12, 3, 5))


@pytest.mark.parametrize("pair", [("NCHW", "ABCD"), ("__undef__", "NCHW"), ("", ""), ("NCHW", "")])
def test_layouts_of_other_axes_have_no_map(pair):
    assert tir.bijective_layout(*pair) is None

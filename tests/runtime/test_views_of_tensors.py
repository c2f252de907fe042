"""Views of tensors: other shapes and parts of the same memory."""

import numpy as np
import pytest

import mlc_lab as tvm


def test_a_view_is_the_same_memory():
    tensor = tvm.nd.array(np.arange(1024, dtype="int32"))
    half = tensor._create_view([16, 32], relative_byte_offset=512 * 4)
    np.testing.assert_array_equal(half.numpy(), np.arange(512, 1024).reshape(16, 32))
    quarter = half._create_view([256], relative_byte_offset=256 * 4)
    quarter[0] = -1
    assert tensor[768] == -1
    assert tensor._create_view([2048], "int16").shape == (2048,)
    del tensor, half
    assert quarter[1] == 769


@pytest.mark.parametrize("shape, offset", [([2048], 0), ([1024], 2048), ([1], -4), ([1024], 4)])
def test_a_view_of_what_is_not_there_is_refused(shape, offset):
    tensor = tvm.nd.array(np.arange(1024, dtype="int32"))
    with pytest.raises(ValueError, match="only contains 4096 bytes"):
        tensor._create_view(shape, relative_byte_offset=offset)

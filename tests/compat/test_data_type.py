"""tvm.DataType: the parts of the name of a type."""

import pytest

import mlc_lab as tvm


def test_a_type_says_its_parts():
    vector = tvm.DataType("float32x4")
    assert vector == "float32x4"
    assert (vector.type_code, vector.bits, vector.lanes, vector.itemsize()) == ("float", 32, 4, 16)
    assert tvm.DataType("bool").itemsize() == 1
    with pytest.raises(ValueError, match="unknown dtype"):
        tvm.DataType("int32xvscalex4")

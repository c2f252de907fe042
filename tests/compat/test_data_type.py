"""tvm.DataType: the parts of the name of a type."""

import pytest

import mlc_lab as tvm


def test_a_type_says_its_parts():
    vector = tvm.DataType("float32x4")
    assert vector == "float32x4"
    assert vector.type_code is tvm.DataTypeCode.FLOAT and vector.type_code == 2
    assert (vector.bits, vector.lanes, vector.itemsize()) == (32, 4, 16)
    codes = [tvm.DataType(t).type_code for t in ("int8", "uint8", "bool", "handle", "bfloat16",
                                                 "float8_e4m3fn", "float8_e5m2")]
    assert codes == [0, 1, 1, 3, 4, 6, 7]
    assert tvm.DataType("bool").itemsize() == 1
    with pytest.raises(ValueError, match="unknown dtype"):
        tvm.DataType("int32xvscalex4")

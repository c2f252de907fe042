"""Buffers: what they are declared with."""

import pytest

from mlc_lab.ir import DiagnosticError
from mlc_lab.runtime import empty
from mlc_lab.script import from_source
from mlc_lab.tir import Range, decl_buffer


def test_the_scope_of_another_buffer_is_a_scope_like_its_name():
    other = decl_buffer((4,), scope="local")
    made = decl_buffer((4,), scope=other.scope)
    assert type(made.data.type_annotation.storage_scope) is str


@pytest.mark.parametrize("given, message", [
    ({"shape": (2.5,)}, "buffer A has the extent 2.5: it must be a whole number"),
    ({"shape": 2.5}, "buffer A has the extent 2.5"),
    ({"shape": (True,)}, "of type bool: it must be an integer"),
    ({"shape": (4, -1)}, "buffer A has a negative extent: -1"),
    ({"shape": (4,), "strides": [1.5]}, "buffer A has the stride .* of type float32"),
    ({"shape": (Range(0, 4),)}, "buffer A has the extent .* of type Range: it must be an integer"),
    ({"shape": (4,), "elem_offset": 0.5}, "buffer A has the elem_offset .* of type float32")])
def test_what_is_no_integer_is_no_extent(given, message):
    with pytest.raises(ValueError, match=message):
        decl_buffer(name="A", **given)


def test_a_quotient_that_is_whole_is_an_extent():
    assert decl_buffer((64 / 8, 2)).shape[0].value == 8 and empty((64 / 8,)).shape == (8,)


@pytest.mark.parametrize("line", [
    "A = T.alloc_buffer((2.5,))", "A = T.decl_buffer((2.5,))", "A = T.match_buffer(a, (2.5,))",
    "A = T.Buffer((2.5,), data=a)", "A = T.allocate([2.5], 'float32')"])
def test_a_script_shows_where_a_wrong_extent_stands(line):
    with pytest.raises(DiagnosticError, match="(?s):4:.*has the extent 2.5: .*whole number"):
        from_source(f"# from tvm.script import tir as T\n@T.prim_func\ndef f(a: T.handle):\n"
                    f"    {line}\n    T.evaluate(0)\n")


@pytest.mark.parametrize("shape", [(2.5,), 2.5, (-1,), (None,)])
def test_tensors_of_such_shapes_are_not_made(shape):
    with pytest.raises(ValueError, match="must be a whole number that is not negative"):
        empty(shape)


def test_only_the_last_index_is_a_slice_with_a_step():
    buffer = decl_buffer((8, 8), name="A")
    assert buffer[1, 0:8:2].indices[1].lanes == 4 and buffer[1, ::4].indices[1].lanes == 2
    for wrong in ((slice(0, 4, 2), 1), (slice(0, 4), slice(0, 4, 2))):
        with pytest.raises(ValueError, match="a load of A by slices with steps: only the last"):
            buffer[wrong]


@pytest.mark.parametrize("strides", [(1,), (8, 1, 1)])
def test_each_dimension_has_one_stride(strides):
    with pytest.raises(ValueError, match=r"2 dimension\(s\) and \d strides"):
        decl_buffer((4, 4), strides=strides)

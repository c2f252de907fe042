"""What TVM 0.18 refuses of nodes, and what its buffers and functions answer."""

import pytest

import mlc_lab as tvm
from mlc_lab import tir
from mlc_lab.ir import structural_equal
from mlc_lab.script import from_source
from mlc_lab.tir import Buffer


def test_nodes_refuse_what_tvm_refuses():
    one, zero = tir.IntImm("int32", 1), tir.IntImm("int32", 0)
    for wrong in (lambda: tir.FloatImm("int32", 1.0), lambda: tir.Var(1, "int32"),
                  lambda: tir.IntImm("int8", 128), lambda: one // zero, lambda: one % zero):
        with pytest.raises(tvm.TVMError):
            wrong()


def test_pointers_and_offsets_of_a_buffer():
    m, n = tir.SizeVar("m", "int32"), tir.SizeVar("n", "int32")
    padded = tir.decl_buffer((m, n), strides=[n + 1, 1])
    pointer = padded.access_ptr("rw", offset=100)
    assert structural_equal(pointer.args[3], padded.strides[0] * m - 100)
    assert pointer.args[4].value == Buffer.READ | Buffer.WRITE
    (offset,) = tir.decl_buffer((m, n), elem_offset=100).offset_of([2, 3])
    assert structural_equal(offset, n * 2 + 103)


def test_flat_views_of_a_buffer():
    flat = tir.decl_buffer([16])
    assert flat.get_flattened_buffer() is flat
    apart = tir.decl_buffer([4, 16, 32], axis_separators=[2]).get_flattened_buffer()
    assert [int(d) for d in apart.shape] == [64, 32] and apart.axis_separators == (1,)
    with pytest.raises(ValueError, match="places between its 1 dimensions"):
        tir.decl_buffer([1], axis_separators=[1, 2])


def test_a_size_that_is_known_is_no_parameter_any_more():
    func = from_source("""
    @T.prim_func
    def main(a: T.handle, b: T.handle, n: T.int32, p: T.int32, q: T.int32):
        A = T.match_buffer(a, (4, n), "float32", strides=[p, 1], elem_offset=q)
        B = T.match_buffer(b, (4, n), "float32")
        for i, j in T.grid(4, n):
            B[i, j] = A[i, j]
    """)
    assert func.specialize({}) is func
    made = func.specialize({func.params[0]: tir.decl_buffer((4, 16), strides=[20, 1],
                                                             elem_offset=8)})
    assert len(made.params) == 2
    buffer = made.buffer_map[made.params[0]]
    numbers = [int(e) for e in (*buffer.shape, *buffer.strides, buffer.elem_offset)]
    assert numbers == [4, 16, 20, 1, 8]


def test_a_string_constant_is_compared_with_strings():
    word = tir.StringImm("unroll")
    assert word == "unroll" and word != "other" and word == tir.StringImm("unroll")
    assert {word: 1}[tir.StringImm("unroll")] == 1

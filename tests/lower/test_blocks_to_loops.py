"""ConvertBlocksToOpaque, LowerMatchBuffer, LowerOpaqueBlock, FlattenBuffer."""

import numpy as np
import pytest
from mlc_lab.backend.interp import interpret
from mlc_lab.ir import structural_equal
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import ConvertBlocksToOpaque, LowerError, LowerOpaqueBlock, lower
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.script import tir as T
from mlc_lab.tir import stmt as S
from mlc_lab.tir.expr import BufferLoad
from mlc_lab.tir.functor import pre_order
from .programs import check_stages, matmul


@T.prim_func
def opaque(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i0, i1 in T.grid(4, 2):
        with T.block("B"):
            vi = T.axis.spatial(8, i0 * 2 + i1)
            T.where(i0 * 2 + i1 < 7)
            B[vi] = A[vi]


@T.prim_func
def expected_flat(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i0, i1 in T.grid(4, 2):
        if i0 * 2 + i1 < 7:
            B[i0 * 2 + i1] = A[i0 * 2 + i1]


def test_iterators_and_predicates_become_expressions_and_ifs():
    check_stages(opaque)
    after = lower(opaque, until="FlattenBuffer")["main"]
    assert structural_equal(after, expected_flat) is True


@T.prim_func
def windows(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i, j in T.grid(4, 2):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4:vi * 4 + 4, vj * 8:vj * 8 + 8])
            T.writes(B[vi * 4:vi * 4 + 4, vj * 8:vj * 8 + 8])
            s0 = T.int32()
            s1 = T.int32()
            Aw = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 8:vj * 8 + 8], (4, 8), "float32",
                                strides=[s0, 1], offset_factor=1)
            Bw = T.match_buffer(B[vi * 4:vi * 4 + 4, vj * 8:vj * 8 + 8], (4, 8), "float32",
                                strides=[s1, 1], offset_factor=1)
            for a, b in T.grid(4, 8):
                Bw[a, b] = Aw[a, b] + T.Cast("float32", s0) + T.Cast("float32", Bw.elem_offset)


def test_match_buffer():
    found = check_stages(windows)
    buffers = {x.buffer.name for x in pre_order(found["LowerIntrin"]["main"].body)
               if isinstance(x, (S.BufferStore, BufferLoad))}
    assert buffers == {"A", "B"}


@T.prim_func
def row_windows(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i in range(4):
        with T.block("row"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi, 0:8])
            T.writes(B[vi])
            row = T.match_buffer(A[vi, 0:8], (8,), "float32", offset_factor=1)
            B[vi] = T.float32(0)
            for k in range(8):
                B[vi] = B[vi] + row[k]


def test_match_buffer_of_fewer_dimensions():
    check_stages(row_windows)


@T.prim_func
def strided(a: T.handle, b: T.handle):
    T.func_attr({"global_symbol": "main"})
    A = T.match_buffer(a, (4, 6), "float32", strides=[8, 1])
    B = T.match_buffer(b, (4, 6), "float32")
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0


def test_strides_of_a_parameter():
    memory = np.random.default_rng(0).random((4, 8), np.float32)
    out = np.zeros((4, 6), "float32")
    interpret(lower(strided), memory[:, :6], out)
    np.testing.assert_array_equal(out, memory[:, :6] * 2)


@T.prim_func
def scalar_buffer(A: T.Buffer((), "float32"), B: T.Buffer((2, 2), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i, j in T.grid(2, 2):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[()]


def test_buffer_without_dimensions():
    check_stages(scalar_buffer)


def test_unit_loops_disappear_and_pragmas_become_attributes():
    s = Schedule(matmul)
    i, j, k = s.get_loops(s.get_block("C"))
    s.add_unit_loop(i)
    s.annotate(j, "pragma_auto_unroll_max_step", 16)
    s.annotate(k, "my_note", 3)
    check_stages(s.mod)
    body = lower(s.mod, until="LowerOpaqueBlock")["main"].body
    assert body.extent.value == 13
    assert type(body.body) is S.AttrStmt and body.body.attr_key == "pragma_auto_unroll_max_step"
    assert "my_note" in body.body.body.body.annotations


def test_a_condition_that_uses_an_iterator_of_its_block_is_refused():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            T.where(v < 6)
            A[v] = T.float32(1)
""", check_well_formed=False)
    with pytest.raises(LowerError, match="the condition v < 6 of block 'A' uses v"):
        ConvertBlocksToOpaque()(IRModule({"main": program}))


def test_blocks_that_are_not_opaque_yet_are_refused():
    with pytest.raises(LowerError, match="comes after LowerInitBlock"):
        LowerOpaqueBlock()(IRModule({"main": matmul}))


def test_one_thread_axis_has_one_extent():
    @T.prim_func
    def twice(A: T.Buffer((8,), "float32")):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            for j in T.thread_binding(2, thread="threadIdx.x"):
                A[i * 2 + j] = T.float32(0)

    with pytest.raises(LowerError, match="one axis has one extent"):
        lower(twice, target="cuda")


def test_the_same_thread_axis_again_is_the_same_thread():
    @T.prim_func
    def twice(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        T.func_attr({"global_symbol": "main"})
        for i in T.thread_binding(4, thread="threadIdx.x"):
            A[i] = i
            for j in T.thread_binding(4, thread="threadIdx.x"):
                B[j] = A[j] * 2

    out = [np.zeros(4, "int32"), np.zeros(4, "int32")]
    interpret(lower(twice, target="cuda"), *out)
    assert out[1].tolist() == [0, 2, 4, 6]

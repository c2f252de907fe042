"""StorageRewrite: memory is reused where its last user is done."""

from mlc_lab.lower import lower
from mlc_lab.script import tir as T
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order
from .programs import check_stages


def sizes(program):
    check_stages(program)
    return [int(s.extents[0]) for s in pre_order(lower(program)["main"].body)
            if isinstance(s, S.Allocate)]


@T.prim_func
def pipeline(A: T.Buffer((40, 64), "float32"), D: T.Buffer((40, 64), "float32")):
    T.func_attr({"global_symbol": "main"})
    B = T.alloc_buffer((40, 64))
    C = T.alloc_buffer((40, 64))
    E = T.alloc_buffer((64, 40))
    for i, j in T.grid(40, 64):
        B[i, j] = A[i, j] * 2.0
    for i, j in T.grid(40, 64):
        C[i, j] = B[i, j] + 1.0
    for i, j in T.grid(40, 64):
        E[j, i] = C[i, j]
    for i, j in T.grid(40, 64):
        D[i, j] = E[j, i] + 1.0


def test_in_place_and_not_where_elements_move():
    assert sizes(pipeline) == [2560, 2560]


@T.prim_func
def repeated(A: T.Buffer((40, 64), "float32"), D: T.Buffer((40, 64), "float32")):
    T.func_attr({"global_symbol": "main"})
    B = T.alloc_buffer((40, 64))
    C = T.alloc_buffer((40, 64))
    for i, j in T.grid(40, 64):
        B[i, j] = A[i, j] * 2.0
    for k, i, j in T.grid(3, 40, 64):
        C[i, j] = B[i, j] * 2.0 + T.Cast("float32", k)
    for i, j in T.grid(40, 64):
        D[i, j] = C[i, j]


def test_an_element_written_more_than_once_is_not_in_place():
    assert sizes(repeated) == [2560, 2560]


@T.prim_func
def still_needed(A: T.Buffer((40, 64), "float32"), D: T.Buffer((40, 64), "float32")):
    T.func_attr({"global_symbol": "main"})
    B = T.alloc_buffer((40, 64))
    C = T.alloc_buffer((40, 64))
    for i, j in T.grid(40, 64):
        B[i, j] = A[i, j] * 2.0
    for i, j in T.grid(40, 64):
        C[i, j] = B[i, j] + 1.0
    for i, j in T.grid(40, 64):
        D[i, j] = C[i, j] + B[39 - i, j]


def test_what_is_still_needed_is_kept():
    assert sizes(still_needed) == [2560, 2560]


@T.prim_func
def small(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    T.func_attr({"global_symbol": "main"})
    B = T.alloc_buffer((8,))
    C = T.alloc_buffer((8,))
    for i in range(8):
        B[i] = A[i] * 2.0
    for i in range(8):
        C[i] = B[i] + 1.0
    for i in range(8):
        D[i] = C[i]


def test_small_buffers_are_left_to_become_registers():
    assert sizes(small) == [8, 8]


@T.prim_func
def types(A: T.Buffer((2048,), "float32"), D: T.Buffer((2048,), "float32")):
    T.func_attr({"global_symbol": "main"})
    B = T.alloc_buffer((2048,), "int32")
    C = T.alloc_buffer((2048,), "float32")
    for i in range(2048):
        B[i] = T.Cast("int32", A[i])
    for i in range(2048):
        C[i] = T.Cast("float32", B[i])
    for i in range(2048):
        D[i] = C[i]


def test_types_do_not_share():
    assert sizes(types) == [2048, 2048]


@T.prim_func
def declared_first(A: T.Buffer((2048,), "float32"), D: T.Buffer((2048,), "float32")):
    T.func_attr({"global_symbol": "main"})
    C = T.alloc_buffer((2048,))
    B = T.alloc_buffer((2048,))
    for i in range(2048):
        B[i] = A[i] * 2.0
    for i in range(2048):
        C[i] = B[i] + 1.0
    for i in T.thread_binding(2048, "blockIdx.x"):
        D[i] = C[i]


def test_memory_is_there_before_what_lives_in_it_is_declared():
    assert sizes(declared_first) == [2048]

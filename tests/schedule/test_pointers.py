"""A buffer whose pointer is handed to a function: what moves its elements is refused."""

import numpy as np
import pytest
import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.script import from_source

TEXT = """
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), C: T.Buffer((4, 6), "float32")):
    Y = T.alloc_buffer((4, 6), "float32")
    for i, j in T.grid(4, 6):
        with T.block("Y"):
            v, w = T.axis.remap("SS", [i, j])
            Y[v, w] = A[v, w] * T.float32(2)
    with T.block("P"):
        T.reads(Y[0:4, 0:6])
        T.writes(Y[0:4, 0:6])
        T.call_packed("tests.double", T.tvm_stack_make_array(
            POINTER, T.tvm_stack_make_shape(4, 6, dtype="handle"), 0, 2, T.float32(0), 0,
            dtype="handle"))
    for i, j in T.grid(4, 6):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = Y[v, w] + T.float32(1)
"""
POINTERS = ["Y.data", "T.address_of(Y[0, 0])", 'Y.access_ptr("rw")']

#: what keeps every element where it was, and what does not
KEPT = {
    "set_scope": lambda s: s.set_scope(s.get_block("Y"), 0, "local"),
    "reindex": lambda s: s.reindex(s.get_block("C"), ("read", 0)),
    "cache_inplace": lambda s: s.cache_inplace(s.get_block("P"), 0, "global"),
    "parallel": lambda s: s.parallel(s.get_loops(s.get_block("Y"))[0]),
    "blockize": lambda s: s.blockize(s.get_loops(s.get_block("Y"))[1]),
}
MOVED = {
    "storage_align": lambda s: s.storage_align(s.get_block("Y"), 0, 0, 8, 0),
    "narrower": lambda s: s.unsafe_set_dtype(s.get_block("Y"), 0, "float16"),
    "wider": lambda s: s.unsafe_set_dtype(s.get_block("Y"), 0, "float64"),
    "transform_layout": lambda s: s.transform_layout(s.get_block("Y"), ("write", 0),
                                                     lambda i, j: (j, i)),
    "rolling_buffer": lambda s: s.rolling_buffer(s.get_block("Y"), 0),
}


@tvm.register_func("tests.double", override=True)
def double(array):
    if hasattr(array, "copyfrom"):
        array.copyfrom(array.numpy() * 2)
    else:
        array *= 2


@pytest.mark.parametrize("pointer", POINTERS)
@pytest.mark.parametrize("name", KEPT)
def test_what_keeps_elements_in_their_places_keeps_the_result(pointer, name):
    sch = tvm.tir.Schedule(from_source(TEXT.replace("POINTER", pointer)))
    KEPT[name](sch)
    a = np.arange(24, dtype="float32").reshape(4, 6)
    here = np.zeros_like(a)
    interpret(sch.mod["main"], a, here)
    built = tvm.nd.array(np.zeros_like(a))
    tvm.build(sch.mod, target="llvm")["main"](tvm.nd.array(a), built)
    for got in (here, built.numpy()):
        np.testing.assert_array_equal(got, a * 4 + 1)


@pytest.mark.parametrize("pointer", POINTERS)
@pytest.mark.parametrize("name", MOVED)
def test_what_moves_elements_is_refused(pointer, name):
    sch = tvm.tir.Schedule(from_source(TEXT.replace("POINTER", pointer)))
    with pytest.raises(tvm.tir.ScheduleError):
        MOVED[name](sch)


def test_a_view_whose_pointer_is_handed_on_is_used_as_its_block_says():
    """The block writes C through a view, and reads nothing of it: it may write a copy instead."""
    sch = tvm.tir.Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((32, 32), "float16"), C: T.Buffer((32, 32), "float16")):
    for i, j in T.grid(2, 2):
        with T.block("load"):
            v, w = T.axis.remap("SS", [i, j])
            T.reads(A[v * 16:v * 16 + 16, w * 16:w * 16 + 16])
            T.writes(C[v * 16:v * 16 + 16, w * 16:w * 16 + 16])
            F = T.match_buffer(C[v * 16:v * 16 + 16, w * 16:w * 16 + 16], (16, 16), "float16",
                               strides=(32, 1), offset_factor=1)
            G = T.match_buffer(A[v * 16:v * 16 + 16, w * 16:w * 16 + 16], (16, 16), "float16",
                               strides=(32, 1), offset_factor=1)
            T.evaluate(T.tvm_load_matrix_sync(F.data, 16, 16, 16, v * 2 + w, G.access_ptr("r"), 32,
                                              "row_major", dtype="handle"))
"""))
    block = sch.get(sch.get_block("load"))
    assert [r.buffer.name for r in block.reads] == ["A"]
    sch.cache_write("load", 0, "global")
    assert [r.buffer.name for r in sch.get(sch.get_block("load")).writes] == ["C_global"]

"""Views of buffers (tensor intrinsics) that declare strides: what is accepted can be built."""

import numpy as np
import pytest

import mlc_lab
from mlc_lab.schedule import ScheduleError
from mlc_lab.script import from_source
from mlc_lab.tir import Schedule, TensorIntrin

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"{strides}), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
"""
INTRINSIC = """
@T.prim_func
def double(a: T.handle, b: T.handle):
    s0, s1, t0, t1 = T.int32(), T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1, strides=[{0}, {1}])
    B = T.match_buffer(b, (4, 4), "float32", offset_factor=1, strides=[{2}, {3}])
    with T.block("root"):
        T.reads(A[0:4, 0:4])
        T.writes(B[0:4, 0:4])
        for i, j in T.grid(4, 4):
            with T.block("x"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
"""


def tensorized(block, *strides, before=lambda sch: None, first=""):
    name = "double_" + "_".join(map(str, strides))
    func = from_source("# from tvm.script import tir as T" + INTRINSIC.format(*strides))
    TensorIntrin.register(name, func, func, override=True)
    sch = Schedule(from_source("# from tvm.script import tir as T" + PROGRAM.format(strides=first)))
    before(sch)
    i, j = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(i0, j0, i1, j1)
    sch.tensorize(i1, name)
    return sch


def holds(sch):
    a, out = np.random.default_rng(0).random((16, 16), "float32"), np.zeros((16, 16), "float32")
    mlc_lab.build(sch.mod)["main"](a, out)
    np.testing.assert_allclose(out, a * 4)


def refused(step):
    with pytest.raises(ScheduleError, match="views_have_their_strides") as caught:
        step()
    assert "strides=[s0, s1]" in str(caught.value)


@pytest.mark.parametrize("strides, axis, factor, offset, fits", [
    (("s0", 1), 1, 16, 0, False), (("s0", 1), 1, 2, 1, True), (("s0", 1), 0, 32, 8, True),
    (("s0", "s1"), 1, 16, 0, True), (("s0", "s1"), 0, 32, 8, True),
    ((16, 1), 0, 32, 0, False), ((16, 1), 0, 16, 0, True), ((16, "s1"), 1, 4, 0, False)])
def test_storage_align_leaves_views_the_strides_that_they_declare(strides, axis, factor, offset,
                                                                  fits):
    def align(sch):
        sch.storage_align("B", 0, axis, factor, offset)

    sch = tensorized("C", *strides, "t0", 1)
    if fits:
        align(sch)
        holds(sch)
        holds(tensorized("C", *strides, "t0", 1, before=align))
    else:
        refused(lambda: align(sch))
        holds(sch)
        refused(lambda: tensorized("C", *strides, "t0", 1, before=align))


def test_an_intrinsic_with_strides_of_another_buffer_is_refused():
    refused(lambda: tensorized("B", 4, 1, "t0", 1))
    refused(lambda: tensorized("B", 16, 1, "t0", 1, first=", strides=(32, 1)"))
    # one variable for the strides of both, which differ
    refused(lambda: tensorized("B", "s0", 1, "s0", 1, first=", strides=(32, 1)"))
    holds(tensorized("B", "s0", 1, "s0", 1))


def test_a_copy_with_other_strides_is_refused():
    sch = tensorized("B", 32, 1, "t0", 1, first=", strides=(32, 1)")
    refused(lambda: sch.cache_read(sch.get_block("B_o"), 0, "global"))
    sch = tensorized("B", "s0", 1, "t0", 1)
    sch.cache_read(sch.get_block("B_o"), 0, "global")
    holds(sch)


@pytest.mark.parametrize("loop", [0, 1])
def test_an_allocation_keeps_the_size_that_a_view_declares(loop):
    """Without the view, B would shrink to the 4 x 4 elements that an iteration touches."""
    sch = tensorized("C", 16, 1, "t0", 1)
    sch.compute_at("B", sch.get_loops("C_o")[loop])
    holds(sch)

"""normalize_prim_func: what rules of one's own ask about blocks."""

from __future__ import annotations

import mlc_lab as tvm
from mlc_lab import dlight, tir
from mlc_lab.script import tir as T


@T.prim_func
def softmax_max(A: T.Buffer((1, 8, 16), "float32"), B: T.Buffer((1, 8), "float32"),
                C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    for z, i, k in T.grid(1, 8, 16):
        with T.block("max"):
            vz, vi, vk = T.axis.remap("SSR", [z, i, k])
            with T.init():
                B[vz, vi] = T.float32(-1)
            B[vz, vi] = T.max(B[vz, vi], A[vz, vi, vk])
    for i in range(8):
        with T.block("twice"):
            vi = T.axis.spatial(8, i)
            D[vi] = C[vi] * T.float32(2)


def test_blocks_in_a_plain_form():
    sch = tir.Schedule(softmax_max)
    most, twice = dlight.normalize_prim_func(sch)
    assert str(most) == 'BlockInfo("max", "SR", [8, 16])' and most.is_reduction()
    assert str(twice.iters) == '[Iter("S", 8)]'
    assert not most.is_injective() and twice.is_elementwise(sch) and not twice.is_reduction()
    assert len(sch.get_loops(most.block_rv)) == 2  # the loop of one iteration is gone
    sch.parallel(most.iters[0].loop_rv)
    tvm.build(sch.mod["main"], "llvm")


def test_one_value_alone_keeps_a_loop():
    @T.prim_func
    def total(A: T.Buffer((16,), "float32"), B: T.Buffer((1,), "float32")):
        for z, k in T.grid(1, 16):
            with T.block("sum"):
                vz, vk = T.axis.remap("SR", [z, k])
                with T.init():
                    B[vz] = T.float32(0)
                B[vz] = B[vz] + A[vk]

    (block,) = dlight.normalize_prim_func(tir.Schedule(total))
    assert block.dom() == [1, 16] and block.dom_kind() == "SR"


def test_blocks_that_are_not_over_whole_loops():
    sch = tir.Schedule(softmax_max)
    sch.split(sch.get_loops(sch.get_block("twice"))[0], [2, None])
    assert dlight.normalize_prim_func(sch) is None

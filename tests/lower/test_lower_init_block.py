"""LowerInitBlock: the init runs where every reduction iterator is at its start."""

from mlc_lab.ir import structural_equal
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import LowerInitBlock
from mlc_lab.script import tir as T
from .programs import arguments, matmul, run


@T.prim_func
def reduction(A: T.Buffer((4, 3, 2), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i, j, k in T.grid(4, 3, 2):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                B[vi] = T.float32(1)
            B[vi] = B[vi] + A[vi, vj, vk]


@T.prim_func
def expected(A: T.Buffer((4, 3, 2), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i, j, k in T.grid(4, 3, 2):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            T.reads(A[vi, vj, vk])
            T.writes(B[vi])
            if vj == 0 and vk == 0:
                B[vi] = T.float32(1)
            B[vi] = B[vi] + A[vi, vj, vk]


def test_two_reduction_iterators():
    after = LowerInitBlock()(IRModule({"main": reduction}))
    assert structural_equal(after["main"], expected) is True
    args = arguments(reduction)
    assert (run(after, args)[1] == run(IRModule({"main": reduction}), args)[1]).all()


def test_a_module_without_init_is_the_same_object():
    mod = LowerInitBlock()(IRModule({"main": matmul}))
    assert LowerInitBlock()(mod) is mod

"""A function under @T.prim_func in a class: parsed at once unless the class is a module."""

import mlc_lab as tvm
from mlc_lab.script import ir as I
from mlc_lab.script import tir as T


class Plain:
    n = 8

    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)


@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)


def test_of_a_plain_class_it_is_a_function_of_tensor_ir():
    assert isinstance(Plain.f, tvm.tir.PrimFunc)
    assert Plain.f.with_attr("x", 1).attrs["x"] == 1


def test_of_a_module_it_belongs_to_the_module():
    assert isinstance(Module, tvm.IRModule)
    assert tvm.ir.structural_equal(Module["f"], Plain.f)

"""`script.ir_builder`: the words of the script, executed."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.ir import assert_structural_equal
from mlc_lab.script import from_source
from mlc_lab.script.ir_builder import IRBuilder
from mlc_lab.script.ir_builder import ir as I
from mlc_lab.script.ir_builder import tir as T
from mlc_lab.tir import Var


def test_a_function_is_what_its_script_says_and_runs():
    with IRBuilder() as ib:
        with T.prim_func():
            T.func_name("scaled")
            A = T.arg("A", T.Buffer((8, 8), "float32"))
            B = T.arg("B", T.Buffer((8, 8), "float32"))
            with T.grid(8, 8) as (i, j):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.buffer_store(B, A[vi, vj] * T.float32(2), [vi, vj])
    func = ib.get()
    assert_structural_equal(func, from_source('''
@T.prim_func
def scaled(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
'''))
    a, b = tvm.nd.array(np.ones((8, 8), "float32")), tvm.nd.array(np.zeros((8, 8), "float32"))
    tvm.build(func)(a, b)
    np.testing.assert_array_equal(b.numpy(), 2)


def test_a_reduction_with_init_and_names():
    with IRBuilder() as ib:
        with T.prim_func(is_private=True):
            A = T.arg("A", T.Buffer((8,), "float32"))
            B = T.arg("B", T.Buffer((1,), "float32"))
            with T.serial(8) as k:
                k = ib.name("k", k)
                with T.block("sum"):
                    vk = ib.name("vk", T.axis.reduce(8, k))
                    with T.init():
                        T.buffer_store(B, T.float32(0), [0])
                    T.buffer_store(B, B[0] + A[vk], [0])
    text = ib.get().script()
    assert "for k in range(8)" in text and "vk = T.axis.reduce(8, k)" in text
    assert "with T.init():" in text


def test_statements():
    n = Var("n", "int32")
    with IRBuilder() as ib:
        with T.Assert(n > 0, "n is positive"):
            with T.allocate([4], "float32", scope="local") as pointer:
                with T.LetStmt(n + 1) as m:
                    with T.If(m < 3):
                        with T.Then():
                            T.evaluate(m)
                        with T.Else():
                            with T.attr(pointer, "pragma_x", 1):
                                T.evaluate(0)
    text = ib.get().script()
    for part in ("assert n > 0", "T.allocate([4]", "n + 1", "if ", "else:", "T.attr("):
        assert part in text


def test_modules_and_parts_that_stand_alone():
    with IRBuilder() as ib:
        with I.ir_module():
            with T.prim_func():
                T.func_name("foo")
    assert [v.name_hint for v in ib.get().functions] == ["foo"]
    with IRBuilder() as ib:
        with T.block("b"):
            T.where(Var("n", "int32") > 1)
            T.evaluate(0)
    assert ib.get().block.annotations["tir.script_parsing_detect_access"].value == 3


def test_words_in_the_wrong_place_are_refused():
    with pytest.raises(ValueError, match="no IRBuilder is open"):
        T.evaluate(0)
    with pytest.raises(ValueError, match="nothing was built"):
        IRBuilder().get()
    with IRBuilder():
        with pytest.raises(ValueError, match="T.reads stands directly in a T.block"):
            T.reads()
        with pytest.raises(ValueError, match="T.Then stands directly in a T.If"):
            T.Then()
        T.evaluate(0)
        with pytest.raises(ValueError, match="one result"):
            T.evaluate(1)


def test_a_handle_that_the_body_uses_keeps_its_name_when_printed():
    with IRBuilder() as ib:
        with T.prim_func(is_private=True):
            a = T.arg("a", T.handle())
            T.match_buffer(a, (8,), "float32")
            T.evaluate(T.isnullptr(a))
    func = ib.get()
    assert "a: T.handle" in func.script()
    assert_structural_equal(from_source(func.script()), func)
    assert "return 5" in from_source("@T.prim_func\ndef f() -> T.int32:\n    T.ret(5)").script()

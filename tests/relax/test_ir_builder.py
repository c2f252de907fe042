"""Relax functions by TVM's script.ir_builder."""

from __future__ import annotations

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax, te, tir
from mlc_lab.ir import assert_structural_equal
from mlc_lab.relax.script import builder as R
from mlc_lab.script import from_source
from mlc_lab.script.ir_builder import IRBuilder
from mlc_lab.script.ir_builder import ir as I


def tensor(*shape):
    return relax.TensorStructInfo(shape, "float32")


def same(func, text):
    """A function is what a script says, names of variables included."""
    expected = from_source(text)
    assert_structural_equal(func, expected)
    assert func.script() == expected.script()


def test_a_function_with_names():
    with IRBuilder() as ib:
        with R.function():
            R.func_name("foo")
            R.func_attr({"kind": 1})
            x = R.arg("x", tensor(4, 8))
            R.func_ret_struct_info(relax.TensorStructInfo(dtype="float32", ndim=2))
            y = R.emit(R.nn.relu(x))
            out = R.emit(R.add(y, x))
            IRBuilder.name("out", out)
            R.func_ret_value(out)
    same(ib.get(), """@R.function
def foo(x: R.Tensor((4, 8), "float32")) -> R.Tensor(dtype="float32", ndim=2):
    R.func_attr({"kind": 1})
    gv = R.nn.relu(x)
    out = R.add(gv, x)
    return out
""")


def test_dataflow_gives_variables_out():
    with IRBuilder() as ib:
        with R.function():
            R.func_name("foo")
            x = R.arg("x", tensor(4))
            with R.dataflow() as df:
                a = R.emit(R.exp(x))
                b = R.emit(R.add(a, x))
                IRBuilder.name("b", b)
                R.output(b)
            (seen,) = df.output_vars
            R.func_ret_value(seen)
    assert type(seen) is relax.Var
    same(ib.get(), """@R.function
def foo(x: R.Tensor((4,), "float32")):
    with R.dataflow():
        lv = R.exp(x)
        b = R.add(lv, x)
        R.output(b)
    return b
""")


def test_symbols_and_bindings_made_before():
    n = tir.Var("n", "int64")
    with IRBuilder() as ib:
        with R.function():
            R.func_name("foo")
            x = R.arg("x", relax.TensorStructInfo(dtype="float32", ndim=-1))
            y = R.emit_match_cast(x, relax.TensorStructInfo((n,), "float32"))
            v = R.emit_var_binding(relax.VarBinding(relax.Var("v", tensor(n)), y))
            w = R.emit(R.add(v, v), relax.TensorStructInfo(dtype="float32", ndim=1))
            IRBuilder.name("w", w)
            R.func_ret_value(R.shape([n, n * 2]))
    func = ib.get()
    names = [b.var.name_hint for b in func.body.blocks[0].bindings]
    assert names == ["gv", "v", "w"]
    assert isinstance(func.ret_struct_info, relax.ShapeStructInfo)


def test_branches():
    with IRBuilder() as ib:
        with R.function():
            R.func_name("foo")
            c = R.arg("c", relax.TensorStructInfo((), "bool"))
            x = R.arg("x", tensor(4))
            with R.If(c) as branch:
                with R.Then():
                    IRBuilder.name("y", R.emit(R.exp(x)))
                with R.Else():
                    R.emit(R.negative(x))
            R.func_ret_value(branch.var)
    func = ib.get()
    assert func.body.body.name_hint == branch.var_name == "y"
    vm = relax.VirtualMachine(relax.build(tvm.ir.IRModule({"foo": func}), "llvm"), tvm.cpu())
    x = np.arange(4, dtype="float32")
    for taken, expected in ((True, np.exp(x)), (False, -x)):
        out = vm["foo"](tvm.nd.array(np.array(taken)), tvm.nd.array(x)).numpy()
        np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_a_module_with_what_a_tensor_expression_computes():
    with IRBuilder() as ib:
        with I.ir_module():
            with R.function():
                R.func_name("main")
                x = R.arg("x", tensor(4))
                y = R.emit(R.emit_te(lambda a: te.compute(a.shape, lambda i: a[i] * 3, "three"), x))
                R.func_ret_value(y)
    mod = ib.get()
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    x = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(vm["main"](tvm.nd.array(x)).numpy(), x * 3)


def test_what_is_out_of_place_is_refused():
    with IRBuilder(), pytest.raises(ValueError, match=r"stands in an R.function"):
        R.arg("x", tensor(4))
    with pytest.raises(ValueError, match="gives nothing"), IRBuilder():
        with R.function():
            R.arg("x", tensor(4))
    with pytest.raises(ValueError, match=r"I.ir_module\(\)"), IRBuilder():
        with R.function():
            R.emit_te(lambda a: a, R.arg("x", tensor(4)))
    with pytest.raises(ValueError, match=r"R.output stands directly in a R.dataflow"), IRBuilder():
        with R.function():
            R.output(R.emit(R.exp(R.arg("x", tensor(4)))))
    with pytest.raises(ValueError, match=r"one R.Then\(\) and one R.Else"), IRBuilder():
        with R.function():
            with R.If(R.arg("c", relax.TensorStructInfo((), "bool"))):
                with R.Then():
                    R.emit(relax.const(1.0))

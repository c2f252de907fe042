"""Programs in the Relax of 2022 run as they stand."""

from __future__ import annotations

import numpy as np
import pytest

import mlc_lab.compat
from mlc_lab.ir import assert_structural_equal
from mlc_lab.script import from_source

mlc_lab.compat.install()

import tvm
from tvm import relax, te, topi
from tvm.script import relax as R
from tvm.script import tir as T



def test_a_module_with_annotations_without_a_prefix():
    @tvm.script.ir_module
    class MyModule:
        @T.prim_func
        def tir_linear(x: T.handle, w: T.handle, b: T.handle, z: T.handle) -> None:
            T.func_attr({"global_symbol": "tir_linear"})
            m = T.var("int64")
            n = T.var("int64")
            k = T.var("int64")
            X = T.match_buffer(x, (m, k), "float32")
            W = T.match_buffer(w, (n, k), "float32")
            B = T.match_buffer(b, (n,), "float32")
            Z = T.match_buffer(z, (m, n), "float32")
            for i, j, l in T.grid(m, n, k):
                with T.block("linear"):
                    vi, vj, vl = T.axis.remap("SSR", [i, j, l])
                    with T.init():
                        Z[vi, vj] = B[vj]
                    Z[vi, vj] = Z[vi, vj] + X[vi, vl] * W[vj, vl]

        @R.function
        def main(x: Tensor((1, 784), "float32"), w: Tensor((128, 784), "float32"),
                 b: Tensor((128,), "float32")) -> Tensor:
            with relax.dataflow():
                lv0 = relax.call_tir(tir_linear, (x, w, b), (1, 128), dtype="float32")
                lv1 = relax.nn.relu(lv0)
                lv2 = relax.multiply(lv1, lv1)
                relax.output(lv2)
            return lv2

    ex = relax.vm.build(MyModule, tvm.target.Target("llvm"))
    vm = relax.VirtualMachine(ex, tvm.cpu())
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype("float32") for s in ((1, 784), (128, 784), (128,)))
    out = vm["main"](*map(tvm.nd.array, (x, w, b))).numpy()
    np.testing.assert_allclose(out, np.maximum(x @ w.T + b, 0) ** 2, rtol=1e-3, atol=1e-3)
    assert_structural_equal(from_source(MyModule.script()), MyModule)


def test_dimensions_need_no_strings_and_may_be_unknown():
    @R.function
    def f(x: Tensor((n, 4), "float32"), s: Shape((n,)), o: Object,
          t: Tuple(Tensor((n, 4), "float32"), Object), y: Tensor((_, _), "float32"),
          z: Tensor(_, "float32")) -> Object:
        w = relax.add(x, x)
        return w

    x, s, o, t, y, z = (p.struct_info for p in f.params)
    assert s.values[0] is x.shape[0] and t.fields[0] == x and isinstance(o, relax.ObjectStructInfo)
    assert (y.ndim, z.ndim, y.shape) == (2, -1, None)
    assert f.ret_struct_info == x


def test_shapes_are_matched():
    @R.function
    def f(x: Tensor(None, "float32", ndim=2)):
        R.match_shape(x, (n, m))
        y: Tensor((n, m), "float32") = relax.add(x, x)
        return y

    vm = relax.VirtualMachine(relax.vm_build.build(tvm.IRModule({"f": f}), "llvm"), tvm.cpu())
    assert vm["f"](tvm.nd.array(np.ones((2, 3), "float32"))).numpy().tolist() == [[2] * 3] * 2


def test_packed_functions_say_their_types_and_functions_need_not_say_that_they_have_effects():
    tvm.register_func("early.twice", lambda x: tvm.nd.array(x.numpy() * 2), override=True)

    @relax.function
    def f(x: Tensor((3,), "float32")) -> Object:
        z: Tensor((3,), "float32") = relax.call_packed(
            "early.twice", x, type_args=(Tensor(ndim=1, dtype="float32")))
        return z

    assert not f.is_pure
    vm = relax.VirtualMachine(relax.vm.build(tvm.IRModule({"f": f}), "llvm"), tvm.cpu())
    assert vm["f"](tvm.nd.array(np.ones(3, "float32"))).numpy().tolist() == [2, 2, 2]


def test_brackets():
    @R.function
    def f(x: Tensor[(3, 4), "float32"], y: Tensor[_, "float32"]) -> Tensor[(3, 4), "float32"]:
        return x

    assert f.params[0].struct_info == relax.TensorStructInfo((3, 4), "float32")


def test_variables_have_a_shape_and_a_type():
    n = tvm.tir.Var("n", "int64")
    x = relax.Var("x", (n, 784), relax.DynTensorType(2, "float32"))
    w = relax.Var("w", [128, 784], relax.DynTensorType(ndim=2, dtype="float32"))
    assert x.shape_[0] is n and x.checked_type.ndim == 2
    assert relax.Var("s", type_annotation=relax.ShapeType()).struct_info == relax.ShapeStructInfo()
    assert relax.DataflowVar("d", relax.RuntimeDepShape(), relax.DynTensorType(1, "float32")
                             ).struct_info == relax.TensorStructInfo(None, "float32", ndim=1)
    with pytest.raises(ValueError, match="a shape of 2 dimension"):
        relax.Var("x", (n, 784), relax.DynTensorType(3, "float32"))
    with pytest.raises(TypeError, match="only a tensor has a shape"):
        relax.Var("x", (n, 784), relax.ObjectType())

    bb = relax.BlockBuilder()
    with bb.function("main", [x, w]):
        with bb.dataflow():
            lv0 = bb.emit(relax.Call(tvm.ir.Op.get("relax.nn.dense"), [x, w]))
            lv1 = bb.emit_te(lambda a: te.compute(a.shape, lambda i, j: a[i, j] * 2, "twice"), lv0)
            gv = bb.emit_output(bb.call_te(topi.nn.relu, lv1))
        bb.emit_func_output(gv)
    mod = relax.transform.ToANF()(bb.get())
    assert relax.analysis.remove_all_unused(mod["main"]).params[0] is x
    vm = relax.VirtualMachine(relax.vm.build(mod, "llvm"), tvm.cpu())
    a, b = (np.random.default_rng(1).normal(size=s).astype("float32")
            for s in ((3, 784), (128, 784)))
    np.testing.assert_allclose(vm["main"](tvm.nd.array(a), tvm.nd.array(b)).numpy(),
                               2 * np.maximum(a @ b.T, 0), rtol=1e-3, atol=1e-3)


def test_in_programs_of_today_a_name_that_nothing_defines_is_a_mistake():
    for body in ("x: R.Tensor((k, 4), 'float32')", "x: R.Tensor((3,), 'float32'), y: Tensors"):
        with pytest.raises(tvm.DiagnosticError, match="undefined name"):
            from_source(f"@R.function\ndef f({body}):\n    return x\n")
    with pytest.raises(tvm.DiagnosticError, match="undefined name 'y'"):
        from_source("@R.function\ndef f(x: Tensor((n,), 'float32')):\n    return y\n")
    with pytest.raises(tvm.DiagnosticError, match="relax has no name 'sudo'"):
        @R.function
        def f(x: Tensor((3,), "float32")):
            y = relax.sudo(x)
            return y

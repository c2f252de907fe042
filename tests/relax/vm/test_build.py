"""relax.build: modes, pipelines, targets, and what it refuses."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.ir.transform import PassContext, PassInstrument
from mlc_lab.relax.vm.codegen import VMCodegenError
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32")):
        with R.dataflow():
            y = R.nn.relu(R.matmul(x, w))
            z = R.nn.relu(R.matmul(y, w))
            u = R.add(z, y)
            R.output(u)
        return u


X = np.random.default_rng(1).standard_normal((4, 8)).astype("float32")
W = np.random.default_rng(2).standard_normal((8, 8)).astype("float32")


def answer():
    y = np.maximum(X @ W, 0)
    return np.maximum(y @ W, 0) + y


@pytest.mark.parametrize("mode", ["compiled", "bytecode"])
@pytest.mark.parametrize("pipeline", ["default", "default_build"])
def test_pipelines_and_modes_agree(mode, pipeline):
    ex = relax.build(Net, "llvm", pipeline=pipeline, exec_mode=mode)
    assert (("main" in ex.compiled) == (mode == "compiled"))
    vm = relax.VirtualMachine(ex, tvm.cpu())
    np.testing.assert_allclose(vm["main"](X, W).numpy(), answer(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ex["main"](X, W).numpy(), answer(), rtol=1e-4, atol=1e-5)


def test_the_zero_pipeline_gives_a_module_to_look_at_and_build():
    mod = relax.get_pipeline("zero")(Net)
    assert "call_tir" in mod.script()
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    np.testing.assert_allclose(vm["main"](X, W).numpy(), answer(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="there are: default"):
        relax.get_pipeline("nothing")


def test_params_become_constants():
    ex = relax.build(Net, "llvm", params={"w": W})
    vm = relax.VirtualMachine(ex, tvm.cpu())
    np.testing.assert_allclose(vm["main"](X).numpy(), answer(), rtol=1e-4, atol=1e-5)


def test_passes_are_seen_by_instruments():
    seen = []

    class Names(PassInstrument):
        def run_before_pass(self, mod, info):
            seen.append(info.name)

    with PassContext(instruments=[Names()]):
        relax.build(Net, "llvm")
    for name in ("LegalizeOps", "FuseOps", "FuseTIR", "ApplyDefaultSchedule", "CallTIRRewrite",
                 "StaticPlanBlockMemory", "KillAfterLastUse", "VMShapeLower"):
        assert name in seen


def test_equal_kernels_are_compiled_once():
    ex = relax.build(Net, "llvm", pipeline="default_build")
    kernels = [n for n in ex.names if ex.lib.implements_function(n) and n not in ex.functions]
    assert sum("matmul" in n for n in kernels) == 1
    text = ex.as_text()
    assert text.count("call  matmul") == 2 and text.count("call  relu") == 2


def test_misuse_is_refused():
    with pytest.raises(ValueError, match="exec_mode"):
        relax.build(Net, "llvm", exec_mode="fast")
    with pytest.raises(ValueError, match="rocm"):
        relax.build(Net, "rocm")
    with pytest.raises(TypeError, match="IRModule"):
        relax.build(3, "llvm")
    with pytest.raises(TypeError, match="relax.build"):
        relax.VirtualMachine(Net, tvm.cpu())


@pytest.mark.parametrize("bound", [2.5, "many"])
def test_the_bound_of_a_dimension_is_a_whole_number(bound):
    n = tvm.tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x], attrs={"tir_var_upper_bound": {"n": bound}}):
        with bb.dataflow():
            y = bb.emit(relax.op.exp(x))
            out = bb.emit_output(relax.op.matmul(y, y))
        bb.emit_func_output(out)
    with pytest.raises(ValueError, match="tir_var_upper_bound: n is at most .*no whole number"):
        relax.build(bb.get(), "llvm")


def test_all_operators_without_an_implementation_are_named_at_once():
    mod = relax.transform.LegalizeOps()(Net)
    with pytest.raises(VMCodegenError) as caught:
        relax.build(Net, "llvm", pipeline=None)
    for name in ("relax.matmul", "relax.nn.relu", "relax.add"):
        assert name in str(caught.value)
    assert mod is not Net


def test_planned_memory_is_less():
    from mlc_lab.relax import transform as P
    from mlc_lab.relax.transform.static_plan_block_memory import memory_use

    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((64, 64), "float32"))
    with bb.function("main", [x]):
        y = x
        for _ in range(10):
            y = bb.emit(relax.op.nn.relu(y))
        bb.emit_func_output(y)
    mod = bb.get()
    for step in (P.LegalizeOps(), P.ToNonDataflow(), P.CallTIRRewrite()):
        mod = step(mod)
    use = memory_use(mod["main"], mod)
    assert use["tensors"] == 9 and use["storages"] == 2
    assert use["planned"] == use["lower_bound"] == 2 * 64 * 64 * 4


def test_compile_builds_either_kind_of_module():
    assert type(tvm.compile(Net, "llvm")).__name__ == "Executable"
    kernels = relax.transform.LegalizeOps()(Net)
    only = tvm.IRModule({v: f for v, f in kernels.functions.items() if v.name_hint != "main"})
    assert "relu" in tvm.compile(only, "llvm").function_names


def test_every_stage_of_lowering_prints_and_parses_back():
    from mlc_lab.ir.structural import assert_structural_equal
    from mlc_lab.relax.pipeline import kernel_passes, lowering_passes, zero_passes
    from mlc_lab.script import from_source

    mod = Net
    for step in (*zero_passes(), *kernel_passes(None), *lowering_passes()):
        mod = step(mod)
        assert_structural_equal(from_source(mod.script()), mod)


def test_a_broadcast_of_sizes_that_may_differ_says_what_to_do():
    n, m = (tvm.tir.Var(v, "int64") for v in "nm")
    x, y = (relax.Var(v, relax.TensorStructInfo((k,), "float32")) for v, k in (("x", n), ("y", m)))
    one = relax.TensorStructInfo((n,), "float32")
    builders = relax.BlockBuilder(), relax.BlockBuilder()
    for builder, cast in zip(builders, (False, True)):
        with builder.function("main", [x, y]):
            other = builder.match_cast(y, one) if cast else y
            builder.emit_func_output(builder.emit(relax.op.add(x, other)))
    with pytest.raises(ValueError, match=r"relax.add \(in main: .*\(n,\).*\(m,\).*R.match_cast"):
        relax.build(builders[0].get(), "llvm")
    vm = relax.VirtualMachine(relax.build(builders[1].get(), "llvm"), tvm.cpu())
    assert vm["main"](np.ones(3, "float32"), np.ones(3, "float32")).numpy().tolist() == [2, 2, 2]

"""Passes on a small convolutional network: layouts, mixed precision, norms, weights, libraries."""

import numpy as np
import pytest

import mlc_lab
from mlc_lab import relax
from mlc_lab.relax import op as R
from mlc_lab.relax import transform as X
from mlc_lab.relax.libraries import get_pattern, get_patterns_with_prefix, register_library
from mlc_lab.script import from_source
from mlc_lab.tir import PrimFunc

from .run import Evaluator, Run, same_results


def network(keep_params=False):
    """(module, inputs): conv, batch_norm, relu, pool, residual, dense. Weights are constants or
    parameters."""
    rng = np.random.default_rng(0)
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 3, 8, 8), "float32"))
    params, arrays = [x], [rng.uniform(-1, 1, (1, 3, 8, 8)).astype("float32")]

    def weight(*shape, low=-0.5):
        value = rng.uniform(low, 0.5, shape).astype("float32")
        if not keep_params:
            return relax.const(value)
        params.append(relax.Var(f"w{len(params)}", relax.TensorStructInfo(shape, "float32")))
        arrays.append(value)
        return params[-1]

    pieces = [weight(4, 3, 3, 3), weight(4, 4, 3, 3), weight(1, 4, 1, 1), weight(64, 10),
              weight(10)]
    affine = [weight(4), weight(4), weight(4), weight(4, low=0.1)]

    def batch_norm(v):
        return bb.emit(bb.emit(R.nn.batch_norm(v, *affine, axis=1, training=False))[0])

    def body():
        a = bb.emit(R.nn.relu(batch_norm(bb.emit(R.nn.conv2d(x, pieces[0], padding=1)))))
        b = bb.emit(R.nn.max_pool2d(a, (2, 2), (2, 2)))
        c = bb.emit(R.nn.conv2d(b, pieces[1], padding=1))
        d = bb.emit(R.add(c, pieces[2]))
        e = bb.emit(R.nn.relu(bb.emit(R.add(d, b))))
        f = bb.emit(R.concat([e, b], axis=1))
        g = bb.emit(R.split(f, 2, axis=1))
        h = bb.emit(R.add(bb.emit(g[0]), bb.emit(g[1])))
        m = bb.emit(R.mean(h, axis=[2, 3], keepdims=True))
        n = bb.emit(R.reshape(bb.emit(R.multiply(h, m)), (1, 64)))
        return bb.emit(R.add(bb.emit(R.matmul(n, pieces[3])), pieces[4]))

    with bb.function("main", params, attrs={"num_input": 1}):
        with bb.dataflow():
            out = bb.emit_output(body())
        bb.emit_func_output(out)
    return bb.get(), arrays


def value(mod, arrays):
    return Evaluator(mod)(*arrays)


@pytest.fixture(scope="module")
def case():
    """The network with constant weights, its input and its result."""
    mod, arrays = network()
    return mod, arrays, value(mod, arrays)


def calls(mod, name):
    """The calls of an operator in main."""
    return [b.value for block in mod["main"].body.blocks for b in block.bindings
            if getattr(getattr(b.value, "op", None), "name", "") == name]


def test_convert_layout_keeps_the_result_and_few_transposes(case):
    mod, arrays, expected = case
    new = X.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(mod)
    assert relax.analysis.well_formed(new)
    assert {c.attrs.data_layout for c in calls(new, "relax.nn.conv2d")} == {"NHWC"}
    assert calls(new, "relax.nn.max_pool2d")[0].attrs.layout == "NHWC"
    # the input, two weights, a bias; and back once, before the reshape
    assert len(calls(new, "relax.permute_dims")) == 5
    same_results(value(new, arrays), expected)
    folded = X.FoldConstant()(new)
    assert len(calls(folded, "relax.permute_dims")) == 2
    same_results(value(folded, arrays), expected)


def test_layout_of_each_call_can_be_decided(case):
    mod, arrays, expected = case

    def decide(call):
        wide = call.args[1].struct_info.dims[1].value == 4
        return {"relax.nn.conv2d": ["NHWC", "HWIO"]} if wide else {}

    new = X.ConvertLayout({}, decide)(mod)
    layouts = [c.attrs.data_layout for c in calls(new, "relax.nn.conv2d")]
    assert layouts == ["NCHW", "NHWC"]
    same_results(value(new, arrays), expected)


@pytest.mark.parametrize("out_dtype", ["float32", "float16"])
def test_mixed_precision_is_near_and_uses_float16(case, out_dtype):
    mod, arrays, expected = case
    new = X.ToMixedPrecision(out_dtype)(mod)
    assert relax.analysis.well_formed(new)
    for call in calls(new, "relax.nn.conv2d") + calls(new, "relax.matmul"):
        assert {a.struct_info.dtype for a in call.args} == {"float16"}
        assert call.attrs.out_dtype == out_dtype
    assert new["main"].ret_struct_info.dtype == "float32"
    same_results(value(new, arrays), expected, rtol=3e-2, atol=3e-2)


def test_inputs_can_be_taken_as_float16(case):
    mod, arrays, expected = case
    new = X.ToMixedPrecision(fp16_input_names=["x"])(mod)
    assert new["main"].params[0].struct_info.dtype == "float16"
    same_results(value(new, [arrays[0].astype("float16")]), expected, rtol=3e-2, atol=3e-2)


def test_batch_norm_is_decomposed_and_folded(case):
    mod, arrays, expected = case
    new = X.DeadCodeElimination()(X.FoldConstant()(X.DecomposeOpsForInference()(mod)))
    assert not calls(new, "relax.nn.batch_norm") and not calls(new, "relax.sqrt")
    same_results(value(new, arrays), expected)


def test_training_form_gives_the_statistics_of_the_batch():
    mod, arrays = network()
    new = X.DecomposeOpsForTraining()(mod)
    assert not calls(new, "relax.nn.batch_norm") and calls(new, "relax.variance")
    assert np.isfinite(value(new, arrays)).all()


def test_weights_move_to_a_function_of_their_own():
    mod, arrays = network(keep_params=True)
    expected = value(mod, arrays)
    lifted = X.LiftTransformParams()(X.DecomposeOpsForInference()(mod))
    assert relax.analysis.well_formed(lifted)
    run = Evaluator(lifted)
    weights = run(list(arrays[1:]), func="main_transform_params")
    same_results(run(arrays[0], *weights), expected)
    assert not calls(lifted, "relax.sqrt")
    bundled = X.BundleModelParams()(mod)
    same_results(value(bundled, [arrays[0], list(arrays[1:])]), expected)
    names = {p.name_hint: a for p, a in zip(mod["main"].params[1:], arrays[1:])}
    bound = X.BindParams("main", names)(mod)
    assert len(bound["main"].params) == 1
    same_results(value(bound, arrays[:1]), expected)


def test_the_network_fused_is_what_it_was(case):
    mod, arrays, expected = case
    for step in (X.LegalizeOps(), X.AnnotateTIROpPattern(), X.FuseOps(3), X.FuseTIR()):
        mod = step(mod)
        assert relax.analysis.well_formed(mod)
    kernels = [v.name_hint for v, f in mod.functions.items() if isinstance(f, PrimFunc)]
    assert sum(n.startswith("fused_") for n in kernels) >= 3
    same_results(Run(mod)(*arrays), expected)


def test_a_library_of_ones_own_takes_its_part(case):
    mod, arrays, expected = case
    seen = []

    def make(func, tag=None):
        seen.append((func.attrs["Codegen"], tag))

        def work(a, b, bias, out):
            np.copyto(np.from_dlpack(out), np.from_dlpack(a) @ np.from_dlpack(b)
                      + np.from_dlpack(bias))

        return work

    register_library("mine", make)
    pattern = get_pattern("numpy.matmul_bias")[1]
    new = X.FuseOpsByPattern([("mine.dense", pattern)], bind_constants=False,
                             annotate_codegen=True)(mod)
    new = X.RunCodegen({"mine": {"tag": "blas"}})(new)
    assert len(calls(new, "relax.call_dps_packed")) == 1 and seen == [("mine", "blas")]
    same_results(Run(X.LegalizeOps()(new))(*arrays), expected)


def test_patterns_are_found_by_prefix_and_unknown_libraries_are_named(case):
    names = [p[0] for p in get_patterns_with_prefix("numpy.matmul")]
    assert names[0] == "numpy.matmul_bias_relu" and "numpy.matmul" in names
    pattern = get_pattern("numpy.matmul")[1]
    new = X.FuseOpsByPattern([("nolib.matmul", pattern)], annotate_codegen=True)(case[0])
    with pytest.raises(ValueError, match="nolib"):
        X.RunCodegen()(new)


def test_batch_norm_goes_into_the_convolution_before_it(case):
    mod, arrays, expected = case
    new = X.FoldBatchnormToConv2D()(mod)
    assert not calls(new, "relax.nn.batch_norm")
    same_results(value(new, arrays), expected)
    nhwc = X.FoldConstant()(X.ConvertLayout({"relax.nn.conv2d": ["NHWC", "HWIO"]})(mod))
    folded = X.FoldBatchnormToConv2D(training=False)(nhwc)
    assert not calls(folded, "relax.nn.batch_norm")
    same_results(value(folded, arrays), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_batch_norm_goes_into_any_convolution_and_past_its_bias(rank, dtype):
    rng = np.random.default_rng(rank)
    numbers = lambda *shape: rng.uniform(0.5, 1.5, shape).astype(dtype)
    bb = relax.BlockBuilder()
    image = numbers(2, 3, *[6] * rank)
    x = relax.Var("x", relax.TensorStructInfo(image.shape, dtype))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(getattr(R.nn, f"conv{rank}d")(x, relax.const(numbers(4, 3, *[3] * rank))))
            bias = bb.emit(R.reshape(relax.const(numbers(4)), [1, 4, *[1] * rank]))
            y = bb.emit(R.add(y, bias))
            norm = bb.emit(R.nn.batch_norm(y, *(relax.const(numbers(4)) for _ in range(4)), 1,
                                           training=False))
            out = bb.emit_output(bb.emit(R.nn.relu(bb.emit(norm[0]))))
        bb.emit_func_output(out)
    mod = bb.get()
    new = X.FoldBatchnormToConv2D(training=False)(mod)
    assert not calls(new, "relax.nn.batch_norm") and len(calls(new, "relax.add")) == 1
    same_results(value(new, [image]), value(mod, [image]), rtol=1e-4, atol=1e-4)
    kernels = relax.get_pipeline("kernels")(mod)
    assert len([f for f in kernels.functions.values() if isinstance(f, mlc_lab.tir.PrimFunc)]) == 1


@pytest.mark.parametrize("variance,folds", [(1.0, True), (1e-9, False)])
def test_batch_norm_behind_a_convolution_of_half_weights(variance, folds):
    """What is added has the type of the result; scales that make weights infinite stay outside."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 1, 3, 3), "float16"))
    weight = relax.const(np.full((1, 1, 2, 2), 8, "float16"))
    numbers = [relax.const(np.array([v], "float32")) for v in (1, 0.5, 0, variance)]
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(R.nn.conv2d(x, weight, out_dtype="float32"))
            norm = bb.emit(R.nn.batch_norm(y, *numbers, 1, 1e-10, training=False))
            out = bb.emit_output(bb.emit(norm[0]))
        bb.emit_func_output(out)
    new = X.FoldBatchnormToConv2D(training=False)(bb.get())
    assert bool(calls(new, "relax.nn.batch_norm")) != folds
    image = np.ones((1, 1, 3, 3), "float16")
    got = relax.VirtualMachine(relax.build(new, "llvm"), mlc_lab.cpu())["main"](image)
    np.testing.assert_allclose(got.numpy(), 32 / np.sqrt(variance + 1e-10) + 0.5, rtol=1e-4)


def test_parallel_products_are_one():
    rng = np.random.default_rng(0)
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 5, 8), "float32"))
    ws = [relax.const(rng.uniform(-1, 1, (8, n)).astype("float32")) for n in (4, 4, 6)]
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(relax.Tuple([bb.emit(R.matmul(x, w)) for w in ws]))
        bb.emit_func_output(out)
    arrays = [rng.uniform(-1, 1, (2, 5, 8)).astype("float32")]
    new = X.FoldConstant()(X.CombineParallelMatmul()(bb.get()))
    assert len(calls(new, "relax.matmul")) == 1 and not calls(new, "relax.concat")
    assert relax.analysis.well_formed(new)
    same_results(Run(new)(*arrays), [arrays[0] @ w.data.numpy() for w in ws])
    same = X.CombineParallelMatmul(lambda left, rights: len(rights) > 3)(bb.get())
    assert len(calls(same, "relax.matmul")) == 3


def test_a_library_runs_inside_the_virtual_machine(case):
    mod, arrays, expected = case
    new = X.FuseOpsByPattern(get_patterns_with_prefix("numpy"), annotate_codegen=True)(mod)
    new = X.RunCodegen()(new)
    assert len(calls(new, "relax.call_dps_packed")) == 1
    machine = relax.VirtualMachine(relax.build(new, target="llvm"), mlc_lab.cpu())
    got = machine["main"](*map(mlc_lab.nd.array, arrays)).numpy()
    same_results(got, expected, rtol=1e-4, atol=1e-4)


def test_layouts_leave_alone_what_is_not_concerned():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(None, "float32"))
    y = relax.Var("y", relax.TensorStructInfo((1, 3, 8, 8), "float32"))
    with bb.function("main", [x, y]):
        with bb.dataflow():
            a = bb.emit(R.sum(R.exp(x), axis=None))
            b = bb.emit(R.nn.conv2d(y, relax.const(np.ones((2, 3, 1, 1), "float32"))))
            c = bb.emit(R.strided_slice(b, [1], [0], [1]))
            out = bb.emit_output(R.add(c, a))
        bb.emit_func_output(out)
    mod = bb.get()
    new = X.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(mod)
    old = [b for block in mod["main"].body.blocks for b in block.bindings]
    made = [b for block in new["main"].body.blocks for b in block.bindings]
    assert made[0] is old[0] and made[1] is old[1]
    assert len(calls(new, "relax.permute_dims")) == 3
    assert X.ConvertLayout({"relax.nn.conv3d": ["NDHWC", "OIDHW"]})(mod) is mod


@pytest.mark.parametrize("shape", [(5, 8), (2, 5, 8), (8,)])
def test_a_product_with_a_transposed_weight_reads_it_as_it_is(shape):
    rng = np.random.default_rng(0)
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    w = relax.Var("w", relax.TensorStructInfo((6, 8), "float32"))
    with bb.function("main", [x, w]):
        with bb.dataflow():
            lv = bb.emit(R.matmul(x, bb.emit(R.permute_dims(w))))
            out = bb.emit_output(R.nn.relu(lv))
        bb.emit_func_output(out)
    arrays = [rng.uniform(-1, 1, s).astype("float32") for s in (shape, (6, 8))]
    new = X.FuseTransposeMatmul()(bb.get())
    assert not calls(new, "relax.permute_dims") and len(calls(new, "relax.call_tir")) == 1
    assert relax.analysis.well_formed(new)
    same_results(Run(new)(*arrays), np.maximum(arrays[0] @ arrays[1].T, 0))


def test_sizes_that_only_weights_say_are_handed_on():
    mod = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 4), "float32"), w: R.Tensor((1, "n"), "float32")
             ) -> R.Tensor((1, "n * 2"), "float32"):
        n = T.int64()
        R.func_attr({"num_input": 1})
        with R.dataflow():
            twice: R.Tensor((1, n * 2), "float32") = R.concat((w, w), axis=1)
            total: R.Tensor((1, 1), "float32") = R.sum(x, axis=[1], keepdims=True)
            gv: R.Tensor((1, n * 2), "float32") = R.multiply(twice, total)
            R.output(gv)
        return gv
""")
    lifted = X.LiftTransformParams()(mod)
    assert relax.analysis.well_formed(lifted)
    assert from_source(lifted.script()).script() == lifted.script()
    x, w = np.ones((1, 4), "float32"), np.arange(3, dtype="float32").reshape(1, 3)
    vm = relax.VirtualMachine(relax.build(lifted, "llvm"), mlc_lab.cpu())
    given = vm["main_transform_params"]((mlc_lab.nd.array(w),))
    got = vm["main"](mlc_lab.nd.array(x), *given).numpy()
    np.testing.assert_array_equal(got, np.concatenate([w, w], axis=1) * 4)

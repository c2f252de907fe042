"""FusePooling joins a convolution and the pooling after it where that is right, and only there."""

import random

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.dlight import PooledContraction
from mlc_lab.relax import op as R
from mlc_lab.relax import transform as T
from mlc_lab.relax.pipeline import zero_passes

ONE = "llvm -num-cores=1"


def network(shape, body, seed=0):
    """The module of `body(emit, x, weight)` on a tensor of a shape."""
    rng = np.random.default_rng(seed)
    bb, x = relax.BlockBuilder(), relax.Var("x", relax.TensorStructInfo(shape, "float32"))

    def weight(*dims):
        return relax.const((rng.standard_normal(dims) * 0.3).astype("float32"))

    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(body(bb.emit, x, weight))
        bb.emit_func_output(out)
    return bb.get()


def answer(mod, pipeline, array):
    ex = relax.build(mod, ONE, pipeline=pipeline)
    got = relax.VirtualMachine(ex, tvm.cpu())["main"](tvm.nd.array(array))
    return [g.numpy() for g in got] if isinstance(got, (list, tuple)) or not hasattr(
        got, "numpy") else [got.numpy()]


def zero(mod):
    for step in zero_passes():
        mod = step(mod)
    return mod


def kernels(mod):
    """The names of the kernels that `main` calls, in order."""
    return [b.value.args[0].name_hint for block in zero(mod)["main"].body.blocks
            for b in block.bindings if hasattr(b.value, "args") and b.value.args]


def same(mod, shape, count):
    """The fused module has `count` kernels and gives what the operators give one by one."""
    array = np.random.default_rng(1).standard_normal(shape).astype("float32")
    assert len(kernels(mod)) == count, kernels(mod)
    for have, want in zip(answer(mod, "default", array), answer(mod, "default_build", array)):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)


def layer(f, k, pool, stride=1, pad=0, after="relu", **options):
    """conv2d, something after it, a pooling."""
    def body(emit, x, weight):
        y = emit(R.nn.conv2d(x, weight(f, int(x.struct_info.shape[1]), k, k), strides=stride,
                             padding=pad))
        if after == "norm":
            y = emit(R.add(emit(R.multiply(y, weight(f, 1, 1))), weight(1, f, 1, 1)))
        if after == "silu":
            y = emit(R.multiply(y, emit(R.sigmoid(y))))
        elif after:
            y = emit(R.nn.relu(y))
        return emit(pool(y, **options))
    return body


def test_the_three_layers_at_the_head_of_resnet_are_one_kernel():
    shape = (1, 3, 64, 64)
    mod = network(shape, layer(16, 7, R.nn.max_pool2d, 2, 3, "norm", pool_size=3, strides=2,
                               padding=1))
    assert kernels(mod) == ["fused_conv2d_multiply_add_relu_max_pool2d"]
    same(mod, shape, 1)


@pytest.mark.parametrize("seed", range(10))
def test_random_layers_give_what_they_give_apart(seed):
    rng = random.Random(seed)
    n, c, f = rng.choice([1, 1, 2, 3]), rng.choice([1, 3, 5]), rng.choice([3, 8, 17, 32])
    h, w, k = rng.randint(14, 40), rng.randint(14, 40), rng.choice([1, 3, 5])
    size, step = rng.choice([(2, 2), (3, 2), (3, 1), (2, 1), (3, 3), (5, 2)])
    average = rng.random() < 0.5
    options = {"pool_size": size, "strides": step, "padding": rng.randint(0, size // 2),
               "ceil_mode": rng.random() < 0.3}
    if average:
        options["count_include_pad"] = rng.random() < 0.5
    elif rng.random() < 0.3:
        options["dilation"] = 2
    shape = (n, c, h, w)
    mod = network(shape, layer(
        f, k, R.nn.avg_pool2d if average else R.nn.max_pool2d, rng.choice([1, 1, 2]),
        rng.randint(0, k // 2), rng.choice([None, "relu", "norm", "silu"]), **options), seed)
    fused = zero(mod)
    assert all(PooledContraction().apply(fused[name], ONE) for name in kernels(mod)
               if "conv2d" in name and "pool" in name)
    same(mod, shape, len(kernels(mod)))


def test_what_follows_the_pooling_comes_along():
    shape = (1, 3, 20, 20)

    def body(emit, x, weight):
        y = emit(R.nn.conv2d(x, weight(8, 3, 3, 3)))
        y = emit(R.nn.avg_pool2d(y, pool_size=2, strides=2))
        return emit(R.nn.relu(emit(R.add(y, weight(8, 1, 1)))))

    mod = network(shape, body)
    assert kernels(mod) == ["fused_conv2d_avg_pool2d_add_relu"]
    same(mod, shape, 1)


def test_a_convolution_that_is_used_twice_stays():
    shape = (1, 3, 20, 20)

    def body(emit, x, weight):
        y = emit(R.nn.relu(emit(R.nn.conv2d(x, weight(8, 3, 3, 3)))))
        pooled = emit(R.nn.max_pool2d(y, pool_size=2, strides=2))
        return emit(R.add(emit(R.sum(y)), emit(R.sum(pooled))))

    same(network(shape, body), shape, 5)


def test_a_convolution_that_is_a_result_too_stays():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 3, 20, 20), "float32"))
    weight = relax.const(np.ones((8, 3, 3, 3), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(R.nn.conv2d(x, weight))
            z = bb.emit_output(R.nn.max_pool2d(y, pool_size=2, strides=2))
        bb.emit_func_output(relax.Tuple([y, z]))
    assert "fused" not in zero(bb.get()).script()


@pytest.mark.parametrize("what", ["depthwise", "prime", "small", "adaptive", "nhwc"])
def test_kernels_that_the_schedule_does_not_fit_stay(what):
    shape = (1, 9, 9, 8) if what == "small" else (1, 8, 28, 28)
    if what == "nhwc":
        shape = (1, 28, 28, 8)

    def body(emit, x, weight):
        if what == "depthwise":
            y = emit(R.nn.conv2d(x, weight(8, 1, 3, 3), groups=8, padding=1))
        elif what == "nhwc":
            y = emit(R.nn.conv2d(x, weight(3, 3, 8, 16), data_layout="NHWC",
                                 kernel_layout="HWIO", padding=1))
            return emit(R.nn.max_pool2d(y, pool_size=2, strides=2, layout="NHWC"))
        else:
            y = emit(R.nn.conv2d(x, weight(8, shape[1], 3, 3)))  # 26 rows, of which 13 stay
        if what == "adaptive":
            return emit(R.nn.adaptive_avg_pool2d(y, 5))
        return emit(R.nn.max_pool2d(y, pool_size=2, strides=2))

    same(network(shape, body), shape, 2)


def test_symbolic_batches_stay():
    n = tvm.tir.Var("n", "int64")
    mod = network((n, 3, 20, 20), layer(8, 3, R.nn.max_pool2d, pool_size=2, strides=2))
    assert len(kernels(mod)) == 2


def test_a_layer_that_comes_twice_is_one_kernel_called_twice():
    shape = (1, 8, 16, 16)

    def body(emit, x, weight):
        out = []
        for _ in range(2):
            y = emit(R.nn.relu(emit(R.nn.conv2d(x, weight(8, 8, 3, 3), padding=1))))
            out.append(emit(R.nn.max_pool2d(y, pool_size=2, strides=2)))
        return emit(R.concat(out, axis=1))

    mod = network(shape, body)
    names = kernels(mod)
    assert names[0] == names[1] and len(names) == 3
    same(mod, shape, 3)


def test_only_the_parts_that_nothing_calls_any_more_go():
    shape = (1, 3, 20, 20)
    mod = network(shape, layer(8, 3, R.nn.max_pool2d, pool_size=2, strides=2))
    for step in (T.LegalizeOps(), T.AnnotateTIROpPattern(), T.FoldConstant(), T.FuseOps()):
        mod = step(mod)
    fused = T.FusePooling()(mod)
    names = {v.name_hint for v in fused.functions}
    assert "fused_conv2d_relu" in {v.name_hint for v in mod.functions}
    assert names == {"main", "conv2d", "relu", "max_pool2d", "fused_conv2d_relu_max_pool2d"}


def test_the_memory_of_a_pooled_layer_is_that_of_its_result():
    from mlc_lab.relax.transform.static_plan_block_memory import memory_use

    def body(emit, x, weight):
        for _ in range(2):
            c = int(x.struct_info.shape[1])
            x = emit(R.nn.relu(emit(R.nn.conv2d(x, weight(8, c, 3, 3), padding=1))))
            x = emit(R.nn.max_pool2d(x, pool_size=2, strides=2))
        return x

    mod = network((1, 3, 32, 32), body)
    for step in (*zero_passes(), T.ToNonDataflow(), T.RemovePurityChecking(), T.CallTIRRewrite()):
        mod = step(mod)
    assert memory_use(mod["main"], mod)["unplanned"] == 8 * 16 * 16 * 4  # the result is not counted


def test_against_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((2, 3, 45, 37), (16, 3, 5, 5)))
    mod = network(x.shape, lambda emit, v, _: emit(R.nn.max_pool2d(emit(R.nn.relu(emit(
        R.nn.conv2d(v, relax.const(w), strides=2, padding=2)))), pool_size=3, strides=2,
        padding=1)))
    assert len(kernels(mod)) == 1
    want = torch.nn.functional.max_pool2d(torch.relu(torch.nn.functional.conv2d(
        torch.from_numpy(x), torch.from_numpy(w), None, 2, 2)), 3, 2, 1).numpy()
    np.testing.assert_allclose(answer(mod, "default", x)[0], want, rtol=1e-4, atol=1e-4)

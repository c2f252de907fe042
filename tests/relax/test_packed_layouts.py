"""Convolutions, poolings and resizing of tensors whose layout splits an axis, such as NCHW16c."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax import op
from mlc_lab.relax.op import StructInfoError, image, nn

RNG = np.random.default_rng(1)


def packed(x, axis, by):
    """x with `axis` split by `by`, the inner part last."""
    shape = list(x.shape)
    shape[axis:axis + 1] = [shape[axis] // by, by]
    return np.moveaxis(x.reshape(shape), axis + 1, -1)


def run(make, *arrays, names=None):
    params = [relax.Var(f"x{k}", relax.TensorStructInfo(
        a.shape if names is None else names[k], str(a.dtype))) for k, a in enumerate(arrays)]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit_output(make(*params))
        bb.emit_func_output(out)
    vm = relax.VirtualMachine(relax.build(bb.get(), "llvm"), tvm.cpu())
    got = vm["main"](*map(tvm.nd.array, arrays)).numpy()
    if names is None:
        assert got.shape == tuple(d.value for d in out.struct_info.dims)
    return got


def array(*shape):
    return RNG.normal(size=shape).astype("float32")


CONVS = [(nn.conv1d, "W"), (nn.conv2d, "HW"), (nn.conv3d, "DHW")]


@pytest.mark.parametrize("conv, letters", CONVS)
def test_convolutions(conv, letters):
    x, w = array(2, 8, *[7] * len(letters)), array(12, 8, *[3] * len(letters))
    plain = run(lambda x, w: conv(x, w, strides=2, padding=1), x, w)
    data, kernel = f"NC{letters}4c", f"OI{letters}2i"
    got = run(lambda x, w: conv(x, w, strides=2, padding=1, data_layout=data,
                                kernel_layout=kernel), packed(x, 1, 4), packed(w, 1, 2))
    np.testing.assert_allclose(got, packed(plain, 1, 4), rtol=1e-4, atol=1e-4)
    got = run(lambda x, w: conv(x, w, strides=2, padding=1, kernel_layout=kernel,
                                out_layout=f"N{letters}C6c"), x, packed(w, 1, 2))
    np.testing.assert_allclose(got, packed(np.moveaxis(plain, 1, -1), plain.ndim - 1, 6),
                               rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("conv, letters", [(nn.conv1d_transpose, "W"),
                                           (nn.conv2d_transpose, "HW")])
def test_transposed_convolutions(conv, letters):
    x, w = array(2, 8, *[5] * len(letters)), array(8, 4, *[3] * len(letters))
    plain = run(lambda x, w: conv(x, w, strides=2), x, w)
    got = run(lambda x, w: conv(x, w, strides=2, data_layout=f"NC{letters}4c",
                                kernel_layout=f"IO{letters}2o"), packed(x, 1, 4), packed(w, 1, 2))
    np.testing.assert_allclose(got, packed(plain, 1, 4), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("pool", [
    lambda x, **layout: nn.max_pool2d(x, 3, 2, 1, **layout),
    lambda x, **layout: nn.avg_pool2d(x, 2, 2, ceil_mode=True, **layout),
    lambda x, **layout: nn.adaptive_avg_pool2d(x, 3, **layout),
    lambda x, **layout: nn.adaptive_avg_pool2d(x, **layout),
])
def test_poolings(pool):
    x = array(2, 8, 7, 5)
    plain = run(pool, x)
    got = run(lambda x: pool(x, layout="NCHW4c"), packed(x, 1, 4))
    np.testing.assert_allclose(got, packed(plain, 1, 4), rtol=1e-5, atol=1e-6)
    got = run(lambda x: pool(x, layout="NCHW4c", out_layout="NHWC"), packed(x, 1, 4))
    np.testing.assert_allclose(got, plain.transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-6)


def test_resizing():
    x = array(1, 8, 4, 4)
    got = run(lambda x: image.resize2d(x, (6, 9), layout="NCHW4c"), packed(x, 1, 4))
    np.testing.assert_allclose(got, packed(run(lambda x: image.resize2d(x, (6, 9)), x), 1, 4),
                               rtol=1e-5, atol=1e-6)


def test_a_size_that_is_not_known_is_checked_when_the_program_runs():
    c = tvm.tir.Var("c", "int64")
    x = array(1, 8, 4, 4)

    def pool(x):
        return nn.max_pool2d(x, 2, 2, out_layout="NCHW4c")

    names = [(1, c, 4, 4)]
    np.testing.assert_array_equal(run(pool, x, names=names),
                                  packed(x.reshape(1, 8, 2, 2, 2, 2).max((3, 5)), 1, 4))
    with pytest.raises(Exception, match="max_pool2d|c // 4|c %|do not agree|shape"):
        run(pool, array(1, 6, 4, 4), names=names)


def test_what_does_not_fit_is_refused():
    def var(*shape):
        return relax.Var("x", relax.TensorStructInfo(shape, "float32"))

    for make, text in [
        (lambda: nn.max_pool2d(var(1, 2, 4, 4, 3), layout="NCHW4c"), "has 4 elements, not 3"),
        (lambda: nn.max_pool2d(var(1, 6, 4, 4), out_layout="NCHW4c"), "splits C, which has 6"),
        (lambda: nn.conv2d(var(1, 2, 4, 4), var(2, 2, 3, 3), data_layout="NCHWc"), "no layout"),
        (lambda: nn.conv2d(var(1, 2, 4, 4), var(2, 2, 3, 3), data_layout="NCHW4c"), "dimension"),
        (lambda: nn.conv2d(var(1, 2, 4, 4, 4), var(2, 2, 3, 3), data_layout="NCHW4c"),
         "8 channels"),
    ]:
        with pytest.raises(StructInfoError, match=text):
            make()


def test_passes_leave_packed_operators_as_they_are():
    x, w, one = array(1, 2, 6, 6, 4), array(4, 8, 3, 3), np.ones(1, "float32")

    def net(convert):
        bb = relax.BlockBuilder()
        param = relax.Var("x", relax.TensorStructInfo(x.shape, "float32"))
        with bb.function("main", [param]):
            with bb.dataflow():
                y = bb.emit(nn.conv2d(param, relax.const(w), data_layout="NCHW4c"))
                z = bb.emit(nn.batch_norm(y, *[relax.const(v) for v in (
                    one * 2, one, one * 3, one)], axis=1, training=False))
                out = bb.emit_output(op.exp(z[0]))
            bb.emit_func_output(out)
        mod = convert(bb.get())
        vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
        return vm["main"](tvm.nd.array(x)).numpy()

    plain = net(lambda mod: mod)
    for change in (relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]}),
                   relax.transform.FoldBatchnormToConv2D()):
        np.testing.assert_allclose(net(change), plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("pool", [
    lambda x: nn.max_pool2d(x, 2, 2, layout="NCHW4c"),
    lambda x: nn.adaptive_avg_pool2d(x, 2, layout="NCHW4c"),
])
def test_their_gradients_are_refused(pool):
    x = relax.Var("x", relax.TensorStructInfo((1, 2, 4, 4, 4), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            loss = bb.emit_output(op.sum(bb.emit(pool(x))))
        bb.emit_func_output(loss)
    with pytest.raises(ValueError, match="pack after relax.transform.Gradient"):
        relax.transform.Gradient("main")(bb.get())

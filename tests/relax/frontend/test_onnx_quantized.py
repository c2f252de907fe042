"""Quantized operators of ONNX, to the last unit."""

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.relax.frontend.onnx_running import RNG, built, check, one, same


def small(*shape, dtype="uint8"):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def scale(*values):
    return np.array(values if len(values) > 1 else values[0], "float32")


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_products(dtype):
    zero = np.array(3, dtype)
    check(*one("QLinearMatMul", [
        small(2, 3, 40, dtype=dtype), scale(0.0066), zero, small(2, 40, 5, dtype=dtype),
        scale(0.00705), zero, scale(0.0107), zero]))


def test_products_of_columns_with_scales_of_their_own():
    model, feeds = one("QLinearMatMul", [
        small(3, 4), scale(0.0066), np.array(113, "uint8"), small(4, 2, dtype="int8"),
        scale(0.007, 0.013), np.array([1, -4], "int8"), scale(0.0107), np.array(118, "uint8")])
    a, sa, za, b, sb, zb, s, z = feeds.values()
    sums = (a.astype(int) - za) @ (b.astype(int) - zb)
    want = np.clip(np.rint(sums * (sa * sb / s)) + z, 0, 255)
    same(built(model)(feeds), [want.astype("uint8")])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("attrs", [
    {}, {"pads": [1, 1, 0, 1], "strides": [2, 1]}, {"group": 2}, {"dilations": [2, 1]}])
def test_convolutions(bias, attrs):
    groups = attrs.get("group", 1)
    inputs = [small(1, 4, 7, 6), scale(0.004), np.array(132, "uint8"),
              small(6, 4 // groups, 3, 3), scale(0.0017), np.array(255, "uint8"),
              scale(0.01), np.array(123, "uint8")]
    if bias:
        inputs.append(RNG.integers(-9000, 9000, 6).astype("int32"))
    check(*one("QLinearConv", inputs, **attrs))


def test_integers():
    check(*one("MatMulInteger", [small(4, 3), small(3, 2), np.array(12, "uint8"),
                                 np.array(0, "uint8")]))
    check(*one("ConvInteger", [small(1, 1, 5, 5), small(2, 1, 2, 2), np.array(1, "uint8")],
               pads=[1, 1, 1, 1]))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_gemm(whole, turned):
    inputs = [small(3, 4), scale(0.02), np.array(100, "uint8"),
              small(*((5, 4) if turned else (4, 5))), scale(0.03), np.array(90, "uint8"),
              RNG.integers(-900, 900, 5).astype("int32")]
    if whole:
        inputs += [scale(0.9), np.array(12, "uint8")]
    model, feeds = one("QGemm", inputs, domain="com.microsoft", transB=int(turned), alpha=0.5)
    a, sa, za, b, sb, zb, c, *end = feeds.values()
    b = b.T if turned else b
    sums = (a.astype(int) - za) @ (b.astype(int) - zb) + c
    want = (sums * (np.float32(0.5) * sa * sb)).astype("float32")
    if whole:
        want = np.clip(np.rint(sums * (np.float32(0.5) * sa * sb / end[0])) + end[1], 0, 255)
    same(built(model)(feeds), [want.astype("uint8" if whole else "float32")])


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name, attrs, fn", [
    ("QLinearAdd", {}, lambda a, b: a + b), ("QLinearMul", {}, lambda a, b: a * b),
    ("QLinearSigmoid", {}, lambda x: 1 / (1 + np.exp(-x))),
    ("QLinearLeakyRelu", {"alpha": 0.2}, lambda x: np.where(x < 0, np.float32(0.2) * x, x)),
    ("QLinearLeakyRelu", {}, lambda x: np.where(x < 0, np.float32(0.01) * x, x)),
])
def test_operators_on_what_quantized_tensors_stand_for(name, attrs, fn, dtype):
    count = fn.__code__.co_argcount
    middle = 100 if dtype == "uint8" else -20
    inputs = [small(3, 4, dtype=dtype), scale(0.02), np.array(middle, dtype),
              small(1, 4, dtype=dtype), scale(0.03), np.array(middle - 10, dtype)][:3 * count]
    inputs += [scale(0.0137), np.array(12, dtype)]
    model, feeds = one(name, inputs, domain="com.microsoft", **attrs)
    *tensors, s, z = feeds.values()
    real = [(x.astype("float32") - zero.astype("float32")) * by
            for x, by, zero in zip(*[iter(tensors)] * 3)]
    limits = np.iinfo(dtype)
    want = np.clip(np.rint((fn(*real) / s).astype("float32")) + z.astype("float32"), limits.min,
                   limits.max)
    same(built(model)(feeds), [want.astype(dtype)])


@pytest.mark.parametrize("shape", [(5,), ()])
def test_a_scale_of_one_element_is_that_of_the_tensor(shape):
    """Whatever the axis, which is 1 where it is not said."""
    x = RNG.uniform(-1, 1, shape).astype("float32")
    step, zero = np.array([0.01], "float32"), np.array([100], "uint8")
    quantized = np.clip(np.rint(x / step[0]) + 100, 0, 255).astype("uint8")
    model, feeds = one("QuantizeLinear", [x], {"s": step, "z": zero})
    same(built(model)(feeds), [quantized])
    model, feeds = one("DequantizeLinear", [quantized], {"s": step, "z": zero})
    same(built(model)(feeds), [(quantized.astype("float32") - 100) * step[0]])

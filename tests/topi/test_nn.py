"""Softmax, normalisations, activations and images against torch."""

import numpy as np
import pytest
from topi.running import array, check

from mlc_lab import te, topi

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis):
    x = array(3, 4, 5)
    check(lambda t: topi.nn.softmax(t, axis), [x], torch.softmax(torch.tensor(x), axis))
    check(lambda t: topi.nn.log_softmax(t, axis), [x], torch.log_softmax(torch.tensor(x), axis))


def test_softmax_of_large_numbers():
    x = np.array([[1000.0, 1001.0, 999.0]], "float32")
    check(topi.nn.softmax, [x], torch.softmax(torch.tensor(x), -1))


ACTIVATIONS = {
    "relu": F.relu, "relu6": F.relu6, "silu": F.silu, "gelu": F.gelu, "elu": F.elu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "softplus": F.softplus, "selu": F.selu,
    "hard_sigmoid": F.hardsigmoid, "hard_swish": F.hardswish}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    x = array(4, 7, low=-7, high=7)
    check(getattr(topi.nn, name), [x], ACTIVATIONS[name](torch.tensor(x)))


def test_activations_with_slopes():
    x, slope = array(2, 3, 4), array(3)
    check(lambda t: topi.nn.leaky_relu(t, 0.1), [x], F.leaky_relu(torch.tensor(x), 0.1))
    check(topi.nn.prelu, [x, slope], F.prelu(torch.tensor(x), torch.tensor(slope)))
    with pytest.raises(ValueError, match=r"slope \(5\) does not fit axis 1 of \(2, 3, 4\)"):
        topi.nn.prelu(te.placeholder((2, 3, 4)), te.placeholder((5,)))


def test_layer_norm():
    x, g, b = array(3, 4, 6), array(4, 6), array(4, 6)
    want = F.layer_norm(torch.tensor(x), (4, 6), torch.tensor(g), torch.tensor(b))
    check(lambda *t: topi.nn.layer_norm(*t, [1, 2]), [x, g, b], want)
    check(lambda t: topi.nn.layer_norm(t, None, None, -1), [x], F.layer_norm(torch.tensor(x), (6,)))


def test_rms_norm():
    x, g = array(3, 6), array(6)
    check(lambda *t: topi.nn.rms_norm(*t, [-1]), [x, g],
          F.rms_norm(torch.tensor(x), (6,), torch.tensor(g), 1e-5))


def test_group_and_instance_norm():
    x, g, b = array(2, 6, 3, 4), array(6), array(6)
    tx, tg, tb = map(torch.tensor, (x, g, b))
    check(lambda *t: topi.nn.group_norm(*t, 3, 1, [2, 3]), [x, g, b], F.group_norm(tx, 3, tg, tb))
    check(lambda *t: topi.nn.instance_norm(*t, 1, [2, 3]), [x, g, b],
          F.instance_norm(tx, weight=tg, bias=tb))


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm(training):
    x, g, b, m, v = array(4, 3, 2, 2), array(3), array(3), array(3), array(3, low=0.5, high=2)
    mean, var = torch.tensor(m), torch.tensor(v)
    want = F.batch_norm(torch.tensor(x), mean, var, torch.tensor(g), torch.tensor(b), training)
    if training:  # torch's moving variance is over n - 1, TVM's over n
        var = 0.9 * torch.tensor(v) + 0.1 * torch.tensor(x).var((0, 2, 3), correction=0)
    check(lambda *t: topi.nn.batch_norm(*t, axis=1, training=training), [x, g, b, m, v],
          [want, mean, var])


def test_batch_norm_of_one_element_a_channel():
    x, one = array(1, 3), np.ones(3, "float32")
    check(lambda *t: topi.nn.batch_norm(*t, axis=1, training=True), [x, one, one, one, one],
          [one[None], 0.9 * one + 0.1 * x[0], 0.9 * one])


def test_statistics_of_large_numbers_lose_no_digits():
    x = (array(2, 64) + 1000).astype("float32")
    check(lambda t: topi.nn.layer_norm(t, None, None, -1), [x],
          F.layer_norm(torch.tensor(x).double(), (64,)), rtol=1e-3, atol=1e-3)


def test_local_response():
    x = array(1, 6, 3, 3)
    check(lambda t: topi.nn.lrn(t, 3, 1, 0.1, 0.75, 2), [x],
          F.local_response_norm(torch.tensor(x), 3, 0.1, 0.75, 2))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_nll_loss(reduction):
    x, w = array(5, 4), array(4, low=0.5, high=1)
    target = array(5, dtype="int64", low=0, high=4)
    check(lambda p, t, s: topi.nn.nll_loss(p, t, s, reduction, 2), [x, target, w],
          F.nll_loss(torch.tensor(x), torch.tensor(target), torch.tensor(w), ignore_index=2,
                     reduction=reduction))


def test_channels_and_pixels():
    x = array(1, 8, 4, 4)
    check(lambda t: topi.nn.depth_to_space(t, 2, mode="CRD"), [x],
          F.pixel_shuffle(torch.tensor(x), 2))
    check(lambda t: topi.nn.depth_to_space(topi.nn.space_to_depth(t, 2), 2), [x], x)
    x = array(1, 4, 4, 2)
    check(lambda t: topi.nn.batch_to_space_nd(
        topi.nn.space_to_batch_nd(t, [2, 2], [0, 0], [0, 0]), [2, 2], [0, 0], [0, 0]), [x], x)


@pytest.mark.parametrize("size", [(8, 6), (3, 9), (5, 5)])
def test_resize(size):
    x = array(1, 2, 4, 6)
    tx = torch.tensor(x)
    check(lambda t: topi.image.resize2d(t, None, size), [x],
          F.interpolate(tx, size, mode="bilinear"))
    check(lambda t: topi.image.resize2d(
        t, None, size, method="linear", coordinate_transformation_mode="align_corners"), [x],
        F.interpolate(tx, size, mode="bilinear", align_corners=True))
    check(lambda t: topi.image.resize2d(
        t, None, size, method="nearest_neighbor", coordinate_transformation_mode="asymmetric"),
        [x], F.interpolate(tx, size, mode="nearest"))
    check(lambda t: topi.image.resize2d(t, None, size, method="cubic"), [x],
          F.interpolate(tx, size, mode="bicubic"))


def test_upsampling_and_other_dimensions():
    x = array(1, 2, 3, 4)
    check(lambda t: topi.nn.upsampling(t, 2, 2), [x],
          F.interpolate(torch.tensor(x), scale_factor=2, mode="nearest"))
    x = array(1, 2, 5)
    check(lambda t: topi.image.resize1d(t, None, 8), [x],
          F.interpolate(torch.tensor(x), 8, mode="linear"))


@pytest.mark.parametrize("operator, words", [
    (lambda x: topi.nn.layer_norm(x, te.placeholder((3,)), None, -1),
     r"gamma has the shape \(3\), and data \(2, 6, 4\) needs \(4\)"),
    (lambda x: topi.nn.group_norm(x, None, None, 4, 1, [2]), "4 groups do not divide the 6"),
    (lambda x: topi.image.resize1d(x, None, 3, method="guess"), 'method "guess"'),
])
def test_refusals(operator, words):
    with pytest.raises(ValueError, match=words):
        operator(te.placeholder((2, 6, 4)))

"""Pooling and padding against torch."""

import numpy as np
import pytest
from topi.running import array, check

from mlc_lab import te, topi

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.mark.parametrize("kernel, stride, padding, dilation", [
    (2, 2, 0, 1), (3, 2, 1, 1), (2, 1, 0, 2), (3, 1, 1, 2)])
def test_max(kernel, stride, padding, dilation):
    x = array(1, 2, 8, 7)
    check(lambda t: topi.nn.pool2d(t, kernel, stride, dilation, padding, "max"), [x],
          F.max_pool2d(torch.tensor(x), kernel, stride, padding, dilation))


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("include", [False, True])
def test_mean(ceil, include):
    x = array(1, 2, 8, 7)
    want = F.avg_pool2d(torch.tensor(x), 3, 2, 1, ceil, include)
    check(lambda t: topi.nn.pool2d(t, 3, 2, 1, 1, "avg", ceil, count_include_pad=include), [x],
          want)
    check(lambda t: topi.nn.pool2d(t, 3, 2, 1, 1, "avg", ceil, "NHWC", include),
          [x.transpose(0, 2, 3, 1)], want.permute(0, 2, 3, 1))


def test_other_dimensions():
    x = array(2, 3, 9)
    check(lambda t: topi.nn.pool1d(t, 3, 2, 1, 0, "max", True), [x],
          F.max_pool1d(torch.tensor(x), 3, 2, 0, 1, True))
    x = array(1, 2, 4, 4, 4)
    check(lambda t: topi.nn.pool3d(t, 2, 2, 1, 0, "avg"), [x], F.avg_pool3d(torch.tensor(x), 2))


@pytest.mark.parametrize("size", [(1, 1), (2, 4), (3, 5), (7, 3)])
def test_adaptive(size):
    x = array(1, 2, 8, 8)
    check(lambda t: topi.nn.adaptive_pool(t, size, "avg"), [x],
          F.adaptive_avg_pool2d(torch.tensor(x), size))
    check(lambda t: topi.nn.adaptive_pool(t, size, "max"), [x],
          F.adaptive_max_pool2d(torch.tensor(x), size))


def test_channels_that_are_split():
    x = array(1, 2, 8, 8, 4)
    flat = torch.tensor(x.transpose(0, 1, 4, 2, 3).reshape(1, 8, 8, 8))

    def packed(y):
        return y.reshape(1, 2, 4, *y.shape[2:]).permute(0, 1, 3, 4, 2)

    check(lambda t: topi.nn.adaptive_pool(t, (2, 4), "avg", "NCHW4c"), [x],
          packed(F.adaptive_avg_pool2d(flat, (2, 4))))
    check(lambda t: topi.nn.pool2d(t, 3, 2, 1, 1, "max", layout="NCHW4c"), [x],
          packed(F.max_pool2d(flat, 3, 2, 1)))
    t = te.placeholder((1, 2, 8, 8, 4))
    for layout in ("NCHW4h", "NCHWc4", "NCHW4c4c", "NCH4cX"):
        with pytest.raises(ValueError, match="is not made of NCHW"):
            topi.nn.pool2d(t, 3, 2, 1, 1, "max", layout=layout)


def test_adaptive_of_one_and_three_dimensions():
    x = array(1, 2, 7)
    check(lambda t: topi.nn.adaptive_pool1d(t, 3, "avg"), [x],
          F.adaptive_avg_pool1d(torch.tensor(x), 3))
    x = array(1, 1, 4, 5, 6)
    check(lambda t: topi.nn.adaptive_pool3d(t, (2, 2, 3), "max"), [x],
          F.adaptive_max_pool3d(torch.tensor(x), (2, 2, 3)))
    x = array(1, 2, 3, 3)
    check(lambda t: topi.nn.global_pool(t, "avg"), [x], x.mean((2, 3), keepdims=True))


@pytest.mark.parametrize("operator, mode", [
    (topi.nn.pad, "constant"), (topi.nn.reflect_pad, "reflect"), (topi.nn.replicate_pad, "edge"),
    (topi.nn.circular_pad, "wrap"),
    (lambda t, b, a: topi.nn.mirror_pad(t, b, a, "SYMMETRIC"), "symmetric")])
def test_padding(operator, mode):
    x = array(3, 4, 5)
    check(lambda t: operator(t, [0, 2, 1], [0, 1, 3]), [x],
          np.pad(x, [(0, 0), (2, 1), (1, 3)], mode))


def test_dilate():
    x = array(3, 4)
    want = np.full((5, 4), 9.0)
    want[::2] = x
    check(lambda t: topi.nn.dilate(t, [2, 1], 9), [x], want)


def test_a_window_that_does_not_fit():
    with pytest.raises(ValueError, match=r"window of \[3, 3\] does not fit into \(1, 1, 2, 2\)"):
        topi.nn.pool2d(te.placeholder((1, 1, 2, 2)), 3, 1, 1, 0, "max")


def test_the_four_paddings_of_a_window():
    get = topi.nn.get_pad_tuple
    assert get(1, (3, 3)) == (1, 1, 1, 1) and get((1, 2), (3, 3)) == (1, 2, 1, 2)
    assert get((1, 2, 3, 4), (3, 3)) == (1, 2, 3, 4)
    assert get("SAME", (4, 3)) == (2, 1, 1, 1) and get("VALID", (4, 3)) == (0, 0, 0, 0)
    with pytest.raises(ValueError, match="get_pad_tuple"):
        get((1, 2, 3), (3, 3))

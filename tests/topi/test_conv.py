"""Convolutions against torch."""

import numpy as np
import pytest
from topi.running import array, check

from mlc_lab import te, topi

torch = pytest.importorskip("torch")
F = torch.nn.functional


def t(x):
    return torch.from_numpy(np.ascontiguousarray(x))


@pytest.mark.parametrize("stride, padding, dilation, groups", [
    (1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 1), (2, 1, 1, 2), (1, 1, 1, 4)])
def test_conv2d(stride, padding, dilation, groups):
    x, w = array(2, 4, 7, 6), array(8, 4 // groups, 3, 3)
    want = F.conv2d(t(x), t(w), None, stride, padding, dilation, groups)
    check(lambda a, b: topi.nn.group_conv2d_nchw(a, b, stride, padding, dilation, groups),
          [x, w], want)
    check(lambda a, b: topi.nn.group_conv2d_nhwc(a, b, stride, padding, dilation, groups),
          [x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)], want.permute(0, 2, 3, 1))


def test_padding_on_each_side():
    x, w = array(1, 2, 6, 6), array(3, 2, 3, 3)
    want = F.conv2d(F.pad(t(x), (2, 0, 0, 1)), t(w))  # left 2, bottom 1
    check(lambda a, b: topi.nn.conv2d_nchw(a, b, 1, (0, 2, 1, 0), 1), [x, w], want)
    check(lambda a, b: topi.nn.conv2d_nchw(a, b, 1, "SAME", 1), [x, w],
          F.conv2d(t(x), t(w), padding="same"))
    check(lambda a, b: topi.nn.conv2d_nchw(a, b, 1, "VALID", 1), [x, w], F.conv2d(t(x), t(w)))


@pytest.mark.parametrize("groups", [1, 2])
def test_conv1d_and_conv3d(groups):
    x, w = array(2, 4, 9), array(6, 4 // groups, 3)
    want = F.conv1d(t(x), t(w), None, 2, 1, 1, groups)
    check(lambda a, b: topi.nn.group_conv1d_ncw(a, b, 2, 1, 1, groups), [x, w], want)
    check(lambda a, b: topi.nn.conv1d(a, b, 2, 1, 1, groups, "NWC"),
          [x.transpose(0, 2, 1), w.transpose(2, 1, 0)], want.permute(0, 2, 1))
    x, w = array(1, 4, 4, 5, 5), array(4, 4 // groups, 2, 3, 3)
    check(lambda a, b: topi.nn.conv3d_ncdhw(a, b, 1, 1, 1, groups), [x, w],
          F.conv3d(t(x), t(w), None, 1, 1, 1, groups))


@pytest.mark.parametrize("times", [1, 2])
def test_depthwise(times):
    x, w = array(1, 3, 6, 6), array(3, times, 3, 3)
    want = F.conv2d(t(x), t(w.reshape(3 * times, 1, 3, 3)), None, 2, 1, 1, 3)
    check(lambda a, b: topi.nn.depthwise_conv2d_nchw(a, b, 2, 1, 1), [x, w], want)
    check(lambda a, b: topi.nn.depthwise_conv2d_nhwc(a, b, 2, 1, 1),
          [x.transpose(0, 2, 3, 1), w.transpose(2, 3, 0, 1)], want.permute(0, 2, 3, 1))


@pytest.mark.parametrize("stride, padding, extra, groups", [
    (1, 0, 0, 1), (2, 1, 1, 1), (3, 1, 0, 2), (2, 0, 0, 2)])
def test_transposed(stride, padding, extra, groups):
    x, w = array(2, 4, 5, 4), array(4, 6 // groups, 3, 3)
    check(lambda a, b: topi.nn.group_conv2d_transpose_nchw(
        a, b, stride, padding, "float32", extra, groups), [x, w],
        F.conv_transpose2d(t(x), t(w), None, stride, padding, extra, groups))
    x, w = array(2, 4, 5), array(4, 6 // groups, 3)
    check(lambda a, b: topi.nn.group_conv1d_transpose_ncw(
        a, b, stride, padding, "float32", extra, groups), [x, w],
        F.conv_transpose1d(t(x), t(w), None, stride, padding, extra, groups))


def test_transposed_3d():
    x, w = array(1, 2, 3, 3, 3), array(2, 3, 2, 2, 2)
    check(lambda a, b: topi.nn.conv3d_transpose_ncdhw(a, b, 2, 0, "float32", 0), [x, w],
          F.conv_transpose3d(t(x), t(w), None, 2))


def test_half_precision_sums_in_the_type_asked_for():
    x, w = array(1, 2, 4, 4, dtype="float16"), array(2, 2, 3, 3, dtype="float16")
    check(lambda a, b: topi.nn.conv2d_nchw(a, b, 1, 0, 1, "float32"), [x, w],
          F.conv2d(t(x).float(), t(w).float()))


@pytest.mark.parametrize("x, w, groups, words", [
    ((1, 3, 8, 8), (4, 2, 3, 3), 1, r"\(1, 3, 8, 8\) has 3 channels.*\(4, 2, 3, 3\) takes 2"),
    ((1, 4, 8, 8), (3, 2, 3, 3), 2, "2 groups do not divide the 3 output channels"),
    ((1, 4, 2, 2), (3, 4, 3, 3), 1, "reaches over the whole padded input"),
    ((4, 8, 8), (3, 4, 3, 3), 1, "has 3 dimensions"),
])
def test_refusals(x, w, groups, words):
    with pytest.raises(ValueError, match=words):
        topi.nn.conv(te.placeholder(x), te.placeholder(w), 1, 0, 1, groups, "NCHW")

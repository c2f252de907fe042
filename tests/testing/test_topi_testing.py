"""topi.testing: the references in numpy and the operators of topi say the same."""

# ruff: noqa: B008  (what a case takes is drawn once, where the case stands)

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te, topi
from mlc_lab.testing import topi as ref

RNG = np.random.default_rng(5)


def drawn(*shape):
    return RNG.standard_normal(shape).astype("float32")


def same(want, operator, *arrays, rtol=1e-4):
    """The operator on arrays is `want`."""
    tensors = [te.placeholder(a.shape, str(a.dtype), name=f"x{n}") for n, a in enumerate(arrays)]
    made = operator(*tensors)
    assert tuple(int(d) for d in made.shape) == np.shape(want)
    out = np.zeros(np.shape(want), made.dtype)
    tvm.build(topi.generic.schedule_injective([made]), [*tensors, made], "llvm")(*arrays, out)
    np.testing.assert_allclose(out, want, rtol=rtol, atol=1e-4)


A1, A2, A3 = drawn(2, 4, 9), drawn(2, 4, 7, 9), drawn(1, 2, 4, 5, 6)
LOW, HIGH = [1, 0], [2, 1]
CASES = {
    "conv1d": lambda a=A1, w=drawn(3, 4, 3): (
        ref.conv1d_ncw_python(a, w, 2, (1, 2), 2),
        lambda x, y: topi.nn.conv1d_ncw(x, y, 2, (1, 2), 2), a, w),
    "conv2d": lambda a=A2, w=drawn(3, 4, 3, 2): (
        ref.conv2d_nchw_python(a, w, (2, 1), (1, 0, 2, 1)),
        lambda x, y: topi.nn.conv2d_nchw(x, y, (2, 1), (1, 0, 2, 1), 1), a, w),
    "conv2d_same": lambda a=A2, w=drawn(3, 4, 3, 4): (
        ref.conv2d_nchw_python(a, w, 1, "SAME"),
        lambda x, y: topi.nn.conv2d_nchw(x, y, 1, "SAME", 1), a, w),
    "conv2d_nhwc": lambda a=drawn(2, 7, 9, 4), w=drawn(3, 2, 4, 5): (
        ref.conv2d_nhwc_python(a, w, 2, 1),
        lambda x, y: topi.nn.conv2d_nhwc(x, y, 2, 1, 1), a, w),
    "conv2d_hwcn": lambda a=drawn(7, 9, 4, 2), w=drawn(3, 2, 4, 5): (
        ref.conv2d_hwcn_python(a, w, 2, 1),
        lambda x, y: topi.nn.conv2d_hwcn(x, y, 2, 1, 1), a, w),
    "grouped": lambda a=A2, w=drawn(6, 2, 3, 3): (
        ref.conv2d_nchw_python(a, w, 1, 1, groups=2),
        lambda x, y: topi.nn.group_conv2d_nchw(x, y, 1, 1, 1, 2), a, w),
    "depthwise": lambda a=A2, w=drawn(4, 2, 3, 3): (
        ref.depthwise_conv2d_python_nchw(a, w, 1, 1),
        lambda x, y: topi.nn.depthwise_conv2d_nchw(x, y, 1, 1, 1), a, w),
    "conv3d": lambda a=A3, w=drawn(3, 2, 2, 3, 3): (
        ref.conv3d_ncdhw_python(a, w, 1, 1),
        lambda x, y: topi.nn.conv3d_ncdhw(x, y, 1, 1, 1, 1), a, w),
    "transposed": lambda a=A2, w=drawn(4, 3, 3, 2): (
        ref.conv2d_transpose_nchw_python(a, w, (2, 1), (1, 0), (1, 0)),
        lambda x, y: topi.nn.conv2d_transpose_nchw(x, y, (2, 1), (1, 0), "float32", (1, 0)), a, w),
    "transposed_and_cut": lambda a=A2, w=drawn(4, 3, 2, 2): (
        ref.conv2d_transpose_nchw_python(a, w, (2, 2), (2, 2, 2, 2), (0, 0)),
        lambda x, y: topi.nn.conv2d_transpose_nchw(x, y, (2, 2), (2, 2, 2, 2), "float32", (0, 0)),
        a, w),
    "dense": lambda a=drawn(3, 5), w=drawn(4, 5), b=drawn(4): (
        ref.dense(a, w, b, use_bias=True), topi.nn.dense, a, w, b),
    "batch_matmul": lambda a=drawn(2, 3, 5), b=drawn(2, 4, 5): (
        ref.batch_matmul(a, b), topi.nn.batch_matmul, a, b),
    "softmax": lambda a=A2: (ref.softmax_python(a, 2), lambda x: topi.nn.softmax(x, 2), a),
    "log_softmax": lambda a=drawn(3, 8): (ref.log_softmax_python(a), topi.nn.log_softmax, a),
    "lrn": lambda a=A2: (ref.lrn_python(a, 3, 1, 2.0, 0.5, 0.75),
                         lambda x: topi.nn.lrn(x, 3, 1, 0.5, 0.75, 2.0), a),
    "layer_norm": lambda a=A2, g=drawn(7, 9), b=drawn(7, 9): (
        ref.layer_norm_python(a, g, b, (2, 3)),
        lambda x, y, z: topi.nn.layer_norm(x, y, z, [2, 3], 1e-5), a, g, b),
    "group_norm": lambda a=A2, g=drawn(4), b=drawn(4): (
        ref.group_norm_python(a, g, b, 2, 1, [2, 3]),
        lambda x, y, z: topi.nn.group_norm(x, y, z, 2, 1, [2, 3], 1e-5), a, g, b),
    "rms_norm": lambda a=A2, g=drawn(9): (
        ref.rms_norm_python(a, g, (3,)), lambda x, y: topi.nn.rms_norm(x, y, [3], 1e-5), a, g),
    "dilate": lambda a=A2: (ref.dilate_python(a, [1, 1, 2, 3], 0.5),
                            lambda x: topi.nn.dilate(x, [1, 1, 2, 3], 0.5), a),
    "strided_slice": lambda a=A2: (
        ref.strided_slice_python(a, [0, 3, 1, 0], [2, 0, 6, 9], [1, -1, 2, 3]),
        lambda x: topi.strided_slice(x, [0, 3, 1, 0], [2, 0, 6, 9], [1, -1, 2, 3]), a),
    "slice_of_axes": lambda a=A2: (
        ref.strided_slice_python(a, [1], [6], None, axes=[2]),
        lambda x: topi.strided_slice(x, [1], [6], axes=[2]), a),
    "one_hot": lambda i=RNG.integers(0, 5, (3, 2)).astype("int32"): (
        ref.one_hot(i, 2, -1, 5, 1, "float32"),
        lambda x: topi.one_hot(x, tvm.tir.const(2.0, "float32"), tvm.tir.const(-1.0, "float32"),
                               5, 1, "float32"), i),
    "gather": lambda a=drawn(3, 4), i=RNG.integers(0, 4, (2, 6)).astype("int32"): (
        ref.gather_python(a, 1, i), lambda x, y: topi.gather(x, 1, y), a, i),
    "gather_nd": lambda a=drawn(3, 4, 5), i=RNG.integers(0, 3, (2, 6)).astype("int32"): (
        ref.gather_nd_python(a, i), topi.gather_nd, a, i),
    "sequence_mask": lambda a=drawn(5, 3, 2), n=np.array([1, 5, 0], "int32"): (
        ref.sequence_mask(a, n, -1.0, 0), lambda x, y: topi.sequence_mask(x, y, -1.0, 0), a, n),
    "diagonals": lambda a=drawn(2, 3, 5), d=drawn(2, 4, 3): (
        ref.matrix_set_diag(a, d, (-1, 2), "LEFT_RIGHT"),
        lambda x, y: topi.matrix_set_diag(x, y, (-1, 2), "LEFT_RIGHT"), a, d),
    "depth_to_space": lambda a=drawn(1, 8, 2, 3): (
        ref.depth_to_space_python(a, 2, "CRD"),
        lambda x: topi.nn.depth_to_space(x, 2, mode="CRD"), a),
    "space_to_depth": lambda a=drawn(1, 2, 4, 6): (
        ref.space_to_depth_python(a, 2), lambda x: topi.nn.space_to_depth(x, 2), a),
    "space_to_batch": lambda a=drawn(2, 3, 5, 2): (
        ref.space_to_batch_nd_python(a, [2, 3], LOW, HIGH, 0.5),
        lambda x: topi.nn.space_to_batch_nd(x, [2, 3], LOW, HIGH, 0.5), a),
    "batch_to_space": lambda a=drawn(12, 3, 2, 2): (
        ref.batch_to_space_nd_python(a, [2, 3], LOW, HIGH),
        lambda x: topi.nn.batch_to_space_nd(x, [2, 3], LOW, HIGH), a),
}


@pytest.mark.parametrize("name", CASES)
def test_references_and_operators_agree(name):
    same(*CASES[name]())


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_poolings(kind, ceil, padded):
    want = ref.poolnd_python(A2, [3, 2], [2, 3], [1, 2], LOW, HIGH, kind, padded, ceil)
    same(want, lambda x: topi.nn.pool2d(x, [3, 2], [2, 3], [1, 2], [*LOW, *HIGH], kind, ceil,
                                        "NCHW", padded), A2)


def test_adaptive_pooling():
    same(ref.adaptive_pool(A2, (3, 4), "avg", "NCHW"),
         lambda x: topi.nn.adaptive_pool(x, (3, 4), "avg", "NCHW"), A2)


def test_losses_and_batch_norm():
    p, t, w = drawn(4, 3), np.array([0, 2, -100, 1], "int32"), np.abs(drawn(3))
    same(ref.nll_loss(p, t, w), lambda x, y, z: topi.nn.nll_loss(x, y, z, "mean", -100), p, t, w)
    g, b, m, v = drawn(4), drawn(4), drawn(4), np.abs(drawn(4))
    same(ref.batch_norm(A2, g, b, m, v, 1, 1e-5, True, True, False, 0.1)[0],
         lambda *x: topi.nn.batch_norm(*x, 1, 1e-5, True, True, False, 0.1)[0], A2, g, b, m, v)


def test_schedules_of_a_target():
    assert ref.dispatch("llvm", {"generic": 1, "cpu": 2}) == 2
    assert ref.dispatch("cuda", {"generic": 1, "cpu": 2}) == 1
    a = drawn(8, 8)
    for target in ("llvm", "cuda"):
        ref.compare_numpy_tvm([a], np.maximum(a, 0), target, tvm.device(target), topi.nn.relu,
                              ref.get_elemwise_schedule(target))


def test_what_is_not_there_says_so():
    assert topi.testing is ref
    with pytest.raises(AttributeError, match="roi_align_nchw_python"):
        ref.roi_align_nchw_python

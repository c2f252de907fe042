"""Every operator of the inventory, legalised and compiled, against numpy and torch."""

import math

import numpy as np
import pytest
from relax.evaluate import check
from topi.running import array

from mlc_lab.relax import op
from mlc_lab.relax.op import OPERATORS
from mlc_lab.relax.op import image, nn

torch = pytest.importorskip("torch")
F = torch.nn.functional

X, Y = array(2, 3, 4), array(3, 4, low=0.5)
I, J = array(6, dtype="int32", low=-9, high=9), array(6, dtype="int32", low=1, high=4)
B, C = array(3, 4, dtype="bool"), array(4, dtype="bool")
POSITIVE = array(3, 4, low=0.1)


def t(x):
    return torch.from_numpy(np.ascontiguousarray(x))


#: operator -> (arguments, numpy's function); the domain is chosen to fit
UNARY = {
    "abs": np.abs, "atan": np.arctan, "asinh": np.arcsinh, "ceil": np.ceil, "cos": np.cos,
    "cosh": np.cosh, "erf": np.vectorize(math.erf), "exp": np.exp, "floor": np.floor,
    "negative": np.negative, "round": np.round, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "square": np.square, "tan": np.tan,
    "tanh": np.tanh, "trunc": np.trunc, "isfinite": np.isfinite, "isinf": np.isinf,
    "isnan": np.isnan}
SMALL = {"acos": np.arccos, "asin": np.arcsin, "atanh": np.arctanh}
LARGE = {"log": np.log, "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt}
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "floor_divide": np.floor_divide, "power": None, "mod": np.fmod, "floor_mod": np.mod,
    "maximum": np.maximum, "minimum": np.minimum, "log_add_exp": np.logaddexp,
    "atan2": np.arctan2, "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal}
INTEGER = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift, "right_shift": np.right_shift,
    "floor_divide": np.floor_divide}
LOGICAL = {"logical_and": np.logical_and, "logical_or": np.logical_or,
           "logical_xor": np.logical_xor}


@pytest.mark.parametrize("name", UNARY)
def test_one_tensor(name):
    check(getattr(op, name), [X], UNARY[name](X))


@pytest.mark.parametrize("name", [*SMALL, *LARGE, "acosh"])
def test_one_tensor_of_a_domain(name):
    x = X / 3 if name in SMALL else POSITIVE + (1 if name == "acosh" else 0)
    fn = SMALL.get(name) or LARGE.get(name) or np.arccosh
    check(getattr(op, name), [x.astype("float32")], fn(x))


@pytest.mark.parametrize("name", BINARY)
def test_two_tensors(name):
    if name == "power":
        check(op.power, [POSITIVE, Y], POSITIVE ** Y)
        return
    check(getattr(op, name), [X, Y], BINARY[name](X, Y))


@pytest.mark.parametrize("name", INTEGER)
def test_integers(name):
    check(getattr(op, name), [I, J], INTEGER[name](I, J))


@pytest.mark.parametrize("name", LOGICAL)
def test_conditions(name):
    check(getattr(op, name), [B, C], LOGICAL[name](B, C))


def test_numbers_become_part_of_the_program():
    from relax.evaluate import module_of

    from mlc_lab.relax.transform import LegalizeOps

    mod = LegalizeOps()(module_of(lambda x: op.add(x, 2.0), X))
    assert "+ T.float32(2.0)" in mod.script()
    check(lambda x: op.maximum(op.multiply(x, 3.0), 0.0), [X], np.maximum(X * 3, 0))


MISC = {
    "bitwise_not": (op.bitwise_not, [I], ~I), "logical_not": (op.logical_not, [B], ~B),
    "astype": (lambda x: op.astype(x, "int32"), [X], X.astype("int32")),
    "wrap_param": (lambda x: op.elementwise.wrap_param(x, "float64"), [X], X.astype("float64")),
    "where": (op.where, [B, Y, POSITIVE], np.where(B, Y, POSITIVE)),
    "clip": (lambda x: op.clip(x, -0.5, 1), [X], X.clip(-0.5, 1)),
    "ewise_fma": (op.ewise_fma, [Y, Y, POSITIVE], Y * Y + POSITIVE),
    "full_like": (lambda x: op.full_like(x, 3.0), [X], np.full_like(X, 3)),
    "zeros_like": (op.zeros_like, [X], X * 0), "ones_like": (op.ones_like, [X], X * 0 + 1),
    "eye_like": (lambda x: op.eye_like(x, 1), [Y], np.eye(3, 4, 1)),
    "tril": (lambda x: op.tril(x, 1), [X], np.tril(X, 1)),
    "triu": (lambda x: op.triu(x, -1), [X], np.triu(X, -1)),
    "mean": (lambda x: op.mean(x, [0, 2]), [X], X.mean((0, 2))),
    "mean_all": (lambda x: op.mean(x, keepdims=True), [X], X.mean(keepdims=True)),
    "std": (lambda x: op.std(x, 1), [X], X.std(1)),
    "variance": (lambda x: op.variance(x, -1, True), [X], X.var(-1, keepdims=True)),
    "sum": (lambda x: op.sum(x, 1, True), [X], X.sum(1, keepdims=True)),
    "max": (lambda x: op.max(x, (0, 1)), [X], X.max((0, 1))),
    "min": (lambda x: op.min(x), [X], X.min()),
    "prod": (lambda x: op.prod(x, 2), [X], X.prod(2)),
    "argmax": (lambda x: op.argmax(x, 1), [X], X.argmax(1)),
    "argmin": (lambda x: op.argmin(x, 2, True), [X], X.argmin(2, keepdims=True)),
    "argmax_all": (op.argmax, [X], X.argmax()),
    "cumsum": (lambda x: op.cumsum(x, 1), [X], X.cumsum(1)),
    "cumprod": (op.cumprod, [X], X.cumprod()),
    "cumsum_exclusive": (lambda x: op.cumsum(x, 2, exclusive=True), [X], X.cumsum(2) - X),
    "permute_dims": (lambda x: op.permute_dims(x, [2, 0, 1]), [X], X.transpose(2, 0, 1)),
    "expand_dims": (lambda x: op.expand_dims(x, [0, -1]), [X], X[None, ..., None]),
    "squeeze": (lambda x: op.squeeze(op.expand_dims(x, [1])), [X], X),
    "flatten": (op.flatten, [X], X.ravel()),
    "reshape": (lambda x: op.reshape(x, (4, -1)), [X], X.reshape(4, 6)),
    "broadcast_to": (lambda x: op.broadcast_to(x, (2, 3, 4)), [Y],
                     np.broadcast_to(Y, (2, 3, 4))),
    "collapse_sum_to": (lambda x: op.collapse_sum_to(x, (3, 1)), [X],
                        X.sum((0, 2)).reshape(3, 1)),
    "collapse_sum_like": (op.collapse_sum_like, [X, Y], X.sum(0)),
    "concat": (lambda x, y: op.concat([x, y], 0), [Y, POSITIVE], np.concatenate([Y, POSITIVE])),
    "concat_vectors": (lambda x, y: op.concat([x, y], None), [Y[0], C.astype("float32")],
                       np.concatenate([Y[0], C])),
    "stack": (lambda x, y: op.stack([x, y], 1), [Y, POSITIVE], np.stack([Y, POSITIVE], 1)),
    "split": (lambda x: op.split(x, 2, 2), [X], np.split(X, 2, 2)),
    "split_uneven": (lambda x: op.split(x, 3, 2), [X], [X[..., :2], X[..., 2:4], X[..., 4:]]),
    "split_at": (lambda x: op.split(x, [1, 3], -1), [X], np.split(X, [1, 3], -1)),
    "tile": (lambda x: op.tile(x, (2, 1, 1, 3)), [X], np.tile(X, (2, 1, 1, 3))),
    "repeat": (lambda x: op.repeat(x, 2, 1), [X], X.repeat(2, 1)),
    "repeat_flat": (lambda x: op.repeat(x, 2), [X], X.repeat(2)),
    "flip": (lambda x: op.flip(x, 2), [X], X[..., ::-1]),
    "take": (lambda x, i: op.take(x, i, 1), [X, np.array([[2, 0]])], X[:, [[2, 0]]]),
    "strided_slice": (lambda x: op.strided_slice(x, [1, 2], [0, 3], [3, 0], [2, -1]), [X],
                      X[:, 0:3:2, 3:0:-1]),
    "gather_elements": (lambda x, i: op.gather_elements(x, i, 1),
                        [Y, np.array([[0, 1], [2, 3], [3, 0]])],
                        np.take_along_axis(Y, np.array([[0, 1], [2, 3], [3, 0]]), 1)),
    "gather_nd": (op.gather_nd, [X, np.array([[0, 2], [1, -1]])], X[[0, 1], [2, -1]]),
    "gather_nd_batch": (lambda x, i: op.gather_nd(x, i, 1), [X, np.array([[2], [0]])],
                        X[[0, 1], [2, 0]]),
    "index_tensor": (lambda x, i, j: op.index_tensor(x, [i, j]),
                     [X, np.array([[1], [0]]), np.array([2, 0, 1])],
                     X[np.array([[1], [0]]), np.array([2, 0, 1])]),
    "one_hot": (lambda i: op.one_hot(i, 1.0, 0.0, 5), [J.astype("int64")], np.eye(5)[J]),
    "meshgrid": (lambda a, b: op.meshgrid([a, b]), [Y[0], Y[1, :3]],
                 np.meshgrid(Y[0], Y[1, :3], indexing="ij")),
    "layout_transform": (lambda x: op.layout_transform(
        x, lambda a, b, c: (a, c, b)), [X], X.transpose(0, 2, 1)),
    "layout_transform_padded": (lambda x: op.layout_transform(
        x, lambda a, b: (a, b // 3, b % 3), 7.0), [Y],
        np.pad(Y, [(0, 0), (0, 2)], constant_values=7).reshape(3, 2, 3)),
    "layout_transform_moved": (lambda x: op.layout_transform(
        x, lambda a, b: (a + 2, b // 2, b % 2), 7.0), [Y],
        np.pad(Y, [(2, 0), (0, 0)], constant_values=7).reshape(5, 2, 2)),
    "sort": (lambda x: op.sort(x, 1, True), [X], -np.sort(-X, 1)),
    "argsort": (lambda x: op.argsort(x, 2), [X], np.argsort(X, 2)),
    "topk": (lambda x: op.topk(x, 2), [X], [-np.sort(-X)[..., :2], np.argsort(-X)[..., :2]]),
    "bucketize": (op.bucketize, [X, np.sort(Y[0])], np.searchsorted(np.sort(Y[0]), X)),
    "outer": (op.outer, [Y[0], Y[1, :3]], np.outer(Y[0], Y[1, :3])),
    "einsum": (lambda x, y: op.einsum([x, y], "bij,ij->bi"), [X, Y],
               np.einsum("bij,ij->bi", X, Y)),
    "matmul": (op.matmul, [X, Y.T.copy()], X @ Y.T),
    "matmul_vector": (op.matmul, [X, Y[0]], X @ Y[0]),
    "matmul_left": (op.matmul, [Y[0, :3], Y], Y[0, :3] @ Y),
    "matmul_both": (op.matmul, [Y[0], Y[1]], Y[0] @ Y[1]),
    "linear": (lambda x, w, b: op.linear(x, w, b), [X, Y, Y[:, 0].copy()], X @ Y.T + Y[:, 0]),
}


@pytest.mark.parametrize("name", MISC)
def test_moved_reduced_and_made(name):
    build, arrays, expected = MISC[name]
    check(build, arrays, expected)


def test_made_from_nothing():
    check(lambda: op.arange(2, 11, 3), [], np.arange(2, 11, 3))
    check(lambda: op.arange(0.0, 1.0, 0.25, "float32"), [], np.arange(0, 1, 0.25))
    check(lambda: op.eye(3, 4, 1), [], np.eye(3, 4, 1))
    check(lambda: op.full((2, 3), 2.5), [], np.full((2, 3), 2.5))
    check(lambda: op.zeros((2,), "int32"), [], np.zeros(2))
    check(lambda: op.ones((2, 2), "float32"), [], np.ones((2, 2)))


def test_scattered():
    at = np.array([[1, 0, 2, 1], [1, 2, 0, 2]])
    u = array(2, 4)
    want = t(Y.copy())
    for reduction, mode in (("add", "sum"), ("mean", "mean"), ("max", "amax")):
        check(lambda x, i, v, r=reduction: op.scatter_elements(x, i, v, 0, r), [Y, at, u],
              want.scatter_reduce(0, t(at), t(u), mode))
    check(lambda x, i, v: op.scatter_elements(x, i, v, 0), [Y, at[:1], u[:1]],
          want.scatter(0, t(at[:1]), t(u[:1])))
    places, v = np.array([[1], [0]]), array(2, 4)
    expected = Y.copy()
    expected[[1, 0]] = v
    check(op.scatter_nd, [Y, places, v], expected)
    check(lambda x, i, s: op.index_put(x, [i], s), [Y, places[:, 0], v], expected)
    expected = Y.copy()
    expected[:, 1:3] = v[:1, :2]
    check(lambda x, s: op.slice_scatter(x, s, 1, 3, 1, 1), [Y, np.repeat(v[:1, :2], 3, 0)],
          expected)


def test_sizes_that_only_the_run_knows():
    begin, end, step = (np.array(v, "int64") for v in ([0, 1, -1], [2, 3, 0], [1, 1, -2]))
    check(op.dynamic_strided_slice, [X, begin, end, step], X[0:2, 1:3, -1:0:-2])
    x = np.array([[0, 2, 0], [1, 0, 3]], "float32")
    check(op.nonzero, [x], np.argwhere(x).T)
    y = np.array([3, 1, 3, 2, 1], "int64")
    check(lambda v: op.unique(v), [y], np.unique(y))
    check(lambda v: op.unique(v, return_counts=True), [y],
          list(np.unique(y, return_counts=True)))
    check(lambda v: op.unique(v, sorted=False), [y], [3, 1, 2])


def test_choices_by_probability():
    prob = np.array([[0.2, 0.5, 0.3], [1, 0, 0]], "float32")
    sample = np.array([[0.1, 0.2, 0.69, 0.71, 1.0], [0.0, 0.3, 0.5, 0.9, 1.0]], "float32")
    check(op.multinomial_from_uniform, [prob, sample], [[0, 1, 1, 2, 2], [0, 0, 0, 0, 2]])


NN = {
    "relu": F.relu, "gelu": F.gelu, "silu": F.silu, "selu": F.selu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "relu6": F.relu6,
    "softplus": F.softplus}


@pytest.mark.parametrize("name", NN)
def test_activations(name):
    check(getattr(nn, name), [X * 3], NN[name](t(X * 3)))


def test_activations_with_parameters():
    check(lambda x: nn.leakyrelu(x, 0.2), [X], F.leaky_relu(t(X), 0.2))
    check(nn.prelu, [X, Y[:, 0].copy()], F.prelu(t(X), t(Y[:, 0])))
    check(lambda x: nn.softmax(x, 1), [X], torch.softmax(t(X), 1))
    check(nn.log_softmax, [X], torch.log_softmax(t(X), -1))


IMAGE = array(2, 4, 6, 7)


@pytest.mark.parametrize("strides, padding, dilation, groups", [
    (1, 0, 1, 1), (2, 1, 1, 2), ((1, 2), (1, 0), 2, 4)])
def test_conv2d(strides, padding, dilation, groups):
    w = array(8, 4 // groups, 3, 3)
    want = F.conv2d(t(IMAGE), t(w), None, strides, padding, dilation, groups)
    check(lambda x, k: nn.conv2d(x, k, strides, padding, dilation, groups), [IMAGE, w], want)
    check(lambda x, k: nn.conv2d(x, k, strides, padding, dilation, groups, "NHWC", "OHWI", "NCHW"),
          [IMAGE.transpose(0, 2, 3, 1).copy(), w.transpose(0, 2, 3, 1).copy()], want)


def test_other_convolutions():
    x, w = array(2, 4, 9), array(6, 2, 3)
    check(lambda a, b: nn.conv1d(a, b, 2, 1, groups=2), [x, w],
          F.conv1d(t(x), t(w), None, 2, 1, 1, 2))
    x, w = array(1, 2, 4, 4, 4), array(3, 2, 2, 2, 2)
    check(nn.conv3d, [x, w], F.conv3d(t(x), t(w)))
    w = array(4, 3, 3, 3)
    check(lambda a, b: nn.conv2d_transpose(a, b, 2, 1, 1, groups=2), [IMAGE, w],
          F.conv_transpose2d(t(IMAGE), t(w), None, 2, 1, 1, 2))
    check(lambda a, b: nn.conv2d_transpose(a, b, 1, 0, 0, 2), [IMAGE, w],
          F.conv_transpose2d(t(IMAGE), t(w), dilation=2))
    check(lambda a, b: nn.conv2d_transpose(a, b, 2, 1, 1, 1, 1, "NHWC", "HWIO", "NHWC"),
          [IMAGE.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 0, 1).copy()],
          F.conv_transpose2d(t(IMAGE), t(w), None, 2, 1, 1).permute(0, 2, 3, 1))
    x, w = array(2, 4, 5), array(4, 3, 3)
    check(lambda a, b: nn.conv1d_transpose(a, b, 2), [x, w], F.conv_transpose1d(t(x), t(w), None,
                                                                              2))
    x, w = array(1, 2, 3, 3, 3), array(2, 2, 2, 2, 2)
    check(lambda a, b: nn.conv3d_transpose(a, b, 2), [x, w], F.conv_transpose3d(t(x), t(w), None,
                                                                              2))


@pytest.mark.parametrize("ceil", [False, True])
def test_pools(ceil):
    x = t(IMAGE)
    check(lambda v: nn.max_pool2d(v, 3, 2, 1, 1, ceil), [IMAGE],
          F.max_pool2d(x, 3, 2, 1, 1, ceil))
    check(lambda v: nn.avg_pool2d(v, 3, 2, 1, 1, ceil, True), [IMAGE],
          F.avg_pool2d(x, 3, 2, 1, ceil, True))
    check(lambda v: nn.avg_pool2d(v, 3, 2, 1, 1, ceil, False, "NHWC", "NCHW"),
          [IMAGE.transpose(0, 2, 3, 1).copy()], F.avg_pool2d(x, 3, 2, 1, ceil, False))
    check(lambda v: nn.max_pool1d(v, 2, 2, 0, 1, ceil), [X], F.max_pool1d(t(X), 2, 2, 0, 1, ceil))
    check(lambda v: nn.avg_pool1d(v, 2, 2, 0, 1, ceil), [X], F.avg_pool1d(t(X), 2, 2, 0, ceil))
    y = array(1, 1, 4, 5, 5)
    check(lambda v: nn.max_pool3d(v, 2, 2, 0, 1, ceil), [y], F.max_pool3d(t(y), 2, 2, 0, 1, ceil))
    check(lambda v: nn.avg_pool3d(v, 2, 2, 0, 1, ceil), [y], F.avg_pool3d(t(y), 2, 2, 0, ceil))


def test_adaptive_pools():
    check(lambda v: nn.adaptive_avg_pool2d(v, (3, 2)), [IMAGE],
          F.adaptive_avg_pool2d(t(IMAGE), (3, 2)))
    check(lambda v: nn.adaptive_avg_pool2d(v), [IMAGE], IMAGE)
    check(lambda v: nn.adaptive_avg_pool1d(v, 2), [X], F.adaptive_avg_pool1d(t(X), 2))
    y = array(1, 1, 4, 5, 5)
    check(lambda v: nn.adaptive_avg_pool3d(v, 1), [y], F.adaptive_avg_pool3d(t(y), 1))


def test_norms():
    x, g, b = IMAGE, array(4), array(4)
    m, v = array(4), array(4, low=0.5)
    check(lambda *a: nn.batch_norm(*a, axis=1, training=False), [x, g, b, m, v],
          [F.batch_norm(t(x), t(m), t(v), t(g), t(b)), m, v])
    g2, b2 = array(7), array(7)
    check(lambda *a: nn.layer_norm(*a, axes=-1), [x, g2, b2], F.layer_norm(t(x), (7,), t(g2),
                                                                          t(b2)))
    check(lambda *a: nn.layer_norm(*a, axes=-1, center=False), [x, g2, b2],
          F.layer_norm(t(x), (7,), t(g2)))
    check(lambda *a: nn.rms_norm(*a), [x, g2], F.rms_norm(t(x), (7,), t(g2), 1e-5))
    check(lambda *a: nn.group_norm(*a, num_groups=2, channel_axis=1, axes=[2, 3]), [x, g, b],
          F.group_norm(t(x), 2, t(g), t(b)))
    check(lambda *a: nn.instance_norm(*a, channel_axis=1, axes=[2, 3]), [x, g, b],
          F.instance_norm(t(x), weight=t(g), bias=t(b)))


def test_shapes_of_images():
    check(lambda x: nn.pad(x, (0, 0, 1, 2, 0, 1)), [X], np.pad(X, [(0, 0), (1, 2), (0, 1)]))
    check(lambda x: nn.pad(x, (0, 0, 1, 2, 0, 1), "reflect"), [X],
          np.pad(X, [(0, 0), (1, 2), (0, 1)], "reflect"))
    check(lambda x: nn.pixel_shuffle(x, 2), [IMAGE], F.pixel_shuffle(t(IMAGE), 2))
    check(nn.batch_flatten, [X], X.reshape(2, 12))
    check(lambda x: image.resize2d(x, (9, 5), method="linear"), [IMAGE],
          F.interpolate(t(IMAGE), (9, 5), mode="bilinear"))


def test_losses_and_dropout():
    log, target = array(5, 3), array(5, dtype="int64", low=0, high=3)
    w = array(3, low=0.5)
    check(nn.nll_loss, [log, target, w], F.nll_loss(t(log), t(target), t(w)))
    check(lambda p, y: nn.nll_loss(p, y, reduction="sum"), [log, target],
          F.nll_loss(t(log), t(target), reduction="sum"))
    check(nn.cross_entropy_with_logits, [log, log], -(log * log).sum() / 5)
    check(lambda x: nn.dropout(x), [X], [X, np.ones_like(X)])


@pytest.mark.parametrize("mask", [None, "TopLeft", "BottomRight"])
def test_attention(mask):
    q, k, v = array(1, 3, 2, 4), array(1, 5, 2, 4), array(1, 5, 2, 4)
    bias = array(1, 2, 3, 5)
    tq, tk, tv = (t(a).permute(0, 2, 1, 3) for a in (q, k, v))
    scores = tq @ tk.transpose(-1, -2) / 2
    keep = torch.ones(3, 5, dtype=torch.bool)
    if mask:
        keep = keep.tril(2 if mask == "BottomRight" else 0)
    hidden = float("-inf")
    want = (scores.masked_fill(~keep, hidden).softmax(-1) @ tv).permute(0, 2, 1, 3)
    check(lambda *a: nn.attention(*a, causal_mask=mask), [q, k, v], want)
    want = ((scores + t(bias)).masked_fill(~keep, hidden).softmax(-1) @ tv).permute(0, 2, 1, 3)
    check(lambda *a: nn.attention(*a, causal_mask=mask), [q, k, v, bias], want)


@pytest.mark.parametrize("kind", ["more queries", "bias", "window"])
def test_a_query_that_may_look_at_nothing_gets_zeros(kind):
    q, k, v = array(1, 6, 2, 4), array(1, 3, 2, 4), array(1, 3, 2, 5)
    here, there = np.ogrid[:6, :3]
    seen = {"more queries": there <= here - 3, "bias": (here + there) % 3 + here % 2 < 1,
            "window": (there <= here) & (here - there < 2)}[kind]
    assert not seen.any(1).all()
    scores = np.where(seen, np.einsum("bqhd,bkhd->bhqk", q, k) / 2, -np.inf)
    weights = np.where(seen.any(1)[:, None], np.exp(scores), 0)
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-30)
    bias = [np.where(seen, 0, -np.inf).astype("float32")[None, None]] if kind == "bias" else []
    attrs = {"more queries": {"causal_mask": "BottomRight"}, "bias": {},
             "window": {"causal_mask": "TopLeft", "window_size": 2}}[kind]
    check(lambda *a: nn.attention(*a, **attrs), [q, k, v, *bias],
          np.einsum("bhqk,bkhd->bqhd", weights, v))


def test_quantised():
    scale, zero = np.array([0.1, 0.2, 0.05], "float32"), np.array([3, -2, 0], "int8")
    want = np.clip(np.round(X / scale[None, :, None]) + zero[None, :, None], -128, 127)
    check(lambda *a: op.quantize(*a, axis=1), [X, scale, zero], want.astype("int8"))
    back = (want - zero[None, :, None]) * scale[None, :, None]
    check(lambda *a: op.dequantize(*a, axis=1), [want.astype("int8"), scale, zero], back)


#: operators that other stages lower, or that only concern memory
LATER = ("call_", "make_closure", "invoke_", "null_value", "print", "assert_op", "shape_of",
         "tensor_to_shape", "shape_to_tensor", "memory.", "vm.", "builtin.alloc")


def test_every_operator_has_a_row():
    missing = [n for n, row in OPERATORS.items() if row.legalize is None
               and not n.removeprefix("relax.").startswith(LATER)]
    assert missing == []

"""The gradient rule of each operator gives what torch's autograd gives, on random data."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax import op as R

torch = pytest.importorskip("torch")
F = torch.nn.functional


def loss_module(build, arrays, weights):
    """main(args) = sum(build(args) * weights), and its adjoint."""
    bb = relax.BlockBuilder()
    params = [relax.Var(f"x{k}", relax.TensorStructInfo(a.shape, str(a.dtype)))
              for k, a in enumerate(arrays)]
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit(build(*params))
            loss = bb.emit_output(R.sum(R.multiply(out, relax.const(weights))))
        bb.emit_func_output(loss)
    return bb.get(), params


def gradients(build, arrays, weights, wanted):
    """The gradients of the parameters at `wanted`, by the virtual machine."""
    mod, params = loss_module(build, arrays, weights)
    mod = relax.transform.Gradient("main", [mod["main"].params[k] for k in wanted])(mod)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    loss, grads = vm["main_adjoint"](*map(tvm.nd.array, arrays))
    return [np.asarray(g.numpy()) for g in grads]


def by_torch(build, arrays, weights, wanted):
    """The same by torch."""
    tensors = [torch.tensor(a, requires_grad=k in wanted) for k, a in enumerate(arrays)]
    (build(*tensors) * torch.tensor(weights)).sum().backward()
    return [np.zeros_like(arrays[k]) if tensors[k].grad is None else tensors[k].grad.numpy()
            for k in wanted]


def check(ours, theirs, arrays, wanted=None):
    """Compare the two."""
    rng = np.random.default_rng(7)
    wanted = [k for k, a in enumerate(arrays) if a.dtype == "float32"] if wanted is None else wanted
    with torch.no_grad():
        shape = theirs(*map(torch.tensor, arrays)).shape
    weights = rng.normal(size=tuple(shape)).astype("float32")
    found = gradients(ours, arrays, weights, wanted)
    for k, a, b in zip(wanted, found, by_torch(theirs, arrays, weights, wanted)):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5, err_msg=f"argument {k}")


def normal(*shape, seed=0):
    return np.random.default_rng(seed + len(shape) + sum(shape)).normal(size=shape).astype(
        "float32")


def positive(*shape):
    return np.abs(normal(*shape)) + np.float32(0.5)


SMALL = np.clip(normal(3, 4) * 0.3, -0.9, 0.9)
UNARY = {
    "abs": torch.abs, "negative": torch.neg, "exp": torch.exp, "log": torch.log,
    "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "square": torch.square, "sin": torch.sin,
    "cos": torch.cos, "tan": torch.tan, "sinh": torch.sinh, "cosh": torch.cosh,
    "tanh": torch.tanh, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan,
    "sigmoid": torch.sigmoid, "erf": torch.erf, "nn.relu": F.relu, "nn.silu": F.silu,
    "nn.gelu": F.gelu, "nn.gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "nn.leakyrelu": F.leaky_relu, "nn.softplus": F.softplus, "ceil": torch.ceil,
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_variable(name):
    build = R
    for part in name.split("."):
        build = getattr(build, part)
    x = positive(3, 4) if name in ("log", "sqrt", "rsqrt") else SMALL
    check(build, UNARY[name], [x])


def test_at_zero_relu_and_abs_are_flat_as_in_torch():
    x = np.array([-1, 0, 2], "float32")
    check(R.nn.relu, F.relu, [x])
    check(R.abs, torch.abs, [x])


BINARY = {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": torch.div,
          "maximum": torch.maximum, "minimum": torch.minimum, "power": torch.pow}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((4, 1, 3), (2, 1)), ((3,), (2, 3))])
def test_functions_of_two_variables_are_summed_over_what_is_broadcast(name, shapes):
    x, y = (positive(*s) for s in shapes)
    check(getattr(R, name), BINARY[name], [x, y])


def test_numbers_as_operands():
    check(lambda x: R.multiply(R.add(x, 1.5), R.subtract(2.0, x)), lambda x: (x + 1.5) * (2 - x),
          [normal(3)])
    check(lambda x: R.clip(x, -0.5, 0.5), lambda x: x.clamp(-0.5, 0.5), [normal(3, 4)])


def test_two_equal_operands_share_the_gradient_as_in_torch():
    x = np.array([1, 2, 3], "float32")
    check(R.maximum, torch.maximum, [x, np.array([1, 3, 2], "float32")])


def test_where():
    condition = normal(3, 4) > 0
    check(lambda c, x, y: R.where(c, x, y), torch.where, [condition, normal(3, 4), normal(4)])


REDUCTIONS = [("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax), ("min", torch.amin),
              ("variance", lambda x, *a, **k: torch.var(x, *a, correction=0, **k)),
              ("std", lambda x, *a, **k: torch.std(x, *a, correction=0, **k))]


@pytest.mark.parametrize("name,theirs", REDUCTIONS, ids=[n for n, _ in REDUCTIONS])
@pytest.mark.parametrize("axis,keepdims", [(1, False), ((0, 2), True), ((0, 1, 2), False),
                                           (-1, False)])
def test_reductions(name, theirs, axis, keepdims):
    ours = getattr(R, name)
    check(lambda x: ours(x, axis, keepdims), lambda x: theirs(x, axis, keepdim=keepdims),
          [normal(2, 3, 4)])


def test_reductions_of_everything_and_products():
    check(lambda x: R.mean(x), torch.mean, [normal(2, 3)])
    check(lambda x: R.prod(x, 1), lambda x: torch.prod(x, 1), [positive(2, 3)])


@pytest.mark.parametrize("axis", [0, 1, None])
def test_running_sums(axis):
    check(lambda x: R.cumsum(x, axis), lambda x: torch.cumsum(x, axis) if axis is not None
          else torch.cumsum(x.reshape(-1), 0), [normal(3, 4)])


def test_shapes():
    check(lambda x: R.reshape(x, (4, 6)), lambda x: x.reshape(4, 6), [normal(2, 3, 4)])
    check(lambda x: R.permute_dims(x, [2, 0, 1]), lambda x: x.permute(2, 0, 1), [normal(2, 3, 4)])
    check(R.permute_dims, lambda x: x.permute(2, 1, 0), [normal(2, 3, 4)])
    check(lambda x: R.squeeze(R.expand_dims(x, [0, 2]), [0]), lambda x: x[:, None], [normal(2, 3)])
    check(R.flatten, torch.flatten, [normal(2, 3)])
    check(lambda x: R.broadcast_to(x, (4, 2, 3)), lambda x: x.expand(4, 2, 3), [normal(2, 1)])
    check(lambda x: R.flip(x, 1), lambda x: x.flip(1), [normal(2, 3)])
    check(R.triu, torch.triu, [normal(3, 3)])
    check(lambda x: R.tril(x, -1), lambda x: x.tril(-1), [normal(3, 3)])


def test_parts():
    arrays = [normal(2, 3), normal(2, 1), normal(2, 4)]
    check(lambda *x: R.concat(x, 1), lambda *x: torch.cat(x, 1), arrays)
    check(lambda *x: R.concat(x, -1), lambda *x: torch.cat(x, 1), arrays)
    check(lambda x, y: R.stack([x, y], 1), lambda x, y: torch.stack([x, y], 1),
          [normal(2, 3), normal(2, 3)])
    check(lambda x: R.split(x, 2, 1)[1], lambda x: x.split(2, 1)[1], [normal(3, 4)])
    check(lambda x: R.multiply(*(R.split(x, [2], 1)[k] for k in (0, 1))),
          lambda x: x[:, :2] * x[:, 2:], [normal(3, 4)])


def test_slices():
    check(lambda x: R.strided_slice(x, [0, 1], [1, 0], [3, 6], [1, 2]), lambda x: x[1:3, 0:6:2],
          [normal(4, 7)])
    check(lambda x: R.strided_slice(x, [1], [5], [1], [-2]), lambda x: x[:, [5, 3]], [normal(3, 6)])


@pytest.mark.parametrize("axis,shape", [(0, (5, 3)), (1, (2, 4, 3)), (-1, (2, 4))])
def test_take_adds_up_what_is_taken_twice(axis, shape):
    indices = np.array([[0, 2, 2], [1, 0, 0]])
    check(lambda x, i: R.take(x, i, axis), lambda x, i: x.movedim(axis, 0)[i].movedim(
        (0, 1), (axis % x.ndim, axis % x.ndim + 1)), [normal(*shape), indices])


@pytest.mark.parametrize("shapes", [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)),
                                    ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
                                    ((4, 1, 2, 3), (5, 3, 2)), ((5, 2, 3), (3,)),
                                    ((3,), (5, 3, 2))])
def test_matmul(shapes):
    check(R.matmul, torch.matmul, [normal(*s) for s in shapes])


@pytest.mark.parametrize("image,window,options", [
    ((2, 3, 8, 8), (4, 3, 3, 3), {}),
    ((2, 3, 9, 7), (4, 3, 3, 2), {"strides": (2, 2), "padding": (1, 1)}),
    ((1, 2, 10, 10), (3, 2, 3, 3), {"dilation": (2, 2), "strides": (3, 3)}),
    ((2, 4, 6, 6), (6, 2, 3, 3), {"groups": 2, "padding": (1, 1)}),
    ((2, 4, 7, 7), (4, 1, 3, 3), {"groups": 4, "strides": (2, 2)}),
])
def test_conv2d(image, window, options):
    names = {"strides": "stride"}
    theirs = {names.get(k, k): v for k, v in options.items()}
    check(lambda x, w: R.nn.conv2d(x, w, **options), lambda x, w: F.conv2d(x, w, **theirs),
          [normal(*image), normal(*window)])


@pytest.mark.parametrize("options", [
    {"pool_size": 2, "strides": 2}, {"pool_size": (3, 2), "strides": (2, 1), "padding": (1, 1)},
    {"pool_size": 3, "strides": 2, "ceil_mode": True},
])
@pytest.mark.parametrize("counted", [None, False, True])
def test_pooling(counted, options):
    names = {"pool_size": "kernel_size", "strides": "stride"}
    theirs = {names.get(k, k): v for k, v in options.items()}
    x = normal(2, 3, 8, 8)
    if counted is None:
        check(lambda x: R.nn.max_pool2d(x, **options), lambda x: F.max_pool2d(x, **theirs), [x])
    else:
        check(lambda x: R.nn.avg_pool2d(x, count_include_pad=counted, **options),
              lambda x: F.avg_pool2d(x, count_include_pad=counted, **theirs), [x])


def test_adaptive_pooling():
    check(lambda x: R.nn.adaptive_avg_pool2d(x, (2, 1)),
          lambda x: F.adaptive_avg_pool2d(x, (2, 1)), [normal(1, 2, 4, 3)])


def test_of_equal_elements_the_first_has_the_gradient():
    check(lambda x: R.nn.max_pool2d(x, 2, 2), lambda x: F.max_pool2d(x, 2, 2),
          [np.ones((1, 1, 4, 4), "float32")])


def test_softmax():
    check(lambda x: R.nn.softmax(x, 1), lambda x: F.softmax(x, 1), [normal(2, 3, 4)])
    check(lambda x: R.nn.log_softmax(x), lambda x: F.log_softmax(x, -1), [normal(2, 3)])


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (3,)])
def test_nll_loss(reduction, shape):
    rest = shape[:1] + shape[2:] if len(shape) > 1 else ()
    targets = np.array(np.random.default_rng(3).integers(0, 3, rest))
    weights = positive(3)
    check(lambda p, t, w: R.nn.nll_loss(p, t, w, reduction, 1),
          lambda p, t, w: F.nll_loss(p, t, w, reduction=reduction, ignore_index=1),
          [normal(*shape), targets, weights], [0])
    check(lambda p, t: R.nn.nll_loss(p, t, reduction=reduction),
          lambda p, t: F.nll_loss(p, t, reduction=reduction), [normal(*shape), targets], [0])


def test_cross_entropy_with_logits():
    check(R.nn.cross_entropy_with_logits, lambda x, y: -(x * y).sum() / len(x),
          [normal(4, 3), normal(4, 3)])


@pytest.mark.parametrize("axes,shape", [([-1], (4,)), ([1, 2], (3, 4))])
def test_layer_norm(axes, shape):
    check(lambda x, g, b: R.nn.layer_norm(x, g, b, axes, 1e-5),
          lambda x, g, b: F.layer_norm(x, shape, g, b, 1e-5),
          [normal(2, 3, 4), normal(*shape), normal(*shape, seed=1)])


def test_astype():
    check(lambda x: R.astype(R.multiply(R.astype(x, "float64"), relax.const(2.0, "float64")),
                             "float32"), lambda x: (x.double() * 2).float(), [normal(3)])

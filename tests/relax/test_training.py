"""Training through the virtual machine: each step is that of torch, for every optimizer."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax, te
from mlc_lab.relax import op as R
from mlc_lab.relax.training import AppendLoss, SetupTrainer, Trainer
from mlc_lab.relax.training.loss import (
    CategoricalCrossEntropyLoss, CrossEntropyLoss, L1Loss, Loss, MSELoss,
)
from mlc_lab.relax.training.optimizer import SGD, Adam, MomentumSGD
from mlc_lab.relax.training.utils import register_te_gradient
from mlc_lab.script import from_source

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(1)


def info(*shape, dtype="float32"):
    return relax.TensorStructInfo(shape, dtype)


def backbone(shapes, build, inputs=1, states=0):
    """A module with the function `backbone` of variables of these shapes."""
    bb = relax.BlockBuilder()
    params = [relax.Var(name, info(*shape)) for name, shape in shapes.items()]
    with bb.function("backbone", params):
        with bb.dataflow():
            out = build(bb, *params)
            outs = [bb.emit_output(o) for o in (out if isinstance(out, tuple) else (out,))]
        bb.emit_func_output(outs[0] if len(outs) == 1 else tuple(outs))
    count = len(shapes) - inputs - states
    return bb.get().with_attrs({"param_num": count, "state_num": states})


def trainer(mod, loss, optimizer, loss_args):
    mod = SetupTrainer(loss, optimizer, loss_args)(mod)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    return Trainer(mod, vm, tvm.cpu())


MLP = {"x": (16, 10), "w0": (10, 32), "b0": (32,), "w1": (32, 4), "b1": (4,)}


def mlp(bb, x, w0, b0, w1, b1):
    h = bb.emit(R.nn.relu(R.add(R.matmul(x, w0), b0)))
    return R.add(R.matmul(h, w1), b1)


OPTIMIZERS = {
    "sgd": (SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "sgd, decay": (SGD(0.1, 0.01), lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.01)),
    "momentum": (MomentumSGD(0.05, 0.9, 0.1, 0.01),
                 lambda p: torch.optim.SGD(p, 0.05, 0.9, 0.1, 0.01)),
    "nesterov": (MomentumSGD(0.05, 0.9, nesterov=True),
                 lambda p: torch.optim.SGD(p, 0.05, 0.9, nesterov=True)),
    "adam": (Adam(0.01), lambda p: torch.optim.Adam(p, 0.01)),
    "adam, decay": (Adam(0.01, (0.8, 0.99), 1e-6, 0.1),
                    lambda p: torch.optim.Adam(p, 0.01, (0.8, 0.99), 1e-6, 0.1)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_perceptron_is_trained_as_torch_trains_it(name):
    ours, theirs = OPTIMIZERS[name]
    step = trainer(backbone(MLP, mlp), CrossEntropyLoss(), ours,
                   [info(16, 4), info(16, dtype="int64")])
    first = {n: (RNG.normal(size=s) * 0.3).astype("float32") for n, s in list(MLP.items())[1:]}
    step.load_params(first)
    params = [torch.tensor(v, requires_grad=True) for v in first.values()]
    optimizer = theirs(params)
    # torch's damping begins with the second step; that of TVM, and ours, with the first
    damped = getattr(ours, "dampening", 0)
    for k in range(30):
        x = RNG.normal(size=(16, 10)).astype("float32")
        labels = np.argmax(x[:, :4] - x[:, 4:8], 1)
        loss = step.update(x, labels)
        optimizer.zero_grad()
        w0, b0, w1, b1 = params
        expected = F.cross_entropy(torch.relu(torch.tensor(x) @ w0 + b0) @ w1 + b1,
                                   torch.tensor(labels))
        if damped and k == 0:
            first_loss = float(loss.numpy())
            np.testing.assert_allclose(first_loss, expected.item(), rtol=1e-5)
            break
        expected.backward()
        optimizer.step()
        np.testing.assert_allclose(loss.numpy(), expected.item(), rtol=2e-4)
    if not damped:
        for a, b in zip(step.export_params().values(), params):
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-3, atol=2e-5)
        right = np.argmax(step.predict(x).numpy(), 1) == labels
        assert right.mean() > 0.5


@pytest.mark.parametrize("options", [(0.1, 0.9, 0.2, 0.01, False), (0.1, 0.9, 0.0, 0.0, True)])
def test_momentum_is_what_its_formula_says(options):
    lr, momentum, dampening, decay, nesterov = options
    x = relax.Var("x", info(3))
    opt = MomentumSGD(lr, momentum, dampening, decay, nesterov).init(x)
    vm = run({opt.name: opt.get_function()})
    p, v, state = RNG.normal(size=3).astype("float32"), np.zeros(3), opt.state
    value = [tvm.nd.array(p)]
    for step in range(3):
        g = RNG.normal(size=3).astype("float32")
        value, state = vm[opt.name](value, [tvm.nd.array(g)], state)
        d = g + decay * p
        v = momentum * v + (1 - dampening) * d
        p = p - lr * (d + momentum * v if nesterov else v)
        np.testing.assert_allclose(value[0].numpy(), p, rtol=1e-5)
        assert state[0].numpy() == step + 1


def run(functions):
    mod = relax.transform.LegalizeOps()(tvm.IRModule(functions))
    return relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())


def test_a_network_of_images_with_a_norm_is_trained_as_torch_trains_it():
    shapes = {"x": (4, 3, 8, 8), "w": (6, 3, 3, 3), "gamma": (6,), "beta": (6,), "w1": (96, 5),
              "mean": (6,), "var": (6,)}

    def net(bb, x, w, gamma, beta, w1, mean, var):
        conv = bb.emit(R.nn.conv2d(x, w, padding=1))
        norm = bb.emit(R.nn.batch_norm(conv, gamma, beta, mean, var, axis=1))
        pooled = bb.emit(R.nn.max_pool2d(R.nn.relu(norm[0]), 2, 2))
        return R.matmul(R.reshape(pooled, (4, 96)), w1), norm[1], norm[2]

    step = trainer(backbone(shapes, net, states=2), CrossEntropyLoss("sum"), SGD(0.01),
                   [info(4, 5), info(4, dtype="int64")])
    first = {n: (RNG.normal(size=shapes[n]) * 0.3 + (n == "gamma")).astype("float32")
             for n in ("w", "gamma", "beta", "w1")}
    step.load_params(list(first.values()))
    step.load_states({"mean": np.zeros(6, "float32"), "var": np.ones(6, "float32")})
    w, gamma, beta, w1 = params = [torch.tensor(v, requires_grad=True) for v in first.values()]
    optimizer = torch.optim.SGD(params, 0.01)
    mean, var = np.zeros(6), np.ones(6)
    for _ in range(5):
        x = RNG.normal(size=(4, 3, 8, 8)).astype("float32")
        labels = RNG.integers(0, 5, 4)
        loss = step.update([x], [labels])
        optimizer.zero_grad()
        conv = F.conv2d(torch.tensor(x), w, padding=1)
        norm = F.batch_norm(conv, None, None, gamma, beta, True, eps=1e-5)
        flat = F.max_pool2d(torch.relu(norm), 2, 2).reshape(4, 96)
        expected = F.cross_entropy(flat @ w1, torch.tensor(labels), reduction="sum")
        expected.backward()
        optimizer.step()
        np.testing.assert_allclose(loss.numpy(), expected.item(), rtol=1e-3)
        data = conv.detach().numpy()
        mean = 0.9 * mean + 0.1 * data.mean((0, 2, 3))
        var = 0.9 * var + 0.1 * data.var((0, 2, 3))
    for a, b in zip(step.export_params().values(), params):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(step.export_states()["mean"].numpy(), mean, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(step.export_states()["var"].numpy(), var, rtol=1e-3, atol=1e-4)
    assert step.predict(x).numpy().shape == (4, 5)


LOSSES = [(L1Loss, F.l1_loss, "float32"), (MSELoss, F.mse_loss, "float32"),
          (CrossEntropyLoss, F.cross_entropy, "int64")]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ours,theirs,dtype", LOSSES, ids=lambda v: getattr(v, "__name__", v))
def test_losses(ours, theirs, dtype, reduction):
    x = RNG.normal(size=(3, 5)).astype("float32")
    y = RNG.normal(size=(3, 5)).astype("float32") if dtype == "float32" else RNG.integers(0, 5, 3)
    func = ours(reduction)(info(3, 5), info(*y.shape, dtype=dtype))
    out = run({"loss": func.with_attr("global_symbol", "loss")})["loss"](
        tvm.nd.array(x), tvm.nd.array(y))
    np.testing.assert_allclose(out.numpy(), theirs(
        torch.tensor(x), torch.tensor(y), reduction=reduction).numpy(), rtol=1e-5, atol=1e-6)


def test_classes_as_rows_of_zeros_and_a_one():
    x, labels = RNG.normal(size=(3, 5)).astype("float32"), RNG.integers(0, 5, 3)
    rows = np.eye(5, dtype="int64")[labels]
    for index in (-100, 2):
        func = CategoricalCrossEntropyLoss("sum", index)(info(3, 5), info(3, 5, dtype="int64"))
        out = run({"loss": func.with_attr("global_symbol", "loss")})["loss"](
            tvm.nd.array(x), tvm.nd.array(rows))
        expected = F.cross_entropy(torch.tensor(x), torch.tensor(labels), reduction="sum",
                                   ignore_index=index)
        np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-5)


MODEL = """
@I.ir_module
class Module:
    @R.function
    def predict(x: R.Tensor((2, 4), "float32"), y: R.Tensor((2, 4), "float32")):
        with R.dataflow():
            out = R.add(x, y)
            R.output(out)
        return out
"""


def test_a_loss_is_appended():
    mod = AppendLoss("predict", MSELoss("sum")(info(2, 4), info(2, 4)))(from_source(MODEL))
    text = mod["predict_loss"].script()
    assert [p.name_hint for p in mod["predict_loss"].params] == ["x", "y", "targets"]
    assert "R.subtract(out, targets)" in text and text.count("R.dataflow()") == 1
    assert relax.analysis.well_formed(mod)
    with pytest.raises(ValueError, match="the loss takes 2 result"):
        AppendLoss("predict", MSELoss()(info(2, 4), info(2, 4)), 2)(from_source(MODEL))
    with pytest.raises(ValueError, match="the model gives"):
        AppendLoss("predict", MSELoss()(info(2, 5), info(2, 5)))(from_source(MODEL))


def test_a_gradient_of_ones_own_in_te():
    def twice(x):
        return te.compute(x.shape, lambda *i: x(*i) * 2, "twice")

    def ten_times(grad, x, by):  # not the true one, to see that it is taken
        return [te.compute(x.shape, lambda *i: grad(*i) * by, "ten")]

    register_te_gradient("ten_times", ten_times)
    bb = relax.BlockBuilder()
    x = relax.Var("x", info(3))
    with bb.function("main", [x]):
        with bb.dataflow():
            call = bb.call_te(twice, x)
            y = bb.emit(R.call_tir_with_grad(call.args[0], [x], info(3), "ten_times", {"by": 10}))
            out = bb.emit_output(R.sum(y))
        bb.emit_func_output(out)
    mod = relax.transform.Gradient("main")(bb.get())
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    loss, (grad,) = vm["main_adjoint"](tvm.nd.array(np.ones(3, "float32")))
    assert loss.numpy() == 6 and grad.numpy().tolist() == [10, 10, 10]


CHECKPOINTS = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")):
        with R.dataflow():
            start = R.grad.start_checkpoint(x)
            a = R.exp(start)
            b = R.sin(a)
            c = R.grad.end_checkpoint(b)
            d = R.multiply(c, y)
            out = R.sum(d)
            R.output(out)
        return out
"""


def test_what_is_between_checkpoints_is_computed_again():
    mod = relax.transform.Gradient("main")(from_source(CHECKPOINTS))
    text = mod["main_adjoint"].script()
    assert text.count("R.exp(x)") == 2 and "checkpoint" not in text and "a_cp" in text
    x, y = RNG.normal(size=(2, 3)).astype("float32")
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    _, (gx, gy) = vm["main_adjoint"](tvm.nd.array(x), tvm.nd.array(y))
    np.testing.assert_allclose(gx.numpy(), np.cos(np.exp(x)) * np.exp(x) * y, rtol=1e-4)
    np.testing.assert_allclose(gy.numpy(), np.sin(np.exp(x)), rtol=1e-4)


def gradient_of(body, **options):
    text = f"""
@I.ir_module
class Module:
    @R.function(private=True)
    def f(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        return x

    @R.function
    def main(x: R.Tensor((3,), "float32"), i: R.Tensor((3,), "int64"),
             t: R.Tuple(R.Tensor((3,), "float32"), R.Tensor((3,), "float32"))):
        cls = Module
        with R.dataflow():
{body}
            R.output(out)
        return out
"""
    mod = from_source(text)
    params = mod["main"].params
    wanted = options.pop("wanted", [0])
    return relax.transform.Gradient("main", [params[k] for k in wanted], **options)(mod)


def test_tuples_have_gradients():
    mod = gradient_of("""
            a = t[0]
            u = (a, x)
            b = u[0]
            c = R.multiply(b, x)
            out = R.sum(c)""", wanted=[0, 2])
    x, a, b = RNG.normal(size=(3, 3)).astype("float32")
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    _, (gx, gt) = vm["main_adjoint"](*map(tvm.nd.array, (x, np.zeros(3, "int64"))),
                                     (tvm.nd.array(a), tvm.nd.array(b)))
    np.testing.assert_allclose(gx.numpy(), a, rtol=1e-6)
    np.testing.assert_allclose(gt[0].numpy(), x, rtol=1e-6)
    assert not gt[1].numpy().any()


@pytest.mark.parametrize("body,says,options", [
    ("            out = R.exp(x)", "no dimensions", {}),
    ("            out = R.sum(x)", "target_index is 1", {"target_index": 1}),
    ("            out = R.sum(x)", "only tensors of floats", {"wanted": [1]}),
    ("            out = R.sum(x)", "twice", {"wanted": [0, 0]}),
    ("            a = cls.f(x)\n            out = R.sum(a)", "InlinePrivateFunctions", {}),
    ("            a = R.sort(x)\n            out = R.sum(a)", "register_gradient", {}),
])
def test_what_cannot_be_differentiated_is_refused(body, says, options):
    with pytest.raises(ValueError, match=says):
        gradient_of(body, **options)


def test_refusals_of_losses_optimizers_and_trainers():
    with pytest.raises(ValueError, match="mean, sum, none"):
        MSELoss("max")
    with pytest.raises(NotImplementedError):
        Loss("mine", 1)(info(3), info(3))
    with pytest.raises(TypeError, match="whole numbers"):
        CategoricalCrossEntropyLoss()(info(3, 5), info(3, 5))
    x, y = relax.Var("x", info(3)), relax.Var("y", info(3, dtype="float64"))
    with pytest.raises(ValueError, match="one dtype"):
        SGD(0.1).init([x, y])
    with pytest.raises(ValueError, match="twice"):
        SGD(0.1).init([x, x])
    with pytest.raises(ValueError, match="tensors of floats"):
        SGD(0.1).init(relax.Var("i", info(3, dtype="int32")))
    with pytest.raises(RuntimeError, match="init"):
        Adam(0.1).get_function()
    with pytest.raises(ValueError, match="no Relax function 'backbone'"):
        SetupTrainer(MSELoss(), SGD(0.1), [])(from_source(MODEL))
    step = trainer(backbone(MLP, mlp), MSELoss(), SGD(0.1), [info(16, 4), info(16, 4)])
    with pytest.raises(ValueError, match="no parameter 'w9'"):
        step.load_params({"w9": np.zeros(3)})
    with pytest.raises(ValueError, match="4 parameter"):
        step.load_params([np.zeros(3)])
    with pytest.raises(ValueError, match="takes 1 input"):
        step.update([np.zeros(3), np.zeros(3)], np.zeros(3))
    step.xaiver_uniform_init_params()
    assert np.abs(step.export_params()["w0"].numpy()).max() <= np.sqrt(6 / 42)

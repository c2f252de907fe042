"""Models written with relax.frontend.nn: what they become, and what they compute, against torch."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax, te, topi
from mlc_lab.ir.structural import structural_equal
from mlc_lab.relax.frontend import nn
from mlc_lab.script import from_source
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R
from mlc_lab.script import tir as T

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(0)


def numbers(shape, dtype="float32"):
    """Random numbers; whole ones below 7 for integers."""
    if dtype.startswith("int"):
        return RNG.integers(0, 7, shape).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype)


class MLP(nn.Module):
    """Two layers, as in the course."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(128, 10, bias=False)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))


def called(module, spec, *args, method="forward"):
    """What a method gives for arrays, with random parameters; and these, by name."""
    mod, params = module.export_tvm(spec)
    given = {name: numbers([int(d) for d in p.shape], p.dtype) for name, p in params}
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    out = vm[method](*map(tvm.nd.array, args), *map(tvm.nd.array, given.values()))
    return out, given


def test_a_model_becomes_one_function_with_its_parameters_behind_the_inputs():
    mod, params = MLP().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 784), "float32")}})

    @I.ir_module
    class Expected:
        @R.function
        def forward(x: R.Tensor(("n", 784), "float32"),
                    fc1_weight: R.Tensor((128, 784), "float32"),
                    fc1_bias: R.Tensor((128,), "float32"),
                    fc2_weight: R.Tensor((10, 128), "float32")
                    ) -> R.Tensor(("n", 10), "float32"):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                permute_dims = R.permute_dims(fc1_weight, axes=None)
                matmul = R.matmul(x, permute_dims)
                add = R.add(matmul, fc1_bias)
                relu = R.nn.relu(add)
                permute_dims1 = R.permute_dims(fc2_weight, axes=None)
                gv = R.matmul(relu, permute_dims1)
                gv1 = gv
                R.output(gv1)
            return gv1

    assert structural_equal(mod, Expected) is True
    assert [n for n, _ in params] == ["fc1.weight", "fc1.bias", "fc2.weight"]
    assert repr(params[0][1]) == 'Tensor([128, 784], "float32")'
    assert structural_equal(from_source(mod.script()), mod) is True


def test_the_quick_start_of_a_new_user_runs():
    mod, param_spec = MLP().export_tvm(
        spec={"forward": {"x": nn.spec.Tensor((1, 784), "float32")}})
    mod = relax.get_pipeline("zero")(mod)
    vm = relax.VirtualMachine(relax.build(mod, tvm.target.Target("llvm")), tvm.cpu())
    x = np.random.rand(1, 784).astype("float32")
    arrays = [np.random.rand(*param.shape).astype("float32") for _, param in param_spec]
    got = vm["forward"](tvm.nd.array(x, device=tvm.cpu()),
                        *(tvm.nd.array(p, device=tvm.cpu()) for p in arrays)).numpy()
    w1, b1, w2 = arrays
    np.testing.assert_allclose(got, np.maximum(x @ w1.T + b1, 0) @ w2.T, rtol=1e-4)


CASES = {
    "relu6": (lambda x: nn.op.relu6(x * 4), lambda x: F.relu6(x * 4), [(3, 5)]),
    "silu": (nn.op.silu, F.silu, [(3, 5)]),
    "gelu": (nn.op.gelu, F.gelu, [(3, 5)]),
    "gelu_tanh": (lambda x: nn.op.gelu(x, "tanh"), lambda x: F.gelu(x, approximate="tanh"),
                  [(4,)]),
    "softplus": (lambda x: nn.op.softplus(x, 2.0, 1.0), lambda x: F.softplus(x, 2.0, 1.0),
                 [(4, 3)]),
    "prelu": (nn.op.prelu, lambda x, a: F.prelu(x, a), [(2, 3, 4), (3,)]),
    "arithmetic": (lambda a, b: (2 - a) / (b * b + 1) - 3 * a + 1.5 / (a * a + 1),
                   lambda a, b: (2 - a) / (b * b + 1) - 3 * a + 1.5 / (a * a + 1),
                   [(3, 1, 2), (4, 2)]),
    "maximum": (lambda a, b: nn.op.maximum(a, 0.25) + a.minimum(b),
                lambda a, b: torch.clamp(a, min=0.25) + torch.minimum(a, b), [(3, 2), (3, 2)]),
    "compare": (lambda a, b: nn.op.where(a < b, a, -b), lambda a, b: torch.where(a < b, a, -b),
                [(5, 2), (5, 2)]),
    "concat": (lambda a, b: nn.op.concat([a, b], 1), lambda a, b: torch.cat([a, b], 1),
               [(2, 3), (2, 1)]),
    "chunk": (lambda a: nn.op.chunk(a, 3, dim=-1), lambda a: torch.chunk(a, 3, -1), [(2, 9)]),
    "reshape": (lambda a: a.reshape(4, -1).permute_dims(1, 0).unsqueeze(1).squeeze(1),
                lambda a: a.reshape(4, -1).permute(1, 0), [(2, 6)]),
    "repeat": (lambda a: a.repeat(2, axis=1), lambda a: a.repeat_interleave(2, 1), [(2, 3)]),
    "pad": (lambda a: nn.op.pad(a, [0, 0, 1, 2, 0, 3]), lambda a: F.pad(a, [0, 3, 1, 2]),
            [(2, 3, 4)]),
    "broadcast_to": (lambda a: nn.op.broadcast_to(a, (2, 3, 4)), lambda a: a.expand(2, 3, 4),
                     [(3, 1)]),
    "sums": (lambda a: (nn.op.sum(a, 1), nn.op.max(a, -1, keepdims=True), nn.op.min(a)),
             lambda a: (a.sum(1), a.amax(-1, keepdim=True), a.min()), [(2, 3, 4)]),
    "cumsum": (lambda a: nn.op.cumsum(a, 1), lambda a: a.cumsum(1), [(2, 5)]),
    "sort": (lambda a: nn.op.sort(a, 0, descending=True),
             lambda a: a.sort(0, descending=True).values, [(6, 2)]),
    "topk": (lambda a: nn.op.topk(a, 2)[0], lambda a: a.topk(2).values, [(3, 6)]),
    "softmax": (lambda a: nn.op.softmax(a, axis=1), lambda a: a.softmax(1), [(2, 5, 3)]),
    "triu": (lambda a: nn.op.triu(a, 1), lambda a: a.triu(1), [(4, 5)]),
    "layer_norm": (lambda a: nn.op.layer_norm(a, (3, 4)), lambda a: F.layer_norm(a, (3, 4)),
                   [(2, 3, 4)]),
    "group_norm": (lambda a: nn.op.group_norm(a, 2), lambda a: F.group_norm(a, 2), [(2, 4, 5)]),
    "made": (lambda a: a + nn.op.ones((2, 1)) * nn.op.arange(0, 3) + nn.op.full((3,), 0.5)
             + nn.op.zeros([1]),
             lambda a: a + torch.arange(3.0) + 0.5, [(2, 3)]),
    "attention": (nn.op.scaled_dot_product_attention,
                  lambda q, k, v: F.scaled_dot_product_attention(
                      *(t.transpose(1, 2) for t in (q, k, v))).transpose(1, 2),
                  [(2, 5, 3, 4)] * 3),
    "interpolate": (lambda a: nn.op.interpolate(a, scale_factor=2.0),
                    lambda a: F.interpolate(a, scale_factor=2.0), [(1, 2, 3, 4)]),
    "bilinear": (lambda a: nn.op.interpolate(a, size=(5, 7), mode="bilinear"),
                 lambda a: F.interpolate(a, size=(5, 7), mode="bilinear"), [(1, 2, 3, 4)]),
    "conv1d_transpose": (
        lambda x, w: nn.op.conv1d_transpose(x, w, stride=2, padding=1, output_padding=1),
        lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1, output_padding=1),
        [(2, 3, 5), (3, 4, 3)]),
    "astype": (lambda a: (a * 3).astype("int32"), lambda a: (a * 3).to(torch.int32), [(3, 3)]),
}


@pytest.mark.parametrize("name", list(CASES))
def test_operators_compute_what_torch_computes(name):
    mine, theirs, shapes = CASES[name]
    args = [numbers(s) for s in shapes]

    class Model(nn.Module):
        def forward(self, a, b=None, c=None):
            return mine(*(t for t in (a, b, c) if t is not None))

    spec = {n: nn.spec.Tensor(s, "float32") for n, s in zip("abc", shapes)}
    out, _ = called(Model(), {"forward": spec}, *args)
    want = theirs(*map(torch.tensor, args))
    got = [out] if hasattr(out, "numpy") else list(out)
    want = [want] if hasattr(want, "numpy") else list(want)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.numpy().shape == tuple(w.shape)
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-4, atol=1e-5)


LAYERS = {
    "Conv1D": (lambda: nn.Conv1D(4, 6, 3, stride=2, padding=1, groups=2),
               lambda x, p: F.conv1d(x, p["weight"], p["bias"], 2, 1, 1, 2), (2, 4, 9)),
    "Conv2D": (lambda: nn.Conv2D(3, 5, (3, 2), padding=1, dilation=2, bias=False),
               lambda x, p: F.conv2d(x, p["weight"], None, 1, 1, 2), (1, 3, 8, 7)),
    "Conv2D, channels last": (
        lambda: nn.Conv2D(3, 5, 3, stride=2, data_layout="NHWC"),
        lambda x, p: F.conv2d(x.permute(0, 3, 1, 2), p["weight"].permute(0, 3, 1, 2), p["bias"],
                              2).permute(0, 2, 3, 1), (1, 8, 7, 3)),
    "Conv3D": (lambda: nn.Conv3D(2, 3, 2), lambda x, p: F.conv3d(x, p["weight"], p["bias"]),
               (1, 2, 4, 5, 3)),
    "ConvTranspose1D": (lambda: nn.ConvTranspose1D(3, 4, 3, stride=2),
                        lambda x, p: F.conv_transpose1d(x, p["weight"], p["bias"], 2), (1, 3, 5)),
    "LayerNorm": (lambda: nn.LayerNorm(6), lambda x, p: F.layer_norm(
        x, (6,), p["weight"], p["bias"]), (2, 3, 6)),
    "RMSNorm": (lambda: nn.RMSNorm(6, -1), lambda x, p: F.rms_norm(
        x, (6,), p["weight"], 1e-5) + p["bias"], (2, 3, 6)),
    "GroupNorm": (lambda: nn.GroupNorm(3, 6), lambda x, p: F.group_norm(
        x, 3, p["weight"], p["bias"]), (2, 6, 4, 2)),
    "Linear": (lambda: nn.Linear(5, 7), lambda x, p: F.linear(x, p["weight"], p["bias"]),
               (2, 3, 5)),
    "Identity": (lambda: nn.Identity(), lambda x, p: x, (2, 3)),
    "GELU": (lambda: nn.Sequential(nn.GELU(), nn.SiLU()), lambda x, p: F.silu(F.gelu(x)), (2, 3)),
}


@pytest.mark.parametrize("name", list(LAYERS))
def test_layers_compute_what_those_of_torch_compute(name):
    make, theirs, shape = LAYERS[name]
    x = numbers(shape)
    out, params = called(make(), {"forward": {"x": nn.spec.Tensor(shape, "float32")}}, x)
    want = theirs(torch.tensor(x), {n: torch.tensor(p) for n, p in params.items()})
    assert out.numpy().shape == tuple(want.shape)
    np.testing.assert_allclose(out.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


class Decoder(nn.Module):
    """A small language model with a symbolic length, shared weights and two methods."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding("vocab", 16)
        self.layers = nn.ModuleList([
            nn.ModuleDict({"norm": nn.RMSNorm(16, -1, bias=False), "ff": nn.Linear(16, 16)})
            for _ in range(2)])
        self.scale = nn.Parameter((16,))

    def forward(self, ids: nn.Tensor):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + nn.op.silu(layer["ff"](layer["norm"](x)))
        return nn.op.matmul(x * self.scale, nn.op.permute_dims(self.embed.weight))

    def part(self, x, k: int):
        return nn.op.reshape(x, (k, -1)), (x, nn.op.square(x))


SPEC = {"forward": {"ids": nn.spec.Tensor([1, "n"], "int32")},
        "part": {"x": nn.spec.Tensor(["n", 4], "float32"), "k": int,
                 "$": {"param_mode": "none", "effect_mode": "none"}}}


def test_symbolic_sizes_lists_of_modules_and_several_methods():
    mod, params = Decoder().export_tvm(SPEC)
    assert [n for n, _ in params] == [
        "embed.weight", "layers.0.norm.weight", "layers.0.ff.weight", "layers.0.ff.bias",
        "layers.1.norm.weight", "layers.1.ff.weight", "layers.1.ff.bias", "scale"]
    given = {n: numbers([d if isinstance(d, int) else 11 for d in p.shape]) for n, p in params}
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    t = {n: torch.tensor(p) for n, p in given.items()}
    for length in (1, 5):
        ids = RNG.integers(0, 11, (1, length)).astype("int32")
        got = vm["forward"](tvm.nd.array(ids), *map(tvm.nd.array, given.values())).numpy()
        x = t["embed.weight"][torch.tensor(ids).long()]
        for i in range(2):
            y = F.rms_norm(x, (16,), t[f"layers.{i}.norm.weight"], 1e-5)
            x = x + F.silu(F.linear(y, t[f"layers.{i}.ff.weight"], t[f"layers.{i}.ff.bias"]))
        want = (x * t["scale"]) @ t["embed.weight"].T
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-3, atol=1e-3)
    x = numbers((6, 4))
    first, (same, squared) = vm["part"](tvm.nd.array(x), tvm.runtime.ShapeTuple([3]))
    assert first.numpy().shape == (3, 8) and np.array_equal(same.numpy(), x)
    np.testing.assert_allclose(squared.numpy(), x * x, rtol=1e-6)


def test_packed_parameters_are_one_tuple():
    mod, params = MLP().export_tvm({"forward": {
        "x": nn.spec.Tensor((2, 784), "float32"), "$": {"param_mode": "packed"}}})
    func = mod["forward"]
    assert [p.name_hint for p in func.params] == ["x", "packed_params"]
    assert func.attrs["num_input"] == 1
    given = [numbers([int(d) for d in p.shape]) for _, p in params]
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    x = numbers((2, 784))
    got = vm["forward"](tvm.nd.array(x), tuple(map(tvm.nd.array, given))).numpy()
    want = np.maximum(x @ given[0].T + given[1], 0) @ given[2].T
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_kernels_of_ones_own():
    @T.prim_func
    def scale_by(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.block("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(3)

    @tvm.register_func("test_nn.add_one", override=True)
    def add_one(x, out):
        out.copyfrom(x.numpy() + 1)

    class Model(nn.Module):
        def forward(self, x):
            y = nn.tensor_expr_op(topi.tanh, "my_tanh", [x])
            y = nn.tensor_expr_op(
                lambda a: te.compute(a.shape, lambda i, j: a[i, j] + 1, "plus"), "plus", [y])
            y = nn.tensor_ir_op(scale_by, "scale_by", [y],
                                out=nn.Tensor.placeholder((4, 8), "float32"))
            return nn.extern("test_nn.add_one", [y], out=nn.Tensor.placeholder((4, 8), "float32"))

    x = numbers((4, 8))
    module = Model()
    mod, _ = module.export_tvm({"forward": {"x": nn.spec.Tensor((4, 8), "float32")}})
    assert {"my_tanh", "plus", "scale_by"} <= {v.name_hint for v in mod.functions}
    out, _ = called(module, {"forward": {"x": nn.spec.Tensor((4, 8), "float32")}}, x)
    np.testing.assert_allclose(out.numpy(), (np.tanh(x) + 1) * 3 + 1, rtol=1e-5)


def test_prints_come_in_order_when_the_model_runs(capsys):
    seen = []
    tvm.register_func("test_nn.look", lambda line, t, k: seen.append((line, t.shape, k)),
                      override=True)

    class Model(nn.Module):
        def forward(self, x):
            y = x + 1
            nn.op.print_(y)
            nn.op.debug_func("test_nn.look", y, 3)
            return y * 2

    mod, _ = Model().export_tvm({"forward": {"x": nn.spec.Tensor((2,), "float32")}}, debug=True)
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    effects = vm["_initialize_effect"]()
    out, after = vm["forward"](tvm.nd.array(np.zeros(2, "float32")), *effects)
    assert out.numpy().tolist() == [2, 2] and len(after) == 1
    printed = capsys.readouterr().out
    assert "test_nn.py:" in printed and "[1. 1.]" in printed
    assert len(seen) == 1 and tuple(seen[0][1]) == (2,) and seen[0][2] == 3
    with pytest.raises(RuntimeError, match="debug=True"):
        Model().export_tvm({"forward": {"x": nn.spec.Tensor((2,), "float32")}})


@pytest.mark.parametrize("debug", [False, True])
def test_a_module_is_built_and_called_as_it_was_written(debug):
    theirs = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    mine = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    spec = {"forward": {"x": nn.spec.Tensor(("n", 6), "float32")}}
    with pytest.raises(ValueError, match="0.weight, 0.bias, 2.weight, 2.bias"):
        mine.jit(spec)
    assert mine.load_state_dict(theirs.state_dict()) == ([], [])
    model = mine.jit(spec, debug=debug)
    for n in (1, 3):
        x = torch.randn(n, 6)
        torch.testing.assert_close(model(x), theirs(x).detach(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(model["forward"](x), model.forward(x))
    assert isinstance(mine.jit(spec, out_format="numpy")(np.zeros((1, 6), "float32")), np.ndarray)
    with pytest.raises(TypeError, match=r"takes 1 arguments \(x\)"):
        model(x, x)


def test_parameters_take_only_numbers_that_fit():
    module = nn.Linear(3, 2)
    with pytest.raises(ValueError, match=r"weight: the parameter has the shape \[2, 3\]"):
        module.load_state_dict({"weight": np.zeros((3, 2), "float32"),
                                "bias": np.zeros(2, "float32")})
    with pytest.raises(ValueError, match="float32.*float64"):
        module.bias.data = np.zeros(2)
    with pytest.raises(KeyError, match="missing.*bias.*unknown.*other"):
        module.load_state_dict({"weight": np.zeros((2, 3), "float32"), "other": np.zeros(1)})
    assert module.load_state_dict({"weight": np.zeros((2, 3), "float32"), "other": 0},
                                  strict=False) == (["bias"], ["other"])
    assert nn.Linear(3, 2).state_dict().keys() == {"weight", "bias"}


def test_types_can_be_changed_before_there_are_numbers():
    module = nn.ModuleList([nn.Linear(3, 2), nn.LayerNorm(2)])
    module.to("float16")
    assert {p.dtype for p in module.parameters()} == {"float16"}
    nn.set_default_dtype("float64")
    try:
        assert nn.Linear(3, 2).weight.dtype == "float64" == nn.get_default_dtype()
    finally:
        nn.set_default_dtype("float32")


def test_a_mutator_replaces_modules():
    class Quiet(nn.Mutator):
        def visit_module(self, name, node):
            if isinstance(node, nn.ReLU):
                seen.append(name)
                return nn.Identity()
            return super().visit_module(name, node)

    seen = []
    module = Quiet().visit("", nn.ModuleList([MLP(), nn.Sequential(nn.ReLU())]))
    assert seen == ["0.relu", "1.0"]
    assert isinstance(module[0].relu, nn.Identity) and isinstance(module[1][0], nn.Identity)


@pytest.mark.parametrize("spec, error, text", [
    ({"forwards": {}}, AttributeError, "MLP has no method 'forwards'"),
    ({"forward": {}}, TypeError, r"forward\(x\): 'x' has no spec"),
    ({"forward": {"x": int, "y": int}}, TypeError, "there is no 'y'"),
    ({"forward": {"x": "float32"}}, TypeError, "the spec of forward: x is 'float32'"),
    ({"forward": {"x": nn.spec.Tensor((1, 784), "float32"), "$": {"param_mode": "tuple"}}},
     ValueError, "param_mode is 'tuple'"),
    ({"forward": {"x": nn.spec.Tensor((1, 783), "float32")}}, Exception, "783"),
    ([], TypeError, "a spec is a dictionary"),
])
def test_a_spec_that_does_not_fit_is_refused(spec, error, text):
    with pytest.raises(error, match=text):
        MLP().export_tvm(spec)


def test_operators_work_only_while_a_module_is_exported():
    with pytest.raises(RuntimeError, match="export_tvm"):
        nn.op.relu(nn.Tensor.placeholder((2,), "float32"))


def test_a_failed_export_leaves_the_module_as_it_was():
    module = MLP()
    before = [p.shape for p in module.parameters()]
    with pytest.raises(Exception, match="783"):
        module.export_tvm({"forward": {"x": nn.spec.Tensor((1, 783), "float32")}})
    assert [p.shape for p in module.parameters()] == before
    module.export_tvm({"forward": {"x": nn.spec.Tensor((1, 784), "float32")}})

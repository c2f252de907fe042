"""Models of torch, imported, built and run, against torch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from relax.frontend import models

import mlc_lab as tvm
from mlc_lab import relax, tir
from mlc_lab.relax.frontend import MissingOperators, detach_params
from mlc_lab.relax.frontend.torch import from_exported_program, from_fx

nn, F = torch.nn, torch.nn.functional
MODELS = models.small_models()


def run(mod, *args, params=()):
    """What `main` gives, as a list of arrays."""
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    given = [tvm.nd.array(a.numpy() if hasattr(a, "numpy") else a) for a in args]
    out = vm["main"](*given, *params)
    return [o.numpy() for o in out] if not hasattr(out, "numpy") else [out.numpy()]


def agrees(got, want, rtol=1e-4, atol=1e-4):
    want = want if isinstance(want, (tuple, list)) else [want]
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == tuple(w.shape) and str(w.dtype).endswith(str(g.dtype))
        np.testing.assert_allclose(g, w.detach().numpy(), rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", [n for n in MODELS if n != "mobilenet_v2_short"])
def test_exported_models(name):
    model, args = MODELS[name]
    mod = from_exported_program(torch.export.export(model, args))
    agrees(run(mod, *args), model(*args))


@pytest.mark.parametrize("name", models.FULL_SIZE)
def test_models_of_full_size(name):
    torch.manual_seed(0)
    model, args = models.FULL_SIZE[name]()
    want = models.settle(model)(*args)
    mod = from_exported_program(torch.export.export(model, args))
    agrees(run(mod, *args), want, rtol=1e-3, atol=1e-5 * float(want.abs().max()))


#: symbolic_trace cannot slice a buffer by a size, as the written-out attention does
@pytest.mark.parametrize("name", [n for n in MODELS if n not in (
    "gpt2_block", "mobilenet_v2_short")])
def test_traced_models(name):
    model, args = MODELS[name]
    info = [(tuple(a.shape), str(a.dtype).rpartition(".")[2]) for a in args]
    mod = from_fx(torch.fx.symbolic_trace(model), info)
    if name in ("mobilenet_v2", "unet"):  # the same graph as the exported one: not built again
        other = from_exported_program(torch.export.export(model, args))
        assert operators(mod) == operators(other)
        return
    agrees(run(mod, *args), model(*args))


def operators(mod):
    """How often each operator is called."""
    names = [b.value.op.name for block in mod["main"].body.blocks for b in block.bindings
             if isinstance(b.value, relax.Call)]
    return {n: names.count(n) for n in names if n not in ("relax.reshape", "relax.flatten")}


@pytest.mark.parametrize("fused", [False, True])
def test_a_language_model_of_any_length(fused):
    model = models.GPT(fused=fused).eval()
    tokens = torch.randint(0, 100, (1, 7))
    length = torch.export.Dim("length", min=2, max=48)
    program = torch.export.export(model, (tokens,), dynamic_shapes=({1: length},))
    mod = from_exported_program(program)
    dims = mod["main"].params[0].struct_info.dims
    assert isinstance(dims[1], tir.Var)
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    for n in (2, 7, 33):
        tokens = torch.randint(0, 100, (1, n))
        got = vm["main"](tvm.nd.array(tokens.numpy()))[0].numpy()
        np.testing.assert_allclose(got, model(tokens).detach().numpy(), rtol=1e-3, atol=1e-4)


def test_fx_with_a_symbolic_batch():
    model, _ = MODELS["mlp"]
    n = tir.Var("n", "int64")
    mod = from_fx(torch.fx.symbolic_trace(model), [((n, 784), "float32")])
    for count in (1, 5):
        x = torch.rand(count, 784)
        agrees(run(mod, x), model(x))


@pytest.mark.parametrize("importer", ["fx", "export"])
def test_parameters_as_inputs(importer):
    model, args = MODELS["lenet"]
    if importer == "fx":
        mod = from_fx(torch.fx.symbolic_trace(model), [((2, 1, 28, 28), "float32")],
                      keep_params_as_input=True)
    else:
        mod = from_exported_program(torch.export.export(model, args), keep_params_as_input=True)
    assert int(mod["main"].attrs["num_input"]) == 1
    mod, params = detach_params(mod)
    assert "params" not in mod["main"].attrs and len(params["main"]) == 10
    assert len(mod["main"].params) == 11
    agrees(run(mod, *args, params=params["main"]), model(*args))


class Two(nn.Module):
    def forward(self, x):
        return x + 1, x * 2


def test_forms_of_the_result():
    x = (torch.rand(3),)
    model, args = MODELS["mlp"]
    program = torch.export.export(model, args)
    info = from_exported_program(program)["main"].ret_struct_info
    assert isinstance(info, relax.TupleStructInfo) and len(info.fields) == 1
    info = from_exported_program(program, unwrap_unit_return_tuple=True)["main"].ret_struct_info
    assert isinstance(info, relax.TensorStructInfo)
    two = torch.export.export(Two(), x)
    bound = from_exported_program(two)["main"]
    loose = from_exported_program(two, no_bind_return_tuple=True)["main"]
    assert isinstance(bound.body.body, relax.Var)
    assert isinstance(loose.body.body, relax.Tuple)
    agrees(run(from_exported_program(two), *x), Two()(*x))
    agrees(run(from_fx(torch.fx.symbolic_trace(Two()), [((3,), "float32")]), *x), Two()(*x))


def test_the_graph_is_one_dataflow_block_of_operators():
    model, args = MODELS["resnet18"]
    mod = from_exported_program(torch.export.export(model, args))
    func = mod["main"]
    assert len(func.body.blocks) == 1 and isinstance(func.body.blocks[0], relax.DataflowBlock)
    text = func.script()
    assert text.count("R.nn.conv2d(") == 20 and text.count("R.nn.batch_norm(") == 20


def test_nothing_is_in_the_program_that_nothing_uses():
    class Pools(nn.Module):
        def forward(self, x):
            unused = torch.exp(x)
            return nn.functional.max_pool2d(x, 2, return_indices=True)[0].max(-1)[0]

    x = torch.randn(1, 3, 8, 8)
    for mod in (from_exported_program(torch.export.export(Pools(), (x,))),
                from_fx(torch.fx.symbolic_trace(Pools()), [((1, 3, 8, 8), "float32")])):
        assert relax.analysis.remove_all_unused(mod["main"]) is mod["main"]
        agrees(run(mod, x), Pools()(x))


class Strange(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x):
        y = torch.linalg.svd(self.inner(x))[1]
        return torch.special.bessel_j0(y) + torch.linalg.inv(x).sum()


def test_all_missing_operators_are_named_with_their_places():
    program = torch.export.export(Strange(), (torch.rand(4, 4),))
    with pytest.raises(MissingOperators) as error:
        from_exported_program(program)
    names = [n for n, _ in error.value.missing]
    assert len(names) == 3 and any("bessel_j0" in n for n in names)
    assert "torch.special.bessel_j0(y)" in str(error.value)
    with pytest.raises(MissingOperators) as error:
        from_fx(torch.fx.symbolic_trace(nn.Sequential(nn.LSTM(4, 4), nn.Bilinear(4, 4, 4))),
                [((1, 4), "float32")])
    assert "layer 0" in str(error.value) or "LSTM" in str(error.value)


def test_rules_of_ones_own():
    def zeta(node, importer):
        x, y = (importer.env[a] for a in node.args)
        return importer.emit(relax.op.add(x, y))

    class Model(nn.Module):
        def forward(self, x):
            return torch.special.zeta(x, x)

    x = torch.rand(3) + 2
    program = torch.export.export(Model(), (x,))
    agrees(run(from_exported_program(program, custom_convert_map={"special_zeta": zeta}), x),
           x + x)
    traced = torch.fx.symbolic_trace(Model())
    agrees(run(from_fx(traced, [((3,), "float32")],
                       custom_convert_map={torch.special.zeta: zeta}), x), x + x)


def test_a_model_that_changes_its_values_in_place():
    class Model(nn.Module):
        def forward(self, x):
            y = x * 2
            y.add_(1)
            z = F.relu(y, inplace=True)
            return z + y

    x = torch.randn(4)
    agrees(run(from_exported_program(torch.export.export(Model(), (x,))), x), Model()(x))




FUNCTIONS = {
    "arithmetic": (lambda x, y: (x - 1) * 2 / (y + 3) - 1 / (x.abs() + 1), [(3, 4), (4,)]),
    "power": (lambda x: x ** 2 + x.abs() ** 0.5 + x.abs() ** 1.5 + 2 ** x, [(3, 4)]),
    "compare": (lambda x, y: torch.where(x > y, x, y) + (x <= 0).float(), [(3, 4), (4,)]),
    "integers": (lambda x: (x * 10).long() // 3 + (x * 10).int() % 4, [(3, 4)]),
    "masks": (lambda x: x.masked_fill(x < 0, -1.0) + torch.tril(x) + torch.triu(x, 1), [(4, 4)]),
    "clamp": (lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=0) + torch.clamp_max(x, 0.2), [(3, 4)]),
    "reductions": (lambda x: x.sum(1) + x.mean((1,)) + x.max(1).values + x.amin(1) + x.std(1)
                   + x.var(1, unbiased=False) + x.norm(dim=1) + torch.logsumexp(x, 1), [(3, 4)]),
    "places": (lambda x: x.argmax(1) + x.max(1)[1] + x.argmin(1), [(3, 4)]),
    "shapes": (lambda x: x.view(2, 6).permute(1, 0).reshape(3, 2, 2).flatten(1).unsqueeze(1)
               .expand(3, 5, 4).contiguous().transpose(1, 2).squeeze(), [(3, 4)]),
    "slices": (lambda x: x[:, 1:3] + x[..., -2:] + x[1:4, ::2][None, 0] + x[2, 1], [(3, 4)]),
    "gathered": (lambda x: x[torch.tensor([2, 0])] + x[:, torch.tensor([0, 1, 1, 3])][:2]
                 + torch.gather(x, 0, torch.tensor([[0, 1, 2, 0], [2, 2, 1, 0]])), [(3, 4)]),
    "joined": (lambda x, y: torch.cat([x, y], -1).chunk(2, 1)[1] + torch.stack([x, y], 1)[:, 0],
               [(3, 4), (3, 4)]),
    "parts": (lambda x: sum(x.split(2, 1)) + x.unbind(1)[0][:, None] + x.split([1, 3], 1)[0],
              [(3, 4)]),
    "repeated": (lambda x: x.repeat(2, 1) + torch.roll(x, 1, 1).tile(2, 1) + x.flip(0).repeat(2, 1)
                 + x.repeat_interleave(2, 0), [(3, 4)]),
    "made": (lambda x: x + torch.arange(4) + torch.ones(3, 4) + torch.zeros_like(x)
             + torch.full((4,), 2.0) + x.new_ones(4) + torch.eye(3, 4), [(3, 4)]),
    "activations": (lambda x: F.elu(x) + F.hardswish(x) + F.hardsigmoid(x) + F.mish(x)
                    + F.leaky_relu(x, 0.2) + F.hardtanh(x) + F.softplus(x) + F.gelu(x)
                    + F.silu(x) + F.logsigmoid(x) + F.relu6(x) + F.celu(x), [(3, 4)]),
    "glu": (lambda x: F.glu(x, 1), [(3, 4)]),
    "products": (lambda x, y: torch.einsum("ij,kj->ik", x, y) + x @ y.T + torch.mm(x, y.t())
                 + torch.addmm(torch.ones(3, 3), x, y.t(), beta=2, alpha=3)
                 + torch.outer(x[:, 0], y[:, 1]), [(3, 4), (3, 4)]),
    "normalized": (lambda x: F.normalize(x, dim=1) + F.layer_norm(x, (4,)), [(3, 4)]),
    "sorted": (lambda x: x.sort(1)[0] + x.sort(1).indices + x.topk(4, 1)[0] + x.cumsum(1),
               [(3, 4)]),
    "scattered": (lambda x: x.scatter(1, torch.tensor([[0], [1], [2]]), 9.0)
                  + torch.zeros(3, 4).scatter_add(0, torch.tensor([[2, 1, 0, 0]]), x[:1]),
                  [(3, 4)]),
    "pads": (lambda x: F.pad(x, (1, 2, 0, 1)) + F.pad(x, (1, 2, 0, 1), "reflect")
             + F.pad(x, (2, 1, 1, 0), value=3.0), [(1, 3, 4)]),
    "pools": (lambda x: F.avg_pool2d(x, 3, 1, 1) + F.max_pool2d(x, 3, 1, 1)
              + F.interpolate(F.adaptive_avg_pool2d(x, 2), (4, 4), mode="bilinear")
              + F.interpolate(F.max_pool2d(x, 2), scale_factor=2), [(1, 2, 4, 4)]),
    "attention": (lambda q: F.scaled_dot_product_attention(
        q, q, q, attn_mask=torch.tensor([[True, False], [True, True]])), [(1, 2, 2, 4)]),
    "instance": (lambda x: F.instance_norm(x) + F.group_norm(x, 2), [(2, 4, 5)]),
    "types": (lambda x: x.double().sum().float() + x.to(torch.float16).float() + x.bool().float()
              + (x > 0).sum(), [(3, 4)]),
}


@pytest.mark.parametrize("name, how", [
    (name, how) for name in FUNCTIONS for how in ("export", "fx")
    if (name, how) != ("parts", "fx")  # symbolic_trace cannot iterate over the parts
])
def test_functions(name, how):
    fn, shapes = FUNCTIONS[name]

    class Model(nn.Module):
        def forward(self, *args):
            return fn(*args)

    torch.manual_seed(1)
    args = tuple(torch.rand(s) * 2 - 1 for s in shapes)
    if how == "export":
        mod = from_exported_program(torch.export.export(Model(), args))
    else:
        mod = from_fx(torch.fx.symbolic_trace(fn), [(s, "float32") for s in shapes])
    agrees(run(mod, *args), fn(*args), rtol=1e-3, atol=1e-3)


class Rotary(nn.Module):
    """Positions as turns of pairs of numbers."""

    def forward(self, x):
        size = x.shape[-1]
        turns = 1.0 / (10000 ** (torch.arange(0, size, 2).float() / size))
        angle = torch.outer(torch.arange(x.shape[1]).float(), turns)
        a, b = x[..., ::2], x[..., 1::2]
        c, s = torch.cos(angle), torch.sin(angle)
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)


class Patches(nn.Module):
    """A small vision transformer, of torch's own encoder layer."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.rand(1, 1, 16))
        self.place = nn.Parameter(torch.rand(1, 17, 16))
        self.encoder = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.encoder(x)[:, 0])


class Gated(nn.Module):
    """The fully connected part of a Llama."""

    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(16)
        self.inner, self.outer = nn.Linear(16, 32), nn.Linear(16, 16)

    def forward(self, x):
        a, b = self.inner(self.norm(x)).chunk(2, -1)
        return x + self.outer(F.silu(a) * b)


@pytest.mark.parametrize("model, args, dynamic", [
    (Rotary(), (torch.rand(1, 6, 8),), {1: "n"}), (Patches(), (torch.rand(2, 3, 16, 16),), {}),
    (Gated(), (torch.rand(1, 4, 16),), {1: "n"}),
    (nn.MultiheadAttention(16, 4, batch_first=True), (torch.rand(2, 5, 16),) * 3, None),
    (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
                   nn.Flatten()), (torch.rand(2, 3, 8, 8),), {0: "batch"}),
], ids=["rotary", "vit", "gated", "multihead", "convolutions"])
def test_parts_of_other_models(model, args, dynamic):
    from relax.evaluate import Evaluator

    model.eval()
    shapes = None
    if dynamic:
        shapes = ({k: torch.export.Dim(n, min=1 if n == "batch" else 2, max=32)
                   for k, n in dynamic.items()},)
    program = torch.export.export(model, args, dynamic_shapes=shapes)
    got = Evaluator(from_exported_program(program))(*(a.numpy() for a in args))
    want = model(*args)
    agrees(got, want)


@pytest.mark.parametrize("layer", [
    nn.LSTM(4, 5, 2, batch_first=True), nn.GRU(4, 5, batch_first=True, bidirectional=True),
    nn.RNN(4, 5), nn.LSTM(4, 5, bias=False)], ids=["lstm", "gru", "rnn", "no-bias"])
def test_recurrent_layers(layer):
    from relax.evaluate import Evaluator

    x = torch.rand(2, 3, 4)
    got = Evaluator(from_exported_program(torch.export.export(layer.eval(), (x,))))(x.numpy())
    out, last = layer(x)
    agrees(got, [out, *(last if isinstance(last, tuple) else [last])])

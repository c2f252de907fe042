"""What models call while they are traced, sizes that only the run knows, branches, and what is
fused of them; each by both importers where both can."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch._higher_order_ops.while_loop import while_loop

from mlc_lab import relax, tir
from mlc_lab.relax.frontend.torch import from_exported_program, from_fx
from tests.relax.frontend.test_torch import agrees, run

nn, F = torch.nn, torch.nn.functional


def traced(model, *args):
    info = [(tuple(a.shape), str(a.dtype).rpartition(".")[2]) for a in args]
    return from_fx(torch.fx.symbolic_trace(model), info)


@pytest.mark.parametrize("fn", [
    lambda x: torch.split(x, 4, 1)[-1], lambda x: torch.split(x, 4)[-1] * 2,
    lambda x: x.split(4, -1)[-2], lambda x: x.split([3, 7], 1)[-1],
    lambda x: torch.cat(x.split([3, 3, 4], 1)[1:], 1), lambda x: x.chunk(3, 1)[-1],
    lambda x: torch.tensor_split(x, 3, 1)[-1], lambda x: x.unbind(1)[-1],
    lambda x: x.max(1)[-1]])
def test_results_counted_from_the_end(fn):
    x = torch.randn(9, 10)
    agrees(run(traced(fn, x), x), fn(x))


def test_checks_of_the_model():
    def checked(x):
        torch._assert(x.shape[1] == 10, "ten columns")
        torch._assert(x.sum() > -1e9, "only the run knows this")
        return x + 1

    x = torch.randn(3, 10)
    agrees(run(traced(checked, x), x), checked(x))
    with pytest.raises(ValueError, match="the model's own check fails: ten columns"):
        traced(checked, torch.randn(3, 11))


def stochastic_depth(x, p, mode, training=True):
    """As torchvision has it."""
    if mode not in ("batch", "row"):
        raise ValueError(mode)
    if not training or p == 0.0:
        return x
    size = [x.shape[0]] + [1] * (x.ndim - 1) if mode == "row" else [1] * x.ndim
    return x * torch.empty(size).bernoulli_(1 - p).div_(1 - p)


torch.fx.wrap("stochastic_depth")


class StochasticDepth(nn.Module):
    def __init__(self, p, mode="row"):
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, x):
        return stochastic_depth(x, self.p, self.mode, self.training)


class Leaves(torch.fx.Tracer):
    def is_leaf_module(self, module, name):
        return isinstance(module, StochasticDepth) or super().is_leaf_module(module, name)


@pytest.mark.parametrize("layer", [False, True])
def test_stochastic_depth(layer):
    """As a function that is not traced through, and as a layer."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.drop = nn.Linear(4, 4), StochasticDepth(0.2)

        def forward(self, x):
            return x + self.drop(self.inner(x))

    def imported(model):
        tracer = Leaves() if layer else torch.fx.Tracer()
        graph = torch.fx.GraphModule(model, tracer.trace(model))
        return from_fx(graph, [((3, 4), "float32")])

    model, x = Block(), torch.randn(3, 4)
    with pytest.raises(ValueError, match=r"draws numbers by chance: call model.eval\(\)"):
        imported(model)
    model.drop.p = 0.0
    agrees(run(imported(model), x), model(x))
    model.drop.p = 0.2
    agrees(run(imported(model.eval()), x), model(x))


class Heads(nn.Module):
    """A view whose last but one size follows from the others."""

    def forward(self, x):
        return x.view(1, x.shape[1], -1, 32)


@pytest.mark.parametrize("shape, dynamic", [((1, 6, 64), (1,)), ((3, 6, 64), (0, 1)),
                                            ((2, 6, 4, 32), (0, 1, 2))])
@pytest.mark.parametrize("how", ["fx", "export"])
def test_a_view_of_symbolic_sizes(how, shape, dynamic):
    if how == "fx":
        sizes = [tir.Var(f"n{k}", "int64") if k in dynamic else d for k, d in enumerate(shape)]
        mod = from_fx(torch.fx.symbolic_trace(Heads()), [(sizes, "float32")])
    else:
        sizes = {k: torch.export.Dim(f"n{k}", min=2, max=64) for k in dynamic}
        mod = from_exported_program(torch.export.export(
            Heads(), (torch.randn(shape),), dynamic_shapes=(sizes,)))
    for more in (0, 1, 5):
        x = torch.randn([d + more if k in dynamic else d for k, d in enumerate(shape)])
        agrees(run(mod, x), Heads()(x))


class Branches(nn.Module):
    """A branch within a branch, which uses a parameter; and one that gives two tensors."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4))

    def forward(self, x, y):
        def yes(a, b):
            return a + b * self.weight, a * 2

        def no(a, b):
            inner = torch.cond(b.sum() > 0, lambda a: a + 1, lambda a: a.sin(), (a,))
            return inner, b.relu()

        first, second = torch.cond(x.sum() > 0, yes, no, (x, y))
        return first * 2, second


@pytest.mark.parametrize("decomposed", [False, True])
def test_cond(decomposed):
    model = Branches()
    x, y = torch.rand(3, 4), torch.rand(3, 4)
    mod = from_exported_program(torch.export.export(model, (x, y)),
                                run_ep_decomposition=decomposed)
    for args in ((x, y), (-x, y), (-x, -y)):
        agrees(run(mod, *args), model(*args))


def grown(a):
    z = a.clone()
    z.add_(1)
    z[1:].mul_(3)
    return z


class WritingBranch(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, grown, lambda a: a.sin(), (x,))


class WritingLoop(nn.Module):
    def forward(self, x):
        return while_loop(lambda a: a.sum() < 50, lambda a: (grown(a),), (x,))[0]


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("model", [WritingBranch(), WritingLoop()])
def test_writes_in_branches_and_loops(model, decomposed):
    x = torch.rand(3)
    mod = from_exported_program(torch.export.export(model, (x,)),
                                run_ep_decomposition=decomposed)
    for args in ((x,), (-x,)):
        agrees(run(mod, *args), model(*args))


class Turning(nn.Module):
    """A loop with a condition that is computed, a parameter, and a size that only it uses."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(3))

    def forward(self, x, n, u):
        def more(i, y):
            return (i < n) & (y.sum() < 1e4)

        def turn(i, y):
            return i + 1, y + self.weight + u.shape[0]

        i, y = while_loop(more, turn, (torch.tensor(0), x.sin()))
        return y * 2, i


@pytest.mark.parametrize("decomposed", [False, True])
def test_while_loop(decomposed):
    model = Turning()
    x = torch.rand(3)
    shapes = (None, None, {0: torch.export.Dim("size")})
    program = torch.export.export(model, (x, torch.tensor(4), torch.rand(5)),
                                  dynamic_shapes=shapes)
    mod = from_exported_program(program, run_ep_decomposition=decomposed)
    for turns, size in ((0, 5), (1, 2), (40, 7), (10**6, 9)):
        args = x, torch.tensor(turns), torch.rand(size)
        agrees(run(mod, *args), model(*args))


def test_a_loop_that_carries_a_python_number_is_refused():
    class Counting(nn.Module):
        def forward(self, x):
            return while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y.sin()), (0, x))[1]

    program = torch.export.export(Counting(), (torch.rand(3),))
    with pytest.raises(ValueError, match=r"while_loop.*is a Python number.*torch.tensor\(0\)"):
        from_exported_program(program)


@pytest.mark.parametrize("how", ["fx", "export"])
@pytest.mark.parametrize("rank, bias", [(2, True), (2, False), (1, True)])
def test_a_convolution_with_bias_norm_and_activation_is_one_kernel(how, rank, bias):
    conv, norm = ((nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d))[rank - 1]
    model = nn.Sequential(conv(3, 4, 3, padding=1, bias=bias), norm(4), nn.ReLU())
    x = torch.randn(1, 3, *[8] * rank)
    for _ in range(2):
        model(x)  # running statistics of its own
    model.eval()
    mod = traced(model, x) if how == "fx" else from_exported_program(
        torch.export.export(model, (x,)))
    kernels = [v.name_hint for v, f in relax.get_pipeline("kernels")(mod).functions.items()
               if isinstance(f, tir.PrimFunc)]
    assert kernels == [f"fused_conv{rank}d_add_relu"]
    agrees(run(mod, x), model(x))


def test_distinct_elements_as_aten_gives_them():
    x = torch.tensor([3.0, 1.0, 3.0])
    for overload, count in ((torch.ops.aten._unique.default, 2),
                            (torch.ops.aten._unique2.default, 3)):
        graph = torch.fx.Graph()
        graph.output(graph.call_function(overload, (graph.placeholder("x"),)))
        mod = from_fx(torch.fx.GraphModule(nn.Module(), graph), [((3,), "float32")])
        out = run(mod, x)
        assert len(out) == count
        np.testing.assert_array_equal(out[0], [1.0, 3.0])
        assert all(o.shape == (0,) for o in out[1:])

"""Totals of 16-bit floats: what is added up is kept in float32, and rounded once.

The references are computed by torch in float64: torch itself keeps some of these totals in 16 bits.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.frontend.torch import from_exported_program, from_fx

F = torch.nn.functional
MANY = 3000
PLACES = torch.zeros(MANY, dtype=torch.int64)

class Model(torch.nn.Module):
    """A function as a model."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


#: functions of a row of many numbers from 0 to 1
TOTALS = {
    "scatter_add": lambda x: torch.zeros_like(x[:2]).scatter_add(0, PLACES, x),
    "index_add": lambda x: torch.zeros_like(x[:2]).index_add(0, PLACES, x),
    "index_put": lambda x: torch.zeros_like(x[:2]).index_put((PLACES,), x, True),
    "scatter_mean": lambda x: torch.zeros_like(x[:2]).scatter_reduce(0, PLACES, x, "mean"),
    "scatter_prod": lambda x: torch.ones_like(x[:2]).scatter_reduce(
        0, PLACES[:20], 1 + x[:20], "prod"),
    "bag": lambda x: F.embedding_bag(PLACES[None], x.reshape(-1, 3), mode="sum"),
    "mean of a bag": lambda x: F.embedding_bag(PLACES[None], x.reshape(-1, 3), mode="mean"),
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "logsumexp": lambda x: (x * 0).repeat(30).logsumexp(0),
    "norm": lambda x: (x * 400).norm(),
    "norm of three": lambda x: torch.linalg.vector_norm(x * 400, 3),
    "dist": lambda x: torch.dist(x * 400, x),
    "cosine": lambda x: F.cosine_similarity(x * 400, 1 - x, 0),
    "std": lambda x: (x * 900).std(0),
    "addcmul": lambda x: torch.addcmul(x, x * 512, x * 512, value=2 ** -10),
    "addcdiv": lambda x: torch.addcdiv(x, x + 1, x / 2 ** 16 + 2 ** -16, value=2 ** -10),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", TOTALS)
def test_a_total_is_kept_in_float32(name, dtype):
    torch.manual_seed(1)
    x, fn = (torch.randint(0, 64, (MANY,)) / 64).to(dtype), TOTALS[name]
    mod = from_fx(torch.fx.symbolic_trace(fn), [((MANY,), str(dtype)[6:])])
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    got = torch.utils.dlpack.from_dlpack(vm["main"](tvm.nd.from_dlpack(x)))
    assert got.dtype == dtype
    tolerance = 2e-3 if dtype == torch.float16 else 1.5e-2
    np.testing.assert_allclose(got.double(), fn(x.double()), rtol=tolerance, atol=tolerance)


NUMBERS = {
    "times 1e5": lambda x: x / 64 * 1e5, "by 1e5": lambda x: x * 1024 / 1e5,
    "of a number": lambda x: 50001 / (x * 2 + 1), "times 0.1": lambda x: x * 0.1,
    "alpha": lambda x: torch.add(x, x, alpha=0.1), "rsub": lambda x: torch.rsub(x, x, alpha=0.1),
    "lerp": lambda x: torch.lerp(x, x * 2 + 1, 0.1),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_not_rounded_to_16_bits(name, dtype):
    x, fn = (torch.arange(64) / 128).to(dtype), NUMBERS[name]
    mod = from_fx(torch.fx.symbolic_trace(fn), [((64,), str(dtype)[6:])])
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    got = torch.utils.dlpack.from_dlpack(vm["main"](tvm.nd.from_dlpack(x)))
    assert got.dtype == dtype
    want = fn(x.double()).to(dtype)
    assert torch.equal(got, want)


@pytest.mark.parametrize("kind", ["none", "causal", "bool", "float"])
def test_scores_of_attention_are_kept_in_float32(kind):
    """90 * 90 * 64 / 8 is none of float16's numbers."""
    x = (torch.randint(-4, 5, (1, 2, 3, 64)) * 22).half()
    seen = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 1, 1]]).bool()
    mask = {"bool": [seen], "float": [torch.where(seen, 0.0, -torch.inf).half()]}.get(kind, [])

    def fn(x, *mask):
        return F.scaled_dot_product_attention(x, x, x, *mask, is_causal=kind == "causal")

    exported = torch.export.export(Model(fn), (x, *mask))
    vm = relax.VirtualMachine(relax.build(from_exported_program(exported), "llvm"), tvm.cpu())
    got = vm["main"](*(tvm.nd.array(a.numpy()) for a in (x, *mask)))[0].numpy()
    np.testing.assert_allclose(got, fn(x.float(), *(m.float() if m.is_floating_point() else m
                                                    for m in mask)), rtol=1e-2, atol=1e-2)


def test_a_mean_of_integers_is_rounded_down():
    def fn(x, i, u):
        return x.scatter_reduce(0, i, u, "mean"), x.scatter_reduce(0, i, u, "mean",
                                                                   include_self=False)

    args = torch.tensor([-1, -2, 7]), torch.tensor([0, 0, 1]), torch.tensor([-3, -4, -3])
    mod = from_fx(torch.fx.symbolic_trace(fn), [((3,), "int64")] * 3)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    for got, want in zip(vm["main"](*(tvm.nd.array(a.numpy()) for a in args)), fn(*args)):
        np.testing.assert_array_equal(got.numpy(), want)

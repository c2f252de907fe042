"""Whole models on a GPU: default schedules, tensors on the device, results of torch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from backend.gpu_programs import missing

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.frontend.torch import from_exported_program
from mlc_lab.runtime import driver
from mlc_lab.script import from_source

from .frontend.models import ResNet18


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 128), torch.nn.Linear(128, 10)

    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


class Convolutions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
        self.second, self.last = torch.nn.Conv2d(8, 16, 3, stride=2), torch.nn.Linear(16, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
        return self.last(torch.relu(self.second(x)).mean((2, 3)))


class Block(torch.nn.Module):
    """A block of GPT-2, without dropout."""

    def __init__(self, width=32, heads=2):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.wide, self.back = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.heads, d // self.heads).transpose(1, 2)
                   for t in self.qkv(self.norm1(x)).split(d, 2))
        scores = q @ k.transpose(-2, -1) * (d // self.heads) ** -0.5
        past = torch.tril(torch.ones(n, n, dtype=torch.bool))
        scores = torch.softmax(scores.masked_fill(~past, float("-inf")), -1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(b, n, d))
        return x + self.back(torch.nn.functional.gelu(self.wide(self.norm2(x)),
                                                      approximate="tanh"))


def made(model, shape, dims=None):
    torch.manual_seed(0)
    model = model().eval()
    program = torch.export.export(model, (torch.randn(*shape),), dynamic_shapes=dims)
    return model, from_exported_program(program)


@pytest.fixture(params=["simulated", "cuda", "opencl", "webgpu"])
def target(request, monkeypatch):
    """CUDA simulated, and real devices where there are some."""
    kind = "cuda" if request.param == "simulated" else request.param
    if request.param == "simulated":
        monkeypatch.setenv("MLC_LAB_DEVICE", "simulated")
        driver.driver_of.cache_clear()
    elif driver.driver_of(kind).simulated:
        missing(kind, f"no {kind} device")
    yield kind
    if request.param == "simulated":
        driver.driver_of.cache_clear()


def same(model, vm, dev, *shapes):
    for shape in shapes:
        x = torch.randn(*shape)
        with torch.no_grad():
            want = model(x).numpy()
        got = vm["main"](tvm.nd.array(x.numpy(), dev))
        got = got if isinstance(got, tvm.nd.NDArray) else got[0]
        assert got.device == dev
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-5)


def run(model, mod, target, *shapes):
    executable = relax.build(mod, target=target)
    dev = tvm.device(target, 0)
    assert executable.device == target
    same(model, relax.VirtualMachine(executable, dev), dev, *shapes)
    return executable


@pytest.mark.parametrize("rows", [1, 16])
def test_a_perceptron(target, rows):
    executable = run(*made(MLP, (rows, 64)), target, (rows, 64))
    assert executable.exec_mode == "bytecode"
    assert "kernel" in executable.lib.imported_modules[0].get_source()


def test_convolutions(target):
    run(*made(Convolutions, (2, 3, 16, 16)), target, (2, 3, 16, 16))


@pytest.mark.slow
def test_resnet_18(target, monkeypatch):
    """The whole network, with its 11 million weights."""
    monkeypatch.setenv("MLC_LAB_DEVICE_LIMIT", "600")  # a busy machine is slow, not wrong
    run(*made(ResNet18, (1, 3, 32, 32)), target, (1, 3, 32, 32))


def test_a_block_of_gpt2_with_a_symbolic_length(target):
    dims = {"x": {1: torch.export.Dim("n", min=2, max=128)}}
    run(*made(Block, (1, 12, 32), dims), target, (1, 12, 32), (1, 5, 32), (1, 33, 32))


def test_the_device_is_that_of_the_target(monkeypatch, tmp_path):
    monkeypatch.setenv("MLC_LAB_DEVICE", "simulated")
    driver.driver_of.cache_clear()
    model, mod = made(MLP, (4, 64))
    executable = relax.build(mod, target="nvidia/nvidia-a100")
    with pytest.raises(ValueError, match=r"run on cuda\(0\) here, not on cpu\(0\)"):
        relax.VirtualMachine(executable, tvm.cpu())
    vm = relax.VirtualMachine(executable)
    same(model, vm, tvm.cuda(0), (4, 64))
    with pytest.raises(ValueError, match="copy it there, tvm.nd.array"):
        vm["main"](np.zeros((4, 64), "float32"))
    with pytest.raises(ValueError, match="cannot be written to a file"):
        executable.export_library(str(tmp_path / "model.so"))
    timed = vm.time_evaluator("main", tvm.cuda(0), number=1)(
        tvm.nd.array(np.zeros((4, 64), "float32"), tvm.cuda(0)))
    assert "not of a GPU" in timed.clock
    with pytest.raises(ValueError, match="and for cuda, opencl"):
        relax.build(mod, target="hexagon")
    driver.driver_of.cache_clear()


def test_branches_and_reshapes_on_a_device(target):
    mod = from_source('''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")):
        n = T.int64()
        if c:
            y = R.reshape(x, R.shape([n * 4]))
            z = R.add(y, R.const(1, "float32"))
        else:
            z = R.flatten(x)
        return z
''')
    vm = relax.VirtualMachine(relax.build(mod, target))
    dev = tvm.device(target, 0)
    x = np.arange(12, dtype="float32").reshape(3, 4)
    for c in (True, False):
        got = vm["main"](tvm.nd.array(x, dev), tvm.nd.array(np.array(c), tvm.cpu()))
        np.testing.assert_array_equal(got.numpy(), x.reshape(-1) + c)


@pytest.mark.parametrize("target", ["simulated"], indirect=True)
def test_times_of_the_simulated_device_say_whose_they_are(target):
    vm = relax.VirtualMachine(relax.build(from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((32, 32), "float32")) -> R.Tensor((32, 32), "float32"):
        with R.dataflow():
            y = R.nn.relu(x)
            R.output(y)
        return y
"""), target=target), tvm.cuda(0))
    x = tvm.nd.array(np.ones((32, 32), "float32"), tvm.cuda(0))
    whose = "time of the simulation of cuda on this CPU, not of a GPU"
    assert str(vm.profile("main", x)).endswith(f"({whose})")
    assert whose in str(vm.time_evaluator("main", tvm.cuda(0))(x))

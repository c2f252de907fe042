"""`tvm.contrib.torch`: functions of TensorIR and models as modules of torch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import mlc_lab.compat

mlc_lab.compat.install()

import tvm
from tvm import meta_schedule as ms
from tvm.contrib.torch import as_torch, optimize_torch
from tvm.script import tir as T

LITTLE = ms.TuneConfig(max_trials_global=4, num_trials_per_iter=4)


@as_torch
@T.prim_func
def depthwise(A: T.Buffer((6, 20), "float32"), B: T.Buffer((6, 5), "float32"),
              C: T.Buffer((6, 16), "float32")) -> None:
    for j, i, k in T.grid(6, 16, 5):
        with T.block():
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vj, vi] = T.float32(0)
            C[vj, vi] += B[vj, vk] * A[vj, vi + vk]


def test_a_function_is_a_module_before_and_after_it_is_tuned():
    a, b = torch.rand(6, 20), torch.rand(6, 5)
    want = torch.nn.functional.conv1d(a, b.view(6, 1, 5), groups=6)
    before = depthwise.script()
    for tuned in (False, True):
        if tuned:
            depthwise.tune(LITTLE)
            assert depthwise.script() != before
        c = torch.zeros(6, 16)
        assert isinstance(depthwise, torch.nn.Module) and depthwise(a, b, c) is None
        torch.testing.assert_close(c, want)


def test_a_function_that_makes_programs():
    @as_torch
    def twice(n):
        @T.prim_func
        def main(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
            for i in range(n):
                with T.block("B"):
                    v = T.axis.spatial(n, i)
                    B[v] = A[v] * T.float32(2)
        return main

    x, y = torch.rand(7), torch.zeros(7)
    twice(7)(x, y)
    torch.testing.assert_close(y, x * 2)
    with pytest.raises(TypeError, match="not int"):
        as_torch(3)


def test_a_model_is_imported_tuned_and_compiled():
    model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))
    x = torch.rand(2, 8)
    fast = optimize_torch(model, x, LITTLE)
    torch.testing.assert_close(fast(x), model(x).detach(), rtol=1e-4, atol=1e-5)
    assert isinstance(fast, torch.nn.Module) and tvm

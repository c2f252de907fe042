"""Sizes of exported programs: slices that are larger than what they are taken from, numbers that
are computed of sizes, and the sizes that a program holds for."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import mlc_lab as tvm
from mlc_lab import relax, tir
from mlc_lab.relax.frontend.torch import from_exported_program, from_fx

F = torch.nn.functional


def exported(fn, x):
    class Model(torch.nn.Module):
        def forward(self, x):
            return fn(x)

    return torch.export.export(Model(), (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},))


def machine(mod):
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())

    def run(x):
        out = vm["main"](tvm.nd.array(x.numpy()))
        return out.numpy() if hasattr(out, "numpy") else out[0].numpy()

    return run


def agrees(fn, *rows):
    run = machine(from_exported_program(exported(fn, torch.rand(5, 3) + 0.5)))
    for n in rows:
        x = torch.rand(n, 3) + 0.5
        want = fn(x)
        got = run(x)
        assert got.shape == tuple(want.shape) and str(got.dtype) == str(want.dtype)[6:]
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-5)


@pytest.mark.parametrize("fn", [
    lambda x: x[:100] * 2, lambda x: x[-100:] * 2, lambda x: x[-100:50:2] * 2, lambda x: x[1:100],
    lambda x: x[x.shape[0] // 2:100], lambda x: x[:-1] + x[1:]])
def test_slices_end_where_the_dimension_ends(fn):
    agrees(fn, 5, 9, 4)


@pytest.mark.parametrize(("start", "end"), [(0, 100), (-100, None), (2, 4), (7, 9), (-3, -1)])
def test_slices_of_a_traced_graph(start, end):
    traced = torch.fx.symbolic_trace(type("Model", (torch.nn.Module,), {
        "forward": lambda self, x: x[start:end] * 2})())
    run = machine(from_fx(traced, [((tir.Var("n", "int64"), 3), "float32")]))
    for n in (1, 3, 8):
        x = torch.rand(n, 3)
        np.testing.assert_array_equal(run(x), (x[start:end] * 2).numpy())


@pytest.mark.parametrize("part", [0, 1, 2])
def test_parts_of_a_traced_graph(part):
    traced = torch.fx.symbolic_trace(lambda x: torch.tensor_split(x, 3)[part] * 2)
    run = machine(from_fx(traced, [((tir.Var("n", "int64"), 3), "float32")]))
    for n in (2, 5, 7, 9):
        x = torch.rand(n, 3)
        np.testing.assert_array_equal(run(x), torch.tensor_split(x, 3)[part].numpy() * 2)


@pytest.mark.parametrize("fn", [
    lambda x: x[5] * 2, lambda x: x[-4] * 2, lambda x: x.narrow(0, 2, 3) * 2,
    lambda x: x.split([2, 4])[1] * 2])
def test_parts_of_what_is_too_small(fn):
    n = tir.Var("n", "int64")
    run = machine(from_fx(torch.fx.symbolic_trace(fn), [((n, 3), "float32")]))
    x = torch.rand(6, 3)
    np.testing.assert_array_equal(run(x), fn(x).numpy())
    x = torch.rand(3, 3)
    with pytest.raises((IndexError, RuntimeError)):
        fn(x)
    with pytest.raises(ValueError, match="dimension 0 is 3 and has to be [456]"):
        run(x)


@pytest.mark.parametrize("fn", [
    lambda x: torch.scalar_tensor(x.shape[0]), lambda x: torch.pow(x.shape[0], x),
    lambda x: x * x.shape[0] ** 2, lambda x: x * x.shape[0] ** 0.5,
    lambda x: x * 2 ** x.shape[0], lambda x: x.masked_fill(x > 1, x.shape[0]),
    lambda x: torch.where(x > 1, x.shape[0] * 0.5, x), lambda x: x * (x.shape[0] / 3)])
def test_numbers_of_sizes(fn):
    agrees(fn, 5, 9, 4)


@pytest.mark.parametrize(("fn", "right", "wrong"), [
    (lambda x: x[:100], 99, 100), (lambda x: x * ((x.shape[0] > 5) + 1), 5, 6),
    (lambda x: x * int(x.shape[0] * 0.5), 4, 6),
    (lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], scale=1 / x.shape[0])[0],
     5, 6)])
def test_a_program_is_not_run_for_sizes_that_it_does_not_hold_for(fn, right, wrong):
    program = exported(fn, torch.rand(5, 3))
    run = machine(from_exported_program(program))
    x = torch.rand(right, 3)
    np.testing.assert_allclose(run(x), program.module()(x).numpy(), rtol=1e-5)
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(torch.rand(wrong, 3))
    with pytest.raises(ValueError, match="has to be|is declared as"):
        run(torch.rand(wrong, 3))


def test_what_is_no_number_is_behind_a_sorted_sequence():
    places = [1.0, 2.0, 2.0, 3.0]
    values = torch.tensor([[0.0, 2.0, math.nan, 9.0]])
    for right in (False, True):
        def search(x, right=right):
            return torch.searchsorted(torch.tensor(places), x, right=right)

        program = torch.export.export(
            type("Model", (torch.nn.Module,), {"forward": lambda self, x: search(x)})(), (values,))
        np.testing.assert_array_equal(machine(from_exported_program(program))(values),
                                      search(values).numpy())

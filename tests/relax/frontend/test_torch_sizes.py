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


A = torch.export.Dim.AUTO


@pytest.mark.parametrize(("fn", "sizes", "free"), [
    (lambda x: F.glu(x, 0), [(8, 3), (4, 3)], (0,)),
    (lambda x: torch.cat(x.split(x.shape[1] // 2, 1)[::-1], 1), [(2, 8), (2, 4)], (1,)),
    (lambda x: x.chunk(2)[0] + x.chunk(2)[1], [(8, 3), (4, 3)], (0,)),
    (lambda x: torch.diagonal(x, 1) * 2, [(8, 9), (4, 9), (9, 3)], (0, 1)),
    (lambda x: torch.diagonal(x, -2, 2, 1), [(2, 8, 9), (2, 9, 5)], (1, 2)),
    (lambda x: torch.trace(x), [(8, 9), (9, 4)], (0, 1)),
    (lambda x: torch.diag_embed(x, -2, 0, 1), [(3, 8), (3, 4)], (1,)),
    (lambda x: torch.diagonal_scatter(x, x[0, 1:], 1), [(5, 5), (4, 4)], (0, 1)),
    (lambda x: F.unfold(x, (2, 3), dilation=(2, 1), padding=1, stride=(2, 1)),
     [(2, 3, 7, 8), (2, 3, 6, 9)], (2, 3)),
    (lambda x: F.interpolate(x, scale_factor=1.7, mode="bicubic"), [(2, 3, 7, 8), (2, 3, 6, 9)],
     (2, 3)),
])
def test_sizes_that_torch_counts_on(fn, sizes, free):
    """Halves of an even size, and diagonals and windows of a size that is not known."""
    class Model(torch.nn.Module):
        def forward(self, x):
            return fn(x)

    x = torch.rand(*sizes[0])
    run = machine(from_exported_program(torch.export.export(
        Model(), (x,), dynamic_shapes=(dict.fromkeys(free, A),))))
    for size in sizes:
        x = torch.rand(*size)
        np.testing.assert_allclose(run(x), fn(x).numpy(), rtol=1e-4, atol=1e-5)


def test_half_of_an_odd_size_is_refused_when_it_runs():
    run = machine(from_exported_program(exported(lambda x: F.glu(x, 0), torch.rand(4, 3))))
    with pytest.raises(ValueError, match="match_cast"):
        run(torch.rand(5, 3))


@pytest.mark.parametrize("adds", [False, True])
def test_places_along_one_dimension_of_unknown_sizes(adds):
    class Model(torch.nn.Module):
        def forward(self, x, i):
            if adds:
                return torch.scatter_add(x, 1, i, i.float())
            return torch.gather(x, 1, i)

    def case(rows, columns, *index):
        return torch.rand(rows, columns), torch.randint(0, columns, index)

    mod = from_exported_program(torch.export.export(
        Model(), case(5, 6, 3, 4), dynamic_shapes=({0: A, 1: A}, {0: A, 1: A})))
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    for x, i in (case(5, 6, 3, 4), case(7, 2, 7, 9), case(4, 3, 2, 1)):
        got = vm["main"](*(tvm.nd.array(t.numpy()) for t in (x, i)))
        got = got.numpy() if hasattr(got, "numpy") else got[0].numpy()
        np.testing.assert_allclose(got, Model()(x, i).numpy(), rtol=1e-5)
    with pytest.raises(ValueError):
        vm["main"](*(tvm.nd.array(t.numpy()) for t in case(3, 4, 5, 2)))


@pytest.mark.parametrize(("places", "least"), [([0, 5], 6), ([-7, 1], 7), ([2], 3)])
def test_a_run_checks_that_a_dimension_reaches_to_constant_places(places, least):
    run = machine(from_exported_program(exported(lambda x: x[places] * 2, torch.rand(8, 3))))
    for n in (least, 9):
        x = torch.rand(n, 3)
        np.testing.assert_array_equal(run(x), (x[places] * 2).numpy())
    with pytest.raises(ValueError, match=f"has to be {least}"):
        run(torch.rand(least - 1, 3))

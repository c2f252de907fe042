"""Single operators of torch over random shapes and values, imported, built and run, against it."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import mlc_lab as tvm  # noqa: E402
from mlc_lab import relax, tir  # noqa: E402
from mlc_lab.relax.frontend.torch import from_exported_program, from_fx  # noqa: E402

nn, F = torch.nn, torch.nn.functional
RNG = np.random.default_rng(11)
BOTH = pytest.mark.parametrize("how", ["export", "fx"])


class Model(nn.Module):
    """A function as a model."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


def imported(fn, args, how, dynamic=None):
    """A function as a Relax module."""
    if how == "export":
        return from_exported_program(torch.export.export(Model(fn), args, dynamic_shapes=dynamic))
    info = [(tuple(a.shape), str(a.dtype).rpartition(".")[2]) for a in args]
    return from_fx(torch.fx.symbolic_trace(fn), info)


def runner(mod):
    """`main` of a module as a function of torch's tensors that gives a list of arrays."""
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())

    def run(*args):
        out = vm["main"](*(tvm.nd.array(a.numpy()) for a in args))
        return [o.numpy() for o in out] if not hasattr(out, "numpy") else [out.numpy()]

    return run


def agrees(got, want):
    want = list(want) if isinstance(want, (tuple, list)) else [want]
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == tuple(w.shape) and str(w.dtype).endswith(str(g.dtype))
        np.testing.assert_allclose(g, w.detach().numpy(), rtol=1e-4, atol=1e-5)


def check(fn, args, how):
    agrees(runner(imported(fn, args, how))(*args), fn(*args))


def indices(size, *shape, dtype="int64"):
    """Random indices of a dimension from its front and from its end, both ends among them."""
    at = RNG.integers(-size, size, shape)
    at.ravel()[:2] = -1, -size
    return torch.from_numpy(at.astype(dtype))


# ------------------------------------------------------------------------------- indices

AT = torch.tensor([0, -1])
BY_CONSTANTS = {
    "second": lambda a: a[:, torch.tensor([0, -1])],
    "third": lambda a: a[:, :, torch.tensor([-1, 2])],
    "first": lambda a: a[torch.tensor([[-1], [-3]])],
    "last": lambda a: a[..., torch.tensor([-2, -1, 0])],
    "two": lambda a: a[torch.tensor([0, -1]), torch.tensor([-2, 1])],
    "list": lambda a: a[:, [0, -1, 2]],
    "scalar": lambda a: a[:, torch.tensor(-1)],
}


@BOTH
@pytest.mark.parametrize("name", BY_CONSTANTS)
def test_constant_indices_count_from_the_end(name, how):
    fn = BY_CONSTANTS[name]
    for shape in ((3, 4, 5), (4, 3, 3)):
        mod = imported(fn, (torch.rand(shape),), how)
        assert "R.where" not in mod.script() and "R.less" not in mod.script()
        check(fn, (torch.rand(shape),), how)


@BOTH
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_indices_that_are_inputs_count_from_the_end(dtype, how):
    for size in (2, 7):
        a = torch.rand(size, 3, size)
        for shape in ((2,), (2, 3)):
            i = indices(size, *shape, dtype=dtype)
            check(lambda a, i: a[i], (a, i), how)
            check(lambda a, i: a[:, :, i], (a, i), how)
        j = indices(3, 2, dtype=dtype)
        check(lambda a, i, j: a[i, j], (a, indices(size, 2, dtype=dtype), j), how)


def test_indices_of_a_dimension_of_any_size():
    n = torch.export.Dim("n", min=2, max=64)
    args = (torch.rand(5, 3), torch.tensor([0, -1, 2]))
    run = runner(imported(lambda a, i: (a[i], a[torch.tensor([-1, 0])]), args, "export",
                          {"args": ({0: n}, None)}))
    for size in (3, 9):
        a, i = torch.rand(size, 3), indices(size, 3)
        agrees(run(a, i), (a[i], a[torch.tensor([-1, 0])]))


def test_an_index_outside_is_refused():
    traced = torch.fx.symbolic_trace(lambda a: a[:, [0, 4]])
    with pytest.raises(IndexError, match="the index 4 is outside of a dimension of 4"):
        from_fx(traced, [((3, 4), "float32")])


# ------------------------------------------------------------------------------- pooling

#: size, kernel, stride, padding of pools with ceil_mode; in some, the last window of torch's
#: formula would begin in the padding behind, and is none
POOLS = [((6, 5), (3, 2), (2, 3), (1, 1)), ((7, 7), 3, 2, 1), ((5, 6), 2, 3, 1), ((8, 5), 3, 2, 0),
         ((7, 5), (1, 2), 3, 0), ((4, 9), (2, 4), (2, 3), (1, 2)), ((6,), 2, 2, 1), ((5,), 2, 3, 1),
         ((9,), 3, 2, 1), ((5, 6, 7), (3, 2, 2), (2, 3, 2), 1)]


def pools(rank, kernel, stride, padding):
    """All pools with ceil_mode of one geometry."""
    largest, mean = getattr(F, f"max_pool{rank}d"), getattr(F, f"avg_pool{rank}d")

    def fn(x):
        geometry = (kernel, stride, padding)
        out = [largest(x, *geometry, ceil_mode=True), mean(x, *geometry, ceil_mode=True),
               mean(x, *geometry, ceil_mode=True, count_include_pad=False)]
        if rank > 1:
            out.append(mean(x, *geometry, ceil_mode=True, divisor_override=3))
        return tuple(out)

    return fn


@BOTH
@pytest.mark.parametrize("size, kernel, stride, padding", POOLS)
def test_rounding_up_keeps_no_window_that_begins_behind(size, kernel, stride, padding, how):
    check(pools(len(size), kernel, stride, padding), (torch.randn(2, 3, *size) - 3,), how)


@pytest.mark.parametrize("kernel, stride, padding", [
    ((3, 2), (2, 3), 1), ((2, 2), (3, 2), 1), ((3, 3), (2, 2), 1)])
def test_rounding_up_of_any_size(kernel, stride, padding):
    fn = pools(2, kernel, stride, padding)
    shape = (1, 2, tir.Var("h", "int64"), 5)
    run = runner(from_fx(torch.fx.symbolic_trace(fn), [(shape, "float32")]))
    for size in (4, 5, 6, 7, 8, 13):
        x = torch.randn(1, 2, size, 5)
        agrees(run(x), fn(x))


@BOTH
def test_pools_without_a_batch(how):
    check(lambda x: (F.max_pool2d(x, 2, 3, 1, ceil_mode=True), F.avg_pool2d(x, 2)),
          (torch.randn(2, 5, 6),), how)

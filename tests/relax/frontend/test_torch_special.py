"""Bessel's functions, zeta, frexp and products of groups, imported from torch and against it."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.topi.grouped_matmul import grouped_matmul

from .test_torch_operators import BOTH, RNG, check, imported, runner

INF, NAN = float("inf"), float("nan")
special = torch.special


def drawn(*shape, scale=1.0, dtype="float32"):
    return torch.from_numpy((RNG.standard_normal(shape) * scale).astype(dtype))


def same(fn, *args, rtol):
    """The function gives what torch gives, NaN and infinities included."""
    got = runner(imported(fn, args, "export"))(*args)
    want = fn(*args)
    for g, w in zip(got, want if isinstance(want, (tuple, list)) else [want]):
        np.testing.assert_allclose(g, w.numpy(), rtol=rtol, atol=0)


EDGES = [0.0, -0.0, 1e-30, 8.0, 20.0, 20.001, -21.5, 87.0, -300.0, 700.0, NAN]


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_bessel_functions_to_the_last_digits(name):
    x = torch.cat([torch.tensor(EDGES, dtype=torch.float64), drawn(50, scale=15, dtype="float64")])
    same(getattr(special, name), x, rtol=2e-14)


def test_bessel_functions_where_torch_overflows_too_early():
    x = torch.tensor([712.0, INF, -INF], dtype=torch.float64)
    for name, want in [("i0", [2.4684113e307, INF, INF]), ("i1", [2.4666772e307, INF, -INF]),
                       ("i0e", [0.01495362, 0, 0])]:
        got = runner(imported(getattr(special, name), (x,), "export"))(x)[0]
        np.testing.assert_allclose(got, want, rtol=1e-5)


@BOTH
@pytest.mark.parametrize("fn", [torch.i0, special.i0e, special.i1, special.i1e])
def test_bessel_functions_of_floats_and_integers(fn, how):
    check(lambda x: fn(x), (drawn(2, 3, 5, scale=8),), how)
    check(lambda x: fn(x), (torch.arange(-4, 5),), how)


def test_zeta_of_numbers_that_fit_and_that_do_not():
    s = torch.tensor([1.0, 1.5, 2.0, 2.0, 2.0, 3.0, 3.0, 0.5, -1.0, 2.5, 40.0, 1e5, NAN, 2.0,
                      1e-3, 2.0, 2.0], dtype=torch.float64)
    q = torch.tensor([2.0, 0.3, 1e6, 0.0, -3.0, -2.5, 1e-5, 2.0, 2.0, -0.5, 0.1, 3.0, 1.0, NAN,
                      1.0, 9.0, 10.0], dtype=torch.float64)
    same(special.zeta, s, q, rtol=1e-13)
    same(special.zeta, (drawn(30, dtype="float64").abs() + 1.01), drawn(30, dtype="float64").abs(),
         rtol=1e-12)


@BOTH
def test_zeta_broadcasts_and_takes_numbers(how):
    s, q = drawn(3, 1).abs() + 1.1, drawn(4).abs() + 0.2
    check(lambda a, b: special.zeta(a, b), (s, q), how)
    check(lambda x: special.zeta(x, 2.0), (s,), how)
    check(lambda x: special.zeta(2, x), (torch.arange(1, 5),), how)


def test_zeta_far_below_zero_ends():
    x = torch.tensor([-1e9 - 0.5, -INF], dtype=torch.float64)
    got = runner(imported(lambda q: special.zeta(2.0, q), (x,), "export"))(x)[0]
    assert np.isnan(got[0]) and np.isinf(got[1])
    ends = torch.tensor([INF], dtype=torch.float64)  # torch gives NaN
    assert runner(imported(lambda s: special.zeta(s, 2.0), (ends,), "export"))(ends)[0] == 0


@BOTH
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma(n, how):
    check(lambda x: torch.polygamma(n, x), (drawn(3, 4).abs() + 0.1,), how)
    check(lambda x: x.polygamma(n), (torch.arange(1, 6),), how)


def test_trigamma_below_zero_and_at_its_poles():
    x = torch.tensor([-0.5, -2.25, -7.9], dtype=torch.float64)
    same(lambda a: torch.polygamma(1, a), x, rtol=1e-9)
    poles = torch.tensor([0.0, -1.0, -4.0], dtype=torch.float64)
    got = runner(imported(lambda a: torch.polygamma(1, a), (poles,), "export"))(poles)[0]
    assert (got == INF).all()


@BOTH
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_frexp_takes_floats_apart(dtype, how):
    tiny = np.finfo(dtype).smallest_subnormal
    edges = np.array([0, -0.0, 1, -1, 0.5, 3, tiny, -3 * tiny, INF, -INF, NAN,
                      np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
    x = torch.from_numpy(np.concatenate([edges, (RNG.standard_normal(20) * 9).astype(dtype)]))
    fraction, exponent = runner(imported(lambda a: torch.frexp(a), (x,), how))(x)
    want = torch.frexp(x)
    np.testing.assert_array_equal(fraction, want.mantissa.numpy())
    assert exponent.dtype == np.int32
    np.testing.assert_array_equal(exponent, want.exponent.numpy())


@BOTH
@pytest.mark.parametrize("p, dim, limit", [(2, 0, 0.7), (1, -1, 3.0), (INF, 1, 0.5), (0.5, 2, 1e9)])
def test_renorm(p, dim, limit, how):
    check(lambda x: torch.renorm(x, p, dim, limit), (drawn(3, 4, 5),), how)


def grouped(*shapes, ends, out=None):
    """A product of groups in bfloat16, and its arguments."""
    def fn(a, b, offs):
        return torch._grouped_mm(a.bfloat16(), b.bfloat16(), offs=offs).float()

    return fn, (*(drawn(*s) for s in shapes), torch.tensor(ends, dtype=torch.int32))


@BOTH
@pytest.mark.parametrize("shapes, ends", [
    (((24, 16), (3, 16, 8)), [5, 5, 24]), (((24, 16), (3, 16, 8)), [8, 16, 24]),
    (((3, 8, 16), (16, 24)), [0, 9, 24]), (((8, 24), (24, 16)), [7, 7, 24]),
])
def test_products_of_groups(shapes, ends, how):
    fn, args = grouped(*shapes, ends=ends)
    got, want = runner(imported(fn, args, how))(*args)[0], fn(*args).numpy()
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2e-2, atol=2e-2)


@BOTH
def test_products_of_stacks_have_no_groups(how):
    check(lambda a, b: torch._grouped_mm(a.bfloat16(), b.bfloat16()).float(),
          (drawn(2, 8, 16), drawn(2, 16, 8)), how)


def test_a_mixture_of_experts_is_what_each_expert_gives_its_rows():
    rows, experts = drawn(12, 8), drawn(4, 8, 8)
    ends = torch.tensor([2, 2, 7, 10], dtype=torch.int32)
    bb = relax.BlockBuilder()
    a, b = (relax.Var(n, relax.TensorStructInfo(t.shape, "float32"))
            for n, t in (("a", rows), ("b", experts)))
    offs = relax.Var("offs", relax.TensorStructInfo((4,), "int32"))
    with bb.function("main", [a, b, offs]):
        bb.emit_func_output(bb.emit_te(grouped_matmul, a, b, offs))
    vm = relax.VirtualMachine(relax.build(bb.get(), "llvm"), tvm.cpu())
    got = vm["main"](*(tvm.nd.array(t.numpy()) for t in (rows, experts, ends))).numpy()
    want = np.zeros((12, 8), "float32")  # what no group has is 0
    for g, (begin, end) in enumerate(zip([0, *ends.tolist()], ends.tolist())):
        want[begin:end] = rows[begin:end].numpy() @ experts[g].numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_grouped_matmul_names_the_shapes_that_do_not_fit():
    te = tvm.te
    a, offs = te.placeholder((2, 3, 4), "float32"), te.placeholder((2,), "int32")
    with pytest.raises(ValueError, match="not of 3 and 3 dimensions"):
        grouped_matmul(a, te.placeholder((2, 4, 3), "float32"), offs)

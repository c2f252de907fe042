"""Reading and writing at computed places, against numpy and torch."""

import numpy as np
import pytest
from topi.running import array, check

import mlc_lab
from mlc_lab import relax, te, tir, topi

X = array(4, 5, 3)


def indices(*shape, high, dtype="int64", low=0):
    return array(*shape, dtype=dtype, low=low, high=high)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_an_axis(axis):
    i = indices(2, 2, high=3)
    check(lambda x, t: topi.take(x, t, axis), [X, i], np.take(X, i, axis))


def test_take_modes():
    i = indices(6, low=-9, high=9, dtype="int32")
    check(lambda x, t: topi.take(x, t, 0, mode="clip"), [X, i], np.take(X, i, 0, mode="clip"))
    check(lambda x, t: topi.take(x, t, 0, mode="wrap"), [X, i], np.take(X, i, 0, mode="wrap"))
    check(lambda x, t: topi.take(x, t), [X, np.abs(i)], np.take(X, np.abs(i)))
    check(lambda x: topi.take(x, 2, 1), [X], X[:, 2])


def test_take_with_batches():
    x, i = array(2, 5), indices(2, 3, high=5)
    check(lambda a, t: topi.take(a, t, 1, batch_dims=1), [x, i], np.take_along_axis(x, i, 1))


def test_gather():
    i = indices(4, 2, 3, high=5)
    check(lambda x, t: topi.gather(x, 1, t), [X, i], np.take_along_axis(X, i, 1))
    at = np.stack([indices(2, 2, high=4), indices(2, 2, high=5)])
    check(topi.gather_nd, [X, at], X[at[0], at[1]])
    a, b = indices(2, 1, high=4, low=-4), indices(3, high=5)
    check(lambda x, s, t: topi.index_tensor(x, [s, t]), [X, a, b], X[a, b])


def test_one_hot():
    i = indices(4, high=6, dtype="int32")
    check(lambda t: topi.one_hot(t, 1, 0, 6, -1, "float32"), [i], np.eye(6)[i])
    check(lambda t: topi.one_hot(t, 1, 0, 6, 0, "float32"), [i], np.eye(6)[i].T)


@pytest.mark.parametrize("reduction, mode", [("update", None), ("add", "sum"), ("mul", "prod"),
                                             ("max", "amax"), ("min", "amin")])
def test_scatter_elements(reduction, mode):
    torch = pytest.importorskip("torch")
    x, updates = array(4, 5), array(2, 5)
    at = np.stack([np.random.default_rng(1).permutation(4)[:2] for _ in range(5)], 1)
    want = torch.tensor(x)
    if mode is None:
        want = want.scatter(0, torch.tensor(at), torch.tensor(updates))
    else:
        at[1] = at[0]  # the same place twice
        want = want.scatter_reduce(0, torch.tensor(at), torch.tensor(updates), mode)
    check(lambda a, i, u: topi.scatter_elements(a, i, u, 0, reduction), [x, at, updates], want)


def test_scatter_nd_and_index_put():
    x, updates = array(4, 5, 3), array(2, 3)
    at = np.array([[1, 3], [0, 2]])
    want = x.copy()
    want[at[0], at[1]] += updates
    check(lambda a, i, u: topi.scatter_nd(a, i, u, "add"), [x, at, updates], want)
    want = x.copy()
    want[at[0], at[1]] = updates
    check(lambda a, i, j, u: topi.index_put(a, [i, j], u), [x, at[0], at[1], updates], want)


def test_slice_scatter_and_masks():
    x, new = array(6, 3), array(2, 3)
    want = x.copy()
    want[1:5:2] = new
    check(lambda a, b: topi.slice_scatter(a, b, 1, 5, 2, 0), [x, new], want)
    length = np.array([1, 4, 2], "int32")
    want = x.copy()
    for column, n in enumerate(length):
        want[n:, column] = -1
    check(lambda a, n: topi.sequence_mask(a, n, -1, 0), [x, length], want)


def test_refusals():
    x = te.placeholder((4, 5))
    with pytest.raises(ValueError, match=r"updates \(2, 5\)"):
        topi.scatter_elements(x, te.placeholder((3, 5), "int64"), te.placeholder((2, 5)))
    with pytest.raises(ValueError, match='mode "outside"'):
        topi.take(x, te.placeholder((3,), "int32"), 0, mode="outside")


def test_a_slice_that_ends_before_it_begins_is_empty_with_symbolic_sizes_too():
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo([n], "float32"))
    m = tir.Var("m", "int64")
    new = relax.Var("new", relax.TensorStructInfo([m], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, new]):
        builder.emit_func_output(builder.emit(relax.op.slice_scatter(x, new, 3, 1, 1)))
    vm = relax.VirtualMachine(relax.build(builder.get(), "llvm"), mlc_lab.cpu())
    a = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(vm["main"](a, np.zeros(0, "float32")).numpy(), a)

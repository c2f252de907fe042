"""Operators that move elements, against numpy."""

import numpy as np
import pytest
from topi.running import array, check, run

from mlc_lab import te, tir, topi
from mlc_lab.backend.interp import interpret

X = array(2, 3, 4)
CASES = {
    "transpose": (lambda t: topi.transpose(t), lambda x: x.T),
    "transpose_axes": (lambda t: topi.transpose(t, (1, 0, -1)), lambda x: x.transpose(1, 0, 2)),
    "reshape": (lambda t: topi.reshape(t, (4, -1)), lambda x: x.reshape(4, 6)),
    "flatten": (lambda t: topi.nn.flatten(t), lambda x: x.reshape(2, 12)),
    "expand_dims": (lambda t: topi.expand_dims(t, -1, 2), lambda x: x[..., None, None]),
    "squeeze": (lambda t: topi.squeeze(topi.expand_dims(t, 1)), lambda x: x),
    "squeeze_axis": (lambda t: topi.squeeze(topi.expand_dims(t, 1), [1]), lambda x: x),
    "flip": (lambda t: topi.flip(t, 1), lambda x: x[:, ::-1]),
    "tile": (lambda t: topi.tile(t, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3))),
    "tile_more": (lambda t: topi.tile(t, (2, 1, 1, 2)), lambda x: np.tile(x, (2, 1, 1, 2))),
    "tile_of_nothing": (lambda t: topi.tile(topi.strided_slice(t, [1], [1]), (2, 3)),
                        lambda x: np.tile(x[1:1], (2, 3))),
    "repeat": (lambda t: topi.repeat(t, 2, 1), lambda x: x.repeat(2, 1)),
    "slice": (lambda t: topi.strided_slice(t, [0, 1], [2, 3]), lambda x: x[0:2, 1:3]),
    "slice_back": (lambda t: topi.strided_slice(t, [3], [0], [-2], axes=[2]),
                   lambda x: x[..., 3:0:-2]),
    "slice_negative": (lambda t: topi.strided_slice(t, [-2], [100], axes=[1]),
                       lambda x: x[:, -2:]),
    "slice_size": (lambda t: topi.strided_slice(t, [1, 1], [-1, 2], axes=[1, 2],
                                                slice_mode="size"), lambda x: x[:, 1:, 1:3]),
    "concat": (lambda t: topi.concatenate([t, t * 2.0], 1),
               lambda x: np.concatenate([x, x * 2], 1)),
    "stack": (lambda t: topi.stack([t, t * 2.0, t], -1), lambda x: np.stack([x, x * 2, x], -1)),
    "tril": (lambda t: topi.tril(t, 1), lambda x: np.tril(x, 1)),
    "triu": (lambda t: topi.triu(t), np.triu),
    "full_like": (lambda t: topi.full_like(t, 3), lambda x: np.full_like(x, 3)),
    "shape": (lambda t: topi.shape(t), lambda x: np.array(x.shape, "int32")),
    "size": (lambda t: topi.tensor_size(t), lambda x: np.array(x.size, "int32")),
    "layout": (lambda t: topi.layout_transform(t, "NCW", "NWC"), lambda x: x.transpose(0, 2, 1)),
    "layout_blocked": (lambda t: topi.layout_transform(t, "NCW", "NCW2w"),
                       lambda x: x.reshape(2, 3, 2, 2)),
    "layout_back": (lambda t: topi.layout_transform(
        topi.layout_transform(t, "NWC", "NCW2c"), "NCW2c", "NWC"), lambda x: x),
    "window": (lambda t: topi.sliding_window(t, 1, (2, 3), (1, 1)),
               lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3), (1, 2))),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_numpy(name):
    operator, expected = CASES[name]
    check(operator, [X], expected(X))


def test_split():
    check(lambda t: topi.split(t, 2, 2), [X], np.split(X, 2, 2))
    check(lambda t: topi.split(t, [1, 3], 2), [X], np.split(X, [1, 3], 2))


def test_meshgrid():
    a, b = array(3), array(2)
    check(lambda x, y: topi.meshgrid([x, y], "ij"), [a, b], np.meshgrid(a, b, indexing="ij"))
    check(lambda x, y: topi.meshgrid([x, y], "xy"), [a, b], np.meshgrid(a, b))


def test_from_nothing():
    np.testing.assert_array_equal(run(lambda: topi.arange(2, 11, 3, "int32")), [2, 5, 8])
    np.testing.assert_allclose(run(lambda: topi.arange(0.0, 1.0, 0.25)), [0, 0.25, 0.5, 0.75])
    np.testing.assert_array_equal(run(lambda: topi.arange(5, 0, -2, "int64")), [5, 3, 1])
    np.testing.assert_array_equal(run(lambda: topi.full((2, 3), "float32", 1.5)),
                                  np.full((2, 3), 1.5))
    np.testing.assert_array_equal(run(lambda: topi.eye(3, 4, 1)), np.eye(3, 4, 1))


def test_reverse_sequence_and_set_diag():
    x, length = array(2, 4), np.array([3, 1], "int32")
    want = x.copy()
    want[0, :3] = x[0, :3][::-1]
    check(topi.reverse_sequence, [x, length], want)
    m, d = array(3, 3), array(3)
    want = m.copy()
    np.fill_diagonal(want, d)
    check(topi.matrix_set_diag, [m, d], want)


def test_slice_with_bounds_in_tensors():
    x = array(5, 4)
    begin, end, step = (np.array(v, "int64") for v in ([1, -2], [4, 4], [2, 1]))
    check(lambda t, b, e, s: topi.dynamic_strided_slice(t, b, e, s, [2, 2]),
          [x, begin, end, step], x[1:4:2, -2:4])


def test_symbolic_shapes():
    n = tir.SizeVar("n", "int64")
    x = te.placeholder((n, 4), name="x")
    for operator, expected in [
            (lambda t: topi.reshape(t, (n * 2, 2)), lambda a: a.reshape(-1, 2)),
            (lambda t: topi.reshape(t, (-1, 2)), lambda a: a.reshape(-1, 2)),
            (lambda t: topi.transpose(t), lambda a: a.T),
            (lambda t: topi.strided_slice(t, [1], [n], axes=[0]), lambda a: a[1:]),
            (lambda t: topi.concatenate([t, t], 0), lambda a: np.concatenate([a, a])),
            (lambda t: topi.flip(t, 0), lambda a: a[::-1]),
            (lambda t: topi.nn.softmax(t, 0), lambda a: np.exp(a) / np.exp(a).sum(0)),
            (lambda t: topi.matmul(t, t, False, True), lambda a: a @ a.T)]:
        a = array(6, 4)
        want = expected(a)
        out = np.empty(want.shape, "float32")
        interpret(te.create_prim_func([x, operator(x)]), a, out)
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operator, words", [
    (lambda t: topi.reshape(t, (5, 5)), r"\(2, 3, 4\) has 24 elements.*\(5, 5\) holds 25"),
    (lambda t: topi.transpose(t, (0, 0, 1)), "is no order of 3 dimensions"),
    (lambda t: topi.concatenate([t, te.placeholder((2, 2, 5))], 1),
     r"\(2, 3, 4\) and \(2, 2, 5\) differ outside axis 1"),
    (lambda t: topi.stack([t, te.placeholder((2, 3))]), r"\(2, 3, 4\) and \(2, 3\) differ"),
    (lambda t: topi.split(t, 2, 1), "size 3 of axis 1"),
    (lambda t: topi.squeeze(t, [1]), "dimension 1 of .2, 3, 4. is not 1"),
])
def test_refusals(operator, words):
    with pytest.raises(ValueError, match=words):
        operator(te.placeholder((2, 3, 4)))


@pytest.mark.parametrize("lengths", [[1, 2, 3, 4], [-1, 0, 9, 2]])
def test_lengths_of_sequences_are_kept_inside(lengths):
    x = np.arange(20, dtype="int32").reshape(4, 5)
    want = x.copy()
    for row, length in zip(want, lengths):
        length = min(max(length, 0), 5)
        row[:length] = row[:length][::-1]
    check(lambda a, n: topi.reverse_sequence(a, n, 1, 0), [x, np.array(lengths, "int32")], want)
    with pytest.raises(ValueError, match="not one for each"):
        run(lambda a, n: topi.reverse_sequence(a, n, 1, 0), x, np.array([1, 2], "int32"))


@pytest.mark.parametrize("begin, end, strides", [
    ([0, 3, 0], [4, 1, 4], [1, -1, 2]), ([1, -1, 0], [4, -5, 3], [2, -1, 1]),
    ([1, 1], [4, 4], None), ([1, 1, 0], [2, 3, 3], [1]), ([-9, 0, 0], [9, 9, 9], [2, 1, 1]),
    ([2, 0, 0], [1, 4, 3], [1, 1, 1]), ([9, 9, 9], [-9, -9, -9], [-1, -2, -3]),
])
def test_a_slice_is_set(begin, end, strides):
    x = array(3, 4, 3)
    full = [*(strides or []), 1, 1, 1]
    cut = tuple(slice(b, None if step < 0 and e < -n else e, step)
                for b, e, step, n in zip(begin, end, full, x.shape))
    v = array(*x[cut].shape) if x[cut].size else array(1, 1, 1)
    want = x.copy()
    if x[cut].size:
        want[cut] = v
    bounds = [np.array(b, "int32") for b in (begin, end, strides) if b is not None]
    check(lambda *t: topi.strided_set(*t), [x, v, *bounds], want)


def test_a_slice_with_too_few_values_reads_none_outside():
    x, v = array(4), array(2)
    bounds = [np.array([b], "int32") for b in (0, 4)]
    check(lambda *t: topi.strided_set(*t), [x, v, *bounds], np.concatenate([v, x[2:]]))
    with pytest.raises(ValueError, match="begin is a vector"):
        run(lambda *t: topi.strided_set(*t), x, v, x, bounds[1])


def test_it_is_expanded_like_another():
    x, like = array(3), array(2, 3, 4)
    check(lambda a, b: topi.expand_like(a, b, [0, -1]), [x, like],
          np.broadcast_to(x[None, :, None], (2, 3, 4)))
    check(lambda a, b: topi.expand_like(a, b, [0, 1, 2]), [x[:1], like],
          np.full((2, 3, 4), x[0]))
    with pytest.raises(ValueError, match="do not make"):
        run(lambda a, b: topi.expand_like(a, b, [0, 1]), x, like)


def test_names_that_tvm_has_elsewhere():
    assert topi.transform.one_hot is topi.one_hot and topi.transform.trilu is topi.trilu
    assert topi.ndarray_size is topi.tensor_size
    assert topi.utils.get_shape((3, 2, 32, 48, 16), "NCHW16c", "NC16cWH") == (3, 2, 16, 48, 32)
    with pytest.raises(ValueError, match="no such shape"):
        topi.utils.get_shape((1, 2, 3, 4), "NCHW", "NCHW4c")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        topi.transform.nothing


def test_indices_that_are_floats_are_cut():
    x, at = array(4, 3), np.array([[1.9, 0.0, 3.5]], "float32")
    check(topi.gather_nd, [x, at], x[[1, 0, 3]])

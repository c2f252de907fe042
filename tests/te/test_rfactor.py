"""rfactor of te takes any sizes and any commutative reducer."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.backend.interp import interpret

RNG = np.random.default_rng(5)


def rand(*shape):
    return RNG.standard_normal(shape).astype("float32")


def row_sum(n, m):
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    return A, te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")


def check(s, args, inputs, *wants, gpu=False):
    mod = s.to_module(args)
    runs = [lambda *a: interpret(mod, *a), lambda *a: interpret(tvm.lower(mod), *a)]
    if not gpu:
        runs.append(tvm.build(s, args, "llvm"))
    for run in runs:
        outs = [np.full(w.shape, -1, w.dtype) for w in wants]
        run(*inputs, *outs)
        for out, want in zip(outs, wants):
            np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)
    return mod.script()


@pytest.mark.parametrize("m", [64, 50, 37, 16, 3, 1])
@pytest.mark.parametrize("split", [{"factor": 16}, {"nparts": 4}])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("symbolic", [False, True])
def test_a_sum_of_any_length(m, split, which, symbolic):
    A, B = row_sum(*((te.var("n"), te.var("m")) if symbolic else (5, m)))
    s = te.create_schedule(B.op)
    parts = s[B].split(B.op.reduce_axis[0], **split)
    BF = s.rfactor(B, parts[which])
    s[BF].parallel(s[BF].op.axis[0])
    a = rand(5, m)
    text = check(s, [A, B], [a], a.sum(1))
    assert 'T.block("B_rf' in text
    assert ("if_then_else" in text) == (symbolic or m % (16 if "factor" in split else 4) > 0)


@pytest.mark.parametrize("factor_axis", [0, 1, -1, -2])
def test_where_the_slices_lie(factor_axis):
    A, B = row_sum(6, 20)
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=8)
    BF = s.rfactor(B, ki, factor_axis)
    assert [int(d) for d in BF.shape] == ([8, 6] if factor_axis in (0, -2) else [6, 8])
    a = rand(6, 20)
    check(s, [A, B], [a], a.sum(1))
    with pytest.raises(ValueError, match="factor_axis=2"):
        s.rfactor(B, s[B].op.reduce_axis[0], 2)


def test_several_axes_fused_reordered_and_factored_twice():
    A = te.placeholder((3, 7, 11), name="A")
    k, r = te.reduce_axis((0, 7), "k"), te.reduce_axis((2, 11), "r")
    B = te.compute((3,), lambda i: te.sum(A[i, k, r], axis=[k, r], where=r != 5), name="B")
    a = rand(3, 7, 11)
    keep = np.delete(a[:, :, 2:], 3, axis=2)
    s = te.create_schedule(B.op)
    s[B].reorder(r, s[B].op.axis[0], k)
    BF = s.rfactor(B, r)
    ko, ki = s[BF].split(s[BF].op.reduce_axis[0], 4)
    BG = s.rfactor(BF, ki)
    s[BG].unroll(s[BG].op.axis[0])
    check(s, [A, B], [a], keep.sum((1, 2)))
    C = te.placeholder((3, 7, 11), name="C")
    D = te.compute((3,), lambda i: te.sum(C[i, k, k], axis=k), name="D")
    s = te.create_schedule(D.op)
    s.rfactor(D, D.op.reduce_axis[0])  # each slice is a single element
    check(s, [C, D], [a], np.einsum("ikk->i", a[:, :, :7]))
    E = te.placeholder((3, 5, 6), name="E")
    x, y = te.reduce_axis((0, 5), "x"), te.reduce_axis((0, 6), "y")
    F = te.compute((3,), lambda i: te.max(E[i, x, y], axis=[x, y]), name="F")
    s = te.create_schedule(F.op)
    _, inner = s[F].split(s[F].fuse(x, y), factor=7)
    s.rfactor(F, inner)
    e = rand(3, 5, 6) - 10
    check(s, [E, F], [e], e.max((1, 2)))


@pytest.mark.parametrize("m", [16, 13])
def test_a_reducer_of_tuples(m):
    def better(x, y):
        return (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1]))

    argmax = te.comm_reducer(better, lambda t0, t1: (
        tvm.tir.const(-1, t0), tvm.tir.min_value(t1)), name="argmax")
    I, V = te.placeholder((4, m), "int32", name="I"), te.placeholder((4, m), name="V")
    k = te.reduce_axis((0, m), "k")
    at, best = te.compute((4,), lambda i: argmax((I[i, k], V[i, k]), axis=k), name="T")
    s = te.create_schedule(at.op)
    _, inner = s[at].split(k, factor=4)
    slices = s.rfactor(at, inner)
    assert len(slices) == 2
    s[slices[0]].parallel(s[slices[0]].op.axis[0])
    v = rand(4, m)
    index = np.tile(np.arange(m, dtype="int32"), (4, 1))
    check(s, [I, V, at, best], [index, v], v.argmax(1).astype("int32"), v.max(1))


@pytest.mark.parametrize("m", [32, 45])
def test_a_reducer_of_ones_own(m):
    either = te.comm_reducer(lambda x, y: x | y, lambda t: tvm.tir.const(0, t), name="either")
    A = te.placeholder((3, m), "int32", name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((3,), lambda i: either(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    BF = s.rfactor(B, s[B].split(k, factor=8)[1])
    s[BF].compute_at(s[B], B.op.axis[0])
    a = RNG.integers(0, 1 << 20, (3, m)).astype("int32") & RNG.integers(
        0, 1 << 20, (3, m)).astype("int32")
    check(s, [A, B], [a], np.bitwise_or.reduce(a, 1))


def test_with_caches_and_tiles():
    n = 30
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "global", [C])
    CC = s.cache_write(C, "local")
    ko, ki = s[CC].split(s[CC].op.reduce_axis[0], factor=8)
    CF = s.rfactor(CC, ki)
    xo, yo, xi, yi = s[C].tile(*C.op.axis, 8, 8)
    s[CC].compute_at(s[C], yo)
    s[CF].compute_at(s[C], yo)
    s[AA].compute_at(s[CF], s[CF].op.axis[1])
    s[C].parallel(s[C].fuse(xo, yo))
    a, b = rand(n, n), rand(n, n)
    text = check(s, [A, B, C], [a, b], a @ b)
    assert 'scope="local"' in text and "A_global" in text


def test_what_cannot_be_factored_is_explained():
    A, B = row_sum(4, 8)
    s = te.create_schedule(B.op)
    with pytest.raises(ValueError, match="i is not a reduction loop"):
        s.rfactor(B, B.op.axis[0])
    fused = s[B].fuse(B.op.axis[0], B.op.reduce_axis[0])
    with pytest.raises(ValueError, match="fused of spatial and reduction loops"):
        s.rfactor(B, fused)
    s = te.create_schedule(B.op)
    s[B].unroll(B.op.reduce_axis[0])
    with pytest.raises(ValueError, match="must come before its loop k is unrolled"):
        s.rfactor(B, B.op.reduce_axis[0])
    C = te.compute((4,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    with pytest.raises(ValueError, match="not a reduction of te.compute"):
        s.rfactor(C, C.op.axis[0])

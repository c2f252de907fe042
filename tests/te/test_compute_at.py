"""compute_at keeps its place when the loop is split or fused afterwards."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.backend.interp import interpret

RNG = np.random.default_rng(2)


def two_stages(n, m):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] * 2.0, name="C")
    return A, B, C


def check(s, args, inputs, want):
    """Run the schedule interpreted, lowered and built; the text of the scheduled module."""
    mod = s.to_module(args)
    for run in (lambda *a: interpret(mod, *a), tvm.build(s, args, "llvm")):
        out = np.full(want.shape, np.nan, "float32")
        run(*inputs, out)
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)
    tvm.lower(s, args, simple_mode=True).script()
    return mod.script()


@pytest.mark.parametrize("n, m", [(4, 8), (5, 10), (3, 7), (1, 1)])
@pytest.mark.parametrize("then", ["factor", "nparts", "fuse", "split_fuse", "twice"])
def test_the_loop_is_changed_afterwards(n, m, then):
    A, B, C = two_stages(n, m)
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    s[B].compute_at(s[C], i if then == "twice" else j)
    if then == "factor":
        outer, inner = s[C].split(j, 4)
        s[C].unroll(inner)
        assert s[B].attached == (s[C], inner)
    elif then == "nparts":
        s[C].split(j, nparts=4)
    elif then == "fuse":
        s[C].parallel(s[C].fuse(i, j))
    elif then == "split_fuse":
        outer, inner = s[C].split(j, 4)
        fused = s[C].fuse(i, outer)
        s[C].parallel(fused)
    else:
        outer, inner = s[C].split(i, 2)
        s[C].split(inner, 2)
    a = RNG.standard_normal((n, m)).astype("float32")
    check(s, [A, C], [a], (a + 1) * 2)


@pytest.mark.parametrize("n", [16, 18, 7])
def test_tile_then_compute_at_then_fuse(n):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    xo, yo, xi, yi = s[C].tile(*C.op.axis, 4, 4)
    s[CC].compute_at(s[C], yo)
    s[C].parallel(s[C].fuse(xo, yo))
    a, b = (RNG.standard_normal((n, n)).astype("float32") for _ in range(2))
    text = check(s, [A, B, C], [a, b], a @ b)
    assert "T.parallel" in text and "C_global" in text


def test_a_place_that_has_moved_can_be_left():
    A, B, C = two_stages(6, 6)
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[1])
    s[C].split(C.op.axis[1], 4)
    s[B].compute_root()
    a = RNG.standard_normal((6, 6)).astype("float32")
    assert check(s, [A, C], [a], (a + 1) * 2).count("for ") >= 2

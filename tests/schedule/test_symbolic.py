"""Schedules of functions whose extents are not known yet."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source, tir as T

from .common import blocks_and_loops, kept, refused


@T.prim_func
def linear(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
    m, n = T.int64(), T.int64()
    X = T.match_buffer(x, (1, m), "float32")
    W = T.match_buffer(w, (n, m), "float32")
    B = T.match_buffer(b, (n,), "float32")
    Z = T.match_buffer(z, (1, n), "float32")
    Y = T.alloc_buffer((1, n), "float32")
    for i, j, k in T.grid(1, n, m):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
    for i, j in T.grid(1, n):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = Y[vi, vj] + B[vj]


def check(sch):
    sch.state.verify()
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)
    rng = np.random.default_rng(0)
    for n, m in ((1, 1), (5, 7), (16, 12), (33, 8)):
        x, w = rng.random((1, m), "float32"), rng.random((n, m), "float32")
        b, z = rng.random((n,), "float32"), np.empty((1, n), "float32")
        interpret(sch.mod["main"], x, w, b, z)
        np.testing.assert_allclose(z, x @ w.T + b, rtol=1e-5)


@pytest.mark.parametrize("step", [
    lambda s, y, i, j, k: s.split(j, factors=[None, 8]),
    lambda s, y, i, j, k: s.split(k, factors=[4, None]),
    lambda s, y, i, j, k: s.fuse(i, j),
    lambda s, y, i, j, k: s.split(s.fuse(i, j), factors=[None, 8]),
    lambda s, y, i, j, k: s.reorder(j, k, i),
    lambda s, y, i, j, k: s.parallel(j),
    lambda s, y, i, j, k: s.vectorize(s.split(j, factors=[None, 8])[1]),
    lambda s, y, i, j, k: s.reverse_compute_at(s.get_block("Z"), j),
    lambda s, y, i, j, k: s.reverse_compute_at(
        s.get_block("Z"), _tile(s, i, j, k)),
    lambda s, y, i, j, k: s.decompose_reduction(y, k),
    lambda s, y, i, j, k: s.decompose_reduction(y, s.split(k, factors=[None, 4])[0]),
    lambda s, y, i, j, k: s.cache_write(y, 0, "global"),
    lambda s, y, i, j, k: s.cache_read(y, 1, "global"),
])
def test_a_symbolic_schedule_works_for_every_size(step):
    sch = Schedule(linear)
    y, i, j, k = blocks_and_loops(sch, "Y")
    step(sch, y, i, j, k)
    check(sch)


def _tile(sch, i, j, k):
    j_0, j_1 = sch.split(j, factors=[None, 8])
    sch.reorder(i, j_0, k, j_1)
    return j_0


def test_sampling_needs_a_constant_extent():
    sch = Schedule(linear)
    y, i, j, k = blocks_and_loops(sch, "Y")
    with pytest.raises(ScheduleError, match="extent_is_constant"):
        sch.sample_perfect_tile(j, n=2)


@pytest.mark.parametrize("extent", [128, 115])
def test_a_loop_is_split_by_the_length_of_a_scalable_register(extent):
    """All machines' registers are tried in the proof that no iteration is lost."""
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer(({extent},), "float32")):
    for i in range({extent}):
        with T.block("A"):
            v = T.axis.spatial({extent}, i)
            A[v] = T.float32(v)
""")
    lanes = 4 * T.vscale()
    sch = kept(func, lambda s: s.split(s.get_loops("A")[0], [T.ceildiv(extent, lanes), lanes]))
    assert f"T.where(i_0 * (T.vscale() * 4) + i_1 < {extent})" in sch.mod.script()
    refused(func, lambda s: s.split(s.get_loops("A")[0], [T.floordiv(extent, lanes * 2), lanes]),
            "factors_cover_extent")


def flat_rows(sch, n):
    sch.transform_layout("B", ("write", 0), lambda y, w: (y * n + w,))
    sch.transform_block_layout("B", lambda y, w: (y * n + w,))


@pytest.mark.parametrize("size", [1, 3])
def test_a_layout_may_be_said_in_terms_of_a_size(size):
    """A buffer that has an element has sizes of 1 at least."""
    func = from_source("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (T.int64(4), n), "float32")
    C = T.match_buffer(c, (T.int64(4), n), "float32")
    B = T.alloc_buffer((T.int64(4), n), "float32")
    for y, w in T.grid(T.int64(4), n):
        with T.block("B"):
            vy, vw = T.axis.remap("SS", [y, w])
            B[vy, vw] = A[vy, vw] * T.float32(2)
    for y, w in T.grid(T.int64(4), n):
        with T.block("C"):
            vy, vw = T.axis.remap("SS", [y, w])
            C[vy, vw] = B[T.int64(3) - vy, vw]
""")
    n = func.buffer_map[func.params[0]].shape[1]
    sch = Schedule(func)
    flat_rows(sch, n)
    block = sch.get(sch.get_block("B"))
    assert [str(d) for d in block.writes[0].buffer.shape] == ["n * T.int64(4)"]
    assert len(block.iter_vars) == 1
    again = Schedule(func)
    sch.trace.apply_to_schedule(again)
    assert_structural_equal(again.mod, sch.mod)
    a = np.random.default_rng(size).standard_normal((4, size)).astype("float32")
    c = np.zeros_like(a)
    interpret(sch.mod["main"], a, c)
    np.testing.assert_array_equal(c, a[::-1] * 2)

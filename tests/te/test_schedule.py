"""Schedules of tensor expressions are replayed on the one Schedule, and keep the result."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.backend.interp import interpret

RNG = np.random.default_rng(1)


def rand(*shape):
    return RNG.standard_normal(shape).astype("float32")


def vector_add():
    n = te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    return A, B, te.compute(A.shape, lambda i: A[i] + B[i], name="C")


def matmul(n=16):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    return A, B, te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


def check_matmul(s, args, n=16):
    mod = s.to_module(args)
    a, b, c = rand(n, n), rand(n, n), np.zeros((n, n), "float32")
    interpret(mod, a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
    return mod.script()


def test_vector_add_is_built_and_runs_with_any_size():
    A, B, C = vector_add()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=4)
    s[C].parallel(outer)
    s[C].vectorize(inner)
    f = tvm.build(s, [A, B, C], "llvm", name="myadd")
    for n in (1, 10, 1024):
        a, b, c = (tvm.nd.array(rand(n)) for _ in range(3))
        f(a, b, c)
        np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
    assert "T.parallel" in tvm.lower(s, [A, B, C], simple_mode=True).script()


def test_blocked_matmul_with_a_write_cache():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 4, 4)
    s[CC].compute_at(s[C], yo)
    xc, yc = s[CC].op.axis
    (k,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(k, factor=4)
    s[CC].reorder(ko, xc, ki, yc)
    s[CC].unroll(ki)
    s[CC].vectorize(yc)
    s[C].parallel(xo)
    text = check_matmul(s, [A, B, C])
    assert "T.unroll(4)" in text and "T.vectorized(4)" in text and "C_global" in text


def test_threads_and_read_caches():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "shared", [C])
    i, j = C.op.axis
    s[C].bind(i, te.thread_axis("blockIdx.x"))
    s[C].bind(j, te.thread_axis("threadIdx.x"))
    s[AA].compute_at(s[C], i)
    s[C].pragma(s[C].op.reduce_axis[0], "auto_unroll_max_step", 16)
    text = check_matmul(s, [A, B, C])
    assert 'scope="shared"' in text and "pragma_auto_unroll_max_step" in text


def test_producers_are_inlined_or_moved():
    A = te.placeholder((8, 8), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute(A.shape, lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute(A.shape, lambda i, j: C[i, j] - 3.0, name="D")
    s = te.create_schedule(D.op)
    s[B].compute_inline()
    s[C].compute_at(s[D], D.op.axis[0])
    fused = s[D].fuse(*te.create_schedule(D.op)[D].op.axis[1:])
    s[D].vectorize(fused)
    text = s.to_module([A, D], "f").script()
    assert 'T.block("B")' not in text
    a, d = rand(8, 8), np.zeros((8, 8), "float32")
    interpret(s.to_module([A, D], "f"), a, d)
    np.testing.assert_allclose(d, (a + 1) * 2 - 3, rtol=1e-5)


def test_rfactor():
    A = te.placeholder((6, 16), name="A")
    k = te.reduce_axis((0, 16), "k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=4)
    BF = s.rfactor(B, ki)
    s[BF].parallel(s[BF].op.axis[1])
    s[B].unroll(s[B].op.reduce_axis[0])
    a, b = rand(6, 16), np.zeros(6, "float32")
    interpret(s.to_module([A, B]), a, b)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-4)


def test_mistakes_are_explained():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=4)
    with pytest.raises(ValueError, match="i is not a loop of C as it stands; its loops are: i.out"):
        s[C].parallel(C.op.axis[0])
    with pytest.raises(ValueError, match="either factor= or nparts="):
        s[C].split(C.op.axis[1])
    with pytest.raises(ValueError, match="not part of this schedule"):
        s[vector_add()[2]]


def test_a_reduction_starts_before_its_outermost_loop():
    A = te.placeholder((16, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    B = te.compute((16,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    i, (k,) = s[B].op.axis[0], s[B].op.reduce_axis
    io, ii = s[B].split(i, factor=4)
    s[B].reorder(io, k, ii)
    s[B].vectorize(ii)
    text = s.to_module([A, B]).script()
    assert "T.init()" not in text and 'T.block("B_init")' in text
    a = np.random.rand(16, 16).astype("float32")
    out = np.empty(16, "float32")
    interpret(s.to_module([A, B])["main"], a, out)
    np.testing.assert_allclose(out, a.sum(1), rtol=1e-5)


def test_tensorize_replaces_the_inner_loops():
    from mlc_lab.script import tir as T

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4, 4), "float32", offset_factor=1)
        B = T.match_buffer(b, (4, 4), "float32", offset_factor=1)
        C = T.match_buffer(c, (4, 4), "float32", offset_factor=1)
        with T.block("root"):
            T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
            T.writes(C[0:4, 0:4])
            for i, j, k in T.grid(4, 4, 4):
                with T.block("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4, 4), "float32", offset_factor=1)
        B = T.match_buffer(b, (4, 4), "float32", offset_factor=1)
        C = T.match_buffer(c, (4, 4), "float32", offset_factor=1)
        with T.block("root"):
            T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
            T.writes(C[0:4, 0:4])
            for i, k in T.grid(4, 4):
                for j in T.serial(4):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]

    tvm.tir.TensorIntrin.register("test_te_tile", desc, impl, override=True)
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((16, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(C.op.axis[0], C.op.axis[1], 4, 4)
    ko, ki = s[C].split(s[C].op.reduce_axis[0], factor=4)
    s[C].reorder(io, jo, ko, ii, ji, ki)
    s[C].tensorize(ii, "test_te_tile")
    func = s.to_module([A, B, C])["main"]
    assert "for i, k, j in T.grid(4, 4, 4)" in func.script()
    a, b, out = rand(16, 16), rand(16, 16), np.empty((16, 16), "float32")
    interpret(func, a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-4)


def test_what_a_schedule_is_of_is_computed_where_it_is_no_parameter():
    """`lower(s, [A])`, as many notes have it: the result lies in memory of the function's own."""
    A = te.placeholder((8, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].split(s[B].op.axis[0], 4)
    text = tvm.lower(s, [A], simple_mode=True).script()
    assert "def main(A: T.Buffer((8, 4)" in text and "B: T.Buffer" not in text
    assert "for i_0, i_1 in T.grid(2, 4):" in text and "for k in range(4)" in text
    assert "B_1[0] + A_1[i_0 * 16 + i_1 * 4 + k]" in text
    given = tvm.lower(s, [A, B], simple_mode=True).script()
    assert "B: T.Buffer((8,)" in given


def sums_between(n=8):
    """C[i, j] = 1 + the sum of 2 * A[i, j:i + 1], which is empty where j > i."""
    A = te.placeholder((n, n), name="A")
    D = te.compute((n, n), lambda i, j: A[i, j] * 2, name="D")

    def between(i, j):
        k = te.reduce_axis((j, i + 1), "k")
        return te.sum(D[i, k], axis=k)

    B = te.compute((n, n), between, name="B")
    return A, D, B, te.compute((n, n), lambda i, j: B[i, j] + 1, name="C")


def moved_in_slices(s, D, B, C):
    cached = s.cache_write(B, "local")
    s[cached].compute_at(s[B], B.op.axis[0])
    _, inner = s[cached].split(cached.op.reduce_axis[0], 3)
    s[cached].unroll(inner)


def factored(s, D, B, C):
    _, inner = s[B].split(B.op.reduce_axis[0], 3)
    s.rfactor(B, inner)


def tiled(s, D, B, C):
    outer, inner = s[C].split(C.op.axis[0], 3)
    s[B].compute_at(s[C], outer)
    s[B].parallel(B.op.axis[0])
    s[D].compute_at(s[B], B.op.axis[0])


def vectorized(s, D, B, C):
    s[D].compute_inline()
    s[B].vectorize(s[B].split(B.op.axis[0], 3)[1])


@pytest.mark.parametrize("step", [
    lambda s, D, B, C: None, moved_in_slices, factored, tiled, vectorized,
    lambda s, D, B, C: s[B].compute_at(s[C], C.op.axis[1]),
    lambda s, D, B, C: s.cache_write(B, "local"),
    lambda s, D, B, C: s.cache_read(D, "local", [B])])
def test_ranges_that_depend_on_the_element_are_scheduled_and_may_be_empty(step):
    A, D, B, C = sums_between()
    s = te.create_schedule(C.op)
    step(s, D, B, C)
    a, c = rand(8, 8), np.full((8, 8), 9, "float32")
    tvm.build(s, [A, C])(a, c)
    expected = [[1 + 2 * a[i, j:i + 1].sum() for j in range(8)] for i in range(8)]
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


def test_slices_whose_number_depends_on_the_element_are_refused():
    A, D, B, C = sums_between()
    s = te.create_schedule(C.op)
    with pytest.raises(ValueError, match="split it by a factor"):
        s.rfactor(B, B.op.reduce_axis[0])


def test_an_axis_that_starts_elsewhere_is_split():
    A = te.placeholder((12,), name="A")
    k = te.reduce_axis((2, 10), "k")
    B = te.compute((1,), lambda i: te.sum(A[k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].split(k, 3)
    a, b = rand(12), np.zeros(1, "float32")
    tvm.build(s, [A, B])(a, b)
    np.testing.assert_allclose(b[0], a[2:10].sum(), rtol=1e-5)


def test_quotients_that_are_whole_numbers_are_shapes_and_factors():
    A = te.placeholder((64 / 16, 16), name="A")
    k = te.reduce_axis((0, 64 / 16), "k")
    B = te.compute((16,), lambda j: te.sum(A[k, j], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], 16 / 4)
    a, b = rand(4, 16), np.zeros(16, "float32")
    tvm.build(s, [A, B])(a, b)
    np.testing.assert_allclose(b, a.sum(0), rtol=1e-5)
    with pytest.raises(ValueError, match="whole number"):
        te.placeholder((65 / 16,))
    with pytest.raises(ValueError, match="whole number"):
        s[B].split(k, 2.5)


def test_a_tensor_that_is_an_argument_and_inlined_is_computed_for_both():
    A, D, B, C = sums_between()
    s = te.create_schedule(C.op)
    s[D].compute_inline()
    a, d, c = rand(8, 8), np.zeros((8, 8), "float32"), np.zeros((8, 8), "float32")
    tvm.build(s, [A, D, C])(a, d, c)
    np.testing.assert_allclose(d, a * 2)
    np.testing.assert_allclose(c[3, 1], 1 + 2 * a[3, 1:4].sum(), rtol=1e-5)


@pytest.mark.parametrize("first, rows", [(0, 8), (1, 6)])
def test_a_tensor_may_be_an_argument_and_computed_where_it_is_read(first, rows):
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((rows,), lambda i: B[i + first] + 1, name="C")
    s = te.create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], 3)
    s[B].compute_at(s[C], outer)
    a, b, c = rand(8, 8), np.zeros(8, "float32"), np.zeros(rows, "float32")
    tvm.build(s, [A, B, C])(a, b, c)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(c, a.sum(1)[first:first + rows] + 1, rtol=1e-4, atol=1e-4)


def test_what_is_inlined_is_computed_into_a_cache_of_it():
    A, D, B, C = sums_between()
    s = te.create_schedule(C.op)
    s[D].compute_inline()
    cache = s.cache_read(D, "local", [B])
    s[cache].compute_at(s[B], B.op.axis[0])
    built = tvm.build(s, [A, C])
    a, c = np.random.default_rng(0).random((8, 8), "float32"), np.zeros((8, 8), "float32")
    built(a, c)
    sums = [[2 * a[i, j:i + 1].sum() + 1 for j in range(8)] for i in range(8)]
    np.testing.assert_allclose(c, sums, rtol=1e-5)
    assert "D[" not in s.to_module([A, C]).script()


@pytest.mark.parametrize("disable", [False, True])
def test_what_a_split_adds_is_left_out_unless_the_caller_answers_for_it(disable):
    A = te.placeholder((43,), name="A")
    B = te.compute((43,), lambda i: A[i] + 2, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=4, disable_predication=disable)
    assert ("T.where" in s.to_module([A, B]).script()) != disable


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("step", [
    lambda s, stage, k: stage.split(stage.op.axis[1], factor=1),
    lambda s, stage, k: stage.split(k, factor=2),
    lambda s, stage, k: stage.reorder(k, *stage.op.axis),
    lambda s, stage, k: stage.unroll(k),
    lambda s, stage, k: s.rfactor(stage.op.output(0), k),
    lambda s, stage, k: s.cache_write(stage.op.output(0), "local"),
], ids=["split a row", "split the sum", "reorder", "unroll", "rfactor", "cache_write"])
def test_a_sum_of_no_terms_can_be_scheduled(step, first):
    A = te.placeholder((3, 2), name="A", dtype="int32")
    k = te.reduce_axis((first, first), name="k")
    S = te.compute((3, 2), lambda i, j: te.sum(A[i, k] + A[i, j], axis=k), name="S")
    D = te.compute((3, 2), lambda i, j: S[i, j] + 1, name="D")
    s = te.create_schedule(D.op)
    step(s, s[S], k)
    out = np.zeros((3, 2), "int32")
    interpret(s.to_module([A, D])["main"], np.ones((3, 2), "int32"), out)
    np.testing.assert_array_equal(out, np.ones((3, 2), "int32"))


def test_a_copy_for_a_reader_that_is_inlined_is_refused():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2, name="B")
    C = te.compute((8,), lambda i: B[i] + 1, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    s.cache_read(A, "local", [B])
    with pytest.raises(ValueError, match="B, which would read the copy of A, is inlined: name"):
        s.to_module([A, C])

"""Default schedules keep what a function computes, and are those the rules promise."""

import math
import random
import re

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import dlight, te, topi
from mlc_lab.dlight.base import Machine
from mlc_lab.ir import IRModule
from mlc_lab.script import tir as T
from mlc_lab.target import Target
from mlc_lab.machine.vectors import vector_unit

ONE = "llvm -num-cores=1"
TWO = "llvm -num-cores=2"
#: processors with vectors of 128, 256 and 512 bits; every machine runs what is scheduled for them
PROCESSORS = [f"llvm -mcpu={cpu} -num-cores=1" for cpu in ("nehalem", "haswell", "skylake-avx512")]


@pytest.fixture(autouse=True)
def small_work_is_worth_threads(monkeypatch, request):
    """Threads for the small programs of these tests too, where there are several cores."""
    if "threads" not in request.node.name:
        monkeypatch.setattr("mlc_lab.dlight.base.WORTH_THREADS", 1)


def scheduled(func, target=ONE):
    return dlight.ApplyDefaultSchedule(target=target)(IRModule({"main": func}))["main"]


def same_answer(func, shapes, target=ONE, dtype="float32"):
    """Run a function as written and as scheduled on the same random arrays."""
    new = scheduled(func, target)
    assert new is not func
    rng = np.random.default_rng(0)
    arrays = [np.array(rng.random(s), dtype) for s in shapes]
    out = []
    for f in (func, new):
        args = [tvm.nd.array(a) for a in arrays]
        tvm.build(f, target="llvm")["main"](*args)
        out.append([np.array(a.numpy()) for a in args])
    for a, b in zip(*out):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    return new


def program(fn, *shapes):
    """The function of a tensor expression, and the shapes of its parameters."""
    inputs = [te.placeholder(s, "float32", name=f"p{i}") for i, s in enumerate(shapes)]
    out = fn(*inputs)
    func = te.create_prim_func([*inputs, out])
    return func, [*shapes, tuple(int(d) for d in out.shape)]


def matmul(a, b, transposed=False):
    k = te.reduce_axis((0, a.shape[1]), "k")
    return te.compute(
        (a.shape[0], b.shape[0] if transposed else b.shape[1]),
        lambda i, j: te.sum(a[i, k] * (b[j, k] if transposed else b[k, j]), axis=k), "mm")


def relu(x):
    return te.compute(x.shape, lambda *i: te.max(x(*i), tvm.tir.const(0.0, "float32")), "relu")


def conv2d(x, w, stride=1, pad=0):
    n, c, h, wd = (int(d) for d in x.shape)
    f, _, r, s = (int(d) for d in w.shape)
    p = te.compute((n, c, h + 2 * pad, wd + 2 * pad), lambda a, b, y, z: tvm.tir.if_then_else(
        tvm.tir.all(y >= pad, y < h + pad, z >= pad, z < wd + pad), x[a, b, y - pad, z - pad],
        tvm.tir.const(0.0, "float32")), "pad")
    rc, ry, rx = (te.reduce_axis((0, e), name) for e, name in ((c, "c"), (r, "r"), (s, "s")))
    shape = (n, f, (h + 2 * pad - r) // stride + 1, (wd + 2 * pad - s) // stride + 1)
    return te.compute(shape, lambda a, b, y, z: te.sum(
        p[a, rc, y * stride + ry, z * stride + rx] * w[b, rc, ry, rx], axis=[rc, ry, rx]), "conv")


def conv2d_nhwc(x, w, stride=1):
    n, h, wd, c = (int(d) for d in x.shape)
    r, s, _, f = (int(d) for d in w.shape)
    ry, rx, rc = (te.reduce_axis((0, e), name) for e, name in ((r, "r"), (s, "s"), (c, "c")))
    shape = (n, (h - r) // stride + 1, (wd - s) // stride + 1, f)
    return te.compute(shape, lambda a, y, z, b: te.sum(
        x[a, y * stride + ry, z * stride + rx, rc] * w[ry, rx, rc, b], axis=[ry, rx, rc]), "conv")


def depthwise(x, w, stride=1):
    n, c, h, wd = (int(d) for d in x.shape)
    _, r, s = (int(d) for d in w.shape)
    ry, rx = te.reduce_axis((0, r), "r"), te.reduce_axis((0, s), "s")
    shape = (n, c, (h - r) // stride + 1, (wd - s) // stride + 1)
    return te.compute(shape, lambda a, b, y, z: te.sum(
        x[a, b, y * stride + ry, z * stride + rx] * w[b, ry, rx], axis=[ry, rx]), "dw")


def softmax(x):
    m = topi.max(x, axis=-1, keepdims=True)
    e = topi.exp(topi.subtract(x, m))
    return topi.divide(e, topi.sum(e, axis=-1, keepdims=True))


SIZES = (1, 2, 3, 5, 8, 13, 16, 24, 31, 33, 50, 64)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_any_size_with_and_without_an_epilogue(seed, transposed):
    rng = random.Random(seed * 2 + transposed)
    m, n, k = (rng.choice(SIZES) for _ in range(3))
    epilogue = rng.random() < 0.5

    def fn(a, b, bias):
        c = matmul(a, b, transposed)
        return relu(topi.add(c, bias)) if epilogue else topi.add(c, bias)

    func, shapes = program(fn, (m, k), (n, k) if transposed else (k, n), (n,))
    same_answer(func, shapes, rng.choice([ONE, TWO]))


@pytest.mark.parametrize("seed", range(6))
def test_convolutions_of_any_size(seed):
    rng = random.Random(seed)
    c, f, h = rng.choice((1, 3, 8)), rng.choice((2, 6, 16, 19)), rng.choice((7, 9, 14, 28))
    k, stride, pad = rng.choice(((1, 1, 0), (3, 1, 1), (3, 2, 1), (1, 2, 0), (5, 1, 2)))

    def fn(x, w, b, res):
        return relu(topi.add(topi.add(conv2d(x, w, stride, pad), b), res))

    o = (h + 2 * pad - k) // stride + 1
    n = rng.choice((1, 2))
    func, shapes = program(fn, (n, c, h, h), (f, c, k, k), (f, 1, 1), (n, f, o, o))
    same_answer(func, shapes, rng.choice([ONE, TWO]))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("size, stride", [(28, 1), (20, 1), (14, 1), (7, 1), (56, 2), (14, 2)])
def test_rows_of_images_are_copied_in_vectors(processor, size, stride):
    """Whatever part of a register a row fills, and every other element with a stride of two."""
    def fn(x, w, b):
        return relu(topi.add(topi.nn.conv2d_nchw(x, w, stride, 1, 1), b))

    new = same_answer(*program(fn, (1, 3, size, size), (16, 3, 3, 3), (16, 1, 1)), processor)
    row = size // stride
    lengths = [int(n) for n in re.findall(r"T\.vectorized\((?:T\.int64\()?(\d+)", new.script())]
    if row % 4 == 0:  # of shorter rows and odd ones, vectors cross the ends
        assert any(n >= 4 and row % n == 0 for n in lengths)


@pytest.mark.parametrize("size, padded", [(32, True), (14, False), (7, False), (24, False)])
@pytest.mark.parametrize("epilogue", [False, True])
def test_a_last_tile_is_computed_whole_where_little_is_wasted(size, padded, epilogue):
    """32x32 and 28x28 places are nearly whole tiles of 24; 14x14 and 7x7 are not, 24x24 is one."""
    def fn(x, w):
        out = topi.nn.conv2d_nchw(x, w, 1, 1, 1)
        return relu(out) if epilogue else out

    new = same_answer(*program(fn, (2, 3, size, size), (16, 3, 3, 3)))
    if vector_unit(Target(ONE)).registers == 16:
        assert ("_pad = T.alloc_buffer" in new.script()) == padded


@pytest.mark.parametrize("fn, shapes", [
    (lambda x, w: conv2d_nhwc(x, w), [(1, 9, 9, 8), (3, 3, 8, 20)]),
    (lambda x, w: conv2d_nhwc(x, w, 2), [(2, 15, 15, 5), (3, 3, 5, 16)]),
    (lambda x, w: depthwise(x, w), [(1, 6, 18, 18), (6, 3, 3)]),
    (lambda x, w: relu(depthwise(x, w, 2)), [(1, 6, 19, 19), (6, 3, 3)]),
    (lambda x, w: conv2d(x, w, 1, 1), [(1, 3, 60, 60), (7, 3, 3, 3)]),
], ids=["nhwc", "nhwc stride 2", "depthwise", "depthwise stride 2", "long rows"])
def test_other_convolutions(fn, shapes):
    same_answer(*program(fn, *shapes))


@pytest.mark.parametrize("target", [ONE, TWO])
def test_batched_products(target):
    def fn(a, b):
        k = te.reduce_axis((0, a.shape[2]), "k")
        return te.compute((3, 17, 20), lambda n, i, j: te.sum(a[n, i, k] * b[n, j, k], axis=k), "c")

    same_answer(*program(fn, (3, 17, 9), (3, 20, 9)), target)


@pytest.mark.parametrize("target", [ONE, TWO])
def test_iterators_in_any_order(target):
    """A product whose block counts the columns before the rows, and the sum first."""
    def fn(a, b):
        k = te.reduce_axis((0, a.shape[1]), "k")
        return te.compute((24, 40), lambda i, j: te.sum(a[j, k] * b[i, k], axis=k), "c")

    same_answer(*program(fn, (40, 16), (24, 16)), target)

    def turned(a, b):
        k = te.reduce_axis((0, a.shape[1]), "k")
        return te.compute((24, 3, 40), lambda i, n, j: te.sum(a[n, k, i] * b[j, n, k], axis=k), "c")

    same_answer(*program(turned, (3, 16, 24), (40, 3, 16)), target)


@pytest.mark.parametrize("shape", [(4, 64), (3, 37), (2, 3, 128), (600, 1000)])
def test_softmax(shape):
    same_answer(*program(softmax, shape), TWO)


@pytest.mark.parametrize("fn", [topi.nn.softmax, topi.nn.log_softmax, topi.nn.fast_softmax])
def test_softmax_of_topi_has_no_schedule_until_it_is_given_one(fn):
    """Its blocks name the axis in an annotation, which is no schedule."""
    new = same_answer(*program(fn, (6, 64)))
    assert "T.vectorized" in new.script()


@pytest.mark.parametrize("rows", [1, 5, 8, 10, 11, 14, 24])
def test_lanes_of_several_sums(rows):
    """Where a number of results divides them, no second program is made for the rest."""
    new = same_answer(*program(lambda a, b: matmul(a, b, True), (1, 64), (rows, 64)))
    assert ("T.where" in new.script()) == (rows == 11)


@pytest.mark.parametrize("terms, results", [
    (128, 10), (96, 8), (49, 16), (64, 33), (30, 9), (37, 12), (784, 128), (128, 96), (600, 256)])
@pytest.mark.parametrize("reducer", ["product", "max"])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_rows_of_a_matrix(terms, results, reducer, processor):
    """Few results take several sums in turns; rows of up to sixteen vectors stay in registers."""
    if reducer == "max":
        func, shapes = program(lambda b: relu(topi.max(b, axis=0)), (terms, results))
    else:
        func, shapes = program(lambda a, b, c: relu(topi.add(matmul(a, b), c)),
                               (1, terms), (terms, results), (results,))
    new = same_answer(func, shapes, processor)
    vectors = math.ceil(results / Machine(Target(processor)).lanes_within("float32", results))
    in_turns = any(terms % n == 0 for n in range(2, 8 // vectors + 1))
    assert ("_rf" in new.script()) == in_turns
    if 8192 < terms * results and vectors <= 16 and not in_turns:
        assert f"T.vectorized({results})" in new.script()
    same_answer(func, shapes, TWO)


@pytest.mark.parametrize("axis, shape", [
    (1, (5, 64)), (0, (64, 33)), (None, (9, 32)), ((2, 3), (2, 5, 7, 7)), ((2, 3), (1, 3, 8, 8)),
    (1, (1, 784)), ((0, 2), (4, 8, 16)), (1, (2, 5, 40)),
])
@pytest.mark.parametrize("reducer", [topi.sum, topi.max])
def test_reductions(axis, shape, reducer):
    for processor in PROCESSORS:
        same_answer(*program(lambda x: reducer(x, axis=axis), shape), processor)
    same_answer(*program(lambda x: relu(reducer(x, axis=axis)), shape), TWO)


@pytest.mark.parametrize("fn, shapes", [
    (lambda a, b: topi.add(a, b), [(5, 7), (5, 7)]),
    (lambda a, b: relu(topi.add(a, b)), [(3, 5, 7, 7), (5, 1, 1)]),
    (lambda a: topi.transpose(a), [(40, 33)]),
    (lambda a: topi.transpose(a, (0, 2, 1, 3)), [(2, 5, 7, 9)]),
    (lambda a: topi.reshape(a, (10, 20)), [(4, 50)]),
    (lambda a: topi.exp(a), [(3000, 200)]),
    (lambda a: topi.exp(a), [()]),
])
def test_elementwise_and_transposes(fn, shapes):
    same_answer(*program(fn, *shapes), TWO)


@T.prim_func
def symbolic_dense(x: T.handle, w: T.Buffer((48, 32), "float32"), y: T.handle):
    T.func_attr({"tir.noalias": True})
    n = T.int64()
    X = T.match_buffer(x, (n, T.int64(32)), "float32")
    Y = T.match_buffer(y, (n, T.int64(48)), "float32")
    C = T.alloc_buffer((n, T.int64(48)), "float32")
    for i, j, k in T.grid(n, T.int64(48), T.int64(32)):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + X[vi, vk] * w[vj, vk]
    for i, j in T.grid(n, T.int64(48)):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.max(C[vi, vj], T.float32(0))


@T.prim_func
def symbolic_softmax(x: T.handle, y: T.handle):
    T.func_attr({"tir.noalias": True})
    n = T.int64()
    X = T.match_buffer(x, (n, n), "float32")
    Y = T.match_buffer(y, (n, n), "float32")
    S = T.alloc_buffer((n,), "float32")
    for i, k in T.grid(n, n):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + T.exp(X[vi, vk])
    for i, k in T.grid(n, n):
        with T.block("Y"):
            vi, vk = T.axis.remap("SS", [i, k])
            Y[vi, vk] = T.exp(X[vi, vk]) / S[vi]


@pytest.mark.parametrize("target", [ONE, TWO])
@pytest.mark.parametrize("n", [1, 7, 16, 61])
def test_symbolic_extents(n, target):
    same_answer(symbolic_dense, [(n, 32), (48, 32), (n, 48)], target)
    same_answer(symbolic_softmax, [(n, n), (n, n)], target)


def test_a_product_gets_vectors_and_a_packed_panel():
    func, _ = program(matmul, (64, 64), (64, 64))
    text = scheduled(func).script()
    assert "T.vectorized" in text and "T.unroll" in text and "reindex" in text
    assert "T.parallel" not in text


def test_threads_are_used_for_large_work_and_several_cores_only():
    func, _ = program(topi.exp, (4096, 1024))
    assert "T.parallel" in scheduled(func, TWO).script()
    assert "T.parallel" not in scheduled(func, ONE).script()
    small, _ = program(topi.exp, (8, 8))
    assert "T.parallel" not in scheduled(small, TWO).script()


def test_the_tile_follows_the_registers_of_the_target():
    func, _ = program(matmul, (128, 64), (64, 128))
    assert "T.vectorized(32)" in scheduled(func, "llvm -mcpu=skylake-avx512").script()
    assert "T.vectorized(16)" in scheduled(func, "llvm -mcpu=haswell").script()
    assert vector_unit(Target("llvm -mtriple=aarch64-linux-gnu")) == (128, 32)


def test_a_scheduled_function_is_left_alone():
    func, _ = program(matmul, (16, 16), (16, 16))
    sch = tvm.tir.Schedule(func)
    sch.parallel(sch.get_loops("mm")[0])
    by_hand = IRModule({"main": sch.mod["main"]})
    assert dlight.ApplyDefaultSchedule()(by_hand)["main"] is by_hand["main"]
    once = scheduled(func)
    assert scheduled(once) is once


def test_rules_of_ones_own_are_tried_in_order():
    class Never(dlight.ScheduleRule):
        def schedule(self, sch, machine):
            return False

    func, _ = program(topi.exp, (8, 8))
    mod = IRModule({"main": func})
    assert dlight.ApplyDefaultSchedule(Never())(mod)["main"] is func
    with Target("llvm"):
        assert dlight.ApplyDefaultSchedule(Never(), dlight.Elementwise())(mod)["main"] is not func


@pytest.mark.parametrize("shapes", [((0, 5), (5, 10)), ((4, 0), (0, 8)), ((4, 3), (3, 0))])
def test_programs_of_no_elements_build_and_run(shapes):
    func, _ = program(matmul, *shapes)
    lib = tvm.build(scheduled(func), target="llvm")
    a, b = (np.ones(s, "float32") for s in shapes)
    out = tvm.nd.array(np.ones((shapes[0][0], shapes[1][1]), "float32"))
    lib["main"](tvm.nd.array(a), tvm.nd.array(b), out)
    assert np.array_equal(out.numpy(), a @ b)


@T.prim_func
def conv_read_twice(x: T.Buffer((1, 4, 18, 18), "float32"), w: T.Buffer((16, 4, 3, 3), "float32"),
                    twice: T.Buffer((1, 16, 16, 16), "float32"),
                    thrice: T.Buffer((1, 16, 16, 16), "float32")):
    C = T.alloc_buffer((1, 16, 16, 16))
    for n, f, y, z, rc, ry, rx in T.grid(1, 16, 16, 16, 4, 3, 3):
        with T.block("C"):
            vn, vf, vy, vz, vc, vr, vx = T.axis.remap("SSSSRRR", [n, f, y, z, rc, ry, rx])
            with T.init():
                C[vn, vf, vy, vz] = T.float32(0)
            C[vn, vf, vy, vz] += x[vn, vc, vy + vr, vz + vx] * w[vf, vc, vr, vx]
    for n, f, y, z in T.grid(1, 16, 16, 16):
        with T.block("D"):
            vn, vf, vy, vz = T.axis.remap("SSSS", [n, f, y, z])
            twice[vn, vf, vy, vz] = C[vn, vf, vy, vz] * T.float32(2)
            thrice[vn, vf, vy, vz] = C[vn, vf, vy, vz] * T.float32(3)


def test_a_block_of_two_stores_behind_a_convolution():
    same_answer(conv_read_twice, [tuple(map(int, b.shape)) for b in conv_read_twice.buffers])


@pytest.mark.parametrize("rows, columns", [(64, 50), (128, 50), (96, 33), (256, 3)])
@pytest.mark.parametrize("target", PROCESSORS)
def test_rows_that_lie_apart_are_gathered_a_register_at_a_time(rows, columns, target):
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), "k")
    func = te.create_prim_func([A, te.compute((rows,), lambda i: te.max(A[i, k], axis=k))])
    same_answer(func, [(rows, columns), (rows,)], target)
    text = scheduled(func, target).script()
    lanes = Machine(Target(target)).widths("float32")[0]
    found = [int(n) for n in re.findall(r"T\.vectorized\((?:T\.int64\()?(\d+)", text)]
    assert found and max(found) <= lanes

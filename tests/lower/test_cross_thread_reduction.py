"""Reductions whose iterations run on threads: each reduces a part, then all of them together."""

import numpy as np
import pytest
import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.backend.meaning import evaluate
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import LowerCrossThreadReduction, LowerError, lower
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source
from mlc_lab.tir import Block
from mlc_lab.tir.functor import pre_order
from .programs import arguments, softmax

ROWS = from_source("""
@T.prim_func
def main(A: T.Buffer((6, 20), "float32"), C: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 20):
        with T.block("C"):
            v, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = T.float32(0)
            C[v] = C[v] + A[v, vk]
""")


def argmax(dtype, better):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 6), "{dtype}"), C: T.Buffer((4,), "{dtype}"), D: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 6):
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                D[v] = -1
                C[v] = T.min_value("{dtype}")
            a: T.int32 = T.Select({better}, D[v], r)
            b: T.{dtype} = T.Select(C[v] {better.split()[1]} A[v, r], C[v], A[v, r])
            D[v] = a
            C[v] = b
""")


LATER_OR_FIRST = "C[v] > A[v, r] or C[v] == A[v, r] and D[v] < r"


def check(sch):
    """The kernel computes what the program before it does."""
    want = arguments(sch.mod["main"])
    got = [a.copy() for a in want]
    interpret(sch.mod["main"], *want)
    kernel = lower(sch.mod, target="cuda")
    for run in interpret, evaluate:
        mine = [a.copy() for a in got]
        run(kernel, *mine)
        for a, b in zip(want, mine):
            assert abs(a - b).max() < 1e-4


def threads(sch, block, at, axis="threadIdx.x", factors=(None, 8)):
    """Bind a part of a loop."""
    sch.bind(sch.split(sch.get_loops(block)[at], list(factors))[1], axis)


def one_axis(sch):
    threads(sch, "C", 1)


def two_axes_and_a_row_each(sch):
    i, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    k0, k1, k2 = sch.split(k, [None, 2, 4])
    sch.reorder(i0, k0, k1, i1, k2)
    for loop, axis in (i0, "blockIdx.x"), (i1, "threadIdx.z"), (k1, "threadIdx.y"), (
            k2, "threadIdx.x"):
        sch.bind(loop, axis)


def one_slice_a_thread(sch):
    sch.bind(sch.split(sch.get_loops("C")[1], [8, None])[0], "threadIdx.x")


def stored_later(scope):
    def step(sch):
        copy = sch.cache_write("C", 0, scope)
        i, k = sch.get_loops("C")
        sch.reverse_compute_at(copy, i)
        sch.bind(i, "blockIdx.x")
        sch.bind(k, "threadIdx.x")
    return step


def slices_of_their_own(sch):
    slices = sch.rfactor(sch.split(sch.get_loops("C")[1], [None, 4])[1], 0)
    i, k = sch.get_loops("C")
    sch.compute_at(slices, i)
    sch.set_scope(slices, 0, "local")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    sch.bind(sch.get_loops(slices)[1], "threadIdx.x")


@pytest.mark.parametrize("func, step", [
    (ROWS, one_axis), (ROWS, two_axes_and_a_row_each), (ROWS, one_slice_a_thread),
    (ROWS, stored_later("local")), (ROWS, stored_later("shared")), (ROWS, slices_of_their_own),
    (argmax("float32", "C[v] >= A[v, r]"), one_axis),
    (argmax("int32", LATER_OR_FIRST), one_axis),
])
def test_threads_reduce_together(func, step):
    sch = Schedule(func)
    step(sch)
    check(sch)


@pytest.mark.parametrize("scope", ["local", "shared", "global"])
def test_softmax_in_one_kernel(scope):
    sch = Schedule(softmax)
    row = sch.get_loops("norm")[0]
    threads(sch, "norm", 1)
    sch.bind(row, "blockIdx.x")
    for name in ("sum", "exp", "max"):
        sch.set_scope(name, 0, scope)
        sch.compute_at(name, row)
        threads(sch, name, 1)
    check(sch)


@pytest.mark.parametrize("func, step, rule", [
    (ROWS, lambda s: s.bind(s.fuse(*s.get_loops("C")), "threadIdx.x"), "loops_drive_one_kind"),
    (ROWS, lambda s: s.bind(s.get_loops("C")[1], "blockIdx.x"), "parallel_loops_are_spatial"),
    (ROWS, lambda s: (one_axis(s), s.decompose_reduction("C", s.get_loops("C")[1])),
     "iterations_are_independent"),
    (argmax("int32", "C[v] >= A[v, r]"), one_axis, "first_of_equal_wins"),
    (argmax("float32", "C[v] >= A[v, r] + T.float32(1)"), one_axis, "known_reduction"),
])
def test_what_threads_cannot_share_is_refused(func, step, rule):
    sch = Schedule(func)
    with pytest.raises(ScheduleError, match=rule):
        step(sch)


def test_a_loop_of_the_reduction_that_holds_more_is_refused():
    sch = Schedule(ROWS)
    one_axis(sch)
    sch.bind(sch.get_loops("C")[0], "blockIdx.x")
    sch.compute_at(sch.cache_read("C", 0, "shared"), sch.get_loops("C")[1])
    with pytest.raises(LowerError, match="holds more than this block"):
        lower(sch.mod, target="cuda")


def test_the_threads_reduce_again_in_each_turn_of_a_loop():
    sch = Schedule(ROWS)
    i, k = sch.get_loops("C")
    _, turn = sch.split(i, [None, 3])
    sch.bind(k, "threadIdx.x")
    sch.unroll(turn)
    check(sch)
    sch = Schedule(ROWS)
    block, _ = sch.split(sch.get_loops("C")[0], [2, None])
    sch.bind(block, "blockIdx.x")
    sch.bind(sch.get_loops("C")[2], "threadIdx.x")
    check(sch)


@pytest.mark.parametrize("axis", ["blockIdx.y", "threadIdx.x"])
def test_what_adds_to_shared_memory_is_bound_to_all_threads(axis):
    """Each thread would add again. What only stores may be done by all of them."""
    text = """
@T.prim_func
def main(A: T.Buffer((6, 20), "float32"), B: T.Buffer((6, 20), "float32"),
         C: T.Buffer((6,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(6, thread="AXIS"):
            for j in range(20):
                with T.block("B"):
                    v, w = T.axis.remap("SS", [i, j])
                    B[v, w] = A[v, w] * T.float32(2)
        for i, j in T.grid(6, 20):
            with T.block("C"):
                v, w = T.axis.remap("SR", [i, j])
                with T.init():
                    C[v] = T.float32(0)
                C[v] = C[v] + A[v, w]
""".replace("AXIS", axis)
    with pytest.raises(LowerError, match="block C changes C .* would do it again"):
        lower(from_source(text), target="cuda")
    check(Schedule(from_source(text.replace("i, j in T.grid(6, 20)", f"""i in T.thread_binding(
                6, thread="{axis}"):
            for j in range(20)""").replace("""
            with T.block("C"):
                v, w = T.axis.remap("SR", [i, j])
                with T.init():
                    C[v] = T.float32(0)
                C[v] = C[v] + A[v, w]
""", """
                with T.block("C"):
                    v, w = T.axis.remap("SR", [i, j])
                    with T.init():
                        C[v] = T.float32(0)
                    C[v] = C[v] + A[v, w]
"""))))


@pytest.mark.parametrize("scope, reader, refused", [
    ("global", "range(8)", True), ("local", "range(8)", True), ("shared", "range(8)", False),
    ("global", 'T.thread_binding(8, thread="threadIdx.x")', False)])
def test_memory_that_a_kernel_allocates_is_each_threads_own(scope, reader, refused):
    """In "global" memory too: a thread reads what it has written itself."""
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for i in T.thread_binding(6, thread="blockIdx.x"):
        with T.block("row"):
            v = T.axis.spatial(6, i)
            own = T.alloc_buffer((8,), scope="{scope}")
            for j in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("own"):
                    w = T.axis.spatial(8, j)
                    own[w] = A[v, w] * T.float32(2)
            for j in {reader}:
                with T.block("B"):
                    w = T.axis.spatial(8, j)
                    B[v, w] = own[w] + T.float32(1)
""")
    if refused:
        with pytest.raises(LowerError, match="each thread of threadIdx.x has its own own"):
            lower(func, target="cuda")
    else:
        check(Schedule(func))


def cross_thread(func):
    """The blocks that the reductions of a kernel become, and the buffers of its root."""
    root = LowerCrossThreadReduction()(IRModule({"main": func}))["main"].body.block
    names = [n.name_hint for n in pre_order(root.body) if isinstance(n, Block)]
    return names, [b.name for b in root.alloc_buffers]


def test_a_reduction_becomes_blocks_in_threads_across_them_and_of_the_result():
    sch = Schedule(ROWS)
    threads(sch, "C", 1)
    assert cross_thread(sch.mod["main"]) == (
        ["C_in_thread_init", "C_in_thread", "C_cross_thread", "C_write_back"],
        ["cross_thread_C", "in_thread_C"])


def test_threads_of_one_iteration_combine_what_comes_in():
    sch = Schedule(ROWS)
    sch.bind(sch.get_loops("C")[1], "threadIdx.x")
    assert cross_thread(sch.mod["main"]) == (["C_cross_thread", "C_write_back"],
                                             ["cross_thread_C"])
    check(sch)


def test_iterations_with_elements_of_their_own_are_no_reduction():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.reduce(8, i)
            B[v] = A[v] + T.float32(1)
""")
    check(Schedule(func))


def test_a_size_in_a_condition_of_the_reduction_is_no_spatial_iterator():
    """Rows and columns of one size n: whether a column is there does not depend on the row."""
    mod = from_source('''
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, n), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i in T.thread_binding(n, thread="blockIdx.x"):
        for k0 in range((n + 31) // 32):
            for k1 in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("C"):
                    v = T.axis.spatial(n, i % n)
                    vk = T.axis.reduce(n, k0 * 32 + k1)
                    T.where(k0 * 32 + k1 < n)
                    with T.init():
                        C[v] = T.float32(0)
                    C[v] = C[v] + A[v, vk]
''')
    a = np.random.default_rng(0).integers(-4, 5, (37, 37)).astype("float32")
    rt = tvm.build(mod, target="cuda")
    there = [tvm.nd.array(x, tvm.cuda(0)) for x in (a, np.zeros(37, "float32"))]
    rt["main"](*there)
    np.testing.assert_array_equal(there[1].numpy(), a.sum(1))

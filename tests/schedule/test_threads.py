"""Loops on threads: one index an axis, copies of bound loops, memory of each thread's own."""

import pytest

from mlc_lab.schedule import Refusal, Schedule, ScheduleError
from mlc_lab.script import from_source
from mlc_lab.tir.functor import pre_order
from mlc_lab.tir.stmt import For

from .common import check, kept, refused, row_sum


def schedule(func):
    sch = Schedule(func)
    return sch, sch.mod


@pytest.mark.parametrize("first", [0, 1])
def test_nested_loops_are_not_bound_to_one_axis(first):
    """Only iterations with the same number in both would run."""
    sch, _ = schedule(row_sum)
    i = sch.split(sch.get_loops("B")[0], [None, 4])
    sch.bind(i[first], "blockIdx.x")
    with pytest.raises(ScheduleError, match="axis_has_one_index"):
        sch.bind(i[1 - first], "blockIdx.x")
    sch.bind(i[1 - first], "blockIdx.y")


def copy_of_sums(sch):
    """A loop on threads that decompose_reduction copies."""
    i, _ = sch.get_loops("B")
    sch.bind(i, "threadIdx.x")
    sch.decompose_reduction("B", i)


def copy_of_slices(sch):
    """A loop on threads that rfactor copies."""
    i, k = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    sch.rfactor(k, 0)


@pytest.mark.parametrize("copy", [copy_of_sums, copy_of_slices])
def test_a_copy_of_a_loop_on_threads_is_bound_by_a_variable_of_its_own(copy):
    sch, original = schedule(row_sum)
    copy(sch)
    bound = [n.thread_binding.var for n in pre_order(sch.mod["main"].body)
             if type(n) is For and n.thread_binding is not None]
    assert len(bound) == 2 and bound[0] is not bound[1]
    check(sch, original)


@pytest.mark.parametrize("place, act", [
    ("v", kept), ("7 - v", lambda func, act: refused(func, act, "threads_keep_their_own"))])
def test_each_thread_reads_what_it_wrote_to_its_own_memory(place, act):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    L = T.alloc_buffer((8,), scope="local")
    for b in range(4):
        for i in range(8):
            with T.block("L"):
                v, w = T.axis.remap("SS", [i, b])
                L[v] = A[w, v]
        for i in range(8):
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, b])
                B[w, v] = L[{place}]
""")

    def bind(sch):
        sch.bind(sch.get_loops("L")[0], "blockIdx.x")
        sch.bind(sch.get_loops("L")[1], "threadIdx.x")
        sch.bind(sch.get_loops("B")[1], "threadIdx.x")

    act(func, bind)


@pytest.mark.parametrize("copied, act", [("6", kept), ("T.max(6 - t * 6, 0)", refused)])
def test_threads_may_write_the_same_element_each_to_its_own_memory(copied, act):
    """A row that all threads of an axis read is copied by each of them, not by the first alone."""
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4, 8, 6), "float32")):
    L = T.alloc_buffer((6,), scope="local")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in range(8):
            for k in range({copied}):
                with T.block("L"):
                    vk, w = T.axis.remap("SS", [k, b])
                    L[vk] = A[w, vk]
            for k in range(6):
                with T.block("B"):
                    vt, vk, w = T.axis.remap("SSS", [t, k, b])
                    B[w, vt, vk] = L[vk]
""")

    act(func, lambda sch: sch.bind(sch.get_loops("B")[1], "threadIdx.x"))


@pytest.mark.parametrize("place, act", [
    ("v", kept), ("7 - v", lambda func, act: refused(func, act, "threads_keep_their_own"))])
def test_memory_that_a_kernel_allocates_is_each_threads_own(place, act):
    """Its scope is "global", which nobody could divide among the iterations of a kernel."""
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        with T.block("row"):
            w = T.axis.spatial(4, b)
            M = T.alloc_buffer((8,))
            for i in range(8):
                with T.block("M"):
                    v = T.axis.spatial(8, i)
                    M[v] = A[w, v]
            for i in range(8):
                with T.block("B"):
                    v = T.axis.spatial(8, i)
                    B[w, v] = M[{place}]
""")

    def bind(sch):
        sch.bind(sch.get_loops("M")[0], "threadIdx.x")
        sch.bind(sch.get_loops("B")[0], "threadIdx.x")

    act(func, bind)


def cached(first, scope, after):
    """The rows of A that a block of row i reads, copied to a memory of the block's own; its loop is
    bound before the copy, after it, or after the copy was moved to that memory."""
    sch = Schedule(from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((3, 6), "float32")):
    for i, j in T.grid(3, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[{first}, vj] + A[{first} + 1, vj]
"""))
    original = sch.mod
    i, j = sch.get_loops("B")
    sch.blockize(j)
    if not after:
        sch.bind(i, "threadIdx.x")
    copy = sch.cache_read("B", 0, "local" if after == "scope" else scope)
    if after:
        sch.bind(i, "threadIdx.x")
    if after == "scope":
        sch.set_scope(copy, 0, scope)
    return sch, original


@pytest.mark.parametrize("after", ["", "copy", "scope"])
@pytest.mark.parametrize("scope", ["shared", "shared.dyn", "warp"])
def test_memory_that_threads_share_is_one_also_where_a_block_in_their_loop_allocates_it(
        scope, after):
    with pytest.raises(ScheduleError) as caught:
        cached("vi", scope, after)
    assert caught.value.rule == "iterations_are_independent"
    check(*cached("vi", "local", after))
    check(*cached("0", scope, after))  # all threads write the same there


def test_what_a_view_shows_depends_on_the_thread_that_makes_it():
    """The copies of all threads are in one place: they are the same only if the view's place is."""
    def viewed(place):
        return from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((4,), "float32")):
    for b in range(1):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.spatial(4, t)
                T.reads(A[0:8])
                T.writes(B[v])
                W = T.match_buffer(A[{place}:{place} + 2], (2,), offset_factor=1)
                for k in range(2):
                    with T.block("sum"):
                        vk = T.axis.reduce(2, k)
                        with T.init():
                            B[v] = T.float32(0)
                        B[v] = B[v] + W[vk]
""")

    def act(sch):
        sch.reindex_cache_read("sum", 0, "shared", lambda k: (k,))

    error = refused(viewed("v"), act)
    assert error.rule == "iterations_are_independent"
    sch = Schedule(viewed("3"))
    act(sch)


def test_late_checks_refuse_at_the_end_what_each_step_would():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    L = T.alloc_buffer((8,), scope="local")
    for i in range(8):
        with T.block("L"):
            v = T.axis.spatial(8, i)
            L[v] = A[v]
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = L[7 - v]
""")
    sch = Schedule(func)
    sch.bind(sch.get_loops("L")[0], "threadIdx.x")
    sch.check_late(True)
    sch.bind(sch.get_loops("B")[0], "threadIdx.x")
    with pytest.raises(Refusal) as refusal:
        sch.check_late(False)
    assert refusal.value.rule == "threads_keep_their_own"

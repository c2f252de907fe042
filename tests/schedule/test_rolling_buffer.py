"""rolling_buffer: what overlaps between iterations is computed once, in a circular buffer."""

import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import tir as T

from .common import chain, check, refused, stencil
from .test_cache_read import start


@T.prim_func
def pools(A: T.Buffer((12, 12), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((10, 10))
    for i, j, ri, rj in T.grid(10, 10, 3, 3):
        with T.block("B"):
            vi, vj, vri, vrj = T.axis.remap("SSRR", [i, j, ri, rj])
            with T.init():
                B[vi, vj] = T.min_value("float32")
            B[vi, vj] = T.max(B[vi, vj], A[vi + vri, vj + vrj])
    for i, j, ri, rj in T.grid(8, 8, 3, 3):
        with T.block("C"):
            vi, vj, vri, vrj = T.axis.remap("SSRR", [i, j, ri, rj])
            with T.init():
                C[vi, vj] = T.min_value("float32")
            C[vi, vj] = T.max(C[vi, vj], B[vi + vri, vj + vrj])


def tiled_pools(order, factors=(4, 4)):
    sch, before = start(pools)
    block = sch.get_block("C")
    i, j, ri, rj = sch.get_loops(block)
    i0, i1 = sch.split(i, factors=[None, factors[0]])
    j0, j1 = sch.split(j, factors=[None, factors[1]])
    outer = [i0, j0] if order == "ij" else [j0, i0]
    sch.reorder(*outer, i1, j1, ri, rj)
    sch.compute_at("B", outer[1])
    return sch, before, outer


@pytest.mark.parametrize("order, shape", [("ij", "(6, 10)"), ("ji", "(10, 6)")])
def test_the_outermost_loops_dimension_rolls(order, shape):
    sch, before, _ = tiled_pools(order)
    sch.rolling_buffer("B", 0)
    script = sch.mod.script()
    assert f"B = T.alloc_buffer({shape})" in script and "% 6" in script
    check(sch, before)


def test_less_is_computed():
    sch, before, _ = tiled_pools("ij", (2, 8))
    sch.rolling_buffer("B", "B")
    assert "T.where(i_0 < 1 or 2 <= ax0)" in sch.mod.script()
    check(sch, before)


def test_one_dimension():
    sch, before = start(stencil)
    outer, _ = sch.split(sch.get_loops("C")[0], factors=[None, 4])
    sch.compute_at("B", outer)
    sch.rolling_buffer("B", 0)
    check(sch, before)


def test_the_order_of_iterations_is_kept_afterwards():
    sch, before, outer = tiled_pools("ij")
    sch.rolling_buffer("B", 0)
    for loop in outer:
        with pytest.raises(ScheduleError):
            sch.parallel(loop)
    with pytest.raises(ScheduleError):
        sch.reorder(outer[1], outer[0])


def test_it_is_refused():
    sch = Schedule(stencil)
    with pytest.raises(ScheduleError) as caught:
        sch.rolling_buffer("B", 0)
    assert caught.value.rule == "consumers_share_a_loop"
    with pytest.raises(ScheduleError) as caught:
        sch.rolling_buffer("C", 0)
    assert caught.value.rule == "buffer_is_allocated_here"
    sch = Schedule(chain)
    sch.compute_at("B", sch.get_loops("C")[0])
    with pytest.raises(ScheduleError) as caught:
        sch.rolling_buffer("B", 0)
    assert caught.value.rule == "iterations_overlap"
    sch, before, outer = tiled_pools("ij")
    sch.parallel(outer[0])
    with pytest.raises(ScheduleError) as caught:
        sch.rolling_buffer("B", 0)
    assert caught.value.rule == "loops_are_sequential"


@T.prim_func
def also_read_behind(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4,))
    D = T.alloc_buffer((3,))
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = A[v]
    for i in range(3):
        with T.block("D"):
            v = T.axis.spatial(3, i)
            D[v] = B[v] + B[v + 1]
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = B[v] + D[v % 3]


def test_a_reader_outside_of_the_scope_would_find_a_window():
    sch, before = start(also_read_behind)
    inner, readers = sch.get_block("B"), sch.get_block("D")
    sch.blockize([inner, readers])
    sch.compute_at(inner, sch.get_loops(readers)[0])
    with pytest.raises(ScheduleError) as err:
        sch.rolling_buffer(inner, 0)
    assert err.value.rule == "used_in_the_scope" and "outside of block" in err.value.reason
    check(sch, before)


@T.prim_func
def viewed(A: T.Buffer((12, 4), "float32"), C: T.Buffer((10, 4), "float32")):
    B = T.alloc_buffer((12, 4))
    for i, j in T.grid(12, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(10, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi:vi + 3, vj])
            T.writes(C[vi, vj])
            V = T.match_buffer(B[vi:vi + 3, vj], (3, 1), strides=("s0", 1), offset_factor=1)
            C[vi, vj] = V[0, 0] + V[1, 0] + V[2, 0]


@T.prim_func
def viewed_beside(A: T.Buffer((12, 4), "float32"), C: T.Buffer((10, 4), "float32")):
    B = T.alloc_buffer((12, 4))
    for i, j in T.grid(12, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, r in T.grid(10, 3):
        with T.block("C"):
            vi, vr = T.axis.remap("SR", [i, r])
            T.reads(B[vi + vr, 0:4])
            T.writes(C[vi, 0:4])
            V = T.match_buffer(B[vi + vr, 0:4], (1, 4), strides=("s0", 1), offset_factor=1)
            with T.init():
                for j in range(4):
                    C[vi, j] = T.float32(0)
            for j in range(4):
                C[vi, j] = C[vi, j] + V[0, j]


def test_a_view_of_what_rolls_would_wrap():
    """It shows elements that lie in a row; beside the dimension that rolls it may show several."""
    for func, rolls in ((viewed, False), (viewed_beside, True)):
        sch, before = start(func)
        outer, _ = sch.split(sch.get_loops("C")[0], factors=[None, 5])
        sch.compute_at("B", outer)
        if rolls:
            sch.rolling_buffer("B", 0)
            check(sch, before)
            continue
        with pytest.raises(ScheduleError, match="views_do_not_wrap"):
            sch.rolling_buffer("B", 0)


@T.prim_func
def two_rows(A: T.Buffer((24,), "float32"), C: T.Buffer((10,), "float32")):
    B = T.alloc_buffer((24,))
    for i in range(10):
        for j in range(3):
            with T.block("B"):
                v = T.axis.spatial(12, i + j)
                T.reads(A[v], A[v + 12])
                T.writes(B[v], B[v + 12])
                B[v] = A[v]
                B[v + 12] = A[v + 12]
        for _ in range(1):
            with T.block("C"):
                v = T.axis.spatial(10, i)
                T.reads(B[v], B[v + 2], B[v + 12], B[v + 14])
                T.writes(C[v])
                C[v] = B[v] + B[v + 2] * T.float32(2) + B[v + 12] + B[v + 14] * T.float32(3)


def test_one_region_rolls():
    refused(two_rows, lambda sch: sch.rolling_buffer("B", 0), "one_region")

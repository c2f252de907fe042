"""cache_write: a block writes to a copy of its output, which is stored afterwards."""

import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import tir as T

from .common import chain, check, kept, matmul, mm_relu, refused
from .test_cache_read import start, two_readers


def test_an_output_is_stored_at_the_end():
    sch, before = start(matmul)
    stage = sch.cache_write(sch.get_block("C"), 0, "local")
    assert sch.get(stage).name_hint == "C_local"
    assert [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_block("root"))] == [
        "C", "C_local"]
    check(sch, before)


def test_it_is_stored_before_the_first_reader():
    sch, before = start(two_readers)
    sch.cache_write(sch.get_block("B"), "B", "shared")
    names = [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_block("root"))]
    assert names == ["B", "B_shared", "C", "D"]
    check(sch, before)


def test_consumers_can_read_the_copy_directly():
    sch, before = start(two_readers)
    sch.cache_write(sch.get_block("B"), 0, "local", consumer_blocks=[sch.get_block("C")])
    assert sch.get(sch.get_block("C")).reads[0].buffer.name == "B_local"
    assert sch.get(sch.get_block("D")).reads[0].buffer.name == "B"
    check(sch, before)


def test_it_is_stored_within_the_loops_shared_with_readers():
    sch, before = start(mm_relu)
    block = sch.get_block("Y")
    sch.reverse_compute_at(sch.get_block("C"), sch.get_loops(block)[0])
    stage = sch.cache_write(block, 0, "local")
    assert len(sch.get_loops(stage)) == 3
    check(sch, before)


def test_a_tiled_matmul_accumulates_in_registers():
    sch, before = start(matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, factors=[None, 4])
    j0, j1 = sch.split(j, factors=[None, 8])
    sch.reorder(i0, j0, k, i1, j1)
    stage = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(stage, j0)
    sch.decompose_reduction(block, k)
    check(sch, before)


def test_after_splitting_with_a_remainder():
    sch, before = start(chain)
    block = sch.get_block("C")
    sch.split(sch.get_loops(block)[1], factors=[None, 5])
    sch.cache_write(block, 0, "local")
    check(sch, before)


@pytest.mark.parametrize("rule, step", [
    ("storage_scope_exists", lambda s, b: s.cache_write(b, 0, "nowhere")),
    ("buffer_index_in_range", lambda s, b: s.cache_write(b, 1, "local")),
    ("buffer_is_accessed", lambda s, b: s.cache_write(b, "A", "local")),
    ("consumers_read_the_buffer", lambda s, b: s.cache_write(b, 0, "local", consumer_blocks=[b])),
])
def test_it_is_refused(rule, step):
    sch, before = start(matmul)
    with pytest.raises(ScheduleError) as caught:
        step(sch, sch.get_block("C"))
    assert caught.value.rule == rule
    assert sch.mod.script() == before.script()


def test_it_is_refused_once_the_init_is_apart():
    sch = Schedule(matmul)
    block = sch.get_block("C")
    sch.decompose_reduction(block, sch.get_loops(block)[2])
    with pytest.raises(ScheduleError) as caught:
        sch.cache_write(block, 0, "local")
    assert caught.value.rule == "single_writer"


def test_inside_a_loop_with_a_remainder_the_copy_stays_in_bounds():
    sch, before = start(mm_relu)
    block = sch.get_block("Y")
    i, j, k = sch.get_loops(block)
    sch.reverse_compute_at(sch.get_block("C"), j)
    sch.split(j, factors=[None, 5])
    sch.cache_write(block, 0, "local")
    check(sch, before)


@T.prim_func
def some_elements(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            if A[vi] > T.float32(0):
                B[vi] = A[vi]


def test_it_is_refused_where_only_some_elements_are_written():
    for step in (lambda s: s.cache_write("B", 0, "local"),
                 lambda s: s.reindex("B", ("write", 0)),
                 lambda s: s.reindex_cache_write("B", 0, "local", lambda i: (i,))):
        with pytest.raises(ScheduleError) as caught:
            step(Schedule(some_elements))
        assert caught.value.rule == "every_element_is_written"


@T.prim_func
def summed_by_a_block_further_out(A: T.Buffer((4, 4), "float32"), B: T.Buffer((3, 4), "float32")):
    for k in range(2):
        with T.block("all"):
            vk = T.axis.reduce(2, k)
            T.reads(A[vk:vk + 3, 0:4])
            T.writes(B[0:3, 0:4])
            with T.block("part"):
                T.reads(A[vk:vk + 3, 0:4])
                T.writes(B[0:3, 0:4])
                for i, j in T.grid(3, 4):
                    with T.block("B"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        vs = T.axis.reduce(2, vk)
                        with T.init():
                            B[vi, vj] = T.float32(0)
                        B[vi, vj] = B[vi, vj] + A[vi + vs, vj]


def test_it_is_refused_where_a_block_further_out_goes_on_with_the_sum():
    with pytest.raises(ScheduleError, match="goes on with what B holds each time that block part"):
        Schedule(summed_by_a_block_further_out).cache_write("B", 0, "local")


@T.prim_func
def never_again(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)
    for o in range(2):
        with T.block("outer"):
            vo = T.axis.spatial(2, o)
            for h in range(1, 2):
                for i in range(4):
                    with T.block("again"):
                        vi = T.axis.spatial(4, i)
                        T.where(vo * 2 + h < 1)
                        B[vi] = A[vi] * T.float32(3)
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi] + T.float32(1)


def test_a_copy_that_is_never_written_is_not_stored():
    """The predicate is on what is around the block, so it narrows no region; it still decides
    whether anything is written, and here it never holds."""
    refused(never_again, lambda sch: sch.cache_write("again", 0, "global"),
            "every_element_is_written")


@T.prim_func
def halves(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,))
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            T.reads(A[v], A[v + 4])
            T.writes(C[v], C[v + 4])
            C[v] = A[v] + A[v + 4]
            C[v + 4] = A[v] - A[v + 4]
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = C[7 - v]


@T.prim_func
def halves_in_a_loop(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,))
    for i in range(4):
        for _ in range(1):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                T.reads(A[v], A[v + 4])
                T.writes(C[v], C[v + 4])
                C[v] = A[v] + A[v + 4]
                C[v + 4] = A[v] - A[v + 4]
        for j in range(2):
            with T.block("B"):
                v = T.axis.spatial(8, j * 4 + i)
                B[v] = C[v]


@pytest.mark.parametrize("index", [0, 1])
def test_a_block_may_write_several_regions_of_a_buffer(index):
    kept(halves, lambda sch: sch.cache_write("C", index, "global"))
    refused(halves_in_a_loop, lambda sch: sch.cache_write("C", index, "global"),
            "one_region_is_stored")

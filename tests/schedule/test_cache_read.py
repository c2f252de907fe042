"""cache_read: readers of a buffer read a copy of it."""

import numpy as np
import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.schedule.truth import undeclared
from mlc_lab.script import from_source
from mlc_lab.script import tir as T

from .common import chain, check, check_compiled, kept, matmul, mm_relu


def start(func):
    sch = Schedule(func)
    return sch, sch.mod


@T.prim_func
def two_readers(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32"),
                D: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8))
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(8, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vj, vi]


def test_an_input_is_copied_at_the_start():
    sch, before = start(matmul)
    copy = sch.cache_read(sch.get_block("C"), 0, "shared")
    assert sch.get(copy).name_hint == "A_shared"
    assert [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_block("root"))] == [
        "A_shared", "C"]
    check(sch, before)


def test_a_buffer_can_be_named_in_four_ways():
    scripts, traces = set(), set()
    for how in (1, "B", ("read", 1), None):
        sch, before = start(matmul)
        block = sch.get_block("C")
        sch.cache_read(block, sch.get(block).reads[1].buffer if how is None else how, "local")
        scripts.add(sch.mod.script())
        traces.add(str(sch.trace))
        check(sch, before)
    assert len(scripts) == len(traces) == 1
    assert "read_buffer_index=1" in traces.pop()


def test_a_block_can_be_given_by_its_name():
    sch, before = start(two_readers)
    sch.cache_read("C", "B", "local", consumer_blocks=["C"])
    check(sch, before)
    assert str(sch.trace).count("get_block") == 2


def test_the_copy_goes_before_the_first_reader():
    sch, before = start(two_readers)
    sch.cache_read(sch.get_block("D"), 0, "local")
    names = [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_block("root"))]
    assert names == ["B", "B_local", "C", "D"]
    assert all("B_local" in [r.buffer.name for r in sch.get(sch.get_block(b)).reads] for b in "CD")
    check(sch, before)


def test_only_the_given_consumers_read_the_copy():
    sch, before = start(two_readers)
    sch.cache_read(sch.get_block("D"), 0, "local", consumer_blocks=[sch.get_block("D")])
    assert sch.get(sch.get_block("C")).reads[0].buffer.name == "B"
    assert sch.get(sch.get_block("D")).reads[0].buffer.name == "B_local"
    check(sch, before)


def test_the_copy_is_made_in_the_loops_shared_with_the_writer():
    sch, before = start(mm_relu)
    last = sch.get_block("C")
    sch.reverse_compute_at(last, sch.get_loops(sch.get_block("Y"))[0])
    copy = sch.cache_read(last, 0, "local")
    assert len(sch.get_loops(copy)) == 3
    check(sch, before)


def test_copies_of_copies():
    sch, before = start(matmul)
    block = sch.get_block("C")
    shared = sch.cache_read(block, 0, "shared")
    local = sch.cache_read(block, 0, "local")
    assert [r.buffer.name for r in sch.get(block).reads] == ["A_shared_local", "B"]
    i, j, k = sch.get_loops(block)
    k0, k1 = sch.split(k, factors=[None, 4])
    sch.reorder(k0, i, j, k1)
    sch.compute_at(local, k0)
    sch.compute_at(shared, k0)
    check(sch, before)


def test_after_splitting_with_a_remainder():
    sch, before = start(chain)
    block = sch.get_block("B")
    sch.split(sch.get_loops(block)[0], factors=[None, 5])
    sch.cache_read(sch.get_block("C"), 0, "local")
    check(sch, before)


REFUSALS = [
    ("storage_scope_exists", lambda s: s.cache_read(s.get_block("C"), 0, "shred")),
    ("buffer_index_in_range", lambda s: s.cache_read(s.get_block("C"), 2, "local")),
    ("buffer_is_accessed", lambda s: s.cache_read(s.get_block("C"), "X", "local")),
    ("buffer_is_accessed", lambda s: s.cache_read(s.get_block("C"), "C", "local")),
    ("buffer_is_named", lambda s: s.cache_read(s.get_block("C"), ("reads", 0), "local")),
]


@pytest.mark.parametrize("rule, step", REFUSALS)
def test_it_is_refused(rule, step):
    sch, before = start(matmul)
    with pytest.raises(ScheduleError) as caught:
        step(sch)
    assert caught.value.rule == rule
    assert sch.mod.script() == before.script()


def test_it_is_refused_where_the_reader_writes_the_buffer_or_several_blocks_do():
    sch, _ = start(matmul)
    block = sch.get_block("C")
    sch.decompose_reduction(block, sch.get_loops(block)[2])
    with pytest.raises(ScheduleError) as caught:
        sch.cache_read(block, "C", "local")
    assert caught.value.rule == "reader_does_not_write"
    sch, _ = start(mm_relu)
    block = sch.get_block("Y")
    sch.decompose_reduction(block, sch.get_loops(block)[2])
    with pytest.raises(ScheduleError) as caught:
        sch.cache_read(sch.get_block("C"), 0, "local")
    assert caught.value.rule == "single_writer"


def test_it_is_refused_for_consumers_that_do_not_read_the_buffer():
    sch, _ = start(two_readers)
    with pytest.raises(ScheduleError) as caught:
        sch.cache_read(sch.get_block("C"), 0, "local", consumer_blocks=[sch.get_block("B")])
    assert caught.value.rule == "consumers_read_the_buffer"


def test_a_copy_in_a_block_reads_what_the_block_declares():
    """A reduction declares that it writes what it reads: that, and no more, is copied in it."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 4):
        with T.block("O"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            D = T.alloc_buffer((8,))
            for j in range(1):
                with T.block("D"):
                    v = T.axis.spatial(8, vi + j)
                    D[v] = C[v] + A[v, vk]
            for j in range(1):
                with T.block("C"):
                    v = T.axis.spatial(8, vi + j)
                    C[v] = D[v]
""")
    sch, before = start(func)
    sch.cache_read("D", "C", "local")
    check(sch, before)
    assert undeclared(sch.get(sch.get_block("O"))) == []


@pytest.mark.parametrize("given", [None, ["B", "C"]])
def test_a_reader_behind_the_loop_of_the_copy_reads_it_too(given):
    """Each iteration copies what it has written; all together copy what is read later."""
    func = from_source("""
@T.prim_func
def main(X: T.Buffer((24,), "float32"), B: T.Buffer((24,), "float32"),
         C: T.Buffer((24,), "float32")):
    A = T.alloc_buffer((24,))
    for i in range(6):
        for j in range(4):
            with T.block("A"):
                vi = T.axis.spatial(24, i * 4 + j)
                A[vi] = X[vi] + T.float32(1)
        for j in range(4):
            with T.block("B"):
                vi = T.axis.spatial(24, i * 4 + j)
                B[vi] = A[vi] + T.float32(1)
    for i in range(24):
        with T.block("C"):
            vi = T.axis.spatial(24, i)
            C[vi] = A[23 - vi]
""")
    sch = kept(func, lambda s: s.cache_read("B", 0, "global", consumer_blocks=given))
    assert sch.get(sch.get_block("C")).reads[0].buffer.name == "A_global"
    assert len(sch.get_loops("A_global")) == 2
    assert sch.get(sch.get_loops("A_global")[1]).extent.value == 4


def test_the_named_consumers_alone_read_the_copy():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((24,), "float32"), B: T.Buffer((24,), "float32"),
         C: T.Buffer((24,), "float32")):
    for i in range(24):
        with T.block("B"):
            vi = T.axis.spatial(24, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(24):
        with T.block("C"):
            vi = T.axis.spatial(24, i)
            C[vi] = A[vi]
""")
    sch = kept(func, lambda s: s.cache_read("B", 0, "global", consumer_blocks=["C"]))
    assert [sch.get(sch.get_block(b)).reads[0].buffer.name for b in "BC"] == ["A", "A_global"]


def test_what_was_there_before_the_loop_of_the_copy_is_not_in_it():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((24,), "float32"), B: T.Buffer((24,), "float32"),
         C: T.Buffer((24,), "float32")):
    for i in range(3):
        for j in range(4):
            with T.block("A"):
                vi = T.axis.spatial(24, i * 4 + j)
                A[vi] = T.float32(1)
        for j in range(4):
            with T.block("B"):
                vi = T.axis.spatial(24, i * 4 + j)
                B[vi] = A[vi] + T.float32(1)
    for i in range(24):
        with T.block("C"):
            vi = T.axis.spatial(24, i)
            C[vi] = A[vi]
""")
    sch = kept(func, lambda s: s.cache_read("B", 0, "global"))
    assert sch.get(sch.get_block("C")).reads[0].buffer.name == "A"


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_copy_is_not_placed_by_a_division_that_only_the_reader_can_do(n):
    before = from_source("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4))
    C = T.match_buffer(c, (4, 4))
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            for j in range(n):
                with T.block("C"):
                    vj = T.axis.opaque(n, j)
                    C[vi, vj % 4] = A[vi % n, vj % 4]
""")
    sch, before = start(before)
    sch.cache_read("C", 0, "local")
    check_compiled(sch, before, np.ones((n, 4), "float32"), np.zeros((4, 4), "float32"))

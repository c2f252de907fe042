"""Blocks without iterators name the loops around them: whatever moves them or copies what they read
keeps the loops around, or is refused."""

import pytest

from mlc_lab.schedule import Schedule
from mlc_lab.script import tir as T

from .common import kept, refused


@T.prim_func
def program(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4,), "float32")
    for i in range(4):
        with T.block("B"):
            B[i] = A[i] * T.float32(2)
    for j in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, j)
            C[v] = B[v]


@T.prim_func
def a_reduction_over_the_loop_around(A: T.Buffer((4,), "int32"), C: T.Buffer((4, 4), "int32")):
    B = T.alloc_buffer((2,), "int32")
    D = T.alloc_buffer((2,), "int32")
    for i in range(4):
        with T.block("rows"):
            for j in range(2):
                with T.block("B"):
                    v = T.axis.spatial(2, j)
                    k = T.axis.reduce(4, i)
                    with T.init():
                        D[v] = 0
                        B[v] = 0
                    D[v] = D[v] + A[k]
                    B[v] = B[v] + A[k]
            for j in range(4):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi % 2] + D[0]


STEPS = {
    "reverse_compute_at": lambda s, i: s.reverse_compute_at("C", i),
    "reverse_compute_inline": lambda s, i: s.reverse_compute_inline("C"),
    "cache_read": lambda s, i: s.cache_read("B", 0, "local"),
    "cache_write": lambda s, i: s.cache_write("B", 0, "local"),
    "parallel": lambda s, i: s.parallel(i),
    "blockize": lambda s, i: s.blockize(i),
    "loop_partition": lambda s, i: s.loop_partition(i, [1, None]),
    "transform_layout": lambda s, i: s.transform_layout("B", ("write", 0), lambda x: (x // 2,
                                                                                     x % 2)),
    "set_scope": lambda s, i: s.set_scope("B", 0, "local"),
}

REFUSED = {
    "compute_at": lambda s, i: s.compute_at("B", s.get_loops("C")[0]),
    "reindex": lambda s, i: s.reindex("B", ("read", 0)),
    "reindex_cache_read": lambda s, i: s.reindex_cache_read("B", 0, "local", lambda: (0,)),
    "reindex_cache_write": lambda s, i: s.reindex_cache_write("B", 0, "local", lambda: (0,)),
}


def outer_loop(sch: Schedule, split: bool):
    (i,) = sch.get_loops("B")
    return sch.split(i, [None, 2])[0] if split else i


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_a_step_keeps_the_meaning(name, split):
    kept(program, lambda sch: STEPS[name](sch, outer_loop(sch, split)))


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_a_step_that_would_leave_the_loop_is_refused(name, split):
    refused(program, lambda sch: REFUSED[name](sch, outer_loop(sch, split)),
            "loops_named_stay_around")


def test_a_block_reads_what_a_reduction_in_it_goes_on_with():
    """The first iteration of the loop around sets the start value; all others read."""
    sch = Schedule(a_reduction_over_the_loop_around)
    read = {r.buffer.name: r.region[0] for r in sch.get(sch.get_block("rows")).reads}
    assert read["B"].extent.value == read["D"].extent.value == 2
    kept(a_reduction_over_the_loop_around, lambda s: s.split(s.get_loops("rows")[0], [None, 2]))
    refused(a_reduction_over_the_loop_around, lambda s: s.cache_write("B", 1, "local"),
            "init_runs_first")


@T.prim_func
def blocks_in_one(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i0, i1 in T.grid(2, 2):
        with T.block("rows"):
            for j in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(4, i0 * 2 + i1)
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = A[vi, vj] * T.float32(2)


def test_a_block_names_no_loop_beyond_one_without_iterators():
    kept(blocks_in_one, lambda s: s.loop_partition(s.get_loops("B")[0], [None, 3]))
    kept(blocks_in_one, lambda s: s.reverse_compute_at(s.cache_write("B", 0, "local"),
                                                       s.get_loops("B")[0]))
    refused(blocks_in_one, lambda s: s.blockize(s.get_loops("B")[0]), "loops_named_stay_around")


@T.prim_func
def the_last_one(A: T.Buffer((1, 4), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((1, 4), "float32")
    for i, j in T.grid(1, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for n in range(4):
        with T.block("C"):
            C[n] = B[n % 1, n]


def test_a_block_that_is_inlined_leaves_no_name_of_its_loop():
    """No block without iterators is left, and the loop that the only one named is gone with it."""
    refused(the_last_one, lambda s: s.reverse_compute_inline("C"), "loops_named_stay_around")
    kept(program, lambda s: s.compute_inline("B"))

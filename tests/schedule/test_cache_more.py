"""cache_inplace, cache_index, annotate_buffer_access; copies where constants are defined."""

import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source
from mlc_lab.script import tir as T

from .common import chain, check, kept, matmul
from .test_cache_read import start


@T.prim_func
def update(D: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = D[vi, vj] * T.float32(2)


@T.prim_func
def resize(A: T.Buffer((2, 10, 10), "float32"), B: T.Buffer((2, 20, 20), "float32")):
    for c, i, j in T.grid(2, 20, 20):
        with T.block("B"):
            vc, vi, vj = T.axis.remap("SSS", [c, i, j])
            B[vc, vi, vj] = A[vc, vi // 4 + vj // 4, vj // 2] + A[vc, vi // 4 + vj // 4, vj // 2]


@T.prim_func
def with_constant(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    data = T.allocate_const([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], "float32", [8])
    K = T.decl_buffer((8,), "float32", data=data)
    D = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = A[vi] + K[vi] * A[vi // 4 + vi // 2]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = D[vi] * T.float32(2)


@pytest.mark.parametrize("step", [
    lambda sch: sch.cache_read("D", "K", "global"),
    lambda sch: sch.cache_read("D", "A", "global"),
    lambda sch: sch.cache_read("C", 0, "global"),
    lambda sch: sch.cache_write("D", 0, "global"),
    lambda sch: sch.cache_write("C", 0, "global"),
    lambda sch: sch.cache_index("D", "global"),
    lambda sch: sch.reindex("C", ("read", 0)),
    lambda sch: sch.reindex("C", ("write", 0)),
])
def test_copies_go_behind_the_constants_that_are_defined_first(step):
    sch, before = start(with_constant)
    step(sch)
    check(sch, before)
    text = sch.mod.script()
    assert text.index("T.allocate_const") < text.index("T.axis.spatial")


def test_an_update_in_place_works_on_a_copy():
    sch, before = start(update)
    into, back = sch.cache_inplace("D", 0, "local")
    assert sch.get(into).reads[0].buffer.name == "D"
    assert sch.get(back).writes[0].buffer.name == "D"
    check(sch, before)
    sch, before = start(update)
    tile = sch.blockize(sch.get_loops("D")[1])
    sch.cache_inplace(tile, "D", "shared")
    check(sch, before)


@T.prim_func
def transpose_in_place(A: T.Buffer((4, 4), "float32")):
    for i in range(4):
        for j in range(i):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj], A[vj, vi])
                T.writes(A[vi, vj], A[vj, vi])
                x: T.float32 = A[vi, vj]
                A[vi, vj] = A[vj, vi]
                A[vj, vi] = x


@pytest.mark.parametrize("index", [0, 1])
def test_all_regions_of_a_buffer_go_into_the_copy(index):
    kept(transpose_in_place, lambda sch: sch.cache_inplace("A", index, "global"))


def test_computed_indices_are_kept():
    for thresh, count in ((0, 2), (2, 2), (3, 0)):
        sch, before = start(resize)
        made = sch.cache_index("B", "global", thresh)
        assert len(made) == count
        check(sch, before)


def test_regions_can_be_declared():
    sch, before = start(chain)
    sch.annotate_buffer_access("B", 0, "read", lambda i, j: ((i, i + 1), (0, 12)))
    sch.annotate_buffer_access("B", 0, "write", lambda i, j: (i, j))
    script = sch.mod.script()
    assert "T.reads(A[vi, 0:12])" in script
    assert '"explicit_read_region": [0], "explicit_write_region": [0]' in script
    check(sch, before)


@pytest.mark.parametrize("func, rule, step", [
    (chain, "block_updates_the_buffer", lambda s: s.cache_inplace("B", 0, "local")),
    (update, "storage_scope_exists", lambda s: s.cache_inplace("D", 0, "locale")),
    (update, "loops_are_sequential", lambda s: (
        s.vectorize(s.get_loops("D")[1]), s.cache_inplace("D", 0, "local"))),
    (chain, "storage_scope_exists", lambda s: s.cache_index("B", "locale")),
    (chain, "buffer_is_named", lambda s: s.annotate_buffer_access(
        "B", 0, "reads", lambda i, j: (i, j))),
    (chain, "one_range_a_dimension", lambda s: s.annotate_buffer_access(
        "B", 0, "read", lambda i, j: (i,))),
    (chain, "range_is_a_pair", lambda s: s.annotate_buffer_access(
        "B", 0, "read", lambda i, j: ((i, j, i),))),
    (matmul, "buffer_index_in_range", lambda s: s.annotate_buffer_access(
        "C", 2, "read", lambda i, j, k: (i, j))),
])
def test_it_is_refused(func, rule, step):
    sch, before = start(func)
    with pytest.raises(ScheduleError) as caught:
        step(sch)
    assert caught.value.rule in (rule, "parallel_loops_are_spatial", "complete_or_reduction")


def test_a_copy_is_refused_that_a_block_further_out_does_not_declare():
    """A block may declare to read what nothing in it reads so far; the copy would read it."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for n in range(1):
        with T.block("P"):
            T.reads(A[0:4])
            T.writes(B[0:4])
            with T.block("Q"):
                T.reads(A[0:4], B[0:4])
                T.writes(B[0:4])
                for i in range(4):
                    with T.block("B"):
                        v = T.axis.spatial(4, i)
                        T.reads(A[v], B[v])
                        T.writes(B[v])
                        B[v] = A[v]
""")
    sch = Schedule(func)
    with pytest.raises(ScheduleError, match="that block P, around it") as caught:
        sch.cache_inplace("B", "B", "local")
    assert caught.value.rule == "scope_declares_what_it_touches"
    kept_inside = sch.cache_write("B", 0, "local")
    assert sch.get(kept_inside).name_hint == "B_local"

"""loop_partition: the iterations of a loop in several loops, in the same order."""

import pytest

from mlc_lab.schedule import Schedule
from mlc_lab.script import tir as T
from .common import check_compiled, kept, matmul, mm_relu, refused


@T.prim_func
def doubled(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0


def extents(sch, loops):
    return [(sch.get(x).min.value, sch.get(x).extent.value) for x in loops]


@pytest.mark.parametrize(["factors", "want"], [
    ([2, 1, 8], [(0, 2), (2, 1), (3, 8), (11, 5)]),
    ([None, 3], [(0, 13), (13, 3)]),
    ([4, 12], [(0, 4), (4, 12)]),
    ([16], [(0, 16)]),
])
@pytest.mark.parametrize("preserve", [True, False])
def test_the_parts_have_the_extents_that_were_given(factors, want, preserve):
    made = []
    sch = kept(doubled, lambda s: made.extend(
        s.loop_partition(s.get_loops("B")[0], factors, preserve)))
    assert extents(sch, made) == want


def test_parts_are_scheduled_each_on_its_own():
    def act(s):
        first, second = s.loop_partition(s.get_loops("B")[0], [None, 4])
        s.parallel(first)
        s.vectorize(s.get_loops("B_i0")[-1])
        outer, _ = s.split(s.get_loops("B_i1")[1], [None, 4])
        s.unroll(outer)
        assert extents(s, [second]) == [(12, 4)]

    check_compiled(kept(doubled, act), Schedule(doubled).mod)


def test_inner_loops_and_parts_of_parts():
    def act(s):
        _, j = s.get_loops("B")
        s.loop_partition(j, [1, 2])
        s.loop_partition(s.get_loops("B_j2")[0], [1, None])

    sch = kept(doubled, act)
    assert sch.get(sch.get_block("B_j2_j21")).name_hint == "B_j2_j21"


def test_a_chain_is_partitioned_where_it_is_not_reduced():
    kept(matmul, lambda s: s.loop_partition(s.get_loops("C")[0], [3]))
    refused(matmul, lambda s: s.loop_partition(s.get_loops("C")[2], [3]), "loop_is_spatial")
    refused(mm_relu, lambda s: s.loop_partition(s.get_loops("Y")[2], [3]), "loop_is_spatial")
    kept(mm_relu, lambda s: s.loop_partition(s.get_loops("C")[1], [3, 4]))


def test_memory_within_the_loop_is_that_of_its_part():
    def act(s):
        i, _ = s.get_loops("B")
        copy = s.cache_read("B", 0, "local")
        s.compute_at(copy, i)
        s.blockize(s.get_loops("B")[1])
        s.loop_partition(i, [3, None])

    kept(doubled, act)


def test_what_does_not_fit_is_refused():
    def first(s):
        return s.get_loops("B")[0]

    refused(doubled, lambda s: s.loop_partition(first(s), [10, 7]), "factors_fit_extent")
    refused(doubled, lambda s: s.loop_partition(first(s), [16, None]), "factors_fit_extent")
    refused(doubled, lambda s: s.loop_partition(first(s), [None, None]), "one_factor_is_inferred")
    refused(doubled, lambda s: s.loop_partition(first(s), [0, 4]), "factors_are_positive")
    refused(doubled, lambda s: s.loop_partition(first(s), []), "partition_needs_factors")
    refused(doubled, lambda s: (s.parallel(first(s)), s.loop_partition(first(s), [4])),
            "loop_is_serial")
    refused(doubled, lambda s: (s.bind(first(s), "blockIdx.x"), s.loop_partition(first(s), [4])))
    refused(doubled, lambda s: (s.annotate(first(s), "a", 1), s.loop_partition(first(s), [4])))

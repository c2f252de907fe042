"""loop_partition: loops that follow one another, the same iterations in the same order."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.script import tir as T

from .common import kept, matmul, refused, row_sum


@T.prim_func
def double(A: T.Buffer((20, 12), "float32"), B: T.Buffer((20, 12), "float32")):
    for i, j in T.grid(20, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


def partitioned(factors, **options):
    def act(sch):
        i, _ = sch.get_loops("B")
        act.loops = [(sch.get(x).min.value, sch.get(x).extent.value)
                     for x in sch.loop_partition(i, factors, **options)]
    return act


@pytest.mark.parametrize("factors, loops", [
    ([2, 1, 4], [(0, 2), (2, 1), (3, 4), (7, 13)]),
    ([None, 16], [(0, 4), (4, 16)]),
    ([5, None, 6], [(0, 5), (5, 9), (14, 6)]),
    ([20], [(0, 20)]),
])
def test_factors_are_added_and_the_rest_is_one_loop_more(factors, loops):
    act = partitioned(factors)
    kept(double, act)
    assert act.loops == loops


def test_parts_have_names_domains_and_regions_of_their_own():
    sch = kept(double, partitioned([None, 16]))
    first, second = sch.get(sch.get_block("B_i0")), sch.get(sch.get_block("B_i1"))
    assert (second.iter_vars[0].dom.min.value, second.iter_vars[0].dom.extent.value) == (4, 16)
    assert first.iter_vars[0].var is not second.iter_vars[0].var
    outer = sch.get(sch.get_block("B_i1_partition"))
    assert "writes(B[4:20, 0:12])" in outer.script().replace("T.", "")
    assert sch.get(sch.get_block("B_i_common")).writes[0].buffer is first.writes[0].buffer


def test_a_part_is_scheduled_like_any_other_nest():
    def act(sch):
        sch.loop_partition(sch.get_loops("B")[0], [2, 16])
        sch.loop_partition(sch.get_loops("B_i0")[1], [None, 4])
        sch.vectorize(sch.split(sch.get_loops("B_i1")[1], [None, 4])[1])
        sch.split(sch.get_loops("B_i0_j0")[0], [2, None])

    kept(double, act)


def test_a_block_right_under_the_loop_gives_its_name():
    sch = kept(double, lambda s: s.loop_partition(s.get_loops("B")[1], [5, None]))
    assert sch.get(sch.get_block("B_j_common")).reads
    assert sch.get(sch.get_block("B_j1_partition")).writes


def test_a_part_of_one_iteration_can_bind_a_number():
    sch = kept(double, partitioned([1, None], preserve_unit_iters=False))
    assert sch.state.realize_of(sch.get_sref(sch.get_block("B_i0"))).iter_values[0].value == 0


def test_spatial_loops_of_a_reduction():
    kept(matmul, lambda s: s.loop_partition(s.get_loops("C")[1], [3, None]))


def test_a_decomposed_reduction_is_cut_and_another_is_refused():
    def act(sch):
        _, k = sch.get_loops("B")
        sch.decompose_reduction("B", k)
        sch.loop_partition(sch.get_loops("B_update")[1], [7, None])

    kept(row_sum, act)
    refused(row_sum, lambda s: s.loop_partition(s.get_loops("B")[1], [7, None]),
            "reduction_is_not_cut")


@pytest.mark.parametrize("factors, rule", [
    ([], "partition_needs_factors"),
    ([None, None], "one_factor_is_inferred"),
    ([0, None], "factors_are_positive"),
    ([-2, None], "factors_are_positive"),
    ([19, 2], "factors_fit_extent"),
    ([20, None], "factors_fit_extent"),
])
def test_factors_that_do_not_fit(factors, rule):
    refused(double, lambda s: s.loop_partition(s.get_loops("B")[0], factors), rule)


def test_loops_that_are_not_cut():
    def annotated(sch):
        i, _ = sch.get_loops("B")
        sch.annotate(i, "note", 1)
        sch.loop_partition(i, [2, None])

    refused(double, annotated, "loop_has_no_annotation")

    @T.prim_func
    def open_size(a: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,))
        for i in range(n):
            with T.block("A"):
                vi = T.axis.spatial(n, i)
                A[vi] = T.float32(1)

    refused(open_size, lambda s: s.loop_partition(s.get_loops("A")[0], [2, None]),
            "extent_is_known")


@pytest.mark.parametrize("copy", ["cache_read", "cache_write"])
def test_a_copy_inside_of_a_part_names_no_loop_around(copy):
    """A block may name a loop around it in the bindings of its iterators only."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
""")
    sch = Schedule(func)
    sch.loop_partition(sch.get_loops(sch.get_block("B"))[1], [None, 3])
    getattr(sch, copy)(sch.get_block("B_j0"), 0, "local")
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)
    a = np.random.rand(4, 8).astype("float32")
    b = np.zeros_like(a)
    interpret(sch.mod, a, b, func_name="main")
    np.testing.assert_array_equal(b, a * 2)


def test_parts_declare_what_a_reduction_in_them_goes_on_with():
    sch = Schedule(scaled_sum)
    sch.loop_partition(sch.get_loops("B")[2], [2, None])
    part = sch.get(sch.get_block("B_j0_partition"))
    assert [str(region) for region in part.reads] == ["B[vi, 0:2]", "A[vi, vk]"]


@T.prim_func
def scaled_sum(A: T.Buffer((3, 4), "float32"), B: T.Buffer((3, 6), "float32")):
    for i, k, j in T.grid(3, 4, 6):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = T.float32(0)
            B[vi, vj] = B[vi, vj] + A[vi, vk]

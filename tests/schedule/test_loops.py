"""split, fuse, reorder, loop kinds, unit loops: legal forms keep the meaning, others refuse."""

import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import tir as T
from mlc_lab.tir.stmt import ForKind

from .common import blocks_and_loops, check, chain, matmul, mm_relu, row_sum


def schedule(func):
    sch = Schedule(func)
    return sch, sch.mod


@pytest.mark.parametrize("factors", [[4, 4], [None, 4], [2, None, 4], [None], [16], [1, 16],
                                     [3, 6], [None, 5], [2, 3, None], [5, 2, 2]])
def test_split_keeps_the_program(factors):
    sch, original = schedule(matmul)
    _, i, _, _ = blocks_and_loops(sch, "C")
    loops = sch.split(i, factors=factors)
    assert len(loops) == len(factors)
    check(sch, original)


def test_split_that_does_not_divide_gets_a_predicate():
    sch, _ = schedule(matmul)
    _, i, _, _ = blocks_and_loops(sch, "C")
    sch.split(i, factors=[None, 5])
    assert "T.where(i_0 * 5 + i_1 < 16)" in sch.mod.script()
    sch, _ = schedule(matmul)
    _, i, _, _ = blocks_and_loops(sch, "C")
    sch.split(i, factors=[None, 5], disable_predication=True)
    assert "T.where" not in sch.mod.script()


def test_split_prints_like_the_course():
    sch, _ = schedule(mm_relu)
    _, _, j, _ = blocks_and_loops(sch, "Y")
    sch.split(j, factors=[None, 4])
    text = sch.mod.script()
    assert "for i, j_0, j_1, k in T.grid(16, 4, 4, 16):" in text
    assert "vj = T.axis.spatial(16, j_0 * 4 + j_1)" in text


@pytest.mark.parametrize("factors, rule", [
    ([], "split_needs_factors"), ([None, None], "one_factor_is_inferred"),
    ([0, 16], "factors_are_positive"), ([-1, 4], "factors_are_positive"),
    ([2, 4], "factors_cover_extent")])
def test_split_refuses(factors, rule):
    sch, original = schedule(matmul)
    _, i, _, _ = blocks_and_loops(sch, "C")
    with pytest.raises(ScheduleError) as err:
        sch.split(i, factors=factors)
    assert err.value.rule == rule and "sch.split(" in str(err.value)
    assert sch.mod is sch.steps[-1].after and sch.steps[-1].error is err.value


def test_split_refuses_annotated_and_bound_loops():
    sch, _ = schedule(matmul)
    _, i, j, _ = blocks_and_loops(sch, "C")
    sch.annotate(i, "note", 1)
    with pytest.raises(ScheduleError, match="loop_has_no_annotation"):
        sch.split(i, factors=[None, 4])
    sch.bind(j, "threadIdx.x")
    with pytest.raises(ScheduleError, match="loop_has_no_annotation"):
        sch.split(j, factors=[None, 4])


def test_a_split_loop_is_gone():
    sch, _ = schedule(matmul)
    _, i, _, _ = blocks_and_loops(sch, "C")
    sch.split(i, factors=[None, 4])
    with pytest.raises(ScheduleError, match="not_expired"):
        sch.split(i, factors=[None, 4])


def test_fuse_then_split_keeps_the_program():
    sch, original = schedule(matmul)
    _, i, j, k = blocks_and_loops(sch, "C")
    fused = sch.fuse(i, j)
    assert "i_j_fused" in sch.mod.script()
    sch.split(fused, factors=[None, 3, 7])
    check(sch, original)


def test_fuse_three_and_one():
    sch, original = schedule(matmul)
    _, i, j, k = blocks_and_loops(sch, "C")
    fused = sch.fuse(i, j, k)
    sch.fuse(fused)
    check(sch, original)


def test_fuse_refuses():
    sch, _ = schedule(mm_relu)
    (_, i, j, k), (_, i2, j2) = blocks_and_loops(sch, "Y", "C")
    for loops, rule in (((i, k), "loops_are_adjacent"), ((j, i), "loops_are_adjacent"),
                        ((i, i), "loops_are_distinct"), ((i, j2), "loops_are_adjacent")):
        with pytest.raises(ScheduleError, match=rule):
            sch.fuse(*loops)


@pytest.mark.parametrize("order", [(2, 0, 1), (1, 0), (2, 1, 0), (0, 2), (2, 1)])
def test_reorder_keeps_the_program(order):
    sch, original = schedule(matmul)
    _, *loops = blocks_and_loops(sch, "C")
    sch.reorder(*(loops[o] for o in order))
    check(sch, original)


def test_reorder_leaves_loops_between_in_place():
    sch, original = schedule(matmul)
    block, i, j, k = blocks_and_loops(sch, "C")
    sch.reorder(k, i)
    names = [sch.get(lp).loop_var.name for lp in sch.get_loops(block)]
    assert names == ["k", "j", "i"]


def test_reorder_refuses():
    sch, _ = schedule(mm_relu)
    (_, i, j, k), (_, i2, j2) = blocks_and_loops(sch, "Y", "C")
    with pytest.raises(ScheduleError, match="loops_on_one_chain"):
        sch.reorder(i2, j)
    with pytest.raises(ScheduleError, match="loops_are_distinct"):
        sch.reorder(i, i)
    c = sch.get_block("C")
    sch.reverse_compute_at(c, i)
    with pytest.raises(ScheduleError, match="single_branch"):
        sch.reorder(k, i)


def test_reorder_asks_only_of_the_loops_it_moves_to_be_affine():
    @T.prim_func
    def squares(A: T.Buffer((13, 4), "float32"), B: T.Buffer((13, 4), "float32")):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("B"):
                vi = T.axis.spatial(13, i * i + j)
                vj = T.axis.spatial(4, k)
                B[vi, vj] = A[vi, vj] + T.float32(1.0)

    sch, original = schedule(squares)
    i, j, k = sch.get_loops("B")
    with pytest.raises(ScheduleError, match="affine_binding"):
        sch.reorder(k, j, i)
    sch.reorder(k, j)
    check(sch, original)


def test_reorder_refuses_to_start_a_sum_before_its_init():
    sch, original = schedule(matmul)
    block, i, j, k = blocks_and_loops(sch, "C")
    outer, inner = sch.split(sch.fuse(j, k), factors=[None, 3])
    sch.reorder(outer, i)
    with pytest.raises(ScheduleError, match="init_runs_first"):
        sch.reorder(inner, outer)
    check(sch, original)


def test_loop_kinds():
    sch, original = schedule(matmul)
    _, i, j, k = blocks_and_loops(sch, "C")
    j_0, j_1 = sch.split(j, factors=[None, 4])
    sch.reorder(i, j_0, k, j_1)
    sch.parallel(i)
    sch.vectorize(j_1)
    sch.unroll(j_0)
    assert [sch.get(lp).kind for lp in (i, j_0, k, j_1)] == [
        ForKind.PARALLEL, ForKind.UNROLLED, ForKind.SERIAL, ForKind.VECTORIZED]
    check(sch, original)


@pytest.mark.parametrize("primitive", ["parallel", "vectorize"])
def test_a_reduction_loop_cannot_run_in_parallel(primitive):
    sch, _ = schedule(matmul)
    _, i, j, k = blocks_and_loops(sch, "C")
    with pytest.raises(ScheduleError) as err:
        getattr(sch, primitive)(k)
    assert err.value.rule == "parallel_loops_are_spatial"
    text = str(err.value)
    assert "vk" in text and "rfactor" in text and "k = 0 and k = 1" in text and "^" in text


def test_bind_takes_thread_axes_only():
    sch, _ = schedule(row_sum)
    _, i, k = blocks_and_loops(sch, "B")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    with pytest.raises(ScheduleError, match="thread_axis_exists"):
        sch.bind(k, "thread.x")


def test_parallel_after_decompose_is_refused_as_in_tvm():
    sch, _ = schedule(matmul)
    block, i, j, k = blocks_and_loops(sch, "C")
    sch.decompose_reduction(block, k)
    with pytest.raises(ScheduleError, match="complete_or_reduction"):
        sch.parallel(i)


def test_add_unit_loop_around_block_and_loop():
    sch, original = schedule(chain)
    block, i, j = blocks_and_loops(sch, "C")
    sch.add_unit_loop(block)
    sch.add_unit_loop(i)
    assert len(sch.get_loops(block)) == 4
    check(sch, original)


def test_annotate_and_unannotate():
    sch, original = schedule(matmul)
    block, i, j, k = blocks_and_loops(sch, "C")
    sch.annotate(i, "pragma_auto_unroll_max_step", 16)
    sch.annotate(block, "meta", ["a", 1, 2.5, {"k": True}])
    check(sch, original)
    sch.unannotate(i, "pragma_auto_unroll_max_step")
    with pytest.raises(ScheduleError, match="annotation_exists"):
        sch.unannotate(i, "pragma_auto_unroll_max_step")

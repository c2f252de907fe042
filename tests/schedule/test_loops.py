"""split, fuse, reorder, loop kinds, unit loops: legal forms keep the meaning, others refuse."""

import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import tir as T
from mlc_lab.tir.stmt import ForKind

from .common import (
    blocks_and_loops, chain, check, check_compiled, matmul, mm_relu, refused, row_sum,
)


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


def test_loops_of_no_iterations_fuse():
    @T.prim_func
    def nothing(A: T.Buffer((2, 0, 3), "float32"), B: T.Buffer((2, 0, 3), "float32")):
        for i, j, k in T.grid(2, 0, 3):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi, vj, vk] + T.float32(1)

    sch = Schedule(nothing)
    fused = sch.fuse(*sch.get_loops("B"))
    assert int(sch.get(fused).extent) == 0


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


def test_reorder_asks_what_iterations_touch_and_not_for_affine_bindings():
    @T.prim_func
    def squares(A: T.Buffer((13, 4), "float32"), B: T.Buffer((13, 4), "float32"),
                C: T.Buffer((13,), "float32")):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("B"):
                vi = T.axis.spatial(13, i * i + j)
                vj = T.axis.spatial(4, k)
                B[vi, vj] = A[vi, vj] + T.float32(1.0)
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi = T.axis.spatial(13, i * i + j)
                vj = T.axis.spatial(4, j)
                C[vi] = A[vi, vj]  # the last one stays

    sch, original = schedule(squares)
    i, j, k = sch.get_loops("B")
    sch.reorder(k, j, i)
    check(sch, original)
    i, j = sch.get_loops("C")
    with pytest.raises(ScheduleError, match="dependences_keep_their_order"):
        sch.reorder(j, i)
    check(sch, original)


def test_reorder_above_a_triangular_sum():
    @T.prim_func
    def rows(A: T.Buffer((8, 5, 8), "float32"), B: T.Buffer((8, 5), "float32")):
        for i, m in T.grid(8, 5):
            for j in range(i + 1):
                with T.block("B"):
                    vi, vm, vj = T.axis.remap("SSR", [i, m, j])
                    with T.init():
                        B[vi, vm] = T.float32(0.0)
                    B[vi, vm] += A[vi, vm, vj]

    sch, original = schedule(rows)
    i, m, j = sch.get_loops("B")
    sch.reorder(m, i)
    sch.reorder(i, j, m)
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


@T.prim_func
def bare(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32"),
         C: T.Buffer((10,), "float32")):
    for i in range(10):
        B[i] = A[i]
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            C[vi] = A[vi] + T.float32(1)


@T.prim_func
def chosen(A: T.Buffer((10,), "float32"), C: T.Buffer((10,), "float32")):
    for i in range(10):
        if A[i] > T.float32(0):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                C[vi] = A[vi] + T.float32(1)


@T.prim_func
def ragged(N: T.Buffer((10,), "int32"), A: T.Buffer((10, 8), "float32"),
           C: T.Buffer((10,), "float32")):
    for i in range(10):
        for j in range(N[i]):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                vj = T.axis.spatial(8, j)
                C[vi] = C[vi] + A[vi, vj]


@T.prim_func
def left(A: T.Buffer((10,), "float32"), C: T.Buffer((10,), "float32")):
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            C[vi] = A[vi] + T.float32(1)
        if A[i] > T.float32(0.5):
            break


@T.prim_func
def left_inside(A: T.Buffer((4, 10), "float32"), C: T.Buffer((4, 10), "float32")):
    for i in range(4):
        for j in range(10):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + T.float32(1)
            if A[i, j] > T.float32(0.5):
                break


@T.prim_func
def lower_triangle(A: T.Buffer((10, 10), "float32"), B: T.Buffer((10, 10), "float32")):
    for i in range(10):
        for j in range(i + 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)


@T.prim_func
def triangle_of_sums(A: T.Buffer((10, 10), "float32"), C: T.Buffer((10,), "float32")):
    B = T.alloc_buffer((10, 10))
    for i in range(10):
        for j in range(i + 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
    for i in range(10):
        for j in range(i + 1):
            with T.block("C"):
                vi = T.axis.spatial(10, i)
                vj = T.axis.reduce(10, j)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + B[vi, vj]


@pytest.mark.parametrize("func", [bare, chosen, ragged])
@pytest.mark.parametrize("factors", [[None, 4], [2, None], [5, 3]])
def test_a_split_keeps_surplus_iterations_from_all_that_the_loop_holds(func, factors):
    sch, original = schedule(func)
    sch.split(sch.get_loops("B")[0], factors)
    check_compiled(sch, original)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("factors", [[None, 2], [None, 3], [4, 4], [2, 2, 3], [None, 7]])
def test_loops_of_a_triangle_are_split(which, factors):
    sch, original = schedule(lower_triangle)
    sch.split(sch.get_loops("B")[which], factors)
    check_compiled(sch, original)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("factors", [[None, 3], [2, 2, 3]])
def test_loops_of_a_triangle_are_split_after_cache_write(which, factors):
    sch, original = schedule(triangle_of_sums)
    sch.cache_write("B", 0, "global")
    sch.split(sch.get_loops("B")[which], factors)
    check_compiled(sch, original)


@pytest.mark.parametrize("step", [
    lambda s: s.split(s.get_loops("B")[0], [None, 4]), lambda s: s.unroll(s.get_loops("B")[0])])
def test_a_loop_that_is_left_early_stays_a_loop(step):
    refused(left, step, "loop_runs_to_its_end")


def test_a_loop_that_is_left_early_is_not_fused_with_others():
    refused(left_inside, lambda s: s.fuse(*s.get_loops("B")), "loop_runs_to_its_end")
    sch, original = schedule(left_inside)
    sch.split(sch.get_loops("B")[0], [2, None])
    sch.unroll(sch.get_loops("B")[0])
    check(sch, original)


@T.prim_func
def huge(A: T.Buffer((8,), "int32")):
    for i, j in T.grid(65536, 65536):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(i < 2 and j < 3)
            A[vi + vj] = vj


def test_a_fused_loop_counts_in_int64_where_int32_is_too_short():
    sch, _ = schedule(huge)
    fused = sch.get(sch.fuse(*sch.get_loops("B")))
    assert (fused.extent.value, fused.extent.dtype) == (1 << 32, "int64")
    assert [iv.var.dtype for iv in sch.get(sch.get_block("B")).iter_vars] == ["int64"] * 2
    short = T.prim_func(_three_loops)
    sch, original = schedule(short)
    loops = sch.get_loops("B")
    assert sch.get(sch.fuse(*loops[1:])).loop_var.dtype == "int32"
    check_compiled(sch, original)


def _three_loops(A: T.Buffer((2, 3, 4), "float32")):
    for i, j, k in T.grid(2, 3, 4):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            A[vi, vj, vk] = A[vi, vj, vk] + T.float32(1)


@pytest.mark.parametrize("factors", [[None, 1000], [1, 1 << 40], [1 << 31, 1],
                                     [(1 << 31) - 1, None]])
def test_a_split_into_more_positions_than_can_be_counted_is_refused(factors):
    @T.prim_func
    def long(A: T.Buffer((8,), "int32")):
        for i in range(2147483647):
            with T.block("B"):
                vi = T.axis.spatial(2147483647, i)
                A[vi % 8] = vi

    refused(long, lambda s: s.split(s.get_loops("B")[0], factors), "positions_fit_their_type")
    refused(bare, lambda s: s.split(s.get_loops("B")[0], factors[1:] + [1 << 31]),
            "positions_fit_their_type")


@T.prim_func
def triangular_matmul(L: T.Buffer((10, 10), "float32"), X: T.Buffer((10, 10), "float32"),
                      C: T.Buffer((10, 10), "float32")):
    for i, j in T.grid(10, 10):
        for k in range(i + 1):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + L[vi, vk] * X[vk, vj]


@T.prim_func
def diagonals(A: T.Buffer((10, 10), "float32"), B: T.Buffer((19,), "float32")):
    for i in range(10):
        for j in range(i + 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi + vj] = A[vi, vj]


@pytest.mark.parametrize("kind", ["parallel", "vectorize"])
@pytest.mark.parametrize("func, which", [(lower_triangle, 0), (lower_triangle, 1),
                                         (triangular_matmul, 0), (triangular_matmul, 1)])
@pytest.mark.parametrize("part", [None, 0, 1])
def test_loops_of_a_triangle_run_at_the_same_time_where_none_of_its_iterations_clash(
        func, which, kind, part):
    sch, original = schedule(func)
    loop = sch.get_loops("B")[which]
    getattr(sch, kind)(loop if part is None else sch.split(loop, [None, 3])[part])
    check_compiled(sch, original)


@pytest.mark.parametrize("kind", ["parallel", "vectorize"])
def test_loops_of_a_triangle_whose_iterations_clash_stay_serial(kind):
    sch, _ = schedule(diagonals)
    with pytest.raises(ScheduleError, match="iterations_are_independent"):
        getattr(sch, kind)(sch.get_loops("B")[0])
    sch, _ = schedule(triangular_matmul)
    with pytest.raises(ScheduleError, match="parallel_loops_are_spatial"):
        getattr(sch, kind)(sch.get_loops("B")[2])


def test_the_outer_loop_of_a_triangle_is_bound_to_threads_and_the_inner_is_not():
    sch, original = schedule(lower_triangle)
    i, j = sch.get_loops("B")
    with pytest.raises(ScheduleError, match="number_of_threads_is_fixed"):
        sch.bind(j, "threadIdx.x")
    sch.bind(i, "threadIdx.x")
    check(sch, original)


def test_a_reduction_of_a_triangle_is_not_bound_to_threads():
    sch, _ = schedule(triangular_matmul)
    k_0, k_1 = sch.split(sch.get_loops("B")[2], [None, 4])
    with pytest.raises(ScheduleError, match="affine_binding"):
        sch.bind(k_1, "threadIdx.x")


def test_names_of_loops_do_not_double():
    """What is split is fused again, 200 times: the name was 2 ** 200 characters long."""
    sch = Schedule(matmul)
    before = sch.mod
    for _ in range(200):
        outer, inner = sch.split(sch.get_loops("C")[0], [None, 2])
        fused = sch.fuse(outer, inner)
    assert len(sch.get(fused).loop_var.name) < 300
    check(sch, before)

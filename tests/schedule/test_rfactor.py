"""rfactor: a reduction becomes partial reductions that are independent of each other."""

import numpy as np
import pytest

from laws import check_roundtrip
from mlc_lab import te, tir
from mlc_lab.backend.interp import interpret
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source, tir as T
from mlc_lab.tir.functor import substitute

from .common import check, check_compiled, kept, matmul, mm_relu, refused, row_sum
from .test_cache_read import start


@T.prim_func
def sum3(A: T.Buffer((6, 4, 5), "float32"), B: T.Buffer((6,), "float32")):
    for i, j, k in T.grid(6, 4, 5):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj, vk]


@T.prim_func
def row_max(A: T.Buffer((6, 20), "float32"), B: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 20):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.min_value("float32")
            B[vi] = T.max(B[vi], A[vi, vk])


@T.prim_func
def argmax(idx: T.Buffer((6, 20), "int32"), val: T.Buffer((6, 20), "float32"),
           best_idx: T.Buffer((6,), "int32"), best: T.Buffer((6,), "float32")):
    for i0, i1 in T.grid(6, 20):
        with T.block("argmax"):
            i, k = T.axis.remap("SR", [i0, i1])
            T.reads(idx[i, k], val[i, k])
            T.writes(best_idx[i], best[i])
            with T.init():
                best_idx[i] = -1
                best[i] = T.min_value("float32")
            x0: T.int32 = T.Select(best[i] >= val[i, k], best_idx[i], idx[i, k])
            x1: T.float32 = T.Select(best[i] >= val[i, k], best[i], val[i, k])
            best_idx[i] = x0
            best[i] = x1


@T.prim_func
def argmin_turned(idx: T.Buffer((6, 20), "int32"), val: T.Buffer((6, 20), "float32"),
                  best_idx: T.Buffer((6,), "int32"), best: T.Buffer((6,), "float32")):
    for i0, i1 in T.grid(6, 20):
        with T.block("argmin"):
            i, k = T.axis.remap("SR", [i0, i1])
            T.reads(idx[i, k], val[i, k])
            with T.init():
                best[i] = T.max_value("float32")
                best_idx[i] = -1
            x0: T.int32 = T.Select(best[i] <= val[i, k], best_idx[i], idx[i, k])
            x1: T.float32 = T.Select(best[i] <= val[i, k], best[i], val[i, k])
            best[i] = x1
            best_idx[i] = x0


@T.prim_func
def argmax_too_late(idx: T.Buffer((6, 20), "int32"), val: T.Buffer((6, 20), "float32"),
                    best_idx: T.Buffer((6,), "int32"), best: T.Buffer((6,), "float32")):
    for i0, i1 in T.grid(6, 20):
        with T.block("argmax"):
            i, k = T.axis.remap("SR", [i0, i1])
            with T.init():
                best_idx[i] = -1
                best[i] = T.min_value("float32")
            x1: T.float32 = T.Select(best[i] >= val[i, k], best[i], val[i, k])
            best[i] = x1
            best_idx[i] = T.Select(best[i] >= val[i, k], best_idx[i], idx[i, k])


@T.prim_func
def difference(A: T.Buffer((6, 20), "float32"), B: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 20):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] - A[vi, vk]


def test_an_argmin_with_its_stores_in_the_other_order():
    sch = Schedule(argmin_turned)
    outer, _ = sch.split(sch.get_loops("argmin")[1], factors=[None, 5])
    sch.rfactor(outer, 1)
    sch.state.verify()
    val = np.random.default_rng(2).standard_normal((6, 20)).astype("float32")
    outs = [np.zeros(6, "int32"), np.zeros(6, "float32")]
    interpret(sch.mod["main"], np.arange(120, dtype="int32").reshape(6, 20), val, *outs)
    np.testing.assert_array_equal(outs[0] % 20, val.argmin(1))
    np.testing.assert_array_equal(outs[1], val.min(1))


def test_an_update_that_reads_what_it_has_just_stored_is_no_argmax():
    refused(argmax_too_late, lambda s: s.rfactor(s.get_loops("argmax")[1], 0), "known_reduction")


def test_regions_stand_in_the_order_of_the_block():
    sch = Schedule(argmax)
    outer, _ = sch.split(sch.get_loops("argmax")[1], factors=[None, 5])
    slices = sch.get(sch.rfactor(outer, 1))
    assert [r.buffer.name for r in slices.reads] == ["idx", "val"]
    assert [r.buffer.name for r in slices.writes] == ["best_idx_rf", "best_rf"]
    result = sch.get(sch.get_block("argmax"))
    assert [r.buffer.name for r in result.reads] == ["best_idx_rf", "best_rf"]
    assert [r.buffer.name for r in result.writes] == ["best_idx", "best"]


@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_slices_can_lie_along_any_axis(which, axis):
    sch, before = start(sum3)
    partial = sch.rfactor(sch.get_loops(sch.get_block("B"))[which], axis)
    assert sch.get(partial).name_hint == "B_rf"
    extent = (4, 5)[which - 1]
    shape = [d.value for d in sch.get(partial).writes[0].buffer.shape]
    assert shape == ([extent, 6] if axis % 2 == 0 else [6, extent])
    check(sch, before)


def test_the_only_reduction_loop_leaves_no_init():
    sch, before = start(row_sum)
    partial = sch.rfactor(sch.get_loops(sch.get_block("B"))[1], 0)
    assert sch.get(partial).init is None
    check(sch, before)


def test_a_split_reduction_runs_in_parallel_slices():
    sch, before = start(row_sum)
    block = sch.get_block("B")
    outer, _ = sch.split(sch.get_loops(block)[1], factors=[None, 6])
    partial = sch.rfactor(outer, 0)
    sch.parallel(sch.get_loops(partial)[1])
    sch.rfactor(sch.get_loops(block)[-1], 0)
    check(sch, before)


def test_other_combiners():
    for func in (row_max, argmax):
        sch, before = start(func)
        block = sch.get_child_blocks(sch.get_block("root"))[0]
        outer, _ = sch.split(sch.get_loops(block)[1], factors=[None, 5])
        sch.rfactor(outer, 0)
        sch.state.verify()
        args = [np.random.default_rng(1).permutation(20 * 6).reshape(6, 20).astype("int32"),
                np.random.default_rng(2).standard_normal((6, 20)).astype("float32")]
        if func is row_max:
            check(sch, before)
            continue
        outs = [np.zeros(6, "int32"), np.zeros(6, "float32")]
        interpret(sch.mod["main"], *args, *outs)
        at = args[1].argmax(1)
        np.testing.assert_array_equal(outs[0], args[0][np.arange(6), at])
        np.testing.assert_array_equal(outs[1], args[1].max(1))


def test_under_a_consumer():
    sch, before = start(mm_relu)
    block = sch.get_block("Y")
    i, j, k = sch.get_loops(block)
    sch.reverse_compute_at(sch.get_block("C"), i)
    _, inner = sch.split(k, factors=[None, 4])
    partial = sch.rfactor(inner, 2)
    sch.vectorize(sch.get_loops(partial)[-1])
    check(sch, before)


def test_a_remainder_is_fine_where_every_slice_starts():
    for which in (0, 1):
        sch, before = start(row_sum)
        loops = sch.split(sch.get_loops(sch.get_block("B"))[1], factors=[None, 7])
        sch.rfactor(loops[which], 0)
        check(sch, before)


def test_it_is_refused_where_a_slice_would_never_start():
    sch = Schedule(row_sum)
    _, inner = sch.split(sch.get_loops(sch.get_block("B"))[1], factors=[1, 32])
    with pytest.raises(ScheduleError) as caught:
        sch.rfactor(inner, 0)
    assert caught.value.rule == "every_slice_is_started"


def _fused(sch, block):
    sch.rfactor(sch.fuse(*sch.get_loops(block)), 0)


def _unrolled(sch, block):
    sch.unroll(sch.get_loops(block)[1])
    sch.rfactor(sch.get_loops(block)[1], 0)


@pytest.mark.parametrize("func, rule, step", [
    (row_sum, "loop_is_a_reduction", lambda s, b: s.rfactor(s.get_loops(b)[0], 0)),
    (row_sum, "factor_axis_in_range", lambda s, b: s.rfactor(s.get_loops(b)[1], 2)),
    (row_sum, "factor_axis_in_range", lambda s, b: s.rfactor(s.get_loops(b)[1], -3)),
    (row_sum, "loops_drive_one_kind", _fused),
    (row_sum, "loop_is_serial", _unrolled),
    (row_sum, "expects_loop", lambda s, b: s.rfactor(b, 0)),
    (difference, "known_reduction", lambda s, b: s.rfactor(s.get_loops(b)[1], 0)),
    (row_sum, "reduction_block", lambda s, b: (
        s.decompose_reduction(b, s.get_loops(b)[1]), s.rfactor(s.get_loops(b)[1], 0))),
])
def test_it_is_refused(func, rule, step):
    sch = Schedule(func)
    with pytest.raises(ScheduleError) as caught:
        step(sch, sch.get_block("B"))
    assert caught.value.rule == rule


def test_it_is_refused_where_the_loop_holds_several_blocks():
    sch = Schedule(mm_relu)
    i, j, k = sch.get_loops(sch.get_block("Y"))
    sch.reverse_compute_at(sch.get_block("C"), j)
    with pytest.raises(ScheduleError) as caught:
        sch.rfactor(j, 0)
    assert caught.value.rule == "one_block_under_loop"


def test_it_works_on_a_matmul():
    sch, before = start(matmul)
    block = sch.get_block("C")
    outer, _ = sch.split(sch.get_loops(block)[2], factors=[4, None])
    partial = sch.rfactor(outer, 0)
    i, j, ko, ki = sch.get_loops(partial)
    sch.reorder(ko, i, j, ki)
    sch.parallel(ko)
    check(sch, before)


@T.prim_func
def beside(A: T.Buffer((8, 8), "float32"), B: T.Buffer((9,), "float32")):
    for i, k in T.grid(8, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi + 1] = B[vi + 1] + A[vi, vk]


@T.prim_func
def compound(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + (B[vi] * A[vi, vk] + T.float32(1))


@T.prim_func
def stored_first(V: T.Buffer((4, 8), "float32"), I: T.Buffer((4,), "int32"),
                 M: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = -1
                M[vi] = T.min_value("float32")
            M[vi] = T.Select(M[vi] >= V[vi, vk], M[vi], V[vi, vk])
            I[vi] = T.Select(M[vi] >= V[vi, vk], I[vi], vk)


@T.prim_func
def stored_last(V: T.Buffer((4, 8), "float32"), I: T.Buffer((4,), "int32"),
                M: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = -1
                M[vi] = T.min_value("float32")
            I[vi] = T.Select(M[vi] >= V[vi, vk], I[vi], vk)
            M[vi] = T.Select(M[vi] >= V[vi, vk], M[vi], V[vi, vk])


@T.prim_func
def first_of_equal(V: T.Buffer((4, 12), "int32"), I: T.Buffer((4,), "int32"),
                   M: T.Buffer((4,), "int32")):
    for i, k0, k1 in T.grid(4, 3, 4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(12, k0 * 4 + k1)
            with T.init():
                I[vi] = -1
                M[vi] = T.min_value("int32")
            i_new: T.int32 = T.Select(M[vi] >= V[vi, vk], I[vi], vk)
            m_new: T.int32 = T.Select(M[vi] >= V[vi, vk], M[vi], V[vi, vk])
            I[vi] = i_new
            M[vi] = m_new


@T.prim_func
def late(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 7):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(8, k + 1)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def halves(A: T.Buffer((8, 6), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(8, 6):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi // 2] = T.float32(0)
            C[vi // 2] = C[vi // 2] + A[vi, vk]


@T.prim_func
def from_three(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        for k in T.serial(3, 8):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce((3, 8), k)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def feeding(A: T.Buffer((5, 6), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        for k in range(6):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
        for k in range(6):
            with T.block("D"):
                vi, vk = T.axis.remap("SS", [i, k])
                A[vi + 1, vk] = A[vi, vk] + C[vi]


@pytest.mark.parametrize("func, rule", [
    (beside, "known_reduction"), (compound, "known_reduction"),
    (stored_first, "known_reduction"), (late, "init_runs_first"),
    (halves, "spatial_iterators_are_spatial"), (first_of_equal, "first_of_equal_wins")])
def test_a_reduction_that_is_none_stays_whole(func, rule):
    refused(func, lambda s: s.rfactor(s.get_loops("B")[-1], 0), rule)


def test_slices_are_not_computed_before_what_they_read_is_written():
    error = refused(feeding, lambda s: s.rfactor(s.get_loops("B")[1], 0),
                    "slices_can_be_computed_first")
    assert error.conflict == "i = 0, k = 0: D writes A[1, 0]; i = 1, k = 0: B reads it"


@pytest.mark.parametrize("func, which", [(stored_last, 1), (first_of_equal, 1), (from_three, 1)])
def test_the_order_that_matters_is_kept(func, which):
    sch, before = start(func)
    sch.rfactor(sch.get_loops("B")[which], 0)
    check_compiled(sch, before)


@T.prim_func
def rows(a: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m))
    C = T.match_buffer(c, (n,))
    for i, k in T.grid(n, m):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("factors", [[None, 4], [4, None]])
@pytest.mark.parametrize("rows_by", [None, 3])
def test_a_split_of_a_symbolic_extent_is_factored(which, factors, rows_by):
    sch, before = start(rows)
    i, k = sch.get_loops("B")
    if rows_by:
        sch.split(i, [None, rows_by])
    sch.rfactor(sch.split(k, factors)[which], 0)
    for n, m in ((1, 1), (4, 3), (5, 17)):
        a = np.random.default_rng(n).standard_normal((n, m)).astype("float32")
        check_compiled(sch, before, a, np.zeros(n, "float32"))


def triangle(extent="i + 1", inner="1", bound="j"):
    """Sums of rows, each with its own length."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((6, 6, 6), "float32"), B: T.Buffer((6,), "float32")):
    for i in range(6):
        for k in range({extent}):
            for j in range({inner}):
                with T.block("B"):
                    v = T.axis.spatial(6, i)
                    vk = T.axis.reduce(6, k)
                    vj = T.axis.reduce(6, {bound})
                    with T.init():
                        B[v] = T.float32(0)
                    B[v] = B[v] + A[v, vk, vj]
""")


@pytest.mark.parametrize("func", [triangle(), triangle("6 - i", "3"), triangle("i"), triangle(
    "i + 1", "k + 1"), triangle("i + 1", "k + 1", "j // 2")])
def test_slices_of_a_triangle(func):
    """Where loops have other lengths in each row, slices have the most there is."""
    kept(func, lambda s: s.rfactor(s.get_loops("B")[1], 0))


def test_slices_of_split_triangles():
    kept(triangle(), lambda s: s.rfactor(s.split(s.get_loops("B")[1], [None, 2])[1], 0))
    kept(triangle(), lambda s: s.rfactor(s.split(s.get_loops("B")[1], [None, 2])[0], 1))


@pytest.mark.parametrize("func, step, rule", [
    (triangle("i + 1", "k + 1"), lambda s: s.get_loops("B")[2], "slices_are_known"),
    (triangle("i"), lambda s: s.split(s.get_loops("B")[1], [None, 2])[1], "every_slice_is_started"),
])
def test_slices_of_a_triangle_that_may_be_left_out_are_refused(func, step, rule):
    refused(func, lambda s: s.rfactor(step(s), 0), rule)


def test_slices_of_a_buffer_whose_pointer_has_no_type():
    sums = row_sum.buffers[-1]
    bare = sums.replace(data=tir.Var("p", "handle"))
    func = row_sum.replace(
        body=substitute(row_sum.body, {}, {sums: bare}),
        buffer_map={p: bare if b is sums else b for p, b in row_sum.buffer_map.items()})
    sch = Schedule(func)
    sch.rfactor(sch.get_loops("B")[1], 0)
    slices = sch.get(sch.get_block("B_rf")).writes[0].buffer
    assert slices.data.type_annotation.element_type.dtype == slices.dtype == "float32"


def test_the_slices_of_a_block_in_a_branch_stand_in_one_sequence_with_it():
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32"), n: T.int32):
    if n > 0:
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
"""))
    sch.rfactor(sch.get_loops("B")[1], 0)
    sch.rfactor(sch.get_loops("B")[1], 0)
    assert len(sch.mod["main"].body.block.body.then_case.seq) == 3
    check_roundtrip(sch.mod)


def test_the_slices_of_one_number_count_as_their_dimension_does():
    A = te.placeholder((16,), name="A")
    k = te.reduce_axis((0, 16), name="k")
    func = te.create_prim_func([A, te.compute((), lambda: te.sum(A[k], axis=k), name="B")])
    sch = kept(func, lambda s: s.rfactor(s.get_loops("B")[0], 0))
    slices = sch.get(sch.get_block("B_rf")).writes[0].buffer
    assert slices.elem_offset.dtype == slices.shape[0].dtype

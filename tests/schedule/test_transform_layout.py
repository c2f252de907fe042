"""transform_layout, set_axis_separator, transform_block_layout, reorder_block_iter_var."""

import numpy as np
import pytest

from mlc_lab import te
from mlc_lab.backend.interp import interpret
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source, tir as T
from mlc_lab.tir import IndexMap, IntImm, TensorIntrin

from .common import (
    chain, check, check_compiled, kept, matmul, mm_relu, refused, row_sum, run,
)
from .test_blockize import tiled
from .test_cache_read import start
from .test_reindex import conv2d
from .test_tensorize import tile_desc, tile_impl


@T.prim_func
def fourteen(A: T.Buffer((16,), "float32"), C: T.Buffer((14,), "float32")):
    B = T.alloc_buffer((14,))
    for i in range(14):
        with T.block("B"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi] + T.float32(1)


def test_an_intermediate_buffer_in_tiles():
    sch, before = start(chain)
    sch.transform_layout("B", ("write", 0), lambda i, j: (i // 4, j // 3, i % 4, j % 3))
    assert "B = T.alloc_buffer((4, 4, 4, 3))" in sch.mod.script()
    check(sch, before)


def test_a_buffer_can_be_named_and_the_map_given_as_indexmap():
    scripts = set()
    for buffer in ("B", ("write", 0)):
        for index_map in (lambda i, j: (j, i), IndexMap.from_func(lambda i, j: (j, i))):
            sch, before = start(chain)
            sch.transform_layout("B", buffer, index_map)
            scripts.add(str(sch.trace) + sch.mod.script())
            check(sch, before)
    assert len(scripts) == 1


def test_a_map_names_its_last_index_after_the_others():
    sch, before = start(chain)
    sch.transform_layout("B", ("write", 0), lambda *outer, k: [*outer, k // 4, k % 4])
    assert "B = T.alloc_buffer((16, 3, 4))" in sch.mod.script()
    check(sch, before)
    found = IndexMap.from_func(lambda i, *rest, k, m: [m, k, *rest, i], ndim=4)
    named = [v.name for v in found.initial_indices]
    assert named == ["i", "rest_0", "k", "m"]
    assert [v.name for v in found.final_indices] == ["m", "k", "rest_0", "i"]


def test_a_parameter_changes_its_shape():
    sch, before = start(matmul)
    sch.transform_layout("C", ("read", 1), lambda k, j: (j // 8, k, j % 8))
    assert "B: T.Buffer((2, 16, 8), " in sch.mod.script()
    a, b, _ = (np.asarray(x) for x in run(before))
    out = np.zeros((16, 16), "float32")
    interpret(sch.mod["main"], a, np.ascontiguousarray(
        b.reshape(16, 2, 8).transpose(1, 0, 2)), out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-4)


def test_reductions_tiles_and_decomposed_blocks_follow():
    sch, before, block, outer, inner = tiled(mm_relu, "Y", 4, 4, 4)
    made = sch.blockize(inner[0])
    sch.transform_layout(made, ("write", 0), lambda i, j: (i // 4, j // 4, i % 4, j % 4))
    assert "T.writes(Y[vi_o, vj_o, 0:4, 0:4])" in sch.mod.script()
    check(sch, before)
    sch.decompose_reduction(made, outer[2])
    check(sch, before)


def test_padding_is_written_by_the_block_that_writes_the_buffer():
    sch, before = start(fourteen)
    sch.transform_layout("B", "B", lambda i: (i // 4, i % 4), pad_value=0.0)
    assert "T.if_then_else(v_axis0 == 3 and 2 <= v_axis1, T.float32(0.0)" in sch.mod.script()
    check(sch, before)
    sch, before = start(fourteen)
    sch.transform_layout("B", "B", lambda i: ((i + 1) // 4, (i + 1) % 4),
                         pad_value=lambda i, j: T.Cast("float32", i * 4 + j))
    check(sch, before)


def test_a_padded_reduction():
    sch, before = start(mm_relu)
    sch.transform_layout("Y", ("write", 0), lambda i, j: (i // 5, j, i % 5), pad_value=1.0)
    assert len(sch.get_loops(sch.get_block("Y"))) == 4
    check(sch, before)


def test_padding_is_written_by_a_block_of_its_own_where_loops_are_split():
    sch, before = start(fourteen)
    sch.split(sch.get_loops(sch.get_block("B"))[0], factors=[None, 7])
    sch.transform_layout("B", "B", lambda i: (i // 4, i % 4), pad_value=0.0)
    assert 'T.block("buffer_B_padding")' in sch.mod.script()
    check(sch, before)


@pytest.mark.parametrize("loop, binding, update", [
    ("range(2)", "k", "C[v] + C[0] * T.float32(2) + A[v, w]"),
    ("range(2)", "k", "T.Select(v > 0, C[v] + C[v // 2] + A[v, w], C[v])"),
    ("range(i + 1)", "k", "C[v] + A[v, w]"),
    ("range(i, 8)", "k - i", "C[v] + A[v, w]")])
def test_padding_is_written_apart_where_the_writer_needs_its_own_loops(loop, binding, update):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), D: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        for k in {loop}:
            with T.block("C"):
                v = T.axis.spatial(8, i)
                w = T.axis.reduce(8, {binding})
                with T.init():
                    C[v] = T.float32(1)
                C[v] = {update}
    for i in range(8):
        with T.block("D"):
            v = T.axis.spatial(8, i)
            D[v] = C[v] * T.float32(2)
""")
    sch = kept(func, lambda sch: sch.transform_layout(
        "C", "C", lambda a: (a // 3, a % 3), pad_value=0.0))
    assert 'T.block("buffer_C_padding")' in sch.mod.script()


def test_padding_of_an_input_is_assumed():
    sch, before = start(fourteen)
    sch.transform_layout("B", "A", lambda i: (i // 5, i % 5), pad_value=0.0)
    script = sch.mod.script()
    assert 'T.block("buffer_A_assumptions")' in script and "T.assume(" in script
    a, c = (np.asarray(x) for x in run(before))
    wide = np.zeros(20, "float32")
    wide[:16] = a
    out = np.zeros(14, "float32")
    interpret(sch.mod["main"], wide.reshape(4, 5), out)
    np.testing.assert_allclose(out, c)


def test_an_unchecked_map():
    sch, before = start(fourteen)
    sch.transform_layout("B", "B", lambda i: (i * 2,), assume_injective_transform=True)
    check(sch, before)


def test_a_dimension_may_be_turned_around():
    sch, before = start(chain)
    sch.transform_layout("B", "B", lambda i, j: (j, 15 - i))
    check(sch, before)


def test_tensor_expressions_name_the_separator_too():
    assert te.AXIS_SEPARATOR == IndexMap.AXIS_SEPARATOR
    sch, before = start(chain)
    sch.transform_layout("B", ("write", 0), lambda i, j: [i // 4, te.AXIS_SEPARATOR, i % 4, j])
    assert "axis_separators=[1]" in sch.mod.script()
    check(sch, before)


def test_axis_separators_are_a_step_of_their_own():
    sch, before = start(chain)
    sch.transform_layout("B", ("write", 0), lambda i, j: [i // 4, IndexMap.AXIS_SEPARATOR,
                                                          i % 4, j])
    sch.transform_layout("C", ("write", 0), lambda i, j: (j, i), axis_separators=[1])
    assert str(sch.trace).count("set_axis_separator") == 2
    assert sch.mod.script().count("axis_separators=[1]") == 2
    check(sch, before)


@pytest.mark.parametrize("func, rule, step", [
    (fourteen, "padding_has_a_value", lambda s: s.transform_layout(
        "B", "B", lambda i: (i // 4, i % 4))),
    (fourteen, "map_is_injective", lambda s: s.transform_layout("B", "B", lambda i: (i // 2,))),
    (fourteen, "indices_start_at_zero", lambda s: s.transform_layout("B", "B", lambda i: (9 - i,))),
    (fourteen, "map_takes_the_dimensions", lambda s: s.transform_layout(
        "B", "B", IndexMap.from_func(lambda i, j: (i, j)))),
    (fourteen, "buffer_is_accessed", lambda s: s.transform_layout("B", "C", lambda i: (i,))),
    (chain, "separators_lie_between_dimensions", lambda s: s.set_axis_separator("B", "B", [3])),
    (chain, "separators_lie_between_dimensions", lambda s: s.set_axis_separator("B", "B", [1, 1])),
    (chain, "trivial_bindings", lambda s: (
        s.split(s.get_loops("B")[0], factors=[None, 4]),
        s.transform_block_layout("B", lambda i, j: (j, i)))),
    (chain, "alone_in_its_loops", lambda s: (
        s.compute_at("C", s.get_loops("D")[0]),
        s.transform_block_layout("C", lambda i, j: (j, i)))),
    (chain, "map_is_bijective", lambda s: s.transform_block_layout("B", lambda i, j: (i,))),
    (chain, "map_is_bijective", lambda s: s.transform_block_layout("B", lambda i, j: ())),
    (chain, "map_is_injective", lambda s: s.transform_layout("B", ("write", 0), lambda i, j: ())),
    (chain, "map_is_bijective", lambda s: s.transform_block_layout(
        "B", lambda i, j: (i // 5, i % 5, j))),
    (chain, "map_takes_the_iterators", lambda s: s.transform_block_layout("B", lambda i: (i,))),
    (matmul, "iterators_of_one_kind", lambda s: s.transform_block_layout(
        "C", lambda i, j, k: (i, j * 16 + k))),
    (matmul, "order_is_a_permutation", lambda s: s.reorder_block_iter_var("C", [0, 1])),
    (matmul, "order_is_a_permutation", lambda s: s.reorder_block_iter_var("C", [0, 1, 3])),
    (matmul, "has_scope", lambda s: s.reorder_block_iter_var("root", [])),
])
def test_it_is_refused(func, rule, step):
    sch = Schedule(func)
    with pytest.raises(ScheduleError) as caught:
        step(sch)
    assert caught.value.rule == rule


def test_it_is_refused_where_an_intrinsic_views_the_buffer():
    TensorIntrin.register("test_tile_4x4x4", tile_desc, tile_impl, override=True)
    sch, before, block, outer, inner = tiled(mm_relu, "Y", 4, 4, 4)
    sch.tensorize(inner[0], "test_tile_4x4x4")
    with pytest.raises(ScheduleError) as caught:
        sch.transform_layout("Y_o", ("write", 0), lambda i, j: (j, i))
    assert caught.value.rule == "buffer_has_no_views"


def test_a_block_gets_other_iterators():
    for func, name, index_map in (
            (chain, "B", lambda i, j: (i * 12 + j,)),
            (chain, "C", lambda i, j: (j, i // 4, i % 4)),
            (matmul, "C", lambda i, j, k: (k, i * 16 + j)),
            (conv2d, "Y", lambda n, h, w, co, rh, rw, rc: (
                n * 16 + h * 4 + w, co, rh * 6 + rw * 2 + rc))):
        sch, before = start(func)
        sch.transform_block_layout(name, index_map)
        check(sch, before)


def test_iterators_in_another_order():
    sch, before = start(matmul)
    loops = sch.get_loops("C")
    sch.reorder_block_iter_var("C", [2, 0, 1])
    assert [iv.var.name for iv in sch.get(sch.get_block("C")).iter_vars] == ["vk", "vi", "vj"]
    assert [sch.get(a) for a in loops] == [sch.get(b) for b in sch.get_loops("C")]
    check(sch, before)


def test_a_reduction_iterator_that_stands_still_stays_one():
    sch, before = start(matmul)
    made = sch.blockize(sch.get_loops("C")[2])
    sch.reorder_block_iter_var(made, [2, 0, 1])
    check(sch, before)
    sch, before = start(row_sum)
    sch.blockize(sch.get_loops("B")[1])
    sch.transform_block_layout("B_o", lambda i, k: (k, i))
    check(sch, before)


@pytest.mark.parametrize("step", [
    lambda sch: sch.transform_layout("b", ("write", 0), lambda i, j: i * 40000 + j),
    lambda sch: sch.transform_block_layout("b", lambda i, j: i * 40000 + j)])
def test_what_int32_cannot_index_is_refused(step):
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((70000, 40000), "int8")):
    for i, j in T.grid(70000, 40000):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.int8(1)
"""))
    before = sch.mod
    with pytest.raises(ScheduleError, match="larger than its type can hold"):
        step(sch)
    assert sch.mod is before


@T.prim_func
def part(A: T.Buffer((9,), "float32"), B: T.Buffer((9,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)


@T.prim_func
def shorter(A: T.Buffer((9,), "float32"), B: T.Buffer((9,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)


@T.prim_func
def lower_triangle(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i in range(8):
        for j in range(i + 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)


@T.prim_func
def views(A: T.Buffer((8, 6), "float32"), B: T.Buffer((8, 6), "float32")):
    for i, j in T.grid(8, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            a = T.match_buffer(A[vi, vj], ())
            b = T.match_buffer(B[vi, vj], ())
            b[()] = a[()] * T.float32(2)


@T.prim_func
def prefix(A: T.Buffer((9,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            A[vi + 1] = A[vi + 1] + A[vi]


@T.prim_func
def weighted(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] * T.float32(0.5) + A[vi, vk]


@pytest.mark.parametrize("func, index_map", [
    (part, lambda i: (i + 1,)), (part, lambda i: (4 - i,)), (part, lambda i: (3 - i,)),
    (shorter, lambda i: (i // 2, 1 - i % 2)), (views, lambda i, j: (i * 6 + j,)),
    (views, lambda i, j: (5 - j, i // 2, i % 2 + 3)), (prefix, lambda i: (i // 4, i % 4)),
    (prefix, lambda i: (i + 5,)), (weighted, lambda i, k: (k // 2, i, k % 2)),
    (row_sum, lambda i, k: (23 - k, i))])
def test_iterators_are_mapped_from_wherever_they_start(func, index_map):
    sch, before = start(func)
    sch.transform_block_layout("B", index_map)
    check_compiled(sch, before)


@pytest.mark.parametrize("func, index_map, rule", [
    (prefix, lambda i: (8 - i,), "dependences_keep_their_order"),
    (prefix, lambda i: (i % 4, i // 4), "dependences_keep_their_order"),
    (weighted, lambda i, k: (i, 7 - k), "dependences_keep_their_order"),
    (weighted, lambda i, k: (k % 2, i, k // 2), "dependences_keep_their_order"),
    (lower_triangle, lambda i, j: (j, i), "loops_make_a_box")])
def test_iterators_keep_an_order_that_matters(func, index_map, rule):
    error = refused(func, lambda s: s.transform_block_layout("B", index_map), rule)
    assert error.conflict or func is lower_triangle


@pytest.mark.parametrize("index_map", [
    lambda a, b, c: (c * 4 + a // 4, a % 4, b), lambda a, b, c: (a, b, c * 2)])
def test_iterators_with_gaps_between_their_values_are_refused(index_map):
    """The reduction would run over the gaps too."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((1, 3, 6), "float32"), B: T.Buffer((1, 3), "float32")):
    for i, j, k in T.grid(1, 3, 6):
        with T.block("B"):
            a, b, c = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[a, b] = T.float32(0)
            B[a, b] = B[a, b] + T.float32(2)
""")
    refused(func, lambda s: s.transform_block_layout("B", index_map), "map_is_bijective")


def test_padding_declares_no_place_that_memory_says_nothing_of():
    """What a block reads there may be said by an index buffer, which has no element for padding."""
    func = from_source("""
@T.prim_func
def main(K: T.Buffer((4,), "int32"), A: T.Buffer((8,), "float32"), B: T.Buffer((4,), "float32")):
    C = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = A[K[v]]
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = C[v]
""")
    sch = Schedule(func)
    sch.transform_layout("C", ("write", 0), lambda i: (i // 3, i % 3), pad_value=0.0)
    text = sch.mod.script()
    assert "T.reads(A[0:8], K[v_axis0 * 3 + v_axis1])" in text
    index = np.array([7, 0, 3, 5], "int32")
    a, b = np.arange(8, dtype="float32"), np.zeros(4, "float32")
    interpret(sch.mod["main"], index, a, b)
    np.testing.assert_array_equal(b, a[index])


@T.prim_func
def sum_of_one(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 1):
        with T.block("B"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                B[v] = T.float32(0)
            B[v] = B[v] + A[v]


def test_a_block_that_starts_a_reduction_keeps_an_iterator_of_it():
    refused(sum_of_one, lambda s: s.transform_block_layout("B", lambda i, k: (k * 4 + i,)),
            "keeps_a_reduction")
    sch, before = start(sum_of_one)
    sch.transform_block_layout("B", lambda i, k: (k, i // 2, i % 2))
    check(sch, before)


@pytest.mark.parametrize("act", [
    lambda s: s.transform_layout("B", "B", lambda i, j: (i, j // 4, j % 4)),
    lambda s: s.transform_block_layout("B", lambda i, j: (j, i))])
def test_an_iterator_that_is_handed_on_stays_also_with_one_value(act):
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((1, 8), "float32"), C: T.Buffer((1, 8), "float32")):
    B = T.alloc_buffer((1, 8))
    for i, j in T.grid(1, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(1, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
""")
    block = kept(func, act)
    block = block.get(block.get_block("B"))
    assert block.writes[0].region[0].min in [iv.var for iv in block.iter_vars]


def test_a_map_may_use_sampled_numbers():
    twelve = from_source("""
@T.prim_func
def main(A: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
    B = T.alloc_buffer((12,))
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi] = B[vi]
""")

    def act(sch):
        _, outer, inner = sch.sample_perfect_tile(sch.get_loops("B")[0], 3, decision=[3, 2, 2])
        sch.transform_layout("B", ("write", 0), lambda i: (i // (outer * inner),
                                                           i % (outer * inner)))

    sch = kept(twelve, act)
    assert [d.value for d in sch.get(sch.get_block("B")).writes[0].buffer.shape] == [3, 4]


@pytest.mark.parametrize("index_map", [
    lambda i, j: (i * 4 + j,), lambda i, j: (j, i), lambda i, j: (j, i // 2, i % 2)])
def test_a_map_of_wide_indices_is_read_back_as_it_was_written(index_map):
    """`check` of `kept` compares the text of the trace that was replayed."""
    kept(from_source("""
@T.prim_func
def main(A: T.Buffer((T.int64(6), T.int64(4)), "float32"),
         B: T.Buffer((T.int64(6), T.int64(4)), "float32")):
    for i, j in T.grid(T.int64(6), T.int64(4)):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""), lambda s: s.transform_block_layout("B", index_map))


def test_a_pad_value_of_another_type_is_refused():
    sch = Schedule(chain)
    with pytest.raises(ScheduleError, match="number that fits float32"):
        sch.transform_layout("B", "B", lambda i, j: (i, j // 7, j % 7), pad_value=IntImm("int8", 0))


@T.prim_func
def rows_of_the_run(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (4, n), "float32")
    C = T.match_buffer(c, (4, n), "float32")
    B = T.alloc_buffer((4, n))
    for i, j in T.grid(4, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(4, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


@pytest.mark.parametrize("index_map, shape", [
    (lambda i, j: (i, j * 2), "(4, T.max(n * 2 - 1, 0))"),
    (lambda i, j: (j * 4 + i // 2, i % 2), "(T.max(n * 4 - 2, 0), 2)"),
    (lambda i, j: (j + 1, i), "(n + 1, 4)"),
])
def test_a_buffer_that_may_be_empty_has_no_negative_extent(index_map, shape):
    """The largest index of an empty dimension is -1; times a factor, it was the extent."""
    sch = Schedule(rows_of_the_run)
    sch.transform_layout("B", ("write", 0), index_map, assume_injective_transform=True)
    assert f"B = T.alloc_buffer({shape})" in sch.mod.script()
    for n in (0, 1, 3):
        a, c = np.arange(4.0 * n, dtype="float32").reshape(4, n), np.zeros((4, n), "float32")
        interpret(sch.mod["main"], a, c)
        np.testing.assert_array_equal(c, a * 2 + 1)

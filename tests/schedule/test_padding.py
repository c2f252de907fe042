"""pad_einsum and decompose_padding."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source, tir as T

from .common import chain, check, check_compiled, kept, matmul, refused, row_sum
from .test_cache_read import start
from .test_reindex import conv2d
from .test_rfactor import row_max


@T.prim_func
def odd_matmul(A: T.Buffer((13, 10), "float32"), B: T.Buffer((10, 7), "float32"),
               D: T.Buffer((13, 7), "float32")):
    C = T.alloc_buffer((13, 7))
    for i, j, k in T.grid(13, 7, 10):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(13, 7):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))


@T.prim_func
def pad2d(x: T.Buffer((8, 6), "float32"), y: T.Buffer((12, 6), "float32")):
    for i, j in T.grid(12, 6):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.if_then_else(vi >= 3 and vi < 11, x[vi - 3, vj], T.float32(0))


@T.prim_func
def triangle(x: T.Buffer((8, 8), "float32"), y: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.if_then_else(vi < vj, x[vi, vj], T.float32(0))


@pytest.mark.parametrize("padding", [[4, 4, 4], [1, 1, 8], [16, 1, 1], [1, 1, 1], [13, 7, 10]])
def test_extents_are_rounded_up(padding):
    sch, before = start(odd_matmul)
    sch.pad_einsum("C", padding)
    extents = [sch.get(lp).extent.value for lp in sch.get_loops("C")]
    assert extents == [-(-e // p) * p for e, p in zip((13, 7, 10), padding)]
    check(sch, before)


def test_a_padded_matmul_tiles_without_remainder():
    sch, before = start(odd_matmul)
    sch.pad_einsum("C", [4, 8, 1])
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    sch.split(i, factors=[None, 4])
    sch.split(j, factors=[None, 8])
    assert "T.where" not in sch.mod.script()
    check(sch, before)


def test_spatial_padding_needs_no_zeros():
    sch, before = start(row_max)
    sch.pad_einsum("B", [4, 1])
    check(sch, before)


def shared_loops(sch):
    sch.compute_at("C", sch.get_loops("D")[0])
    sch.pad_einsum("C", [1, 8])


@pytest.mark.parametrize("func, rule, step", [
    (odd_matmul, "one_padding_each", lambda s: s.pad_einsum("C", [4, 4])),
    (odd_matmul, "one_padding_each", lambda s: s.pad_einsum("C", [4, 4, 0])),
    (row_max, "zeros_add_nothing", lambda s: s.pad_einsum("B", [1, 16])),
    (conv2d, "einsum_pattern", lambda s: s.pad_einsum("Y", [1, 8, 1, 1, 1, 1, 1])),
    (chain, "alone_in_its_loops", shared_loops),
    (odd_matmul, "trivial_bindings", lambda s: (
        s.fuse(*s.get_loops("C")[:2]), s.pad_einsum("C", [4, 4, 4]))),
    (matmul, "padding_pattern", lambda s: (
        s.decompose_padding("C", s.get_loops("C")[0]))),
    (triangle, "condition_is_a_box", lambda s: s.decompose_padding("y", s.get_loops("y")[0])),
    (odd_matmul, "loop_is_around_block", lambda s: s.decompose_padding(
        "D", s.get_loops("C")[0])),
])
def test_it_is_refused(func, rule, step):
    sch = Schedule(func)
    with pytest.raises(ScheduleError) as caught:
        step(sch)
    assert caught.value.rule in (rule, "complete_block")


def test_filling_and_copying_apart():
    for level in (0, 1):
        sch, before = start(pad2d)
        made = sch.decompose_padding("y", sch.get_loops("y")[level])
        assert sch.get(made).name_hint == "y_pad_const"
        check(sch, before)


def test_in_other_loops():
    sch, before = start(pad2d)
    i, j = sch.get_loops("y")
    sch.reorder(j, i)
    sch.decompose_padding("y", i)
    check(sch, before)
    for step in ("split", "fuse", "remainder"):
        sch, before = start(pad2d)
        i, j = sch.get_loops("y")
        if step == "fuse":
            loop = sch.fuse(i, j)
        else:
            loop = sch.split(i, factors=[None, 5 if step == "remainder" else 4])[1]
        sch.decompose_padding("y", loop)
        check(sch, before)


def test_whether_it_can_be_done_is_asked_without_doing_it():
    sch, before = start(pad2d)
    i, j = sch.get_loops("y")
    assert sch.can_decompose_padding("y", i) and sch.can_decompose_padding("y", j)
    assert sch.mod is before and not sch.trace.insts[3:]

    @T.prim_func
    def pads_nothing(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.if_then_else(0 <= vi and vi < 8, A[vi], T.float32(0))

    sch = Schedule(pads_nothing)
    assert not sch.can_decompose_padding("B", sch.get_loops("B")[0])
    refused(pads_nothing, lambda s: s.decompose_padding("B", s.get_loops("B")[0]),
            "padding_pattern")


def test_it_takes_a_complete_block():
    sch = Schedule(row_sum)
    with pytest.raises(ScheduleError) as caught:
        sch.decompose_padding("B", sch.get_loops("B")[0])
    assert caught.value.rule == "complete_block"


def test_a_symbolic_extent_is_rounded_up():
    @T.prim_func
    def scaled(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 6), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i, k in T.grid(n, 6):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    sch = Schedule(scaled)
    sch.pad_einsum("B", [4, 4])
    assert "A_pad = T.alloc_buffer(((n + 3) // 4 * 4, 8))" in sch.mod.script()
    data = np.random.default_rng(0).random((5, 6), "float32")
    out = np.zeros(5, "float32")
    interpret(sch.mod["main"], data, out)
    np.testing.assert_allclose(out, data.sum(1), rtol=1e-5)


@T.prim_func
def in_place(A: T.Buffer((10,), "float32")):
    for i in range(7):
        with T.block("A"):
            vi = T.axis.spatial(7, i)
            A[vi] = A[vi] + T.float32(1)


@T.prim_func
def partial(A: T.Buffer((9, 8), "float32"), B: T.Buffer((12, 8), "float32")):
    for i, j in T.grid(7, 5):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


@T.prim_func
def one_row(A: T.Buffer((3, 7), "float32"), B: T.Buffer((4, 9), "float32")):
    for j in range(7):
        with T.block("A"):
            vj = T.axis.spatial(7, j)
            B[2, vj] = A[1, vj] * T.float32(2)


@T.prim_func
def diagonal(A: T.Buffer((7, 7), "float32"), B: T.Buffer((7, 7), "float32")):
    for j in range(7):
        with T.block("A"):
            vj = T.axis.spatial(7, j)
            B[vj, vj] = B[vj, vj] + A[vj, vj]


@T.prim_func
def undeclared(A: T.Buffer((5, 7), "float32"), B: T.Buffer((7,), "float32"),
               C: T.Buffer((5,), "float32")):
    for i, k in T.grid(5, 7):
        with T.block("A"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(C[vi])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk] * B[vk]


@T.prim_func
def update(A: T.Buffer((5, 7), "float32"), B: T.Buffer((7,), "float32"),
           C: T.Buffer((5,), "float32")):
    for i, k in T.grid(5, 7):
        with T.block("A"):
            vi, vk = T.axis.remap("SS", [i, k])
            C[vi] = C[vi] + A[vi, vk] * B[vk]


@T.prim_func
def triangular(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i in range(8):
        for j in range(i + 1):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)


@T.prim_func
def last_one(A: T.Buffer((5, 7), "float32"), C: T.Buffer((5,), "float32")):
    for i, k in T.grid(5, 7):
        with T.block("A"):
            vi, vk = T.axis.remap("SS", [i, k])
            C[vi] = A[vi, vk]


@T.prim_func
def elsewhere(A: T.Buffer((8, 7), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(7, 7, 7):
        with T.block("A"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vj, vi] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * A[vj, vk]


@T.prim_func
def quotients(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32"), C: T.Buffer((7,), "int32")):
    for i in range(7):
        with T.block("A"):
            vi = T.axis.spatial(7, i)
            C[vi] = A[vi] // B[vi]


@T.prim_func
def scaled(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5,), "float32"),
           C: T.Buffer((5,), "float32")):
    for i, k in T.grid(5, 7):
        with T.block("A"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk] * B[vi]


@pytest.mark.parametrize("func", [in_place, partial, one_row, diagonal, undeclared, update])
def test_only_what_the_block_writes_is_written(func):
    sch, before = start(func)
    sch.pad_einsum("A", [4] * len(sch.get(sch.get_block("A")).iter_vars))
    check_compiled(sch, before)


@pytest.mark.parametrize("func, padding, rule", [
    (triangular, [3, 3], "loops_make_a_box"), (last_one, [1, 4], "zeros_add_nothing"),
    (elsewhere, [4, 4, 1], "einsum_pattern"), (quotients, [4], "zeros_do_no_harm"),
    (scaled, [1, 4], "zeros_add_nothing")])
def test_padding_that_would_be_seen_is_refused(func, padding, rule):
    refused(func, lambda s: s.pad_einsum("A", padding), rule)


def test_spatial_iterators_of_a_scaled_sum_may_be_padded():
    sch, before = start(scaled)
    sch.pad_einsum("A", [4, 1])
    check_compiled(sch, before)


@T.prim_func
def rows_and_more(A: T.Buffer((3, 4), "float32"), C: T.Buffer((5, 4), "float32")):
    for i, j in T.grid(5, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(vi < 3, A[vi, vj], T.float32(1))


@pytest.mark.parametrize("padding", [[4, 1], [1, 3], [4, 3]])
def test_an_iterator_that_runs_past_what_a_condition_lets_it_read(padding):
    sch, before = start(rows_and_more)
    sch.pad_einsum("C", padding)
    check_compiled(sch, before)


@pytest.mark.parametrize("shape, index, condition", [
    ((4, 1), "v, v", "v < 1"), ((1, 4), "v, v", "v < 1"), ((3, 5, 2), "v, v, v", "v < 2"),
    ((4, 2), "v, 1", "v < 4")])
@pytest.mark.parametrize("padding", [2, 3, 4])
def test_the_padded_copy_reads_elements_that_there_are(shape, index, condition, padding):
    """A condition keeps the block from an element, so the copy has one for each axis."""
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer({shape}, "float32"), C: T.Buffer((5,), "float32")):
    for i in range(5):
        with T.block("C"):
            v = T.axis.spatial(5, i)
            C[v] = T.if_then_else({condition}, A[{index}], T.float32(1))
""")
    kept(func, lambda s: s.pad_einsum("C", [padding]))


@pytest.mark.parametrize("index", [-1, 2])
def test_a_constant_that_is_no_element_is_not_copied(index):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((5, 2), "float32"), C: T.Buffer((5,), "float32")):
    for i in range(5):
        with T.block("C"):
            v = T.axis.spatial(5, i)
            C[v] = T.if_then_else(v > 5, A[v, {index}], T.float32(1))
""")
    refused(func, lambda s: s.pad_einsum("C", [2]), "einsum_pattern")


@pytest.mark.parametrize("extent", ["i + 1", "10 - i"])
def test_a_loop_that_another_bound_names_keeps_its_extent(extent):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8, 10), "float32"), B: T.Buffer((10, 10), "float32")):
    for i in range(10):
        for j in range({extent}):
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, j])
                B[v, w] = T.if_then_else(v >= 1 and v < 9, A[v - 1, w], T.float32(0))
""")
    kept(func, lambda s: s.decompose_padding("B", s.get_loops("B")[0]))


def test_filling_an_element_that_several_iterations_store():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((10,), "float32")):
    for i in range(10):
        with T.block("B"):
            v = T.axis.spatial(10, i)
            B[v // 2] = T.if_then_else(v < 9 and v >= 1, A[v - 1], T.float32(0))
""")
    refused(func, lambda s: s.decompose_padding("B", s.get_loops("B")[0]),
            "spatial_iterators_are_spatial")


def test_threads_keep_their_number():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((3, 8), "float32"), B: T.Buffer((3, 10), "float32")):
    for b in T.thread_binding(3, thread="blockIdx.x"):
        for i in T.thread_binding(10, thread="threadIdx.x"):
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, b])
                B[w, v] = T.if_then_else(v < 9 and v >= 1, A[w, v - 1], T.float32(0))
""")
    sch = kept(func, lambda s: s.decompose_padding("B", s.get_loops("B")[1]))
    assert sch.mod.script().count("T.thread_binding(10") == 2


@pytest.mark.parametrize("dtype, factor, padding, rule", [
    ("int32", "(100 // (7 - r))", [1, 4], "zeros_do_no_harm"),
    ("int32", "(100 % (r - 7))", [1, 4], "zeros_do_no_harm"),
    ("int32", "(100 // (5 - v))", [4, 1], "zeros_do_no_harm"),
    ("float32", '(T.float32(1) / T.Cast("float32", 7 - r))', [1, 4], "zeros_add_nothing"),
    ("int32", "(100 // (r + 1))", [1, 4], None), ("int32", "(100 // (5 - v))", [1, 4], None)])
def test_a_divisor_that_is_zero_in_the_padding(dtype, factor, padding, rule):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((5, 7), "{dtype}"), C: T.Buffer((5,), "{dtype}")):
    for i, k in T.grid(5, 7):
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = T.{dtype}(0)
            C[v] = C[v] + A[v, r] * {factor}
""")
    if rule:
        refused(func, lambda s: s.pad_einsum("C", padding), rule)
    else:
        kept(func, lambda s: s.pad_einsum("C", padding))


def test_a_declared_region_holds_what_the_padding_reads():
    """A region that was declared for one iteration says too little of the two that run then."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((1,), "float32"), C: T.Buffer((1,), "float32")):
    for i in range(1):
        with T.block("C"):
            v = T.axis.spatial(1, i)
            C[v] = A[v] * T.float32(2)
""")
    sch = kept(func, lambda s: (s.annotate_buffer_access("C", 0, "read", lambda v: [(0, 1)]),
                                s.pad_einsum("C", [2])))
    assert "T.reads(A_pad[v])" in sch.mod.script()


@T.prim_func
def pad_of_one(x: T.Buffer((1, 8, 6), "float32"), y: T.Buffer((1, 12, 6), "float32")):
    for b, i, j in T.grid(1, 12, 6):
        with T.block("y"):
            vb, vi, vj = T.axis.remap("SSS", [b, i, j])
            y[vb, vi, vj] = T.if_then_else(vi >= 3 and vi < 11, x[vb, vi - 3, vj], T.float32(0))


@pytest.mark.parametrize("at, bound", [(0, "b"), (1, "0"), (2, "0")])
def test_a_loop_of_one_iteration_around_both_nests_is_its_value(at, bound):
    sch = kept(pad_of_one, lambda s: s.decompose_padding("y", s.get_loops("y")[at]))
    for name in ("y", "y_pad_const"):
        block = sch.get_block(name)
        value = sch.state.realize_of(sch.get_sref(block)).iter_values[0]
        assert getattr(value, "name", str(value)) == bound
        assert sch.get(block).writes[0].region[0].min is sch.get(block).iter_vars[0].var


def test_the_conditions_of_the_box_stand_before_that_of_the_block():
    def act(sch):
        outer, _ = sch.split(sch.get_loops("y")[1], factors=[None, 5])
        sch.decompose_padding("y", outer)

    sch = kept(pad_of_one, act)
    predicate = sch.state.realize_of(sch.get_sref(sch.get_block("y"))).predicate
    assert str(predicate) == ("3 <= i_0 * 5 + i_1 and i_0 * 5 + i_1 < 11 and "
                              "i_0 * 5 + i_1 < 12")


pooled = from_source("""
@T.prim_func
def main(X: T.Buffer((6, 6), "int8"), Y: T.Buffer((6, 6), "int8")):
    P = T.alloc_buffer((8, 8), "int8")
    for i, j in T.grid(8, 8):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.if_then_else(1 <= vi and vi < 7 and 1 <= vj and vj < 7,
                                       X[vi - 1, vj - 1], T.int8(0))
    for i, j, a, b in T.grid(6, 6, 3, 3):
        with T.block("Y"):
            vi, vj, va, vb = T.axis.remap("SSRR", [i, j, a, b])
            with T.init():
                Y[vi, vj] = T.int8(0)
            Y[vi, vj] = Y[vi, vj] + P[vi + va, vj + vb]
""")


def tiled_pooling():
    sch = Schedule(pooled)
    before = sch.mod
    i, j, *_ = sch.get_loops("Y")
    outer, _ = sch.split(i, [3, 2])
    sch.compute_at("P", outer)
    return sch, before


def test_what_is_padding_is_filled_before_the_tiles():
    sch, before = tiled_pooling()
    made = sch.decompose_padding("P", sch.get_loops("P")[0])
    check(sch, before)
    shared = [loop for loop in sch.get_loops(made) if loop in sch.get_loops("P")]
    assert len(sch.get_loops(made)) == 3 and not shared
    assert sch.get(sch.get_loops("P")[0]) is sch.get(sch.get_loops("Y")[0])


def test_what_is_filled_before_a_loop_is_not_read_in_it_before():
    func = from_source("""
@T.prim_func
def main(X: T.Buffer((4,), "float32"), P: T.Buffer((6,), "float32"), Z: T.Buffer((6,), "float32")):
    for i in range(6):
        with T.block("Z"):
            v = T.axis.spatial(6, i)
            Z[v] = P[v]
        for u in range(1):
            with T.block("P"):
                v = T.axis.spatial(6, i + u)
                P[v] = T.if_then_else(1 <= v and v < 5, X[v - 1], T.float32(0))
""")
    refused(func, lambda s: s.decompose_padding("P", s.get_loops("P")[0]))
    kept(func, lambda s: s.decompose_padding("P", s.get_loops("P")[1]))


def test_a_tile_of_threads_is_filled_by_its_own_threads():
    sch, _ = tiled_pooling()
    loop = sch.get_loops("P")[0]
    sch.bind(loop, "blockIdx.x")
    with pytest.raises(ScheduleError, match="one_block_under_loop"):
        sch.decompose_padding("P", loop)

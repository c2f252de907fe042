"""compute_at, reverse_compute_at, inlining, decompose_reduction."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source, tir as T

from .common import (
    blocks_and_loops, chain, check, check_compiled, kept, matmul, mm_relu, refused, stencil,
)


def schedule(func):
    sch = Schedule(func)
    return sch, sch.mod


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("unit", [False, True])
def test_compute_at_keeps_the_program(level, unit):
    sch, original = schedule(chain)
    (b, *_), (c, *loops) = blocks_and_loops(sch, "B", "C")
    sch.compute_at(b, loops[level], preserve_unit_loops=unit)
    check(sch, original)


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("unit", [False, True])
def test_reverse_compute_at_keeps_the_program(level, unit):
    sch, original = schedule(chain)
    (b, *loops), (c, *_) = blocks_and_loops(sch, "B", "C")
    sch.reverse_compute_at(c, loops[level], preserve_unit_loops=unit)
    check(sch, original)


def test_reverse_compute_at_prints_like_the_course():
    sch, original = schedule(mm_relu)
    (y, i, j, k), (c, *_) = blocks_and_loops(sch, "Y", "C")
    j_0, j_1 = sch.split(j, factors=[None, 4])
    sch.reorder(j_0, k, j_1)
    sch.reverse_compute_at(c, j_0)
    text = sch.mod.script()
    assert "for ax0 in range(4):" in text
    assert "vj = T.axis.spatial(16, j_0 * 4 + ax0)" in text
    sch.decompose_reduction(y, k)
    check(sch, original)


def test_compute_at_with_tiles_that_do_not_divide():
    sch, original = schedule(chain)
    (b, *_), (c, i, j) = blocks_and_loops(sch, "B", "C")
    i_0, i_1 = sch.split(i, factors=[None, 5])
    j_0, j_1 = sch.split(j, factors=[None, 5])
    sch.reorder(i_0, j_0, i_1, j_1)
    sch.compute_at(b, j_0)
    check(sch, original)


def test_compute_at_of_a_stencil_computes_the_halo():
    sch, original = schedule(stencil)
    (b, _), (c, i) = blocks_and_loops(sch, "B", "C")
    i_0, i_1 = sch.split(i, factors=[4, 4])
    sch.compute_at(b, i_0)
    assert "for ax0 in range(6):" in sch.mod.script()
    check(sch, original)


def test_compute_at_of_a_reduction():
    sch, original = schedule(mm_relu)
    (y, *_), (c, i, j) = blocks_and_loops(sch, "Y", "C")
    sch.compute_at(y, j)
    check(sch, original)


def test_compute_at_chain():
    sch, original = schedule(chain)
    (b, *_), (c, *_), (d, i, j) = blocks_and_loops(sch, "B", "C", "D")
    sch.compute_at(c, i)
    sch.compute_at(b, i, index=-2)
    check(sch, original)


def test_compute_at_refuses():
    sch, _ = schedule(mm_relu)
    (y, i, j, k), (c, i2, j2) = blocks_and_loops(sch, "Y", "C")
    for call, rule in ((lambda: sch.compute_at(c, i), "not_an_output_block"),
                       (lambda: sch.compute_at(y, i), "block_is_not_under_loop"),
                       (lambda: sch.reverse_compute_at(y, i2), "has_producers"),
                       (lambda: sch.reverse_compute_at(c, k), "reduction_is_finished"),
                       (lambda: sch.compute_at(y, y), "expects_loop")):
        with pytest.raises(ScheduleError) as err:
            call()
        assert err.value.rule == rule
    sch, _ = schedule(chain)
    (b, i, j), (c, i2, j2), (d, i3, j3) = blocks_and_loops(sch, "B", "C", "D")
    with pytest.raises(ScheduleError, match="all_consumers_under_loop") as err:
        sch.compute_at(b, i3)
    assert err.value.conflict == "i = 0, j = 0: B writes B[0, 0]; i = 0, j = 0: C reads it"


def test_reverse_compute_at_refuses_what_is_not_produced_yet():
    sch, _ = schedule(stencil)
    (b, i), (c, _) = blocks_and_loops(sch, "B", "C")
    with pytest.raises(ScheduleError) as err:
        sch.reverse_compute_at(c, i)
    assert err.value.rule == "producer_covers_consumer"
    assert err.value.conflict == "i = 0: C reads B[2]; i = 2: its producer writes it"


def test_inline_forward_and_backward():
    sch, original = schedule(chain)
    sch.compute_inline(sch.get_block("B"))
    sch.reverse_compute_inline(sch.get_block("D"))
    assert len(sch.get_child_blocks(sch.get_block("root"))) == 1
    check(sch, original)


def test_inline_into_a_stencil():
    sch, original = schedule(stencil)
    sch.compute_inline(sch.get_block("B"))
    check(sch, original)


@pytest.mark.parametrize("extent, read, fits", [(1, "vj % 1", True), (2, "0", False)])
def test_inline_of_a_store_at_the_one_index_of_a_dimension(extent, read, fits):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), D: T.Buffer((4, 8), "float32")):
    B = T.alloc_buffer(({extent}, 8, 4))
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[0, vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(4, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[{read}, vj, vi] + T.float32(1)
""")
    if not fits:
        refused(func, lambda sch: sch.compute_inline("B"), "store_at_iterators")
        return
    sch, original = schedule(func)
    sch.compute_inline("B")
    assert len(sch.get_child_blocks(sch.get_block("root"))) == 1
    check(sch, original)


def test_inline_refuses():
    sch, _ = schedule(mm_relu)
    for call, rule in ((lambda: sch.compute_inline(sch.get_block("C")), "not_an_output_block"),
                       (lambda: sch.compute_inline(sch.get_block("Y")), "complete_block"),
                       (lambda: sch.reverse_compute_inline(sch.get_block("C")), "complete_block")):
        with pytest.raises(ScheduleError) as err:
            call()
        assert err.value.rule == rule
    sch, _ = schedule(stencil)
    with pytest.raises(ScheduleError) as err:
        sch.reverse_compute_inline(sch.get_block("C"))
    assert err.value.rule == "one_index_pattern"


@T.prim_func
def transposed(A: T.Buffer((8, 6), "float32"), C: T.Buffer((6, 8), "float32")):
    B = T.alloc_buffer((8, 6))
    for i, j in T.grid(8, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(6, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi] * T.float32(3)


@T.prim_func
def reshaped(A: T.Buffer((8, 6), "float32"), C: T.Buffer((48,), "float32")):
    B = T.alloc_buffer((8, 6))
    for i, j in T.grid(8, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i in range(48):
        with T.block("C"):
            vi = T.axis.spatial(48, i)
            C[vi] = B[vi // 6, vi % 6] * T.float32(3)


@pytest.mark.parametrize("func", [transposed, reshaped])
@pytest.mark.parametrize("primitive", ["compute_inline", "reverse_compute_inline"])
def test_inline_through_index_maps(func, primitive):
    sch, original = schedule(func)
    getattr(sch, primitive)(sch.get_block("B" if primitive == "compute_inline" else "C"))
    check(sch, original)


@pytest.mark.parametrize("func", [transposed, reshaped])
@pytest.mark.parametrize("level", [0, -1])
def test_compute_at_through_index_maps(func, level):
    sch, original = schedule(func)
    block, *loops = blocks_and_loops(sch, "C")
    sch.compute_at(sch.get_block("B"), loops[level])
    check(sch, original)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_decompose_reduction(level):
    sch, original = schedule(matmul)
    block, *loops = blocks_and_loops(sch, "C")
    init = sch.decompose_reduction(block, loops[level])
    assert sch.get(init).name_hint == "C_init" and sch.get(block).name_hint == "C_update"
    check(sch, original)


def test_decompose_reduction_with_tiles():
    sch, original = schedule(matmul)
    block, i, j, k = blocks_and_loops(sch, "C")
    j_0, j_1 = sch.split(j, factors=[None, 5])
    k_0, k_1 = sch.split(k, factors=[None, 3])
    sch.reorder(i, j_0, k_0, j_1, k_1)
    sch.decompose_reduction(block, k_0)
    assert "j_1_init" in sch.mod.script()
    check(sch, original)


def test_decompose_reduction_refuses():
    sch, _ = schedule(matmul)
    block, i, j, k = blocks_and_loops(sch, "C")
    k_0, k_1 = sch.split(k, factors=[None, 4])
    with pytest.raises(ScheduleError) as err:
        sch.decompose_reduction(block, k_1)
    assert err.value.rule == "init_runs_once" and "resets" in str(err.value)
    sch.decompose_reduction(block, k_0)
    with pytest.raises(ScheduleError) as err:
        sch.decompose_reduction(block, k_0)
    assert err.value.rule == "reduction_block"


@T.prim_func
def padded(A: T.Buffer((8,), "float32"), C: T.Buffer((12,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi] = T.if_then_else(2 <= vi and vi < 10, B[vi - 2], T.float32(0))


def test_reverse_compute_at_refuses_to_lose_the_rim_of_a_padded_buffer():
    sch, _ = schedule(padded)
    (b, i), (c, _) = blocks_and_loops(sch, "B", "C")
    with pytest.raises(ScheduleError) as err:
        sch.reverse_compute_at(c, i)
    assert err.value.rule == "no_iteration_is_lost"


def test_a_producer_that_stores_backwards_moves_and_inlines_as_any_other():
    @T.prim_func
    def turned(X: T.Buffer((6, 5), "float32"), Z: T.Buffer((5, 6), "float32")):
        Y = T.alloc_buffer((6, 5))
        for i, j in T.grid(6, 5):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[5 - vi, 4 - vj] = X[vi, vj] + T.float32(1.0)
        for i, j in T.grid(5, 6):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vj, vi] * T.float32(2.0)

    sch, original = schedule(turned)
    (y, *_), (z, i, j) = blocks_and_loops(sch, "Y", "Z")
    sch.compute_at(y, i)
    assert "T.axis.spatial(5, 4 - i)" in sch.mod.script()
    check(sch, original)


def test_what_a_pointer_reads_stays_declared_when_a_producer_is_inlined():
    @T.prim_func
    def lookup(L: T.Buffer((64,), "int8"), X: T.Buffer((16,), "float32"),
               Y: T.Buffer((16,), "float32")):
        M = T.alloc_buffer((16,))
        for i in range(16):
            with T.block("M"):
                v = T.axis.spatial(16, i)
                M[v] = T.exp(X[v])
        for i in range(16):
            with T.block("Y"):
                v = T.axis.spatial(16, i)
                T.reads(L[0:64], M[v])
                T.writes(Y[v])
                T.evaluate(L.access_ptr("r"))
                Y[v] = T.exp(M[v])

    sch = Schedule(lookup)
    sch.compute_inline("M")
    assert "T.reads(L[0:64], X[v])" in sch.mod.script()


def test_a_consumer_that_also_runs_where_nothing_is_produced_is_not_written_into_its_producer():
    @T.prim_func
    def padded(A: T.Buffer((4,), "float32"), D: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((4,))
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2.0)
        for i in range(8):
            with T.block("D"):
                vi = T.axis.spatial(8, i)
                D[vi] = T.if_then_else(vi >= 4, B[vi - 4], T.float32(0.0))

    sch = Schedule(padded)
    with pytest.raises(ScheduleError, match="would be lost"):
        sch.reverse_compute_inline("D")


def test_a_moved_producer_runs_as_often_in_every_iteration():
    @T.prim_func
    def grouped(X: T.Buffer((72, 4), "float32"), Y: T.Buffer((72, 4), "float32")):
        B = T.alloc_buffer((5,))
        for i in range(5):
            with T.block("B"):
                vi = T.axis.spatial(5, i)
                B[vi] = vi
        for c_o, h, c_i in T.grid(2, 4, 36):
            with T.block("Y"):
                hh = T.axis.spatial(4, h)
                cc = T.axis.spatial(72, c_o * 36 + c_i)
                Y[cc, hh] = X[cc, hh] + B[cc // 16]

    sch, original = schedule(grouped)
    sch.compute_at("B", sch.get_loops("Y")[0])
    assert "for ax0 in range(3):" in sch.mod.script()
    check(sch, original)


@T.prim_func
def two_results(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"),
                C: T.Buffer((8, 8), "float32"), D: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(4, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi * 2, vj]


def test_a_result_is_computed_where_it_is_read_if_all_of_it_is_needed_there():
    sch, original = schedule(two_results)
    sch.compute_at(sch.get_block("B"), sch.get_loops("C")[0])
    check(sch, original)
    with pytest.raises(ScheduleError, match="not_an_output_block"):
        sch.compute_at(sch.get_block("C"), sch.get_loops("D")[0])


def test_a_read_whose_bounds_are_not_known_is_refused():
    func = from_source("""
@T.prim_func
def main(pA: T.handle, B: T.Buffer((4,), "float32")):
    n = T.int32()
    A = T.match_buffer(pA, (n,))
    C = T.alloc_buffer((n,))
    for i in range(n):
        with T.block("C"):
            v = T.axis.spatial(n, i)
            C[v] = A[v] * T.float32(2)
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = C[v % n]
""")
    refused(func, lambda sch: sch.reverse_compute_at("B", sch.get_loops("C")[0]),
            "producer_covers_consumer")


def test_a_consumer_of_a_part_of_a_symbolic_size_moves_with_its_condition():
    func = from_source("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    B = T.alloc_buffer(((n + 7) // 8 * 8,))
    for i in range((n + 7) // 8 * 8):
        with T.block("B"):
            v = T.axis.spatial((n + 7) // 8 * 8, i)
            B[v] = T.if_then_else(v < n, A[v], T.float32(0))
    for i in range((n + 7) // 8 * 8):
        with T.block("C"):
            v = T.axis.spatial((n + 7) // 8 * 8, i)
            T.where(i < n)
            C[v] = B[v] + T.float32(1)
""")
    sch, before = schedule(func)
    outer, _ = sch.split(sch.get_loops("B")[0], [None, 8])
    sch.reverse_compute_at("C", outer)
    assert len(sch.get_loops("C")) == 2
    arguments = [np.arange(21, dtype="float32"), np.zeros(21, "float32")]
    check_compiled(sch, before, *arguments)


@T.prim_func
def padded_gather(A: T.Buffer((8,), "float32"), at: T.Buffer((4,), "int32"),
                  B: T.Buffer((6,), "float32")):
    P = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("P"):
            vi = T.axis.spatial(8, i)
            P[vi] = A[vi] + T.float32(1)
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = T.if_then_else(1 <= vi and vi < 5, P[at[vi - 1]], T.float32(0))


@T.prim_func
def gather(A: T.Buffer((8,), "float32"), at: T.Buffer((6,), "int32"),
           B: T.Buffer((6,), "float32")):
    P = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("P"):
            vi = T.axis.spatial(8, i)
            P[vi] = A[vi] + T.float32(1)
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = P[at[vi]]


@pytest.mark.parametrize("func, loops", [(padded_gather, 2), (gather, 1)])
def test_an_index_is_read_only_where_it_is_there(func, loops):
    """What says which element is needed may be read under a condition: then all are computed."""
    sch = Schedule(func)
    sch.compute_at("P", sch.get_loops("B")[0])
    assert len(sch.get_loops("P")) == loops
    at = np.array([5, 1, 7, 0, 2, 2][:4 if func is padded_gather else 6], "int32")
    a, b = np.arange(8, dtype="float32"), np.zeros(6, "float32")
    interpret(sch.mod["main"], a, at, b)
    found = np.pad(a[at] + 1, 1) if func is padded_gather else a[at] + 1
    np.testing.assert_array_equal(b, found)


@T.prim_func
def rows_in_turns(A: T.Buffer((4, 4), "float32"), D: T.Buffer((4, 4), "float32")):
    B = T.alloc_buffer((4, 4))
    C = T.alloc_buffer((4, 4))
    for k in range(4):
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    B[vi, vj] = T.float32(0)
                B[vi, vj] = B[vi, vj] + A[vi, vk]
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]
        for j in range(4):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [k, j])
                D[vi, vj] = C[vi, vj]


@T.prim_func
def rows_of_what_stays(A: T.Buffer((4, 4), "float32"), D: T.Buffer((4, 4), "float32")):
    C = T.alloc_buffer((4, 4))
    for k in range(4):
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * T.float32(2)
        for j in range(4):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [k, j])
                D[vi, vj] = C[vi, vj]


def test_rows_that_were_read_one_a_turn_are_not_all_read_in_each():
    """In turn k row k of the sums so far is copied: all rows in each turn would be other sums."""
    refused(rows_in_turns, lambda sch: sch.reverse_compute_at("D", sch.get_loops("C")[1]),
            "runs_in_its_turn")
    kept(rows_of_what_stays, lambda sch: sch.reverse_compute_at("D", sch.get_loops("C")[1]))


WRAPPED = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4))
    C = T.match_buffer(c, (4, 4))
    P = T.alloc_buffer((n, 4))
    for i, j in T.grid(n, 4):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j, k in T.grid(4, 4, n):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + P[vi % n, vj] * P[vk, vj]
"""


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_producer_is_not_placed_by_a_division_that_only_the_reader_can_do(n):
    sch = Schedule(from_source(WRAPPED))
    before = sch.mod
    sch.compute_at("P", sch.get_loops("C")[0])
    arguments = [np.ones((n, 4), "float32"), np.zeros((4, 4), "float32")]
    check_compiled(sch, before, *arguments)


def test_a_divisor_that_a_loop_around_is_as_long_as_is_not_zero():
    sch = Schedule(from_source("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4))
    C = T.match_buffer(c, (n * 4,))
    P = T.alloc_buffer((n, 4))
    for i, j in T.grid(n, 4):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = A[vi, vj] + T.float32(1)
    for i in range(4 * n):
        with T.block("C"):
            vi = T.axis.spatial(4 * n, i)
            C[vi] = P[vi % n, 0]
"""))
    sch.compute_at("P", sch.get_loops("C")[0])
    assert all(int(sch.get(loop).extent) == 1 for loop in sch.get_loops("P")[1:2])


def test_a_layout_with_a_dimension_of_one_goes_where_its_rows_are_made():
    before = from_source("""
@T.prim_func
def main(A: T.Buffer((1, 3, 5, 16), "float32"), C: T.Buffer((1, 6, 5, 8), "float32")):
    B = T.alloc_buffer((1, 3, 5, 16))
    for i, j, k, l in T.grid(1, 3, 5, 16):
        with T.block("B"):
            vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
            B[vi, vj, vk, vl] = A[vi, vj, vk, vl] + T.float32(1)
    for i, j, k, l in T.grid(1, 6, 5, 8):
        with T.block("C"):
            vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
            C[vi, vj, vk, vl] = B[vi, (vj * 8 + vl) // 16, vk, (vj * 8 + vl) % 16]
""")
    sch = Schedule(before)
    sch.reverse_compute_at("C", sch.get_loops("B")[1])
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("C")] == [1, 3, 2, 5, 8]
    check(sch, Schedule(before).mod)

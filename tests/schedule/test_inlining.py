"""compute_inline and reverse_compute_inline keep what is read, whatever stands in between."""

import pytest

from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source, tir as T

from .common import check_compiled, kept, refused


@T.prim_func
def overwritten(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    X = T.alloc_buffer((8,))
    C = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("X"):
            v = T.axis.spatial(8, i)
            X[v] = A[v]
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = X[v] + T.float32(1)
    for i in range(8):
        with T.block("U"):
            v = T.axis.spatial(8, i)
            X[v] = X[v] * T.float32(10)
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = C[v] + X[v]


def test_what_a_value_is_made_of_must_still_be_there():
    error = refused(overwritten, lambda sch: sch.compute_inline("C"))
    assert error.rule == "nothing_is_passed"
    assert "U writes X[0]" in error.conflict


@T.prim_func
def elsewhere(A: T.Buffer((16,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] + T.float32(1)
    for i in range(8):
        with T.block("U"):
            v = T.axis.spatial(8, i)
            A[v + 8] = T.float32(0)
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = C[v]


def test_a_write_of_other_elements_is_no_reason_to_refuse():
    kept(elsewhere, lambda sch: sch.compute_inline("C"))
    kept(elsewhere, lambda sch: sch.reverse_compute_inline("B"))


def in_place(read):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((9,), "float32")):
    C = T.alloc_buffer((9,))
    for i in range(9):
        with T.block("C"):
            v = T.axis.spatial(9, i)
            C[v] = A[v] + T.float32(1)
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            A[v + 1] = {read}
""")


@pytest.mark.parametrize("read, legal", [
    ("C[v + 1]", True), ("C[8]", True), ("C[v]", False), ("C[0] + C[v + 1]", True)])
def test_a_reader_that_writes_what_it_reads(read, legal):
    (kept if legal else refused)(in_place(read), lambda sch: sch.compute_inline("C"))


@pytest.mark.parametrize("use", [
    "W = T.match_buffer(C[v * 4:v * 4 + 4], (4,), offset_factor=1)\n"
    "            for j in range(4):\n                B[v * 4 + j] = W[j]",
    'D = T.decl_buffer((8,), data=C.data)\n            for j in range(4):\n'
    "                B[v * 4 + j] = D[v * 4 + j]",
    'T.evaluate(C.access_ptr("r"))\n            B[v] = C[v]'])
def test_what_is_read_through_a_view_or_a_pointer_stays(use):
    error = refused(from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] + T.float32(1)
    for i in range(2):
        with T.block("B"):
            v = T.axis.spatial(2, i)
            {use}
"""), lambda sch: sch.compute_inline("C"))
    assert error.rule in ("read_by_name", "stage_pipeline")


def test_one_element_of_a_diagonal_for_each_iteration():
    @T.prim_func
    def diagonal(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
        C = T.alloc_buffer((4, 4))
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + T.float32(1)
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                B[v] = C[v, v]

    kept(diagonal, lambda sch: sch.reverse_compute_inline("B"))


def test_a_consumer_that_overwrites_what_its_producer_still_reads():
    @T.prim_func
    def stencil(A: T.Buffer((9,), "float32")):
        C = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = A[v] + A[v + 1]
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                A[v + 1] = C[v]

    error = refused(stencil, lambda sch: sch.reverse_compute_inline("B"))
    assert error.rule == "nothing_is_passed" and error.conflict


def test_a_consumer_that_runs_for_some_elements_only():
    @T.prim_func
    def half(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = A[v] + T.float32(1)
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = C[v]

    refused(half, lambda sch: sch.reverse_compute_inline("B"))
    kept(half, lambda sch: sch.compute_inline("C"))


@T.prim_func
def unread(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] + T.float32(1)
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.reads(A[v], C[v])
            T.writes(B[v])
            B[v] = A[v]


def test_a_block_that_nobody_reads_is_taken_out_with_all_that_names_it():
    sch = kept(unread, lambda sch: sch.compute_inline("C"))
    assert "C" not in [b.name for b in sch.get(sch.get_block("root")).alloc_buffers]
    assert "C[" not in sch.mod.script()


def test_a_call_is_not_made_again():
    @T.prim_func
    def calls(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = T.call_extern("float32", "next_random")
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = C[v] + C[v]

    assert refused(calls, lambda sch: sch.compute_inline("C")).rule == "value_is_pure"


@pytest.mark.parametrize("value, read", [
    ('A[v] + T.Cast("float32", v)', "C[{0}]"), ("T.float32(1)", "C[{0}]"),
    ("T.float32(2)", "A[{0}] * C[{0}]"), ('T.Select(v < 3, A[v], T.Cast("float32", v))', "C[{0}]"),
    ("T.exp(A[v])", None),
])
def test_a_value_is_written_into_a_reader_of_vectors_lane_by_lane(value, read):
    at = "T.Ramp(v * 4, 1, 4)"
    func = from_source(f"""@T.prim_func
def main(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = {value}
    for i in range(2):
        with T.block("D"):
            v = T.axis.spatial(2, i)
            D[{at}] = {(read or "C[{0}]").format(at)}
""")
    if read is None:
        refused(func, lambda s: s.compute_inline("C"), "computed_lane_by_lane")
        return
    sch = Schedule(func)
    before = sch.mod
    sch.compute_inline("C")
    check_compiled(sch, before)


@pytest.mark.parametrize("read, legal", [("0:4", True), ("T.Ramp(3, -1, 4)", False)])
def test_a_consumer_of_vectors_reads_the_lanes_that_are_stored(read, legal):
    func = from_source(f"""@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    C = T.alloc_buffer((4, 4))
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v, 0:4] = A[v, 0:4] * T.Broadcast(T.float32(2), 4)
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v, T.Ramp(3, -1, 4)] = C[v, {read}]
""")
    if legal:
        kept(func, lambda s: s.reverse_compute_inline("B"))
    else:
        refused(func, lambda s: s.reverse_compute_inline("B"), "computed_lane_by_lane")


@pytest.mark.parametrize("cut, asked", [("", "i < 7 and j < 7"),
                                        ("T.where(i < 6)", "i < 6 and j < 7")])
def test_a_consumer_of_a_part_asks_for_what_its_producer_does_not(cut, asked):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((7, 7), "float32")):
    B = T.alloc_buffer((8, 8))
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            {cut or "pass"}
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(7, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            {cut or "pass"}
            C[vi, vj] = B[vi, vj] + T.float32(1)
""")
    sch = kept(func, lambda s: s.reverse_compute_inline("C"))
    assert f"T.where({asked})" in sch.mod.script() and "if " not in sch.mod.script()
    kept(sch.mod, lambda s: s.cache_write("B", 0, "global"))


def test_an_iterator_with_one_value_is_the_producers():
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
            C[vi, vj] = B[vi, vj] + T.float32(1)
""")
    sch = kept(func, lambda s: s.reverse_compute_inline("C"))
    block = sch.get(sch.get_block("B"))
    assert block.body.indices[0] is block.iter_vars[0].var


def test_the_condition_of_a_part_is_written_short():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((7, 7), "float32")):
    B = T.alloc_buffer((8, 8))
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(8, i // 8)
            vj = T.axis.spatial(8, i % 8)
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(7, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
""")
    sch = kept(func, lambda s: s.reverse_compute_inline("C"))
    assert "T.where(i < 55 and i % 8 < 7)" in sch.mod.script()

"""Statements, definitions and second names of memory that stand beside blocks."""

import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source

from .common import kept, refused


def beside(statement):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32"),
         C: T.Buffer((4, 8), "float32")):
    M = T.alloc_buffer((4, 8))
    for i in range(4):
        for j in range(8):
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, j])
                B[v, w] = A[v, w] * T.float32(2)
        {statement}
        for j in range(8):
            with T.block("C"):
                v, w = T.axis.remap("SS", [i, j])
                C[v, w] = B[v, w] + T.float32(1)
""")


def test_a_block_around_blocks_says_what_the_statements_beside_them_do():
    sch = Schedule(beside("B[0, 1] = C[3, 3]"))
    block = sch.get(sch.blockize(["B", "C"]))
    assert {r.buffer.name for r in block.reads} == {"A", "B", "C"}
    assert {w.buffer.name for w in block.writes} == {"B", "C"}
    refused(beside("B[i, 1] = T.float32(0)"), lambda s: s.blockize(["B", "C"]),
            "loops_are_independent")


def test_a_statement_that_comes_along_is_seen_by_later_steps():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    M = T.alloc_buffer((4, 8))
    for i in range(4):
        for j in range(8):
            M[i, j] = A[i, j] + T.float32(1)
        for j in range(8):
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, j])
                B[v, w] = M[v, w] * T.float32(2)
    B[0, 0] = M[0, 0] + B[1, 1]
""")

    def copy(sch):
        sch.cache_read(sch.blockize(["B"]), "M", "global")

    refused(func, copy)
    kept(func, lambda sch: sch.blockize(["B"]))


def test_the_start_of_a_block_declares_what_the_start_writes():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32"),
         C: T.Buffer((8,), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("B"):
            v, w = T.axis.remap("RS", [i, j])
            with T.init():
                C[w] = T.float32(0)
            B[v, w] = C[w]
            C[w] = C[w] + A[v, w]
""")
    kept(func, lambda sch: sch.blockize(sch.get_loops("B")[1]))


def named(text):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    M = T.alloc_buffer((4, 8))
    F = T.decl_buffer((8, 4), data=B.data)
    for i, j in T.grid(4, 8):
        with T.block("M"):
            v, w = T.axis.remap("SS", [i, j])
            M[v, w] = A[v, w] + T.float32(1)
    for i, j in T.grid(8, 4):
        with T.block("F"):
            v, w = T.axis.remap("SS", [i, j])
            F[v, w] = {text}
""")


@pytest.mark.parametrize("act", [
    lambda sch: sch.transform_layout("F", ("write", 0), lambda i, j: (j, i)),
    lambda sch: sch.set_axis_separator("F", ("write", 0), [1])])
def test_a_second_name_for_memory_has_no_layout_of_its_own(act):
    refused(named("M[w, v]"), act, "buffer_is_no_view")


def test_padding_is_written_within_the_definitions_around_all():
    def act(sch):
        sch.cache_write("F", 0, "global")
        sch.transform_layout("M", ("write", 0), lambda i, j: (i // 3, i % 3, j), pad_value=0.0)
        sch.cache_write("F_global", 0, "global")

    kept(named("M[w, v]"), act)


def test_a_loop_without_turns_has_no_tile():
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    for i in range(0):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            A[v] = T.float32(0)
"""))
    with pytest.raises(ScheduleError, match="never runs"):
        sch.sample_perfect_tile(sch.get_loops("A")[0], 2)


LONG = """
@T.prim_func
def main(A: T.Buffer((T.int64(4), 6), "float32"), B: T.Buffer((T.int64(4), 6), "float32")):
    M = T.alloc_buffer((T.int64(4), 6))
    for i in range(T.int64(4)):
        for j in range(6):
            with T.block("M"):
                v = T.axis.spatial(T.int64(4), i)
                w = T.axis.spatial(6, j)
                M[v, w] = A[v, w] + T.float32(1)
    for i in range(T.int64(4)):
        for j in range(6):
            with T.block("B"):
                v = T.axis.spatial(T.int64(4), i)
                w = T.axis.spatial(6, j)
                B[v, w] = M[v, w]
"""


@pytest.mark.parametrize("act", [
    lambda sch: sch.bind(sch.get_loops("B")[0], "blockIdx.x"),
    lambda sch: sch.annotate_buffer_access("B", 0, "read", lambda v, w: ((0, 4), (0, 6))),
    lambda sch: sch.transform_layout("M", ("write", 0), lambda i, j: (j, i))])
def test_int64_stays_int64_in_the_text(act):
    kept(from_source(LONG), act)


def test_a_vector_is_no_part_of_an_intrinsic():
    from mlc_lab.tir import TensorIntrin

    text = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(B[0:4])
        {}
"""
    scalar = from_source(text.format("""for i in range(4):
            with T.block("x"):
                v = T.axis.spatial(4, i)
                B[v] = A[v]"""))
    vector = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i, j in T.grid(2, 4):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[T.Ramp(v * 4, 1, 4)] = A[T.Ramp(v * 4, 1, 4)]
""")
    TensorIntrin.register("beside_copy", scalar, scalar, override=True)
    refused(vector, lambda sch: sch.tensorize(sch.get_loops("B")[1], "beside_copy"))


@pytest.mark.parametrize("act", [
    lambda sch: sch.annotate(sch.get_block("M"), 1, 1),
    lambda sch: sch.annotate(sch.get_block("M"), "key", object()),
    lambda sch: sch.annotate(sch.get_block("M"), "key", {1: 2}),
    lambda sch: sch.annotate(sch.get_block("M"), "key", [float("nan")]),
    lambda sch: sch.annotate(sch.get_block("M"), "key", sch.get_block("M")),
    lambda sch: sch.annotate(None, "key", 1), lambda sch: sch.unannotate(3, "key"),
    lambda sch: sch.get_child_blocks("M"),
    lambda sch: sch.cache_read("F", 0, "global", [[]]),
    lambda sch: sch.unsafe_set_dtype("M", 0, ""),
    lambda sch: sch.unsafe_set_dtype("M", 0, "float32x4")])
def test_arguments_of_another_kind_are_refused(act):
    refused(named("M[w, v]"), act)


def test_a_refusal_leaves_no_blocks_in_the_trace():
    sch = Schedule(named("M[w, v]"))
    with pytest.raises(ScheduleError):
        sch.cache_read("F", 0, "no such memory", ["F"])
    assert not sch.trace.insts


def test_a_value_is_not_inlined_where_a_vector_would_index_another_dimension():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((4, 8), "float32")):
    M = T.alloc_buffer((4, 8))
    for i, j in T.grid(4, 8):
        with T.block("M"):
            v, w = T.axis.remap("SS", [i, j])
            M[v, w] = A[w, v] + T.float32(1)
    for i, j in T.grid(4, 2):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, T.Ramp(w * 4, 1, 4)] = M[v, T.Ramp(w * 4, 1, 4)]
""")
    refused(func, lambda sch: sch.compute_inline("M"), "computed_lane_by_lane")


def test_indices_that_are_vectors_are_not_kept():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(2):
        with T.block("B"):
            v = T.axis.spatial(2, i)
            B[T.Ramp(v * 4, 1, 4)] = A[T.Ramp(v * 4, 1, 4)]
""")
    sch = kept(func, lambda sch: sch.cache_index("B", "global"))
    assert len(sch.get_child_blocks(sch.get_block("root"))) == 1


@pytest.mark.parametrize("act", ["compute_inline", "reverse_compute_inline"])
def test_a_buffer_that_a_statement_writes_as_well_stays(act):
    """Inlined, the block would go with the buffer, which the statement and the reader name."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = A[v] * T.float32(2)
    for i in range(2):
        B[i + 1] = T.float32(7)
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = B[v] + T.float32(1)
""")
    refused(func, lambda s: getattr(s, act)("B" if act == "compute_inline" else "C"), "only_writer")


@pytest.mark.parametrize("act", [
    lambda s: s.cache_write("B", 0, "global"),  # which stores no more than the half
    lambda s: s.reindex("B", ("write", 0)),
    lambda s: s.reindex_cache_write("B", 0, "global", lambda v: v)])
@pytest.mark.parametrize("statement, legal", [
    ("B[i] = T.float32(7)", False), ("C[i] = A[i]", True)])
def test_a_copy_that_is_stored_leaves_what_a_statement_wrote(act, statement, legal):
    """The block writes half of the buffer, which is new here: only it may have written the rest."""
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4,))
    for i in range(4):
        {statement}
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            T.where(i < 2)
            B[v] = A[v] * T.float32(2)
    for i in range({4 - 2 * legal}):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = B[v] + T.float32(1)
""")
    try:
        kept(func, act)
    except ScheduleError as error:
        assert not legal and error.rule == "every_element_is_written"

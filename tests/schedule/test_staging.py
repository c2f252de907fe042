"""Copies hold what would be read, and give back what was written: no more, in time."""

import pytest

from mlc_lab.schedule import Schedule
from mlc_lab.schedule.truth import undeclared
from mlc_lab.script import from_source, tir as T

from .common import check, kept, refused


def same_nest(write, read, loops="for i in range(8):"):
    """Two blocks in one nest: one writes X, one reads it."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"),
         X: T.Buffer((16,), "float32")):
    {loops}
        with T.block("W"):
            v = T.axis.spatial(8, i)
            X[{write}] = A[v] * T.float32(2)
        with T.block("R"):
            v = T.axis.spatial(8, i)
            B[v] = {read}
""")


@pytest.mark.parametrize("write, read", [
    ("v", "X[v]"), ("v + 1", "X[v] + X[v + 1]"), ("v", "X[v + 8]"), ("v", "X[15 - v]"),
    ("v * 2", "X[v * 2] + X[v]")])
def test_a_copy_in_the_nest_of_its_writer_holds_all_that_is_read(write, read):
    func = same_nest(write, read)
    for act in (lambda sch: sch.cache_read("R", 0, "local"),
                lambda sch: sch.cache_write("W", 0, "local")):
        sch = Schedule(func)
        before = sch.mod
        act(sch)
        check(sch, before)


def test_what_is_read_before_it_is_written():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"),
         X: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("R"):
            v = T.axis.spatial(8, i)
            B[v] = X[v]
        with T.block("W"):
            v = T.axis.spatial(8, i)
            X[7 - v] = A[v] * T.float32(2)
""")
    error = refused(func, lambda sch: sch.cache_read("R", 0, "local"))
    assert error.rule == "copy_comes_first"
    error = refused(func, lambda sch: sch.cache_write("W", 0, "local"))
    assert error.rule == "stored_in_time"
    assert "W writes X[" in error.conflict and "R reads it" in error.conflict


@T.prim_func
def read_then_written(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"),
                      X: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("R"):
            v = T.axis.spatial(8, i)
            B[v] = X[v]
    for i in range(8):
        with T.block("W"):
            v = T.axis.spatial(8, i)
            X[v] = A[v] * T.float32(2)
    for i in range(8):
        with T.block("S"):
            v = T.axis.spatial(8, i)
            C[v] = X[v]


def test_each_reader_gets_a_copy_of_what_it_would_see():
    first = kept(read_then_written, lambda sch: sch.cache_read("R", 0, "local"))
    assert first.mod.script().count("X_local[") == 4  # S reads the buffer still
    kept(read_then_written, lambda sch: sch.cache_read("S", 0, "local"))
    refused(read_then_written, lambda sch: sch.cache_read("R", 0, "local", ["R", "S"]))
    kept(read_then_written, lambda sch: sch.cache_write("W", 0, "local"))


def test_elements_that_nobody_wrote_are_not_stored_back():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"),
         D: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,))
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v * 2] = A[v]
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v * 2] = A[v]
    for i in range(4):
        with T.block("D"):
            v = T.axis.spatial(4, i)
            D[v] = C[v * 2]
""")
    assert refused(func, lambda sch: sch.cache_write("B", 0, "local")
                   ).rule == "every_element_is_written"
    kept(func, lambda sch: sch.cache_write("C", 0, "local"))  # its other elements are garbage too
    kept(func, lambda sch: sch.cache_write("D", 0, "local"))


def test_what_a_block_declares_to_read_of_its_own_output_does_not_count():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 5), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 5):
        with T.block("B"):
            v, vk = T.axis.remap("SR", [i, k])
            T.reads(B[v], A[v, vk])
            T.writes(B[v])
            with T.init():
                B[v] = T.float32(0)
            B[v] = B[v] + A[v, vk]
""")
    kept(func, lambda sch: sch.cache_write("B", 0, "local"))
    kept(func, lambda sch: sch.reindex("B", ("write", 0)))
    kept(func, lambda sch: sch.reindex_cache_write("B", 0, "local", lambda v, vk: (v,)))


@T.prim_func
def gather(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    index = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("I"):
            v = T.axis.spatial(8, i)
            index[v] = 7 - v
    for i in range(8):
        with T.block("R"):
            v = T.axis.spatial(8, i)
            B[v] = A[index[v]]


@pytest.mark.parametrize("act", [
    lambda sch: sch.reindex_cache_read("R", 0, "local", lambda v: (v,)),
    lambda sch: sch.reindex_cache_read("R", 1, "local", lambda v: (v,)),
    lambda sch: sch.reindex("R", ("read", 0)), lambda sch: sch.cache_read("R", 0, "local"),
    lambda sch: sch.cache_read("R", 1, "local")])
def test_a_copy_by_indices_is_made_when_the_indices_are_there(act):
    kept(gather, act)


def test_a_read_by_data_under_a_condition():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), index: T.Buffer((8,), "int32"),
         B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("O"):
            vo = T.axis.spatial(8, i)
            for j in range(1):
                with T.block("R"):
                    v = T.axis.spatial(1, j)
                    T.where(vo < 6)
                    B[vo] = A[index[vo + 2] + 2]
""")
    for n in (0, 1):
        kept(func, lambda sch, n=n: sch.cache_read("R", n, "local"))


def test_iterations_that_do_not_run_store_nothing():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.where(i < 5)
            B[v] = A[v]
""")
    refused(func, lambda sch: sch.reindex("B", ("write", 0)))
    refused(func, lambda sch: sch.reindex_cache_write("B", 0, "local", lambda v: (7 - v,)))
    kept(func, lambda sch: sch.cache_write("B", 0, "local"))
    kept(func, lambda sch: sch.reindex("B", ("read", 0)))


def test_iterations_that_write_one_element_keep_their_order():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((9,), "float32")):
    for j, i in T.grid(6, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi + vj] = A[vi, vj]
""")
    refused(func, lambda sch: sch.reindex("B", ("write", 0)))
    kept(func, lambda sch: sch.cache_write("B", 0, "local"))


def test_memory_with_two_names_is_not_redirected():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v]
    for i in range(2):
        with T.block("B"):
            v = T.axis.spatial(2, i)
            D = T.decl_buffer((8,), data=C.data)
            for j in range(4):
                B[v * 4 + j] = D[v * 4 + j] + C[v * 4 + j]
""")
    for act in (lambda sch: sch.cache_read("B", 0, "local"),
                lambda sch: sch.set_scope("C", 0, "local"),
                lambda sch: sch.unsafe_set_dtype("C", 0, "float64"),
                lambda sch: sch.storage_align("C", 0, 0, 8, 1),
                lambda sch: sch.transform_layout("C", ("write", 0), lambda i: (7 - i,))):
        assert refused(func, act).rule == "one_name"
    kept(func, lambda sch: sch.cache_write("C", 0, "local"))


def test_another_name_for_memory_is_still_known_after_inlining():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    C, D = T.alloc_buffer((4,)), T.alloc_buffer((4,))
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = A[v] * T.float32(2)
    for i in range(1):
        with T.block("D"):
            v = T.axis.spatial(1, i)
            E = T.decl_buffer((4,), data=D.data)
            for j in range(4):
                E[j] = C[v + j] + T.float32(1)
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = D[v]
""")

    def steps(sch):
        sch.compute_inline("C")
        sch.cache_read("B", 0, "local")

    kept(func, steps)


def test_an_update_of_a_part_gives_back_the_rest_as_it_was():
    func = from_source("""
@T.prim_func
def main(B: T.Buffer((8, 4), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.reads(B[v, 0])
            T.writes(B[v, 0:4])
            for j in range(2):
                B[v, j * 2 + 1] = B[v, 0] * T.float32(2)
""")
    kept(func, lambda sch: sch.cache_inplace("B", 0, "local"))


@T.prim_func
def in_blocks(A: T.Buffer((4, 6), "float32"), C: T.Buffer((4, 6), "float32")):
    """A block that reads one element and writes another, in a block that holds a row of each."""
    for i in range(4):
        with T.block("O"):
            vi = T.axis.spatial(4, i)
            for j in range(6):
                with T.block("B"):
                    vj = T.axis.spatial(6, j)
                    C[vi, vj] = C[vi, vj] + C[vi, 0] * A[vi, 5 - vj]


@pytest.mark.parametrize("act", [
    lambda sch: sch.cache_inplace("B", "C", "global"),
    lambda sch: sch.cache_read("B", "A", "local"),
    lambda sch: sch.reindex("B", ("read", 1)),
    lambda sch: sch.reindex_cache_read("B", 1, "local", lambda vj: (vj,))])
def test_copies_in_a_block_are_declared_by_it(act):
    sch = kept(in_blocks, act)
    assert undeclared(sch.get(sch.get_block("O"))) == []

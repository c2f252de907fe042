"""What T.reads and T.writes leave out is found before anything is scheduled."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.schedule import Schedule
from mlc_lab.schedule.truth import undeclared
from mlc_lab.script import from_source, tir as T

from .common import chain, kept, matmul, refused


@T.prim_func
def lies(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8))
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, 0])
            T.writes()
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(B[0, 0])
            T.writes(C[0, 0])
            D = T.decl_buffer((8, 8), data=B.data)
            for j in range(8):
                with T.block("inner"):
                    vj = T.axis.spatial(8, j)
                    T.reads()
                    T.writes()
                    C[vi, vj] = D[vi, 7 - vj]


def test_declarations_are_made_true():
    sch = Schedule(lies)
    text = sch.mod.script()
    assert "T.reads(A[vi, vj])" in text and "T.writes(B[vi, vj])" in text
    assert "T.reads(B[0:8, 0:8])" in text and "T.writes(C[vi, 0:8])" in text
    assert [sch.get(b).name_hint for b in sch.get_consumers("B")] == ["C"]
    refused(lies, lambda s: s.compute_inline("B"))
    kept(lies, lambda s: s.compute_at("B", s.get_loops("C")[0]))


@pytest.mark.parametrize("func", [chain, matmul])
def test_what_is_true_stays_as_it_is(func):
    assert Schedule(func).mod["main"].body is func.body


def test_more_than_is_touched_may_be_declared():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.reads(A[0:8], B[v])
            T.writes(B[0:8])
            B[v] = A[v]
""")
    assert_structural_equal(Schedule(func).mod["main"].body, func.body)


def resized(index):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] + T.float32(1)
    for i in range(16):
        with T.block("C"):
            v = T.axis.spatial(16, i)
            C[v] = B[{index}]
""")


FLOATS = 'T.Cast("int32", T.floor((T.Cast("float32", v) + T.float32(0.5)) * T.float32(0.5)))'


def test_a_declared_region_must_hold_what_is_touched():
    act = lambda sch: sch.annotate_buffer_access(
        "C", 0, "read", lambda v: ((v // 2, v // 2 + 1),))

    def computed_there(sch):
        act(sch)
        sch.compute_at("B", sch.get_loops("C")[0])

    kept(resized("v // 2"), act)
    sch = kept(resized(FLOATS), computed_there)
    assert "T.axis.spatial(8, i // 2)" in sch.mod.script()
    error = refused(resized("v % 8"), act)
    assert error.rule == "region_holds_the_access" and "B[v % 8]" in error.reason
    refused(resized('T.Cast("int32", A[v % 8]) % 2'), act)


def test_another_name_for_memory_stays_inside_of_the_block_that_makes_it():
    """A copy that is put into a block around: what that declares names no buffer made inside."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((2, 4), "float32")):
    for i, j in T.grid(1, 2):
        with T.block("B"):
            v = T.axis.spatial(2, i * 2 + j)
            D = T.decl_buffer((2, 4), "float32", data=B.data)
            for k in range(4):
                D[v, k] = A[v] * T.float32(2)
""")

    def act(sch):
        sch.blockize(sch.get_loops("B")[0])
        sch.reindex("B", ("read", 0))

    sch = kept(func, act)
    text = sch.mod.script()
    assert text.count("T.writes(B[0:2, 0:4])") == 2 and text.count("D = ") == 1
    assert_structural_equal(from_source(text), sch.mod)


@T.prim_func
def reads_its_own_result(C: T.Buffer((4, 4), "float32")):
    for i, j, k in T.grid(4, 4, 4):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + C[vi, vi % 3]


def test_what_is_found_again_holds_what_a_reduction_reads_of_its_own_result():
    sch = Schedule(reads_its_own_result)
    sch.compute_inline(sch.cache_index("C", "global", 0)[0])
    block = sch.get(sch.get_block("C"))
    assert block.reads[0].buffer is block.writes[0].buffer
    assert not undeclared(block)


@pytest.mark.parametrize("start", ["v", "0"])
def test_names_that_double_with_each_line_are_not_unfolded(start):
    """A block says that it touches everything where an index has 2 ** 64 parts."""
    names = "\n".join(f"            x{n + 1}: T.int32 = x{n} + x{n}" for n in range(64))
    sch = Schedule(from_source(f"""@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    with T.block("A"):
        for v in range(4):
            x0: T.int32 = {start}
{names}
            A[x64 % 4] = A[x64 % 4] + T.float32(1)
"""))
    assert [repr(r) for r in sch.get(sch.get_block("A")).writes] == ["A[0:4]"]


def test_a_block_that_says_it_touches_nothing_is_asked():
    """Only the outermost block of a function need not say what it touches."""
    mod = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("B"):
            T.reads()
            T.writes()
            B[i] = A[i] * T.float32(2)
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]
""")
    sch = Schedule(mod)
    assert [r.buffer.name for r in sch.get(sch.get_block("B")).writes] == ["B"]
    assert not sch.get(sch.get_block("root")).writes
    sch.cache_read(sch.get_block("C"), 0, "global")
    a, c = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    interpret(sch.mod["main"], a, c)
    np.testing.assert_array_equal(c, 2 * a)

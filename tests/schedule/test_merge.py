"""merge: nests that follow one another become one."""

import pytest

from mlc_lab.schedule import Schedule
from mlc_lab.script import tir as T
from .common import check_compiled, kept, refused


@T.prim_func
def two_outputs(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32"),
                D: T.Buffer((8, 8), "float32")):
    for i_0, j_0, i_1, j_1 in T.grid(4, 4, 4, 4):
        with T.block("C"):
            vi = T.axis.spatial(16, i_0 * 4 + i_1)
            vj = T.axis.spatial(16, j_0 * 4 + j_1)
            C[vi, vj] = A[vi, vj] + 1.0
    for i_0, j_0, i_1, j_1 in T.grid(4, 4, 2, 2):
        with T.block("D"):
            vi = T.axis.spatial(8, i_0 * 2 + i_1)
            vj = T.axis.spatial(8, j_0 * 2 + j_1)
            D[vi, vj] = A[vi, vj] * 2.0


@T.prim_func
def chain(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for x, y in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [x, y])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func
def neighbours(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"),
               C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0
    for i in range(15):
        with T.block("C"):
            vi = T.axis.spatial(15, i)
            C[vi] = B[vi + 1] + 1.0
    for i in range(15):
        with T.block("D"):
            vi = T.axis.spatial(15, i)
            C[vi] = C[vi] + B[vi]


def loop(sch, block, depth):
    return sch.get_loops(block)[depth]


@pytest.mark.parametrize("depth", [0, 1])
def test_outer_loops_are_merged_with_what_is_around_them(depth):
    sch = kept(two_outputs, lambda s: s.merge(loop(s, "C", depth), loop(s, "D", depth)))
    around = [sch.get(x).loop_var.name for x in sch.get_loops("D")]
    assert around[:depth + 1] == ["i_0_m", "j_0_m"][:depth + 1]
    assert len(around) == 4 and (
        sch.get(loop(sch, "C", depth)) is sch.get(loop(sch, "D", depth)))


@pytest.mark.parametrize("depth", [0, 1])
def test_an_element_is_used_in_the_iteration_that_writes_it(depth):
    sch = kept(chain, lambda s: s.merge(loop(s, "B", depth), loop(s, "C", depth)))
    check_compiled(sch, Schedule(chain).mod)
    assert sch.get(sch.get_loops("C")[depth]).loop_var.name == ["i_m", "j_m"][depth]


def test_the_order_of_the_arguments_does_not_matter():
    kept(chain, lambda s: s.merge(loop(s, "C", 0), loop(s, "B", 0)))


def test_the_result_is_the_merged_loop():
    def act(s):
        merged = s.merge(loop(s, "B", 0), loop(s, "C", 0))
        outer, _ = s.split(merged, [None, 4])
        s.parallel(outer)

    kept(chain, act)


def test_an_element_that_is_not_there_yet_is_refused():
    error = refused(neighbours, lambda s: s.merge(loop(s, "C", 0), loop(s, "D", 0),
                                                  loop(s, "B", 0)), "same_extent")
    assert "runs over" in str(error)

    @T.prim_func
    def shifted(A: T.Buffer((16,), "float32"), B: T.Buffer((17,), "float32"),
                C: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi + 1] = A[vi] * 2.0
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B[16 - vi] + 1.0

    error = refused(shifted, lambda s: s.merge(loop(s, "B", 0), loop(s, "C", 0)),
                    "dependences_keep_their_order")
    assert "B writes" in error.conflict


def test_an_element_that_is_overwritten_too_early_is_refused():
    @T.prim_func
    def overwritten(A: T.Buffer((17,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi + 1] * 2.0
        for i in range(16):
            with T.block("A"):
                vi = T.axis.spatial(16, i)
                A[vi + 1] = 0.0

    kept(overwritten, lambda s: s.merge(loop(s, "B", 0), loop(s, "A", 0)))

    @T.prim_func
    def too_early(A: T.Buffer((17,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] * 2.0
        for i in range(16):
            with T.block("A"):
                vi = T.axis.spatial(16, i)
                A[vi + 1] = 0.0

    refused(too_early, lambda s: s.merge(loop(s, "B", 0), loop(s, "A", 0)),
            "dependences_keep_their_order")


def test_the_last_two_of_three_are_merged():
    sch = kept(neighbours, lambda s: s.merge(loop(s, "C", 0), loop(s, "D", 0)))
    assert len(sch.mod["main"].body.block.body.seq) == 2


def test_what_cannot_be_merged_is_refused():
    refused(neighbours, lambda s: s.merge(loop(s, "B", 0), loop(s, "B", 0)), "loops_are_distinct")
    refused(neighbours, lambda s: s.merge(loop(s, "B", 0)), "merge_needs_loops")
    refused(neighbours, lambda s: s.merge(loop(s, "B", 0), loop(s, "D", 0)))
    refused(chain, lambda s: s.merge(loop(s, "B", 0), loop(s, "C", 1)), "same_depth")
    refused(chain, lambda s: s.merge(loop(s, "B", 0), loop(s, "B", 1)), "same_depth")

    def parallel(s):
        s.parallel(loop(s, "B", 0))
        s.merge(loop(s, "B", 0), loop(s, "C", 0))

    refused(chain, parallel, "loop_is_serial")

    def between(s):
        x, _ = s.split(loop(s, "C", 0), [16, 1])
        s.merge(loop(s, "C", 0), loop(s, "D", 0))

    refused(neighbours, between)

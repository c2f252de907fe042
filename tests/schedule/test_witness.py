"""The two iterations under a refusal about dependence are real ones."""

import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import tir as T


@T.prim_func
def reads_ahead(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((9,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi + 1]


@T.prim_func
def two_halves(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(5):
        with T.block("low"):
            vi = T.axis.spatial(5, i)
            C[vi] = A[vi]
    for i in range(5):
        with T.block("high"):
            vi = T.axis.spatial(5, i)
            C[vi + 3] = A[vi] + T.float32(1)
    for i in range(8):
        with T.block("twice"):
            vi = T.axis.spatial(8, i)
            C[vi] = C[vi] * T.float32(2)


def refusal(func, block, primitive, *args):
    sch = Schedule(func)
    target = sch.get_block(block)
    with pytest.raises(ScheduleError) as caught:
        getattr(sch, primitive)(target, *(a(sch) for a in args))
    return caught.value


def test_a_pipeline_that_reads_ahead():
    error = refusal(reads_ahead, "B", "compute_at", lambda sch: sch.get_loops("C")[0])
    assert error.rule == "stage_pipeline"
    assert error.conflict == "i = 0: C reads B[1]; i = 1: B writes it"
    assert "two iterations that clash: i = 0" in str(error)


def test_two_blocks_that_write_one_element():
    error = refusal(two_halves, "high", "compute_inline")
    assert "not dominant" in error.reason
    assert error.conflict == "i = 0: high writes C[3]; i = 3: low writes it"

"""threads: what the busiest thread has, which lines move, how often threads are started; and
`equivalent` on inputs that an exercise chooses."""

import pytest

from mlc_lab import exercises
from mlc_lab.exercises.answers import Answer
from mlc_lab.exercises.checks.equivalent import equivalent
from mlc_lab.exercises.checks.threads import MOST_LOOPS, threads
from mlc_lab.lower.pipeline import as_module
from mlc_lab.script import from_source

VARIANT = exercises.get("20.2").variant(1)


def checked(body, **asked):
    """What the check finds of a program whose loops are given, one store of `B` in them."""
    mod = as_module(from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64, 64), "float32")):
{body}"""))
    return threads(Answer("program", mod), VARIANT, **asked)


TRIANGLE = """
    for i in T.parallel(64):
        for j in range(i + 1):
            B[i, j] = A[j]
"""
SERIAL = """
    for i in range(64):
        for j in {}(16):
            B[i, j] = A[j]
"""


def test_the_share_of_the_busiest_is_that_of_its_piece():
    last = sum(range(49, 65)) / sum(range(1, 65))  # rows 48 to 63 of 64
    assert checked(TRIANGLE, threads=4, share=last).passed
    found = checked(TRIANGLE, threads=4, share=last - 0.01)
    assert f"the busiest of 4 threads has {last:.1%}" in found.says and not found.passed
    assert "for i in T.parallel(64)" in found.place["text"]


def test_what_is_in_no_parallel_loop_is_everybodys_wait():
    alone = SERIAL.format("range") + SERIAL.format("range").replace("64", "48") + TRIANGLE
    all_, work = 2 * 16 * (64 + 48) + 2 * 2080, 2 * sum(range(49, 65))
    share = (2 * 16 * (64 + 48) + work) / all_
    assert checked(alone, threads=4, share=share + 1e-9).passed
    assert not checked(alone, threads=4, share=share - 1e-3).passed


def test_each_of_several_parallel_loops_has_a_busiest_thread():
    turned = TRIANGLE.replace("i + 1", "64 - i")  # here the first one is the busiest
    last = sum(range(49, 65)) / sum(range(1, 65))
    assert not checked(TRIANGLE + turned, threads=4, share=last - 0.01).passed
    assert checked(TRIANGLE + turned, threads=4, share=last + 1e-9).passed


def test_fewer_iterations_than_threads_are_a_piece_each():
    three = TRIANGLE.replace("64", "3")
    assert checked(three, threads=8, share=0.5 + 1e-9).passed  # row 2 has 3 of 6 elements
    assert not checked(three, threads=8, share=0.49).passed


def test_threads_are_started_as_often_as_the_loops_around_say():
    inner = SERIAL.format("T.parallel")
    assert checked(inner, threads=4, starts=64).passed
    assert "are started 64 times; 1 suffice" in checked(inner, threads=4, starts=1).says
    assert checked(TRIANGLE, threads=4, starts=1).passed


def test_lines_that_move_are_those_of_one_buffer():
    columns = """
    for j in T.parallel(64):
        for i in range(64):
            B[i, j] = A[j]
"""
    assert checked(columns, threads=4, moves=0).passed  # 16 columns are a line
    found = checked(columns, threads=4, moves=0, line=128)
    assert not found.passed and "Most move of B" in found.says
    assert checked(columns, threads=2, moves=0, line=128).passed


def test_a_program_without_a_parallel_loop_shares_nothing_and_is_refused():
    assert checked(SERIAL.format("range"), threads=4, moves=0).says == "no loop is parallel"


@pytest.mark.parametrize("body, says", [
    (TRIANGLE * (MOST_LOOPS + 1), f"{MOST_LOOPS + 1} loops are parallel"),
    ("""
    for i in range(64):
        for j in T.parallel(i + 1):
            B[i, j] = A[j]
""", "how the parallel loop j is divided is not known")])
def test_what_cannot_be_divided_is_told(body, says):
    found = checked(body, threads=4, share=1.0)
    assert not found.passed and says in found.says and found.place["text"]


def test_inputs_of_an_exercise_are_said_where_they_show_a_mistake():
    variant = exercises.get("23.3").variant(1)
    right = as_module(from_source(variant.reference))
    naive = as_module(from_source(variant.reference.replace("- M[vi]", "")))

    def high(arrays):
        arrays[0][...] = 500
        return "all scores are 500"

    answer = Answer("program", naive)
    assert equivalent(answer, variant, nasty=False).passed
    found = equivalent(answer, variant, nasty=False, given=high)
    assert not found.passed and "(all scores are 500)" in found.says
    assert equivalent(Answer("program", right), variant, nasty=False, given=high).passed

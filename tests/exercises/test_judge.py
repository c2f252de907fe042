"""Answers are data: what is read of them, what is refused; marks are the same each time."""

import json
import sys
import time

from pathlib import Path

import pytest

import mlc_lab as tvm
from mlc_lab import exercises
from mlc_lab.exercises import Judge, check
from mlc_lab.exercises.catalogue import ex_01_2 as catalogue
from mlc_lab.exercises.judging import marks

OF_ONE = exercises.get("01.2").variant(1).values
LOOPS = f"{', '.join(OF_ONE.order)} = sch.get_loops({OF_ONE.C!r})\n"


@pytest.fixture(scope="module")
def judge():
    with Judge(timeout_s=60) as judge:
        yield judge


def test_the_same_answer_has_the_same_marks_byte_for_byte(judge):
    task = exercises.get("03.3").variant("ada")
    first = judge.check("03.3", task.reference, "ada").as_json()
    with Judge() as other:
        assert other.check("03.3", task.reference, "ada").as_json() == first
    assert judge.check("03.3", task.reference, "ada").as_json() == first
    assert json.loads(first)["points"] == 10


def test_rows_come_as_they_are_known_and_are_those_of_the_result(judge):
    task = exercises.get("03.3").variant("ada")
    came = []
    found = judge.check("03.3", task.wrong[0].answer, "ada", on_row=lambda row: came.append(
        (row, time.monotonic())))
    assert [row for row, _ in came] == found.rows and len(came) > 2
    assert came[-1][1] > came[0][1]
    assert judge.check("03.3", "no schedule", "ada", on_row=came.append).error and len(came) == len(
        found.rows)


def test_rows_are_printed_at_a_prompt_only(capsys, monkeypatch):
    task = exercises.get("01.2").variant("ada")
    found = check("01.2", task.reference, "ada")
    assert capsys.readouterr().out == "" and repr(found) == "01.2: 5 of 5 points"
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    found = check("01.2", task.reference, "ada")
    out = capsys.readouterr().out
    assert out == "".join(f"{row}\n" for row in found.rows) and "  + " in out
    assert str(found).split("\n")[0] == repr(found) and out.strip("\n") in str(found)
    assert "  ! " in repr(check("01.2", "no schedule", "ada"))


def test_a_schedule_of_ones_own_is_an_answer():
    task = exercises.get("01.2").variant(5)
    sch = tvm.tir.Schedule(task.program)
    v = task.values
    order = dict(zip(v.order, sch.get_loops(v.C)))
    sch.reorder(*(order[name] for name in v.best))
    assert check("01.2", sch, 5).solved
    assert check("01.2", {"trace": sch.trace.as_json()}, 5).solved


@pytest.mark.parametrize("answer, says", [
    ("__import__('os').system('true')", "sch"),
    (LOOPS + "sch.reorder(i, j, zebra)", "zebra"),
    (LOOPS + "sch.reodrer(i, j)", "reorder"),
    ("def f(:", "this is no"),
    ({"trace": [1, 2]}, "trace"),
    ({"trace": [[["EnterPostproc", [], [], []]] * 3, []]}, ""),
    (3.5, "a Schedule, or the text of one"),
    ("x" * 300_000, "300000 characters"),
    ("@T.prim_func\ndef main(A: T.Buffer((4,), 'float32')):\n    A[0] = 1.0", "program of its own"),
])
def test_what_is_no_answer_has_no_points_and_a_reason(judge, answer, says):
    found = judge.check("01.2", answer, 1)
    assert says in str(found)
    assert found.points <= 2 and not found.solved


PROGRAM = """
@T.prim_func
def main(A: T.Buffer((6, 9), "float32"), B: T.Buffer((9,), "float32"),
         C: T.Buffer((6, 9), "float32")):
"""


@pytest.mark.parametrize("body, says", [
    ("    for i, j in T.grid(1 << 20, 1 << 20):\n        C[0, 0] = 1.0", "would run"),
    ("    D = T.alloc_buffer((1 << 20, 1 << 20), 'float32')\n    C[0, 0] = D[0, 0]",
     "bytes of memory"),
    ("    T.evaluate(T.call_extern('int32', 'system', 'true'))", "system"),
    ("    while T.bool(True):\n        C[0, 0] = 1.0", "stopped"),
    ("    C[7, 0] = 1.0", "outside"),
])
def test_a_program_that_does_harm_is_stopped(body, says):
    with Judge(timeout_s=8) as judge:
        found = judge.check("01.1", PROGRAM + body, 3)
        assert says in str(found) and not found.solved
        assert judge.check("01.1", exercises.get("01.1").variant(3).reference, 3).solved


HUGE = "sch.annotate(i, 'pragma_auto_unroll_max_step', 1000000000)"


@pytest.mark.parametrize("more, says", [
    ("sch.unroll(i)\nsch.unroll(j)\nsch.unroll(k)", "it has the code of"),
    ("sch.unroll(i)\nsch.unroll(j)", "it has the code of"),
    ("sch.vectorize(sch.fuse(i, j))", "it has the code of"), (HUGE, "it has the code of"),
    ("sch.annotate(i, 'unroll_count', 1000000000)\nsch.annotate(j, 'unroll_count', 1000000000)",
     "it has the code of")])
def test_code_that_would_keep_the_compiler_busy_is_refused_before_it_is_compiled(more, says):
    task = exercises.get("03.3").variant(1)
    v = task.values
    text = f"{v.loops} = sch.get_loops({v.C!r})\n"
    if "fuse" in more:
        text += "sch.reorder(k, i, j)\n"
    start = time.process_time()
    found = marks(task, text + more)
    assert says in str(found) and found.points == 0, found
    assert time.process_time() - start < 5


@pytest.mark.parametrize("body", [
    "    while T.bool(True):\n        C[0, 0] = 1.0",
    "    while C[0, 0] < 1e30:\n        C[0, 1] = C[0, 1] + 1.0",
    "    for i in range(T.Cast('int64', T.abs(B[0]) * T.float32(1e12))):\n        C[0, 0] = 1.0",
])
def test_loops_that_follow_from_data_are_bounded_by_a_count(body):
    found = marks(exercises.get("01.1").variant(3), PROGRAM + body)
    assert "its loops make more than 200,000 iterations" in str(found), found


def test_a_busy_machine_changes_no_marks():
    """Where time on the clock is over an answer is not judged, and is when it is asked again."""
    task = exercises.get("03.3").variant("ada")
    with Judge(wall_s=0.001) as judge:
        found = judge.check("03.3", task.reference, "ada")
        assert not found.judged and "not judged" in str(found) and "check it again" in str(found)
        judge.wall_s = 600
        assert judge.check("03.3", task.reference, "ada").solved
    with Judge(timeout_s=0.02) as judge:  # of the processor
        found = judge.check("03.3", task.reference, "ada")
        assert found.judged and "0.02 s of processor time" in str(found) and not found.points


def test_an_exercise_that_there_is_not_is_named():
    with pytest.raises(exercises.ExerciseError, match="01.1"):
        exercises.get("01.11")


def test_a_teachers_folder(tmp_path):
    text = Path(catalogue.__file__).with_name("ex_01_2.py").read_text()
    text = text.replace('id="01.2"', 'id="01.77"').replace("from ...", "from mlc_lab.").replace(
        "from ..", "from mlc_lab.exercises.").replace(
        "from .matrices", "from mlc_lab.exercises.catalogue.matrices")
    (tmp_path / "ex_mine.py").write_text(text)
    task = exercises.get("01.77", tmp_path).variant(2)
    assert check("01.77", task.reference, 2, folder=tmp_path).solved
    (tmp_path / "ex_bad.py").write_text("EXERCISE = 3")
    with pytest.raises(exercises.ExerciseError, match="has no EXERCISE"):
        exercises.catalogue(tmp_path)

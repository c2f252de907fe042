"""The report of a class: what it counts, groups by shape, and finds alike."""

import json

import pytest
from small_class import COPIED, graded, small_class, variant_of

from mlc_lab.cli import main
from mlc_lab.exercises.teach.class_report import report_of
from mlc_lab.exercises.teach.forms import shape, shape_of_values, wording
from mlc_lab.exercises.teach.grade import Graded
from mlc_lab.exercises.teach.roster import file_name
from mlc_lab.reading import DataError

@pytest.fixture(scope="module")
def students():
    return small_class()


@pytest.fixture(scope="module")
def report(students):
    return report_of(students, title="Loops")


def test_names_and_constants_are_left_out_of_a_shape():
    one = 'i, j = sch.get_loops("C")\nsch.split(i, [None, 16])'
    assert shape(one) == shape('# x\na, b = sch.get_loops("D")\nsch.split(a,[None,32])')
    assert shape(one) != shape(one.replace("split(i", "split(j"))
    assert shape(one) != shape(one + "\nsch.unroll(j)")
    assert wording(one)[0] == wording(one.replace("16", "8"))[0]
    assert wording(one)[0] != wording(one.replace("i", "a"))[0]
    # two sizes that are equal in one and differ in the other are not the same
    assert shape("f(8, 8)") != shape("f(8, 4)") == shape("f(2, 4)")
    assert shape("def (") == shape("def  (")  # no Python: its words
    assert shape("(" * 100_000) and shape("x = '\ud800'")


def test_predictions_are_told_beside_what_is_right():
    assert shape_of_values(200, 100) == shape_of_values(64, 32)
    assert shape_of_values({"a": 3}, {"a": 3}) != shape_of_values({"a": 3}, {"a": 4})
    assert shape_of_values(10**400, 3) and shape_of_values(["x"], "y")
    assert shape_of_values({"a": None, 3: 1}, {"a": 0})


def test_wrong_programs_that_are_equal_but_for_names_are_one_group(report, students):
    order = [row["name"] for row in report["students"]]
    group = report["groups"][0][0]
    assert [order[n] for n in group["students"]] == ["bad 0", "bad 1", "bad 2", "bad renamed"]
    texts = report["texts"]
    assert "T.block" in texts[group["program"]] and "T.block" in texts[group["right"]]
    shown = order[group["first"]]
    assert shown in order and texts[group["reference"]] == variant_of(shown).reference.strip("\n")
    assert group["failed"] and group["points"] < report["exercises"][0]["of"]
    assert all(report["answers"][0][n]["group"] == 0 for n in group["students"])


def test_each_answer_has_its_marks_and_nothing_is_lost(report, students):
    answers = report["answers"][0]
    by_name = {row["name"]: answer for row, answer in zip(report["students"], answers)}
    assert by_name["nothing"] is None and len(answers) == len(students)
    assert by_name["good 0"]["group"] == -1 and by_name["good 0"]["points"] == 5
    hostile = by_name["<script>alert(1)</script>"]
    assert hostile["error"] >= 0 and hostile["points"] == 0
    assert {"name": "nothing", "note": "it is no file of answers"} in report["students"]
    json.dumps(report, allow_nan=False)


def test_wordings_that_few_have_are_alike_and_those_of_the_reference_are_not(report):
    order = [row["name"] for row in report["students"]]
    pairs = [[order[n] for n in row["students"]] for row in report["alike"]]
    assert pairs == [["one", "two"]] and report["alike"][0]["same"] == []


def test_a_wording_that_several_have_is_no_likeness_and_two_of_them_are():
    three = [graded(name, COPIED) for name in ("one", "two", "three")]
    good = graded("good", lambda v: v.reference)
    others = [Graded(f"good {n}", good.results, answers=good.answers) for n in range(30)]
    assert report_of([*three, *others])["alike"] == []
    for one in three[:2]:
        more = graded(one.student, COPIED.replace("left, right", "above, below"), "03.2")
        one.results |= more.results
        one.answers |= more.answers
    (row,) = report_of([*three, *others])["alike"]
    assert row["exercises"] == ["01.2", "03.2"] == row["same"]


def test_without_names_students_are_numbered(students):
    text = json.dumps(report_of(students, names=False))
    assert "good 0" not in text and "student 1" in text and "no file of answers" not in text


def test_the_command_writes_a_page(students, tmp_path, capsys):
    folder = tmp_path / "marks"
    folder.mkdir()
    for one in students:
        (folder / file_name(one.student)).write_text(one.as_json(), encoding="utf-8")
    page = tmp_path / "class.html"
    assert main(["teach", "report", str(folder), "-o", str(page)]) == 0
    text = page.read_text()
    assert "wrong in the same way" in text and "<script>alert" not in text
    assert main(["teach", "report", str(tmp_path / "none"), "-o", str(page)]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_without_marks_it_says_what_to_do(tmp_path, capsys):
    (tmp_path / "collected.json").write_text("{}")
    assert main(["teach", "report", str(tmp_path)]) == 2
    assert "grade it first:  mlc-lab teach grade" in capsys.readouterr().err
    with pytest.raises(DataError, match="grade the answers first"):
        report_of([])

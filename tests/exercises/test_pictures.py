"""Marks in a picture: how they are written, what they are worth, what is told about them."""

import json
import random
import time

import pytest

from mlc_lab import exercises
from mlc_lab.cli import main
from mlc_lab.exercises.answers import AnswerError, _value, read
from mlc_lab.exercises.command import from_text, shown
from mlc_lab.exercises.exercise import ExerciseError, Field
from mlc_lab.exercises.judging import marks
from mlc_lab.exercises.pictures import MOST_PLACES, MarkError, cells, lines, marks_in, share
from mlc_lab.reading import DataError

GRID = cells(("A", (3, 4)), ("x", (5,)))
TEXT = lines("a = 1\n\nfor i in range(4):\n    b[i] = a\n")


@pytest.mark.parametrize("picture, written, places", [
    (GRID, "A[0, 3]", ["A[0, 3]"]),
    (GRID, "x[4], A[ 2 ,1:3 ]", ["A[2, 1]", "A[2, 2]", "x[4]"]),
    (GRID, "A[:, 0]; A[1,0]\nx[3:]", ["A[0, 0]", "A[1, 0]", "A[2, 0]", "x[3]", "x[4]"]),
    (GRID, ["A[0, 3]", "A[0, 2:4]"], ["A[0, 2]", "A[0, 3]"]),
    (GRID, "", []), (GRID, [], []),
    (TEXT, "lines 1-3, 4", ["line 1", "line 3", "line 4"]),
    (TEXT, ["line 3", "1"], ["line 1", "line 3"]),
])
def test_marks_are_written_one_by_one_or_as_ranges(picture, written, places):
    assert marks_in(picture, written) == places


@pytest.mark.parametrize("picture, written, told", [
    (GRID, "A[3, 0]", "no place"), (GRID, "A[0]", "no place"), (GRID, "C[0]", "no place"),
    (GRID, "A[2:1, 0]", "no place"), (GRID, "A[0, 0:99999999]", "no place"),
    (GRID, "A[-1, 0]", "no place"), (GRID, 3, "no list of marks"), (GRID, [3], "no place"),
    (GRID, [["A[0, 0]"]], "no place"), (GRID, "[" * 50_000, "no place"),
    (GRID, ["A[:, :]"] * 99_999, "more marks than are read"),
    (GRID, "<img src=x onerror=alert(1)>", "no place"),
    (TEXT, "line 2", "no place"), (TEXT, "9", "no place"), (TEXT, "lines 3-1", "no place"),
    (TEXT, "lines 1-999999", "no place"), (TEXT, "0", "no place"),
])
def test_what_is_no_place_is_refused_at_once(picture, written, told):
    start = time.process_time()
    with pytest.raises(MarkError, match=told) as raised:
        marks_in(picture, written)
    assert "marks are written" in raised.value.hint and len(raised.value.message) < 200
    assert time.process_time() - start < 2


def test_a_misspelled_mark_names_the_one_that_is_like_it():
    with pytest.raises(MarkError, match=r'is "line 3" meant'):
        marks_in(TEXT, "lin 3")


def test_points_follow_the_rule():
    right = list("abcd")
    assert share(right, right) == 1 and share([], []) == 1
    assert share(right, "abc") == share(right, "dab") == 3 / 4
    assert share(right, "abcx") == 1 / 2 and share(right, "axyz") == 0
    assert share([], "a") == 0 and share(right, []) == 0


def test_an_answer_right_in_part_has_a_part_of_the_points_and_the_first_marks_are_named():
    variant = exercises.get("03.6").variant(1)
    right = variant.reference["loops"]
    found = marks(variant, {"loops": [*right[1:], "line 4"]})
    assert (found.points, found.of) == (2, 4) and not found.solved
    row = found.rows[0]
    assert row.place == {"field": "loops", "wrong": "line 4", "missing": right[0]}
    assert f"line 4 is marked, and should not be (there is no loop); {right[0]} is missing" in str(
        row.says)
    assert marks(variant, "").rows[0].says == "nothing was marked"
    bad = marks(variant, "line 77")
    assert bad.points == 0 and bad.error["message"].startswith("loops: 'line 77' is no place")


def test_the_same_answer_in_any_form_has_the_same_marks():
    variant = exercises.get("05.6").variant("ada")
    right = variant.reference["cached"]
    mixed = random.Random(1).sample(right, len(right))
    forms = [right, tuple(mixed), {"cached": ", ".join(mixed)}, " ; ".join(right)]
    assert {marks(variant, form).as_json() for form in forms} == {
        marks(variant, variant.reference).as_json()}
    assert read(variant, mixed).values == {"cached": right}


def test_a_terminal_shows_the_picture_and_reads_marks_as_text(tmp_path, monkeypatch, capsys):
    variant = exercises.get("12.4").variant("ada")
    text = shown(variant)
    assert "p = matmul(a, w)" in text and "by the names of variables" in text
    kernel = ", ".join(variant.reference["kernel"])
    written = f"kernel: {kernel}\ncount: {variant.reference['count']}\n"
    assert from_text(variant, written)["count"] == variant.reference["count"]
    assert from_text(variant, json.dumps(variant.reference)) == variant.reference
    with pytest.raises(DataError, match="the fields are kernel, count"):
        from_text(variant, "p, s")
    (tmp_path / "answer.txt").write_text(written)
    monkeypatch.setenv("MLC_LAB_HOME", str(tmp_path / "home"))
    assert main(["exercise", "12.4", str(tmp_path / "answer.txt"), "--seed", "ada"]) == 0
    assert "4 of 4 points" in capsys.readouterr().out



def test_a_field_says_what_it_wants():
    for kind, more in (("marks", {}), ("number", {"picture": GRID}), ("choice", {}),
                       ("marks", {"picture": GRID, "choices": ("a",)}), ("picture", {})):
        if more.get("choices"):
            assert Field("f", "?", kind, **more).choices == GRID.places
            continue
        with pytest.raises(ExerciseError, match="'f'"):
            Field("f", "?", kind, **more)
    with pytest.raises(Exception, match=f"1 to {MOST_PLACES}"):
        cells(("A", (100, 100)))


def test_a_choice_may_be_made_in_a_picture():
    field = Field("at", "Where?", "choice", picture=TEXT)
    assert _value(field, "3") == "line 3" and _value(field, ["line 1"]) == "line 1"
    assert _value(field, []) is None
    with pytest.raises(AnswerError, match="one place is asked for, and 3"):
        _value(field, "lines 1-4")


def test_otter_gives_a_part_of_the_points_too(tmp_path):
    from mlc_lab.exercises.teach.in_cells import release_in_cells

    made = release_in_cells(tmp_path, ["03.6", "12.4"], "otter", seed="1")
    assert "for i0 in range(16)" in made[0].read_text()
    tests = {p.name: p.read_text() for p in (tmp_path / "autograder" / "tests").glob("*.py")}
    text = next(t for name, t in tests.items() if "03_6" in name)
    assert text.count("@test_case") == 4 and text.count("points=1)") == 4
    cases = {}

    def test_case(name, points):
        return lambda function: cases.setdefault(name, (function, points))

    namespace = {"test_case": test_case}
    exec(text.replace("from otter.test_files import test_case", ""), namespace)
    variant = exercises.get("03.6").variant("1")
    answer = {"loops": variant.reference["loops"][:-1]}
    reached = 0
    for function, points in cases.values():
        try:
            function({namespace_name(text): answer})
            reached += points
        except AssertionError:
            pass
    assert reached == marks(variant, answer).points == 3


def namespace_name(text):
    """The name of the variable that a test of Otter's looks up."""
    return text.split("env.get(")[1].split(",")[0].strip("'\"")

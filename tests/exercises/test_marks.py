"""Marks as Moodle and Canvas import them; corrections and the price of hints."""

import csv
import io
import re

import pytest

from mlc_lab import exercises
from mlc_lab.exercises import teach
from mlc_lab.exercises.book import Book, Entry
from mlc_lab.exercises.catalogue import version
from mlc_lab.exercises.result import Result, Row
from mlc_lab.exercises.teach.corrections import charged, corrected
from mlc_lab.exercises.teach.grade import Graded
from mlc_lab.reading import DataError


def result(*points, id="01.2"):
    return Result(id, "s", [Row("structure", f"row {n}", p, of, p == of)
                            for n, (p, of) in enumerate(points, 1)])


def graded(student, *points, **more):
    return Graded(student, {"01.2": result(*points)}, **more)


CLASS = [graded("Ada Lovelace", (1, 1), (4, 4), platform="moodle", number="11"),
         graded("=1+1", (1, 1), (0, 4), platform="moodle", number="12", late=True)]


def table(text):
    return list(csv.reader(io.StringIO(text)))


def test_moodle_takes_its_worksheet():
    """Moodle's importer of worksheets wants the columns Identifier, Grade and Last modified
    (grade), and a number at the end of the identifier."""
    rows = table(teach.write_marks(CLASS, form="moodle"))
    assert {"Identifier", "Grade", "Last modified (grade)", "Feedback comments"} <= set(rows[0])
    assert rows[1][:4] == ["Participant 11", "Ada Lovelace", "5", "5"]
    assert rows[2][1] == "'=1+1" and rows[2][-1] == "01.2: 1 of 5"


def test_a_worksheet_of_moodle_is_filled_in(tmp_path):
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("\ufeffIdentifier,Full name,Email address,Status,Grade,Maximum Grade,"
                     "Last modified (grade),Feedback comments\n"
                     "Participant 11,Ada L.,a@x.org,Submitted,,100.00,-,\n"
                     "Participant 19,Cy,c@x.org,No submission,,100.00,-,\n")
    rows = table(teach.write_marks(CLASS, form="moodle", fill=sheet))
    assert rows[1][:6] == ["Participant 11", "Ada L.", "a@x.org", "Submitted", "100.00", "100.00"]
    assert rows[2][4] == "" and len(rows) == 3
    with pytest.raises(DataError, match="no column 'Bewertung'"):
        teach.write_marks(CLASS, form="moodle", fill=sheet, column="Bewertung")
    with pytest.raises(DataError, match="none of the 1 students"):
        teach.write_marks([graded("X", (1, 1), platform="moodle", number="5")], form="moodle",
                          fill=sheet)


def test_canvas_takes_its_gradebook(tmp_path):
    """Canvas's importer wants Student first, ID second, Section last before the assignments."""
    canvas = [graded("lovelaceada", (1, 1), (3, 4), platform="canvas", number="70")]
    rows = table(teach.write_marks(canvas, form="canvas", column="Loops (5)"))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Loops (5)"]
    assert "Points Possible" in rows[1][0] and rows[1][5] == "5"
    assert rows[2] == ["lovelaceada", "70", "", "", "", "4"]
    book = tmp_path / "grades.csv"
    book.write_text("Student,ID,SIS Login ID,Section,Loops (5),Final Score\n"
                    "    Points Possible,,,,10,(read only)\n"
                    '"Lovelace, Ada",70,ada,A,,3\n"Cy, D.",71,cy,A,,3\n')
    rows = table(teach.write_marks(canvas, form="canvas", fill=book, column="Loops (5)"))
    assert rows[2] == ["Lovelace, Ada", "70", "ada", "A", "8.00", "3"] and rows[3][4] == ""
    with pytest.raises(DataError, match="--column"):
        teach.write_marks(canvas, form="canvas", fill=book)
    by_name = [graded("Ada Lovelace", (1, 1), (4, 4))]
    rows = table(teach.write_marks(by_name, form="canvas", fill=book, column="Loops (5)"))
    assert rows[2][4] == "10.00"


def corrections(tmp_path, text):
    (tmp_path / "c.csv").write_text(text)
    return teach.read_corrections(tmp_path / "c.csv")


def test_corrections_change_points_and_not_what_was_found(tmp_path):
    found = corrections(tmp_path, "exercise,student,row,points,why\n01.2,,2,6,too cheap\n"
                                  "01.2,bob,1,1,\n01.2,cy,,3,told it\n")
    assert corrected(result((1, 1), (4, 4)), "ada", found).points == 7
    assert corrected(result((0, 1), (0, 4)), "bob", found).points == 1
    cy = corrected(result((0, 1), (0, 4)), "cy", found)
    assert (cy.points, cy.of) == (3, 7) and cy.rows[-1].title == "corrected: told it"
    unread = exercises.check("01.2", "sch.nothing()", "cy")
    assert unread.error
    cy = corrected(unread, "cy", found)
    assert cy.points == 3 and cy.error is None and "nothing" in cy.rows[0].says


@pytest.mark.parametrize("text, says", [
    ("exercise,points\n01.2,x\n", "line 2: points and row"), ("a,b\n1,2\n", "columns are"),
    ("exercise,points\n01.2,3\n", "of a row"), ("exercise,row,points\n01.2,-1,3\n", "of a row"),
    ("exercise,row,points\n01.2,9,3\n", "which has 2"),
])
def test_a_table_of_corrections_that_is_none(tmp_path, text, says):
    with pytest.raises(DataError, match=says):
        corrected(result((1, 1), (1, 1)), "x", corrections(tmp_path, text))


def test_hints_cost_what_the_teacher_says():
    full = result((1, 1), (4, 4))
    assert charged(full, 2, 0) is full and charged(full, 0, 1) is full
    assert charged(full, 2, 1).points == 3 and charged(full, 3, 3).points == 0
    assert charged(full, 4, 1).points == 0 and charged(full, 4, 0).points == 5
    assert charged(full, 1, 2).of == 5


def test_other_points_are_counted_without_checking_again(tmp_path, monkeypatch):
    answer = exercises.get("01.1").variant("ada").reference
    handed = teach.Handed("ada", "ada.json", Book("ada", {"01.1": Entry("ada", answer)},
                                                  {"01.1": 1}))
    marks = tmp_path / "marks"
    (first,) = teach.grade([handed], marks, ["01.1"], jobs=1, progress=False)
    assert first.points == 4
    monkeypatch.setattr(exercises.Judge, "check", None)
    change = corrections(tmp_path, "exercise,row,points\n01.1,1,5\n")
    (second,) = teach.grade([handed], marks, ["01.1"], jobs=1, progress=False, hint_cost=2,
                            corrections=change)
    assert (second.points, second.of) == (6, 8) and second.found["01.1"].points == 4
    # from the answers that the marks have kept, with the points as they were
    (third,) = teach.grade(teach.collect(marks), marks, ["01.1"], jobs=1, progress=False)
    assert third.as_json() == first.as_json()
    with pytest.raises(DataError, match="01.2, which is not asked"):
        teach.grade([handed], marks, ["01.1"], corrections=[teach.Correction("01.2", 3, 1)])


def test_answers_say_of_which_version_of_an_exercise_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("MLC_LAB_HOME", str(tmp_path))
    now = version("01.1")
    assert re.fullmatch("[0-9a-f]{8}", now) and now != version("01.2") and version("90.1") == ""
    answer = exercises.get("01.1").variant("ada").reference
    assert exercises.book.keep(exercises.check("01.1", answer, "ada"), answer) == ""
    exercises.hand_in(tmp_path / "handed" / "ada.json", "ada", ["01.1"])
    text = (tmp_path / "handed" / "ada.json").read_text()
    assert f'"version": "{now}"' in text
    (one,) = teach.grade(teach.collect(tmp_path / "handed"), tmp_path / "m", ["01.1"],
                         progress=False)
    assert one.points == 4 and one.note == ""
    (tmp_path / "handed" / "ada.json").write_text(text.replace(now, "00000000"))
    (old,) = teach.grade(teach.collect(tmp_path / "handed"), tmp_path / "n", ["01.1"],
                         progress=False)
    assert old.points == 4 and old.note.startswith("01.1: answered in another version")
    (again,) = teach.grade(teach.collect(tmp_path / "n"), tmp_path / "n", ["01.1"], progress=False)
    assert again.as_json() == old.as_json()


def test_the_card_notes_hints_before_it_is_solved_and_keeps_solutions_locked(tmp_path, monkeypatch):
    pytest.importorskip("anywidget")
    monkeypatch.setenv("MLC_LAB_HOME", str(tmp_path))
    card = exercises.exercise("01.1", seed="ada", hint_cost=1, solution=False)
    card.wanted = 2
    assert exercises.book.load().hints == {"01.1": 2} and len(card.hints) == 2
    card.wanted = 4
    assert len(card.hints) == 3 and exercises.book.load().hints == {"01.1": 3}
    other = exercises.exercise("01.2", seed="ada")
    other.check(other.source.reference)
    other.wanted = 4
    assert len(other.hints) == 4 and exercises.book.load().hints == {"01.1": 3}
    exercises.hand_in(tmp_path / "handed.json", "ada", ["01.1", "01.2"])
    assert exercises.book.load(tmp_path / "handed.json").hints == {"01.1": 3}

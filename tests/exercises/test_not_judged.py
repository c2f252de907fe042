"""What was not judged, since the machine had other things to do, is no mark."""

import importlib
import sys

import pytest

from mlc_lab import exercises
from mlc_lab.exercises import teach
from mlc_lab.exercises.book import Book, Entry
from mlc_lab.exercises.judge import Judge
from mlc_lab.reading import DataError

ID = "05.5"
#: the module, whose name is that of its function too
grading = importlib.import_module("mlc_lab.exercises.teach.grade")


def handed(tmp_path, students):
    folder = tmp_path / "handed"
    folder.mkdir()
    for name in students:
        right = exercises.get(ID).variant(name).reference
        (folder / f"{name}.json").write_text(Book(name, {ID: Entry(name, right)}).as_json())
    return teach.collect(folder)


def test_what_was_not_judged_is_graded_again_and_no_table_is_written_before(tmp_path, monkeypatch):
    found = handed(tmp_path, ["ada"])
    monkeypatch.setattr(grading, "Judge", lambda: Judge(wall_s=0.001))
    (one,) = teach.grade(found, tmp_path / "marks", [ID], jobs=1, progress=False)
    assert one.unjudged == [ID] and "grade again" in one.note and not one.digests
    with pytest.raises(DataError, match="were not judged.*ada"):
        teach.write_marks(teach.read_graded(tmp_path / "marks"))
    monkeypatch.undo()
    (one,) = teach.grade(found, tmp_path / "marks", [ID], jobs=1, progress=False)
    assert one.points == one.of > 0 and not one.unjudged and one.digests
    assert "ada" in teach.write_marks(teach.read_graded(tmp_path / "marks"))


def test_grading_says_how_far_it_is_without_a_progress_bar(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(grading, "LINE_S", 0.0)
    teach.grade(handed(tmp_path, ["ada", "bob"]), tmp_path / "marks", [ID], jobs=1)
    assert capsys.readouterr().out.splitlines() == [
        "graded 1 of 2 students", "graded 2 of 2 students"]

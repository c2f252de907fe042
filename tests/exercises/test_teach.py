"""A small class: answers are handed in well, badly and with malice; marks, tables and pages."""

import json
import zipfile

import pytest

from mlc_lab import exercises
from mlc_lab.cli import main
from mlc_lab.exercises import teach
from mlc_lab.exercises.book import Book, Entry, load, read_book
from mlc_lab.reading import DataError

IDS = ["01.1", "01.2"]


def book(student, **answers):
    made = Book(student)
    for id, answer in answers.items():
        made.entries[id.replace("_", ".").strip("e")] = Entry(student, answer)
    return made


def right(student):
    return {f"e{id.replace('.', '_')}": exercises.get(id).variant(student).reference for id in IDS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handed")
    (folder / "ada.json").write_text(book("ada", **right("ada")).as_json())
    (folder / "bob.json").write_text(
        book("bob", e01_1="def main(: 3", e01_2="sch.reorder(i)").as_json())
    (folder / "copied.json").write_text(
        book("<script>alert(1)</script>", e01_1=right("ada")["e01_1"]).as_json().replace(
            '"seed": "<script>alert(1)</script>"', '"seed": "ada"'))
    (folder / "=cmd.json").write_text("[" * 10_000)
    (folder / "large.json").write_text("1" * (21 << 20))
    with zipfile.ZipFile(folder / "moodle.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Eve Adams_17_assignsubmission_file_/answers.json",
                         book("", **right("Eve Adams")).as_json().replace(
                             '"seed": ""', '"seed": "Eve Adams"'))
        archive.writestr("../../climbs_1/answers.json", "{}")
        archive.writestr("bomb_2/answers.json", b"0" * (200 << 20))
        archive.writestr("Notes_3/readme.txt", "hello")
    (folder / "broken.zip").write_bytes(b"PK\x03\x04 nothing")
    return folder


@pytest.fixture(scope="module")
def graded(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("marks")
    return out, teach.grade(teach.collect(folder), out, IDS, jobs=2, progress=False)


def test_each_has_the_marks_of_the_answers(graded):
    points = {one.student: (one.points, one.of) for one in graded[1]}
    assert points["ada"] == (9, 9) and points["Eve Adams"] == (9, 9)
    assert points["bob"] == (0, 9) and points["<script>alert(1)</script>"][0] in (0, 4)
    problems = {one.student: one.problem for one in graded[1] if one.problem}
    assert "levels" in problems["=cmd"] or "nested" in problems["=cmd"]
    assert "bytes; answers have" in problems["large"] and "bytes; answers have" in problems["bomb"]
    assert "no file of answers" in problems["climbs"]
    assert "cannot be read" in problems["broken"]


def test_grading_again_gives_the_same_bytes_and_does_not_check_again(graded, folder, monkeypatch):
    out, first = graded
    before = {p.name: p.read_bytes() for p in out.glob("*.json")}
    monkeypatch.setattr(teach.grade.__globals__["Judge"], "check", None)  # nothing is left to do
    again = teach.grade(teach.collect(folder), out, IDS, jobs=1, progress=False)
    assert [one.as_json() for one in again] == [one.as_json() for one in first]
    assert {p.name: p.read_bytes() for p in out.glob("*.json")} == before
    assert not [p for p in out.iterdir() if p.suffix != ".json"]


def test_another_students_variant_has_no_points(folder, tmp_path):
    found = teach.grade([h for h in teach.collect(folder) if "script" in h.student], tmp_path, IDS,
                        seeds={"<script>alert(1)</script>": "mallory"}, progress=False)
    assert found[0].points == 0 and "another student's variant" in str(found[0].results["01.1"])


def test_the_table_computes_nothing(graded):
    table = teach.write_marks(graded[1])
    assert table.splitlines()[0] == "student,points,of,percent,01.1,01.2,problem,note"
    assert "ada,9,9,100.0,4,5," in table and "\n'=cmd,0,9" in table


def test_pages_show_names_as_text(graded, tmp_path):
    pages = teach.write_feedback(teach.read_graded(graded[0]), tmp_path, solutions=True)
    text = "".join(p.read_text() for p in pages)
    assert "<script>" not in text and "&lt;script&gt;alert(1)" in text
    assert "3 of 3" in text and "A solution:" in text and "9 of 9 points." in text
    assert all(p.parent == tmp_path for p in pages)


def test_the_command(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MLC_LAB_HOME", str(tmp_path / "home"))
    answer = tmp_path / "answer.py"
    answer.write_text(exercises.get("01.2").variant("ada").reference)
    assert main(["exercise", "01.2", str(answer), "--seed", "ada"]) == 0
    assert "5 of 5 points" in capsys.readouterr().out
    answer.write_text("i = sch.get_loops('C')")
    assert main(["exercise", "01.2", str(answer), "--seed", "ada"]) == 1
    assert load().entries["01.2"].points == 5  # the better answer is kept
    capsys.readouterr()
    assert main(["exercise"]) == 0 and "5 of 5" in capsys.readouterr().out
    assert main(["exercise", "01.2"]) == 0 and "sch.reorder" in capsys.readouterr().out
    assert main(["exercise", "77.1"]) == 2 and "no exercise" in capsys.readouterr().err
    marks, table = tmp_path / "marks", tmp_path / "marks.csv"
    assert main(["teach", "grade", str(folder), "-o", str(marks), "--exercises", "01.2"]) == 0
    assert main(["teach", "marks", str(marks), "-o", str(table)]) == 0
    assert "ada,5,5" in table.read_text()
    assert main(["teach", "feedback", str(marks), "-o", str(tmp_path / "pages")]) == 0
    mine = tmp_path / "own" / "ex_mine.py"
    assert main(["teach", "new-exercise", str(mine)]) == 0
    assert main(["teach", "new-exercise", str(mine)]) == 2
    task = exercises.get("90.1", mine.parent).variant(4)
    assert exercises.check("90.1", task.reference, 4, mine.parent).solved
    for wrong in task.wrong:
        found = exercises.check("90.1", wrong.answer, 4, mine.parent)
        assert found.points == wrong.points and wrong.says in str(found)


def test_a_term_in_small(tmp_path, monkeypatch, capsys):
    """Notebooks are handed out, run by their students, handed in and graded."""
    roster = tmp_path / "roster.json"
    roster.write_text(json.dumps(["ada", "bob <b>"]))
    out = tmp_path / "out"
    assert main(["teach", "release", str(roster), "-o", str(out), "--exercises", "01.1,01.2"]) == 0
    seeds = json.loads((out / "roster.json").read_text())
    handed = tmp_path / "handed"
    for path in sorted(out.glob("*.ipynb")):
        notebook = json.loads(path.read_text())
        text = path.read_text()
        cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
        student = next(name for name in seeds if repr(name) in cells[-1])
        assert "vj]" not in text  # no answer
        home = tmp_path / path.stem
        monkeypatch.setenv("MLC_LAB_HOME", str(home))
        monkeypatch.chdir(tmp_path)
        names = {}
        for cell in cells[:-1]:
            exec(cell, names)
            if "card" in names:
                task = exercises.get(names["card"].task["id"]).variant(names["card"].task["seed"])
                names["card"].check(task.reference if student == "ada" else task.wrong[0].answer)
        exec(cells[-1], names)
        (handed / path.stem).mkdir(parents=True)
        (tmp_path / "answers.json").rename(handed / path.stem / "answers.json")
    marks = tmp_path / "marks"
    assert main(["teach", "grade", str(handed), "-o", str(marks), "--exercises", "01.1,01.2",
                 "--roster", str(out / "roster.json")]) == 0
    found = {one.student: one.points for one in teach.read_graded(marks)}
    assert found == {"ada": 9, "bob <b>": 3}
    assert main(["teach", "release", str(out / "nothing.json")]) == 2
    roster.write_text("3")
    assert main(["teach", "release", str(roster)]) == 2 and "no roster" in capsys.readouterr().err


@pytest.mark.parametrize("text, says", [
    ("[]", "no file of answers"), ("{", "not JSON"),
    (json.dumps({"format": "mlc-lab answers", "version": 9}), "version 9"),
    (json.dumps({"format": "mlc-lab answers", "version": 1}), "no answers"),
    (json.dumps({"format": "mlc-lab answers", "version": 1, "answers": {"1": 2}}), "is none"),
])
def test_a_damaged_file_of_answers_is_told(text, says):
    with pytest.raises(DataError, match=says):
        read_book(text)

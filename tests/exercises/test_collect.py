"""What was handed in is found, in what Moodle and Canvas hand out too, and who it is of."""

import io
import json
import zipfile

import pytest

from mlc_lab import exercises
from mlc_lab.exercises import teach
from mlc_lab.exercises.book import Book, Entry
from mlc_lab.exercises.teach.notebooks import read_notebook
from mlc_lab.exercises.teach.roster import Matcher, place_of, read_roster, students_of
from mlc_lab.reading import DataError


def book(student="", seed="s", **more):
    return Book(student, {"01.2": Entry(seed, "sch.reorder(i)")}, **more).as_json()


def notebook(*cells, **about):
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells],
                       "metadata": {"mlc_lab": about}, "nbformat": 4, "nbformat_minor": 5})


def packed(**files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


@pytest.mark.parametrize("name, student, platform, number, late", [
    ("Ada Lovelace_123_assignsubmission_file_/answers.json", "Ada Lovelace", "moodle", "123", 0),
    ("Ada Lovelace_123_assignsubmission_file_answers.json", "Ada Lovelace", "moodle", "123", 0),
    ("A/Ann_Lee_9_assignsubmission_file/x/answers.json", "Ann_Lee", "moodle", "9", 0),
    ("d.zip:Participant_7_assignsubmission_file_/a.json", "Participant", "moodle", "7", 0),
    ("lovelaceada_123_456_answers.json", "lovelaceada", "canvas", "123", 0),
    ("submissions.zip:lovelaceada_LATE_123_456_answers-1.json", "lovelaceada", "canvas", "123", 1),
    ("ada.json", "", "", "", 0), ("ada_17/answers.json", "", "", "", 0),
])
def test_names_of_platforms(name, student, platform, number, late):
    place = place_of(name)
    assert (place.name, place.platform, place.number, place.late) == (
        student, platform, number, bool(late))


@pytest.mark.parametrize("names, students", [
    ("ada.json", "ada"), ("ada/answers.json", "ada"), ("ada_17/answers.json", "ada"),
    ("_/__.json", "_"), ("answers.json", "answers"), ("", ""), ("../..", ".."),
    ("submitted/ada/loops/loops.ipynb", "ada"), ("ada/loops/answers.json", "loops"),
    ("ada/loops.ipynb bob/loops.ipynb", "ada bob"), ("ada.zip:answers.json b.zip:x.json", "ada x"),
    ("ada.zip:answers.json bob.zip:answers.json", "ada bob"),
    ("c.zip:all/ada/answers.json c.zip:all/bob/answers.json", "ada bob"),
    ("w1/ada/answers.json w1/bob/answers.json w1/cy.json", "ada bob cy"),
    ("submitted/ada/l/l.ipynb submitted/bob/l/l.ipynb", "ada bob"),
    ("ada/l/a.ipynb ada/l/b.ipynb bob/l/a.ipynb bob/l/b.ipynb", "ada ada bob bob"),
    ("s1/ada/l/l.ipynb s1/bob/l/l.ipynb s2/cy/l/l.ipynb", "ada bob cy"),
    ("w/s/ada.json w/s/bob.json", "ada bob"), ("w1/ada.json w2/bob.json", "ada bob"),
    ("ada_1/answers.json ada_2/answers.json", "ada_1 ada_2"),
    ("../../eve_1/answers.json ada.json", "eve ada"),
])
def test_names_of_a_teachers_own_folder(names, students):
    assert students_of(names.split() or [""]) == dict(zip(names.split() or [""],
                                                          students.split() or [""]))


@pytest.mark.parametrize("names, students", [
    ("w1/ada/answers.json w2/ada/answers.json w3/bob/answers.json", "Ada Ada Bob"),
    ("bob.zip:ada/answers.json", "Bob"),  # what a student calls things in an own archive is inside
    ("ada_17/x/loops.ipynb bob/loops.ipynb", "Ada Bob"),
])
def test_a_roster_says_which_part_of_a_name_is_the_students(names, students):
    found = students_of(names.split(), Matcher(["Ada", "Bob"]))
    assert list(found.values()) == students.split()


def test_files_of_the_same_name_are_of_their_folders(tmp_path):
    for student in ("ada", "bob"):
        (tmp_path / "class" / student).mkdir(parents=True)
        (tmp_path / "class" / student / "loops.ipynb").write_text(notebook("answer_01_2 = 'x'"))
    (tmp_path / "class" / "cy").mkdir()
    (tmp_path / "class" / "cy" / "loops.ipynb").write_text("damaged")
    assert [one.student for one in teach.collect(tmp_path)] == ["ada", "bob", "cy"]


@pytest.fixture
def download(tmp_path):
    """A download: the file that a student hands in may say what it likes."""
    path = tmp_path / "download.zip"
    path.write_bytes(packed(**{
        "Ada Lovelace_11_assignsubmission_file_/answers.json": book("Ada Lovelace", "Ada Lovelace"),
        "Mallory_12_assignsubmission_file_/answers.json": book("Ada Lovelace", "Ada Lovelace"),
        "Bob_13_assignsubmission_file_/homework.zip": packed(**{
            "x/answers.json": book("Bob", "Bob"), "__MACOSX/x/._answers.json": b"\0"}),
        "Bob_14_assignsubmission_file_/answers.json": book("", "Bob"),
        "Eve_15_assignsubmission_file_/deep.zip": packed(a=packed(b=b"1")).replace(b"a", b"a"),
        "Eve_15_assignsubmission_file_/late.json": '{"format": "mlc-lab answers", "student": "'
                                                   + "\\ud800" + '"}',
        "Zoe_16_assignsubmission_file_/nb.ipynb": notebook(
            'answer_01_2 = """sch.reorder(i)"""', "import os\nanswer_01_1 = os.getcwd()",
            seed="Zoe"),
    }))
    return path


def test_who_a_platform_says_it_is_counts(download):
    found = {one.student: one for one in teach.collect(download)}
    assert set(found) == {"Ada Lovelace", "Mallory", "Bob (13)", "Bob (14)", "Eve", "Zoe"}
    assert "says that it is of 'Ada Lovelace'" in found["Mallory"].note
    assert found["Bob (13)"].book.entries["01.2"].seed == "Bob"
    assert found["Eve"].book is None and found["Eve"].problem
    assert "answer_01_1 is computed" in found["Zoe"].note and "01.2" in found["Zoe"].book.entries
    assert found["Ada Lovelace"].number == "11" and found["Ada Lovelace"].platform == "moodle"


def test_what_was_collected_is_read_again(download, tmp_path):
    handed = teach.collect(download)
    teach.write_collected(handed, tmp_path / "out")
    again = teach.collect(tmp_path / "out")
    assert [one.student for one in again] == [one.student for one in handed]
    assert [one.number for one in again] == [one.number for one in handed]
    assert all((a.book is None) == (b.book is None) for a, b in zip(again, handed))
    teach.write_collected(again, tmp_path / "out")  # the same folder is written again
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="has files already"):
        teach.write_collected(handed, tmp_path / "mine")
    (tmp_path / "out" / "collected.json").write_text('{"format": "mlc-lab collected"}')
    with pytest.raises(DataError, match="damaged"):
        teach.collect(tmp_path / "out")


def test_a_roster_gives_its_own_names(tmp_path):
    (tmp_path / "lovelaceada_3_4_answers.json").write_text(book())
    (tmp_path / "leeann_5_6_answers.json").write_text(book())
    found = teach.collect(tmp_path, {"Ada Lovelace": "1", "Ann Lee": "2", "Lee Ann": "3"})
    assert [one.student for one in found] == ["Ada Lovelace", "leeann"]  # of two none is taken


def test_a_platforms_form_of_the_same_name_is_no_other_student(tmp_path):
    (tmp_path / "lovelaceada_3_4_answers.json").write_text(book("Ada Lovelace"))
    (tmp_path / "leeann_5_6_answers.json").write_text(book("Ada Lovelace"))
    for roster in ((), ["Ada Lovelace", "Ann Lee"]):
        ada, lee = sorted(teach.collect(tmp_path, roster), key=lambda one: one.number)
        assert not ada.note and "says that it is of 'Ada Lovelace'" in lee.note


def test_two_files_that_claim_one_student_are_told(tmp_path):
    (tmp_path / "a.json").write_text(book("ada"))
    (tmp_path / "b.json").write_text(book("ada"))
    (one,) = teach.collect(tmp_path)
    assert one.source == "b.json" and "a.json says that it is of the same student" in one.note


def test_what_is_hostile_in_a_zip_is_refused_and_the_rest_is_read(tmp_path):
    path = tmp_path / "d.zip"
    path.write_bytes(packed(**{
        "Ada_1_assignsubmission_file_/answers.json": book(),
        "../../Bo_2_assignsubmission_file_/answers.json": book("<b>"),
        "Cy_3_assignsubmission_file_/answers.json": b"[" * 100_000,
        "Di_4_assignsubmission_file_/answers.json": b"0" * (40 << 20),
        "Ed_5_assignsubmission_file_/z.zip": packed(**{"z.zip": packed(**{"z.zip": b""})}),
        "Fy_6_assignsubmission_file_/nb.ipynb": notebook("answer_01_1 = 1e999\n" + "(" * 3000),
        "Gy_7_assignsubmission_file_/nb.ipynb": b'{"cells": 3}',
    }))
    found = {one.student: one for one in teach.collect(path)}
    assert found["Ada"].book and found["Bo"].book and len(found) == 7
    assert "levels" in found["Cy"].problem and "bytes; answers have" in found["Di"].problem
    assert "not read" in found["Ed"].problem and "no answer in its cells" in found["Fy"].problem
    assert "no notebook" in found["Gy"].problem
    assert not (tmp_path.parent / "Bo_2_assignsubmission_file_").exists()
    with pytest.raises(DataError, match="no zip archive"):
        teach.collect(tmp_path / "nothing.zip")


@pytest.mark.parametrize("cell, answer", [
    ('answer_01_2 = "a"\nanswer_01_2 = "b"', "b"), ("%%time\nanswer_01_2 = {'x': [1, 2.5]}",
                                                    {"x": [1, 2.5]}),
    ("answer_01_2 = -3", -3), ("answer_01_2 = None", None), ("if 1:\n    answer_01_2 = 3", "no"),
    ("answer_01_2 = 1e999", "no"), ("answer_01_2 = b'x'", "no"), ("answer_01_2: int = 3", "no"),
    ("answer_01_2 = {'a': {1, 2}}", "no"), ("answer_01_2 = f'{x}'", "no"), ("answer_01_2 =", "no"),
])
def test_answers_in_cells_are_read_and_not_run(cell, answer):
    if answer == "no":
        try:
            assert read_notebook(notebook(cell))[1]
        except DataError:
            pass
    else:
        assert read_notebook(notebook(cell))[0].entries["01.2"].answer == answer


@pytest.mark.parametrize("name, text, found", [
    ("a.txt", "Ada\n\n Bob \n", {"Ada": "Ada", "Bob": "Bob"}),
    ("a.csv", "\ufeffFull name;Seed\nAda;1\nBob;2\n", {"Ada": "1", "Bob": "2"}),
    ("a.csv", "Student,ID,SIS Login ID\n    Points Possible,,\nAda,4,x\n", {"Ada": "Ada"}),
    ("a.json", '["Ada"]', {"Ada": "Ada"}), ("a.json", '{"Ada": "7"}', {"Ada": "7"}),
    ("a.csv", "what\nAda\n", "no column"), ("a.json", "3", "no roster"), ("a.txt", "", "no roster"),
    ("a.txt", "x" * 300, "200 characters"),
])
def test_rosters(tmp_path, name, text, found):
    (tmp_path / name).write_text(text)
    if isinstance(found, dict):
        assert read_roster(tmp_path / name) == found
    else:
        with pytest.raises(DataError, match=found):
            read_roster(tmp_path / name)


def test_answers_in_cells_without_a_seed_are_to_the_variant_of_the_roster_or_to_0(tmp_path):
    home = tmp_path / "handed"
    for student in ("ada", "bob"):
        (home / student).mkdir(parents=True)
        answer = exercises.get("01.1").variant("0" if student == "ada" else "b").reference
        (home / student / "loops.ipynb").write_text(notebook(f"answer_01_1 = {answer!r}"))
    handed = teach.collect(home)
    ada, bob = teach.grade(handed, tmp_path / "marks", ["01.1"], jobs=1, progress=False)
    assert ada.points == ada.of and "variant" in ada.note and ada.results["01.1"].seed == "0"
    assert bob.points < bob.of and "0 is taken" in bob.note
    assert [r.points for r in teach.check_handed(home / "ada", ["01.1"])] == [ada.of]
    ada, bob = teach.grade(handed, tmp_path / "marks", ["01.1"], seeds={"ada": "0", "bob": "b"},
                           jobs=1, progress=False)
    assert ada.points == ada.of == bob.points and not ada.note and not bob.note

"""A term: notebooks are handed out, a class of twelve hands in well, badly and with malice, and all
is collected, graded (stopped and gone on with), written into tables and told to the students.

`test_graders.py` plays the same class in nbgrader.
"""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import term

from mlc_lab import exercises
from mlc_lab.cli import main
from mlc_lab.exercises.book import Book, Entry
from mlc_lab.workers.confined import Confined

ROOT = Path(__file__).resolve().parents[2]
EXERCISES = ["--exercises", ",".join(term.IDS)]
#: what is said to some
SAID = {term.BOMB: "bytes; answers have", term.DEEP: "levels",
        term.YEARS: ["statements; an answer runs", "10 ** 30", "stopped: it took"],
        term.MEMORY: ["bytes of memory; an answer has", "more memory than it may use"],
        term.FORKS: ["it took too long"], term.BOB: ["C[0, 1] is", "more than one prime factor"]}


def book(student, seeds):
    seed = seeds[student]
    answers = term.answers(student, seed).items()
    return Book(student, {id: Entry(seed, answer) for id, answer in answers}).as_json()


def hand_in(folder, seeds):
    """What comes back: a download of Moodle's, one of Canvas's, and folders."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "Loops-42.zip", "w", zipfile.ZIP_DEFLATED) as moodle:
        for number, student in enumerate([term.ADA, term.IMG, term.HTML, term.YEARS]):
            moodle.writestr(f"{student}_{100 + number}_assignsubmission_file_/answers.json",
                            book(student, seeds))
        with moodle.open(f"{term.BOMB}_110_assignsubmission_file_/answers.json", "w") as bomb:
            for _ in range(256):
                bomb.write(bytes(1 << 20))
        moodle.writestr(f"../../../{term.CLIMBS}_111_assignsubmission_file_/answers.json",
                        book(term.CLIMBS, seeds))
    with zipfile.ZipFile(folder / "submissions.zip", "w", zipfile.ZIP_DEFLATED) as canvas:
        canvas.writestr("stonebob_LATE_201_9001_answers.json", book(term.BOB, seeds))
        canvas.writestr("levelsgus_202_9002_answers.json", "[" * 10_000 + "]" * 10_000)
        canvas.writestr("bytesida_203_9003_answers-1.json", book(term.MEMORY, seeds))
    for number, student in enumerate([term.FORMULA, term.FORKS, term.READS]):
        (folder / f"student {number}").mkdir()
        (folder / f"student {number}" / "answers.json").write_text(book(student, seeds))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The term, up to the marks: the folder in which it was played."""
    home = tmp_path_factory.mktemp("term")
    (home / "class.txt").write_text("\n".join(term.CLASS), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        assert main(["teach", "release", "class.txt", "-o", "handed-out", *EXERCISES]) == 0
        hand_in(home / "handed-in", json.loads(Path("handed-out/roster.json").read_text("utf-8")))
        assert main(["teach", "collect", "handed-in", "-o", "collected", "--roster",
                     "handed-out/roster.json"]) == 0
        grading = ["teach", "grade", "collected", "-o", "marks", *EXERCISES, "--roster",
                   "handed-out/roster.json", "--jobs", "2"]
        stopped(grading, home / "marks")
        assert main(grading) == 0
        yield home


def stopped(grading, marks):
    """Begin grading and interrupt it, as a teacher does who presses Ctrl-C."""
    if os.name == "nt":
        return
    # what runs in the background of a shell ignores the signal, and so would the command
    command = [sys.executable, "-c", "import signal, sys; from mlc_lab.cli import main; "
               "signal.signal(signal.SIGINT, signal.default_int_handler); "
               "sys.exit(main(sys.argv[1:]))", *grading]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        end = time.monotonic() + 120
        while not list(marks.glob("*.json")) and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120)[0]
    assert process.returncode == 130 and "the same command goes on" in said, said
    assert 0 < len(list(marks.iterdir())) < len(term.CLASS)
    assert all(path.suffix == ".json" for path in marks.iterdir())


def test_each_student_gets_a_notebook_of_an_own_variant_without_answers(played):
    notebooks = sorted((played / "handed-out").glob("*.ipynb"))
    seeds = json.loads((played / "handed-out" / "roster.json").read_text("utf-8"))
    assert len(notebooks) == len(term.CLASS) == len(set(seeds.values()))
    for notebook in notebooks:
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
        student = next(name for name in seeds if repr(name) in code)
        assert all(f"exercise({id!r}, seed={seeds[student]!r})" in code for id in term.IDS)
        assert not any(str(term.reference(id, seeds[student])) in code for id in term.IDS)


def test_each_has_the_points_of_the_answers_and_is_told_why(played):
    graded = {one.student: one for one in exercises.teach.read_graded(played / "marks")}
    assert set(graded) == set(term.CLASS)
    points = {name: [one.results[id].points for id in term.IDS] for name, one in graded.items()}
    assert points == term.POINTS
    for name, says in SAID.items():
        told = graded[name].problem + "".join(map(str, graded[name].results.values()))
        assert all(text in told for text in ([says] if isinstance(says, str) else says)), told
    assert graded[term.BOB].late and graded[term.BOB].platform == "canvas"


def test_what_means_harm_reaches_nothing(played):
    (reads,) = (one for one in exercises.teach.read_graded(played / "marks")
                if one.student == term.READS)
    found = str(reads.results["09.2"])
    # folders of other tests may go meanwhile, which os.walk passes over
    assert not [name for _, folders, names in os.walk(played.parent.parent)
                for name in (*folders, *names) if name.startswith(term.CLIMBS)]
    if sys.platform == "linux":
        assert not re.search(r"Exception: .*(written|socket)", found)
        assert not Path("/tmp/written-by-an-answer").exists()
    with Confined("") as run:
        if "files" in run.rights:
            assert re.search(r"Exception: found *$", found, re.M), found


def test_grading_twice_gives_the_same_bytes(played):
    before = files(played / "marks")
    command = ["teach", "grade", "collected", *EXERCISES, "--roster", "handed-out/roster.json"]
    assert main([*command, "-o", "marks"]) == 0 and files(played / "marks") == before
    # from the downloads themselves, by more processes, into a new folder
    command[2] = "handed-in"
    assert main([*command, "-o", "marks-again", "--jobs", "4"]) == 0
    assert files(played / "marks-again") == before


def test_tables_have_the_points_and_compute_nothing(played):
    assert main(["teach", "marks", "marks", "-o", "marks.csv"]) == 0
    text = (played / "marks.csv").read_text("utf-8")
    rows = {row["student"].lstrip("'"): row for row in csv.DictReader(io.StringIO(text))}
    for name, points in term.POINTS.items():
        assert [int(rows[name][id]) for id in term.IDS] == points
        assert int(rows[name]["points"]) == sum(points) and rows[name]["of"] == "17"
    assert rows[term.BOB]["note"] == "late" and f"\n'{term.FORMULA}," in text
    (played / "moodle.csv").write_text(
        "Identifier,Full name,Grade,Maximum Grade,Feedback comments\n"
        f"Participant 100,{term.ADA},,17.00,\nParticipant 110,{term.BOMB},,17.00,\n", "utf-8")
    assert main(["teach", "marks", "marks", "-o", "to-moodle.csv", "--for", "moodle", "--fill",
                 "moodle.csv"]) == 0
    moodle = list(csv.DictReader(io.StringIO((played / "to-moodle.csv").read_text("utf-8"))))
    assert [row["Grade"] for row in moodle] == ["17", "0"]
    (played / "canvas.csv").write_text(
        "Student,ID,SIS Login ID,Section,Loops (7)\n    Points Possible,,,,17\n"
        '"Stone, Bob",201,bob,A,\n"Bytes, Ida",203,ida,A,\n', "utf-8")
    assert main(["teach", "marks", "marks", "-o", "to-canvas.csv", "--for", "canvas", "--fill",
                 "canvas.csv", "--column", "Loops (7)"]) == 0
    canvas = list(csv.DictReader(io.StringIO((played / "to-canvas.csv").read_text("utf-8"))))
    assert [row["Loops (7)"] for row in canvas[1:]] == ["7", "9"]


def test_each_gets_a_page_on_which_all_stays_text(played):
    pytest.importorskip("anywidget")
    assert main(["teach", "feedback", "marks", "-o", "pages"]) == 0
    pages = {path.name: path.read_text("utf-8") for path in (played / "pages").glob("*.html")}
    assert len(pages) == len(term.CLASS)
    for text in pages.values():
        assert "<img src=x" not in text and "<script>alert" not in text
    (of_html,) = (text for name, text in pages.items() if name.startswith("Dee"))
    assert "&lt;script&gt;alert(1)" in of_html and "0 of 17 points." in of_html
    (of_bob,) = (text for name, text in pages.items() if name.startswith("Bob"))
    assert "7 of 17 points." in of_bob and "handed in late" in of_bob
    assert not any(re.search(r"https?://(?!www\.w3\.org)", text) for text in pages.values())

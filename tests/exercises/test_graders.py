"""What schools already use gives the points that the lab gives: nbgrader, Otter-Grader, and the
commands that Gradescope and GitHub Classroom run.

nbgrader and Otter-Grader have an environment of their own, which is made here on top of this one,
or named by MLC_LAB_GRADERS_PYTHON: nbgrader adds itself to every JupyterLab of its environment.
"""

import base64
import csv
import importlib
import io
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import term

from mlc_lab import exercises
from mlc_lab.cli import main
from mlc_lab.exercises import teach
from mlc_lab.exercises.exercise import KINDS

ROOT = Path(__file__).resolve().parents[2]
IDS, SEED = ["01.1", "01.2"], "loops"
#: some of the class; nbgrader takes seconds for each
IN_NBGRADER = [term.ADA, term.BOB, term.HTML, term.YEARS, term.READS]
WANTED = ["nbgrader==0.9.6", "otter-grader==7.0.0"]


@pytest.fixture(scope="module")
def graders(tmp_path_factory):
    """Runs a program of that environment in a folder."""
    needed("jupyterlab")
    named = os.environ.get("MLC_LAB_GRADERS_PYTHON")
    home = Path(named).parent if named else _environment(tmp_path_factory.mktemp("graders"))

    def run(folder, *words):
        path = f"{home}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
        done = subprocess.run([home / words[0], *words[1:]], cwd=folder, env=environment,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def _environment(folder):
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    site = subprocess.run([programs / "python", "-c", "import sysconfig as s; "
                           "print(s.get_path('purelib'))"], check=True, capture_output=True,
                          text=True).stdout.strip()
    ours = sysconfig.get_path("purelib")
    Path(site, "below.pth").write_text(f"import site; site.addsitedir({ours!r})\n{ROOT}\n")
    done = subprocess.run([programs / "python", "-m", "pip", "install", "--quiet",
                           "--disable-pip-version-check", *WANTED], capture_output=True, text=True)
    if done.returncode:
        missing(f"nbgrader and otter-grader cannot be installed: {done.stderr[-500:]}")
    return programs


def needed(name):
    """A module that a test cannot do without."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        return missing(str(error))


def missing(why):
    """Skip a test for want of a part; where CI is set, that is a failure."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(why)


def mixed():
    """Answers to the exercises: the first is right, the second a typical mistake."""
    first, second = (exercises.get(id).variant(SEED) for id in IDS)
    return {IDS[0]: first.reference, IDS[1]: second.wrong[0].answer}


def filled(source, target, answers):
    """A notebook as a student hands it in."""
    notebook = json.loads(source.read_text())
    left = {teach.notebooks.answer_name(id): answer for id, answer in answers.items()}
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        for name in list(left):
            if f"\n{name} = " in text and cell["cell_type"] == "code":
                cell["source"] = f"{name} = {left.pop(name)!r}"
    assert not left
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(notebook))


def released(tmp_path, form, ids=IDS):
    assert main(["teach", "release", "--for", form, "-o", str(tmp_path), "--exercises",
                 ",".join(ids), "--seed", SEED, "--title", "loops"]) == 0
    text = (tmp_path / "loops.ipynb").read_text()
    assert not any(str(exercises.get(id).variant(SEED).reference).strip() in text for id in ids)
    return tmp_path / "loops.ipynb"


def ours(folder, ids=IDS):
    """The points by `teach grade`, which runs none of it."""
    marks = teach.grade(teach.collect(folder), folder.parent / "marks", ids, jobs=2, progress=False)
    return {one.student: one.points for one in marks}


@pytest.mark.slow
@pytest.mark.timeout(1500)  # packages are installed first
def test_nbgrader_validates_and_gives_the_class_the_same_points(graders, tmp_path):
    released(tmp_path / "source" / "loops", "nbgrader", term.IDS)
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n"
                                                 "c.ExecutePreprocessor.timeout = 240\n")
    graders(tmp_path, "nbgrader", "generate_assignment", "loops")
    release, submitted = tmp_path / "release" / "loops" / "loops.ipynb", tmp_path / "submitted"
    for student in IN_NBGRADER:
        filled(release, submitted / student / "loops" / "loops.ipynb", term.answers(student, SEED))
    said = graders(tmp_path, "nbgrader", "validate", f"submitted/{term.ADA}/loops/loops.ipynb")
    assert "Success! Your notebook passes all the tests." in said
    (submitted / "eve" / "loops").mkdir(parents=True)  # handed in as it was handed out
    (submitted / "eve" / "loops" / "loops.ipynb").write_bytes(release.read_bytes())
    graders(tmp_path, "nbgrader", "autograde", "loops")
    graders(tmp_path, "nbgrader", "export")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "grades.csv").read_text())))
    theirs = {row["student_id"]: float(row["score"]) for row in rows}
    assert theirs == ours(submitted, term.IDS)
    # without a step a schedule of 01.2 computes the same, and has not too many steps
    assert theirs == {**{name: sum(term.POINTS[name]) for name in IN_NBGRADER}, "eve": 2}
    assert {row["max_score"] for row in rows} == {"17.0"}


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_otter_grades_to_the_same_points(graders, tmp_path):
    notebook = released(tmp_path, "otter")
    filled(notebook, tmp_path / "handed" / "bob" / "loops" / "loops.ipynb", mixed())
    graders(tmp_path / "autograder", "otter", "generate", "-t", "tests", "-o", "generated.zip")
    names = zipfile.ZipFile(tmp_path / "autograder" / "generated.zip").namelist()
    assert {"run_autograder", "tests/answer_01_1.py", "environment.yml"} <= set(names)
    graders(tmp_path, "otter", "run", "handed/bob/loops/loops.ipynb", "-a", "autograder.zip",
            "-o", ".")
    tests = json.loads((tmp_path / "results.json").read_text())["tests"]
    scored = [test for test in tests if "score" in test]
    assert sum(test["score"] for test in scored) == ours(tmp_path / "handed")["bob"] == 6
    assert sum(test["max_score"] for test in scored) == 9


def test_gradescope_gets_its_results(tmp_path):
    notebook = released(tmp_path / "out", "gradescope")
    home = tmp_path / "autograder"
    filled(notebook, home / "submission" / "loops.ipynb", mixed())
    with zipfile.ZipFile(tmp_path / "out" / "autograder.zip") as archive:
        archive.extractall(home / "source")
        assert archive.getinfo("run_autograder").external_attr >> 16 == 0o755
    programs = _programs(tmp_path)
    subprocess.run(["bash", home / "source" / "run_autograder"], check=True,
                   env={**os.environ, "AUTOGRADER_HOME": str(home), "PATH": programs})
    found = json.loads((home / "results" / "results.json").read_text())
    assert found["score"] == 6 == sum(test["score"] for test in found["tests"])
    assert {test["status"] for test in found["tests"]} == {"passed", "failed"}
    assert all(0 <= test["score"] <= test["max_score"] for test in found["tests"])


def _programs(tmp_path):
    """A PATH with the command of this checkout."""
    command = tmp_path / "programs" / "mlc-lab"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" '
                       '-m mlc_lab.cli "$@"\n')
    command.chmod(0o755)
    return f"{command.parent}{os.pathsep}{os.environ['PATH']}"


def test_github_classroom_gets_its_points(tmp_path):
    yaml = needed("yaml")
    repository = tmp_path / "repository"
    notebook = released(repository, "github")
    filled(notebook, notebook, mixed())
    workflow = yaml.safe_load((repository / ".github/workflows/classroom.yml").read_text())
    steps = workflow["jobs"]["run-autograding-tests"]["steps"]
    (step,) = [step for step in steps if step.get("id") == "exercises"]
    output = tmp_path / "output"
    subprocess.run(["bash", "-e", "-c", step["run"]], check=True, cwd=repository,
                   env={**os.environ, "GITHUB_OUTPUT": str(output), "PATH": _programs(tmp_path)})
    name, _, value = output.read_text().strip().partition("=")
    assert name == "result" and steps[-1]["with"]["runners"] == "exercises"
    found = json.loads(base64.b64decode(value))  # what the reporter does with it
    assert (sum(test["score"] for test in found["tests"]), found["max_score"]) == (6, 9)
    assert found["version"] == 1 and found["status"] == "fail"


def test_the_command_says_what_is_missing(tmp_path, capsys):
    assert main(["check", str(tmp_path / "nothing")]) == 2
    assert main(["check", str(tmp_path), "--json"]) == 2
    assert "no answers in" in capsys.readouterr().err
    (tmp_path / "a.json").write_text(exercises.book.Book(
        "x", {"01.1": exercises.book.Entry("other", "def f(")}).as_json())
    assert main(["check", str(tmp_path), "--json", "--seed", "mine", "--exercises", "01.1"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["points"] == 0 and "variant 'other'" in found["exercises"]["01.1"]["error"][
        "message"]
    assert main(["teach", "release", "--for", "github", "--seed", "a; rm", "-o",
                 str(tmp_path / "out"), "--exercises", "01.1"]) == 2
    assert "stands in a command" in capsys.readouterr().err
    assert main(["teach", "release"]) == 2


@pytest.mark.parametrize("form", teach.in_cells.FORMS)
def test_an_exercise_of_each_kind_is_released(tmp_path, form):
    every = exercises.catalogue()
    kinds = [next(one for one in every if one.kind == kind) for kind in KINDS]
    ids = [one.id for one in kinds]
    notebook, *_ = teach.release_in_cells(tmp_path, ids, form, seed=SEED)
    book, problems = teach.notebooks.read_notebook(notebook.read_bytes())
    assert sorted(book.entries) == sorted(ids) and not problems
    for one in kinds:  # a function with a docstring between the quotes is read as it is
        cells = json.loads(notebook.read_text())["cells"]
        place = next("".join(c["source"]) for c in cells if "".join(c["source"]).startswith("# ")
                     and f"{teach.notebooks.answer_name(one.id)} = " in "".join(c["source"]))
        if one.kind == "function":
            place = place.replace("\n\n", '\ndef f(x):\n    """Says what."""\n')
            found = teach.notebooks.read_notebook(json.dumps(
                {"cells": [{"cell_type": "code", "source": place}]}))[0]
            assert '"""Says what."""' in found.entries[one.id].answer


def test_a_teachers_own_exercises_go_with_the_notebooks(tmp_path):
    own = tmp_path / "own"
    teach.write_exercise(own / "ex_mine.py")
    files = teach.release_in_cells(tmp_path / "out", ["90.1"], "otter", folder=own)
    assert (tmp_path / "out" / "exercises" / "ex_mine.py").is_file()
    assert "files/exercises/ex_mine.py" in zipfile.ZipFile(files[-1]).namelist()
    (notebook,) = teach.release(tmp_path / "class", ["90.1"], ["ada"], folder=own)
    assert "folder='exercises'" in notebook.read_text()
    assert (tmp_path / "class" / "exercises" / "ex_mine.py").is_file()

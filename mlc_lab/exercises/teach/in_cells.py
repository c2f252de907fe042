"""Notebooks for what schools already use, with answers in their cells, and what grades them there.

    nbgrader     NAME.ipynb, for `source/ASSIGNMENT/` of a course: a cell for each answer, below
                 it a locked one that is graded, whose value is the points
    otter        NAME.ipynb, and `autograder.zip`, which `otter run` grades by; `autograder/` has
                 the same for `otter generate`
    gradescope   NAME.ipynb, and `autograder.zip` for Gradescope, which runs no answer
    github       NAME.ipynb, and the workflow of GitHub Classroom, which runs no answer

All students of such an assignment have one variant, since these graders have one notebook for all.
The same notebooks are read by `mlc-lab teach grade`, without running them.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...reading import DataError
from ..catalogue import get
from ..exercise import Variant
from ..pictures import how_to_write
from .notebooks import answer_name
from .release import OWN, cell, copy_own, write_notebook

FORMS = ("nbgrader", "otter", "gradescope", "github")

_FIRST = """\
# {title}

Write each answer in its cell, as text between the quotes, or as the numbers that are asked for. The
cell below it checks the answer, as often as you like. Change nothing else."""

_PLACE = {"schedule": "# lines of a schedule `sch` of the program above; they are read, not run",
          "program": "# a program in TVMScript; it is parsed, not run",
          "prediction": "# fill in a value for each None",
          "space": "# lines of a schedule that leave choices open; they are read, not run",
          "record": "# a line of a database's file of records; it is read, not run",
          "function": "# Python functions, as text; they are run in a process that may do little"}


def release_in_cells(out: str | Path, exercises: Iterable[str], form: str, *, seed: str = "0",
                     title: str = "Exercises", folder: str | Path | None = None) -> list[Path]:
    """Write the notebook of an assignment, and what grades it, into a folder.

    Parameters
    ----------
    form : one of `FORMS`.
    seed : which variant all students have.
    title : the name of the notebook.
    folder : a teacher's exercises, which are copied beside the notebook.

    Returns the files. Raises ExerciseError for an exercise that there is not.
    """
    if form not in FORMS:
        raise DataError(f"notebooks are written for {', '.join(FORMS)}, not for {form!r}")
    variants = [get(id, folder).variant(seed) for id in exercises]
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    if folder is not None:
        copy_own(Path(folder), out / OWN)
    own = f", folder={OWN!r}" if folder is not None else ""
    cells = [cell("markdown", _FIRST.format(title=title)),
             cell("code", "from mlc_lab import exercises")]
    for variant in variants:
        cells += _of_exercise(variant, own, form)
    plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in title) or "exercises"
    notebook = out / f"{plain}.ipynb"
    write_notebook(notebook, cells, mlc_lab={"seed": seed})
    return [notebook, *_GRADERS[form](out, variants, folder)]


# ------------------------------------------------------------------------------------ the notebook


def _of_exercise(variant: Variant, own: str, form: str) -> list[dict[str, Any]]:
    one = variant.exercise
    text = f"## {one.id}  {one.title}\n\n{variant.statement}\n"
    if variant.program is not None:
        text += f"\n```python\n{variant.program.script()}\n```\n"
    for field in variant.fields:
        choices = f" ({', '.join(field.choices)})" if field.choices else ""
        if field.picture is not None:
            choices = f"; {how_to_write(field.picture)}\n\n```text\n{field.picture.text}\n```\n"
        text += f"\n- `{field.name}`: {field.question}{choices}"
    text += "\n" + "".join(f"\n- {check.title}: {check.points}" for check in variant.checks)
    name = answer_name(one.id)
    check = f"exercises.points({one.id!r}, {name}, seed={variant.seed!r}{own})"
    graded = {"nbgrader": _nbgrader(variant)} if form == "nbgrader" else {}
    return [cell("markdown", text), cell("code", _place(variant, name)),
            cell("code", f"# this cell checks the answer: leave it as it is\n{check}", **graded)]


def _place(variant: Variant, name: str) -> str:
    """The cell for an answer."""
    head = _PLACE[variant.exercise.kind]
    if variant.exercise.kind == "prediction":
        fields = "".join(f"    {field.name!r}: None,\n" for field in variant.fields)
        return f"{head}\n{name} = {{\n{fields}}}"
    quotes = "'''" if variant.exercise.kind == "function" else '"""'  # docstrings have the others
    return f"{head}\n{name} = r{quotes}\n\n{quotes}"


def _nbgrader(variant: Variant) -> dict[str, Any]:
    """The metadata by which nbgrader grades a cell; the answers' cells, which have none, are kept
    as the students hand them in."""
    return {"schema_version": 3, "grade": True, "solution": False, "locked": True, "task": False,
            "grade_id": "points-" + variant.exercise.id.replace(".", "-"),
            "points": variant.points}


# ------------------------------------------------------------------------------------ the graders


_OTTER = '''\
"""Exercise {id} for Otter-Grader: a case for each row of the marks."""

OK_FORMAT = False

from mlc_lab import exercises
from otter.test_files import test_case

name = {id!r}
points = None
_known = {{}}


def _row(env, number, least):
    answer = env.get({answer!r}, "")
    if repr(answer) not in _known:
        _known[repr(answer)] = exercises.check({id!r}, answer, seed={seed!r}{own})
    result = _known[repr(answer)]
    row = result.rows[number]
    assert row.points >= least and not result.error, (result.error or {{}}).get(
        "message") or row.says
'''

_CASE = '''

@test_case(name={title!r}, points={points})
def row_{number}{part}(env):
    _row(env, {number}, {least})
'''

_REQUIREMENTS = "mlc-lab=={version}\n"


def _otter(out: Path, variants: list[Variant], folder: Any) -> list[Path]:
    home = out / "autograder"
    (home / "tests").mkdir(parents=True, exist_ok=True)
    own = f", folder={OWN!r}" if folder is not None else ""
    for variant in variants:
        id = variant.exercise.id
        text = _OTTER.format(id=id, answer=answer_name(id), seed=variant.seed, own=own)
        for number, check in enumerate(variant.checks):
            title, of = f"{id}: {check.title}", check.points
            if check.kind != "marks":
                text += _CASE.format(title=title, points=of, number=number, part="", least=of)
                continue
            for least in range(1, of + 1):  # what is right in part has a part of the points
                text += _CASE.format(title=f"{title} ({least} of {of})", points=1, number=number,
                                     part=f"_{least}", least=least)
        (home / "tests" / f"{answer_name(id)}.py").write_text(text, encoding="utf-8")
    (home / "requirements.txt").write_text(_REQUIREMENTS.format(version=_version()), "utf-8")
    (home / "otter_config.json").write_text('{"show_stdout": false}\n', encoding="utf-8")
    files = {f"files/{OWN}": Path(folder)} if folder is not None else {}
    return [_zipped(out / "autograder.zip", home, files)]


_SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this once, when it makes the image that grades.
set -e
apt-get update -qq && apt-get install -y -qq python3-pip python3-venv
python3 -m venv /autograder/mlc-lab
/autograder/mlc-lab/bin/pip install --quiet {requirement}
"""

_RUN = """\
#!/usr/bin/env bash
# Gradescope runs this for each submission, which is read and not run.
home="${{AUTOGRADER_HOME:-/autograder}}"
PATH="$home/mlc-lab/bin:$PATH"
mkdir -p "$home/results"
mlc-lab check "$home/submission" --exercises {ids} --seed {seed}{own} \\
    --gradescope -o "$home/results/results.json"
"""


def _gradescope(out: Path, variants: list[Variant], folder: Any) -> list[Path]:
    home = out / "autograder"
    home.mkdir(parents=True, exist_ok=True)
    requirement = _REQUIREMENTS.format(version=_version()).strip()
    own = f' --own "$home/source/{OWN}"' if folder is not None else ""
    for name, text in (("setup.sh", _SETUP.format(requirement=requirement)),
                       ("run_autograder", _RUN.format(**_words(variants), own=own))):
        (home / name).write_text(text, encoding="utf-8")
        (home / name).chmod(0o755)
    files = {OWN: Path(folder)} if folder is not None else {}
    return [_zipped(out / "autograder.zip", home, files)]


_WORKFLOW = """\
# GitHub Classroom: checks the answers of each push. They are read and not run.
name: Autograding Tests
on: [push, repository_dispatch]
permissions:
  checks: write
  actions: read
  contents: read
jobs:
  run-autograding-tests:
    runs-on: ubuntu-latest
    if: github.actor != 'github-classroom[bot]'
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install {requirement}
      - id: exercises
        run: mlc-lab check . --exercises {ids} --seed {seed}{own} --github -o "$GITHUB_OUTPUT"
      - uses: classroom-resources/autograding-grading-reporter@v1
        env:
          EXERCISES_RESULTS: "${{{{ steps.exercises.outputs.result }}}}"
        with:
          runners: exercises
"""


def _github(out: Path, variants: list[Variant], folder: Any) -> list[Path]:
    path = out / ".github" / "workflows" / "classroom.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    own = f" --own {OWN}" if folder is not None else ""
    path.write_text(_WORKFLOW.format(
        requirement=_REQUIREMENTS.format(version=_version()).strip(), own=own, **_words(variants)),
        encoding="utf-8")
    return [path]


def _words(variants: list[Variant]) -> dict[str, str]:
    """Exercises and variant as words of a shell, in a file of YAML too."""
    seed = variants[0].seed if variants else "0"
    if not all(c.isalnum() or c in "-_." for c in seed):
        raise DataError(f"the seed {seed!r} stands in a command there: take letters, digits, - . _")
    return {"ids": ",".join(v.exercise.id for v in variants), "seed": seed}


def _version() -> str:
    from ... import __version__

    return __version__


def _zipped(path: Path, home: Path, more: dict[str, Path]) -> Path:
    """An archive of a folder, and of teachers' exercises in a folder of its own; the same bytes
    each time."""
    found = {file.relative_to(home).as_posix(): file for file in home.rglob("*") if file.is_file()}
    for name, folder in more.items():
        found.update({f"{name}/{file.name}": file for file in folder.glob("*.py")})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(found.items()):
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o755 if file.stat().st_mode & 0o100 else 0o644) << 16
            archive.writestr(info, file.read_bytes())
    return path


_GRADERS = {"nbgrader": lambda out, variants, folder: [], "otter": _otter,
            "gradescope": _gradescope, "github": _github}

__all__ = ["FORMS", "release_in_cells"]

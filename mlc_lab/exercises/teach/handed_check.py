"""Checks what one student hands in, for graders that call a command: `mlc-lab check`.

    --json          points, and the marks of each exercise
    --gradescope    Gradescope's results.json: a test for each row
    --github        result=..., the output of a step that GitHub Classroom's reporter reads: JSON in
                    base 64, with "version", "status", "max_score" and "tests"

Nothing that was handed in is run.
"""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...reading import DataError
from ..book import Book
from ..catalogue import get
from ..judge import Judge, nothing
from ..result import Result
from .collect import collect
from .grade import DEFAULT

FORMS = ("text", "json", "gradescope", "github")
#: folders that are not looked into
_LEFT_OUT = (".git", ".github", ".ipynb_checkpoints", "__pycache__", ".venv", "node_modules")


def check_handed(path: str | Path, exercises: Iterable[str] = (), seed: str | None = None,
                 folder: str | Path | None = None) -> list[Result]:
    """The marks of the answers in a file, or in those of a folder; by default of all that it has.

    With a seed, an answer to another variant has no points. Raises DataError where there is no
    answer at all and no exercise is named, ExerciseError for one that there is not.
    """
    book, problems = _answers(Path(path))
    ids = sorted(set(exercises)) or sorted(book.entries)
    if not ids:
        raise DataError(f"there are no answers in {path}" + "".join(f"\n{p}" for p in problems))
    found = []
    with Judge() as judge:
        for id in ids:
            entry = book.entries.get(id)
            wanted = seed if seed is not None else (entry.seed if entry else "") or DEFAULT
            variant = get(id, folder).variant(wanted)
            if entry is None:
                found.append(nothing(variant, "; ".join(["there is no answer", *problems[:3]])))
            elif entry.seed not in ("", wanted):
                found.append(nothing(variant, f"this answers the variant {entry.seed!r}, "
                                              f"not {wanted!r}"))
            else:
                found.append(judge.check(id, entry.answer, wanted, folder))
                if not found[-1].judged:  # no marks are better than wrong ones
                    raise DataError(f"{id}: {(found[-1].error or {})['message']}; check again")
    return found


def _answers(path: Path) -> tuple[Book, list[str]]:
    """All answers in a file or folder, those of a later file first, and what could not be read."""
    if not path.exists():
        raise DataError(f"there is no file {path}")
    with tempfile.TemporaryDirectory() as work:
        if path.is_dir():
            files = [f for f in path.rglob("*.*") if f.suffix in (".json", ".ipynb") and f.is_file()
                     and not f.is_symlink() and not set(f.relative_to(path).parts) & {*_LEFT_OUT}]
        else:
            files = [path]
        book, problems = Book(), []
        for number, file in enumerate(sorted(files)[:1000]):
            home = Path(work, str(number))
            home.mkdir()
            shutil.copyfile(file, home / file.name)
            for one in collect(home):
                problems += [f"{file.name}: {one.problem}"] * bool(one.problem) + (
                    [one.note] if "computed" in one.note else [])
                if one.book is not None:
                    book.entries.update(one.book.entries)
    return book, problems


def told(results: list[Result], form: str) -> str:
    """The marks as a grader reads them."""
    if form == "text":
        return "\n".join(map(str, results)) + f"\n{_points(results)} of {_of(results)} points"
    if form == "json":
        return json.dumps({"points": _points(results), "of": _of(results),
                           "exercises": {r.id: r.to_dict() for r in results}},
                          sort_keys=True, indent=1)
    if form == "gradescope":
        return json.dumps({"score": _points(results), "output_format": "text",
                           "visibility": "visible", "tests": _tests(results, "output")}, indent=1)
    solved = all(result.solved for result in results)
    data = {"version": 1, "status": "pass" if solved else "fail", "max_score": _of(results),
            "tests": [{**test, "test_code": test["name"], "filename": "", "line_no": 0,
                       "duration": 0} for test in _tests(results, "message")]}
    return "result=" + base64.b64encode(json.dumps(data).encode()).decode() + "\n"


def _tests(results: list[Result], says: str) -> list[dict[str, Any]]:
    """A test for each row."""
    word = {"output": ("passed", "failed"), "message": ("pass", "fail")}[says]
    tests = []
    for result in results:
        for row in result.rows:
            text = result.error["message"] if result.error else "\n".join(
                filter(None, (row.says, row.place.get("text"))))
            tests.append({"name": f"{result.id}: {row.title}", "score": row.points,
                          "max_score": row.of, "status": word[0 if row.passed else 1], says: text})
    return tests


def _points(results: list[Result]) -> int:
    return sum(result.points for result in results)


def _of(results: list[Result]) -> int:
    return sum(result.of for result in results)


__all__ = ["FORMS", "check_handed", "told"]

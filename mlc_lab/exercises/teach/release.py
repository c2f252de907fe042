"""Notebooks to hand out: a card for each exercise, in the variant of the student, and no answers.

What a student answers is kept in a file of the student's; the last cell writes the file that is
handed in (`exercises.hand_in`). Notebooks for other graders have their answers in cells:
`in_cells.py`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...language import text
from ...reading import DataError
from ..catalogue import get
from .roster import file_name

#: the folder of a teacher's exercises beside the notebooks
OWN = "exercises"

def release(out: str | Path, exercises: Iterable[str], roster: Mapping[str, str] | Iterable[str], *,
            folder: str | Path | None = None, hint_cost: int = 0, solutions: bool = True
            ) -> list[Path]:
    """Write a notebook for each student into a folder, and `roster.json` with their variants.

    Parameters
    ----------
    roster : the seed of each student, or only their names, which are their seeds then.
    folder : a teacher's exercises, which are copied beside the notebooks: cards need them.
    hint_cost : points that each hint costs; the cards say it, and `grade` takes them.
    solutions : whether the cards show one, when an exercise is solved or given up.

    Raises ExerciseError for an exercise that there is not.
    """
    ids = list(exercises)
    for id in ids:
        get(id, folder)
    seeds = dict(roster) if isinstance(roster, Mapping) else {name: name for name in roster}
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    rest = (f", folder={OWN!r}" if folder is not None else "") + (
        f", hint_cost={hint_cost}" if hint_cost else "") + ("" if solutions else ", solution=False")
    if folder is not None:
        copy_own(Path(folder), out / OWN)
    written = []
    for student, seed in seeds.items():
        path = out / file_name(student).replace(".json", ".ipynb")
        write_notebook(path, _cells(student, seed, ids, rest))
        written.append(path)
    (out / "roster.json").write_text(json.dumps(seeds, indent=1, ensure_ascii=False),
                                     encoding="utf-8")
    return written


def copy_own(folder: Path, target: Path) -> None:
    """Copy a teacher's exercises beside the notebooks."""
    if folder.resolve() == target.resolve():
        raise DataError(f"{folder} would be copied onto itself: write the notebooks elsewhere")
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(folder.glob("*.py")):
        shutil.copyfile(file, target / file.name)


def _cells(student: str, seed: str, ids: list[str], rest: str) -> list[dict[str, Any]]:
    first = text("""\
# Exercises of {student}

Run each cell; a card opens. Write your answer there and press *Check*, as often as you like: what
has the most points is kept. In code, `card.check(sch)` checks a schedule of yours.

The last cell writes the file that you hand in.""", "command")
    cells = [cell("markdown", first.format(student=student)),
             cell("code", "from mlc_lab import exercises")]
    for id in ids:
        cells.append(cell("code", f"card = exercises.exercise({id!r}, seed={seed!r}{rest})\ncard"))
    cells.append(cell("code", f"exercises.hand_in(\"answers.json\", student={student!r}, "
                              f"ids={ids!r})"))
    return cells


def cell(kind: str, words: str, **metadata: Any) -> dict[str, Any]:
    """A cell of a notebook; `write_notebook` numbers it."""
    made = {"cell_type": kind, "metadata": metadata, "source": words.splitlines(keepends=True)}
    return made if kind == "markdown" else {**made, "execution_count": None, "outputs": []}


def write_notebook(path: Path, cells: list[dict[str, Any]], **metadata: Any) -> None:
    """Write a notebook of these cells."""
    cells = [{"id": f"cell-{number}", **made} for number, made in enumerate(cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel, **metadata}, "nbformat": 4,
                "nbformat_minor": 5}
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False), encoding="utf-8")


__all__ = ["OWN", "cell", "copy_own", "release", "write_notebook"]

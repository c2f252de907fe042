"""Notebooks to hand out: a card for each exercise, in the variant of the student, and no answers.

What a student answers is kept in a file of the student's; the last cell writes the file that is
handed in (`exercises.hand_in`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..catalogue import get
from .grade import file_name

_FIRST = """\
# Exercises of {student}

Run each cell; a card opens. Write your answer there and press *Check*, as often as you like: what
has the most points is kept. In code, `card.check(sch)` checks a schedule of yours.

The last cell writes the file that you hand in."""


def release(out: str | Path, exercises: Iterable[str], roster: Mapping[str, str] | Iterable[str],
            ) -> list[Path]:
    """Write a notebook for each student into a folder, and `roster.json` with their variants.

    `roster` gives the seed of each student, or only names students, whose names are their seeds.
    Raises ExerciseError for an exercise that there is not.
    """
    ids = list(exercises)
    for id in ids:
        get(id)
    seeds = dict(roster) if isinstance(roster, Mapping) else {name: name for name in roster}
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for student, seed in seeds.items():
        path = out / file_name(student).replace(".json", ".ipynb")
        path.write_text(json.dumps(_notebook(student, seed, ids), indent=1, ensure_ascii=False),
                        encoding="utf-8")
        written.append(path)
    (out / "roster.json").write_text(json.dumps(seeds, indent=1, ensure_ascii=False),
                                     encoding="utf-8")
    return written


def _notebook(student: str, seed: str, ids: list[str]) -> dict[str, Any]:
    cells = [_cell(0, "markdown", _FIRST.format(student=student)),
             _cell(1, "code", "from mlc_lab import exercises")]
    for id in ids:
        cells.append(_cell(len(cells), "code",
                           f"card = exercises.exercise({id!r}, seed={seed!r})\ncard"))
    cells.append(_cell(len(cells), "code",
                       f"exercises.hand_in(\"answers.json\", student={student!r}, ids={ids!r})"))
    return {"cells": cells, "metadata": {"kernelspec": {
        "display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4, "nbformat_minor": 5}


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    cell = {"id": f"cell-{number}", "cell_type": kind, "metadata": {},
            "source": text.splitlines(keepends=True)}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}


__all__ = ["release"]

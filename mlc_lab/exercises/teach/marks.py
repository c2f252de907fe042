"""Marks as a table that Moodle, Canvas and spreadsheets import: a row a student."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from .grade import Graded

#: a cell that begins so would be computed by a spreadsheet
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_marks(graded: Iterable[Graded], path: str | Path | None = None) -> str:
    """The table, as CSV: student, points, of, percent, a column an exercise, and what went wrong.

    Written to a file where one is named.
    """
    graded = list(graded)
    ids = sorted({id for one in graded for id in one.results})
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["student", "points", "of", "percent", *ids, "problem"])
    for one in graded:
        percent = f"{100 * one.points / one.of:.1f}" if one.of else ""
        table.writerow([_plain(one.student), one.points, one.of, percent,
                        *(one.results[id].points if id in one.results else "" for id in ids),
                        _plain(one.problem)])
    if path is not None:
        Path(path).write_text(text.getvalue(), encoding="utf-8", newline="")
    return text.getvalue()


def _plain(text: str) -> str:
    """A text that a spreadsheet shows and does not compute."""
    return "'" + text if text.startswith(_FORMULA) else text


__all__ = ["write_marks"]

"""Marks as a table that Moodle, Canvas and spreadsheets import: a row a student.

    plain    student, points, of, percent, a column an exercise, problem, note
    moodle   what "Upload grading worksheet" of an assignment takes: Identifier, Full name, Grade,
             Maximum Grade, Last modified (grade), Feedback comments
    canvas   what "Import" of the gradebook takes: Student, ID, SIS User ID, SIS Login ID, Section,
             and the assignment, with its points in the second row

A table that the platform itself has exported can be filled in instead, which keeps its columns, its
language and the students who handed nothing in. Students are found by the number that the platform
gave them, and where there is none, by name.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...reading import DataError
from .grade import Graded
from .roster import Matcher

FORMS = ("plain", "moodle", "canvas")
#: a cell that begins so would be computed by a spreadsheet
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: the column of a platform's table that has the points; "" for one that the teacher names
_GRADE = {"moodle": "Grade", "canvas": ""}


def write_marks(graded: Iterable[Graded], path: str | Path | None = None, form: str = "plain", *,
                fill: str | Path | None = None, column: str = "") -> str:
    """The table, as CSV; written to a file where one is named.

    Parameters
    ----------
    form : one of `FORMS`.
    fill : a table that the platform has exported, of which the points are filled in.
    column : the column of the points: "Grade" of Moodle, the name of the assignment in Canvas.

    Raises DataError for a table that cannot be filled in, and where an answer was not judged.
    """
    graded = list(graded)
    left = [one.student for one in graded if one.unjudged]
    if left:
        raise DataError(f"answers of {len(left)} students were not judged, since the machine was "
                        f"too busy: {', '.join(left[:5])}; grade again, which checks these alone")
    if form not in FORMS:
        raise DataError(f"marks are written for {', '.join(FORMS)}, not for {form!r}")
    if fill is not None:
        rows = _filled(graded, Path(fill), form, column)
    else:
        rows = {"plain": _plain, "moodle": _moodle, "canvas": _canvas}[form](graded, column)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    if path is not None:
        Path(path).write_text(out.getvalue(), encoding="utf-8", newline="")
    return out.getvalue()


def _plain(graded: Sequence[Graded], column: str) -> list[list[object]]:
    ids = sorted({id for one in graded for id in one.results})
    rows: list[list[object]] = [["student", "points", "of", "percent", *ids, "problem", "note"]]
    for one in graded:
        percent = f"{100 * one.points / one.of:.1f}" if one.of else ""
        rows.append([_text(one.student), one.points, one.of, percent,
                     *(one.results[id].points if id in one.results else "" for id in ids),
                     _text(one.problem), _text("; ".join(["late"] * one.late
                                                         + [one.note] * bool(one.note)))])
    return rows


def _moodle(graded: Sequence[Graded], column: str) -> list[list[object]]:
    head: list[object] = ["Identifier", "Full name", column or "Grade", "Maximum Grade",
                          "Last modified (grade)", "Feedback comments"]
    return [head, *([f"Participant {one.number}", _text(one.student), one.points, one.of, "-",
                     _text(comment(one))] for one in graded if one.number or not one.platform)]


def _canvas(graded: Sequence[Graded], column: str) -> list[list[object]]:
    most = max((one.of for one in graded), default=0)
    return [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", column or "Exercises"],
            ["    Points Possible", "", "", "", "", most],
            *([_text(one.student), one.number, "", "", "", one.points] for one in graded)]


def comment(one: Graded) -> str:
    """The points of each exercise in a line, for a comment that students see."""
    parts = [f"{id}: {result.points} of {result.of}" for id, result in sorted(one.results.items())]
    return "; ".join(filter(None, (one.problem, *parts)))


# ------------------------------------------------------------------ a table that is filled in


def _filled(graded: list[Graded], path: Path, form: str, column: str) -> list[list[object]]:
    """The rows of a platform's table with the points of those who are known."""
    if form not in _GRADE:
        raise DataError("only a table of moodle or canvas is filled in")
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path.name} is no table: it is not text in UTF-8") from None
    split = max(",;\t", key=text.partition("\n")[0].count)
    rows: list[list[object]] = [list(row) for row in csv.reader(io.StringIO(text), delimiter=split)]
    head = [str(cell) for cell in rows[0]] if rows else []
    wanted = column or _GRADE[form]
    if not wanted:
        raise DataError(f"name the assignment's column of {path.name}: --column NAME")
    if wanted not in head:
        raise DataError(f"{path.name} has no column {wanted!r}; it has "
                        f"{', '.join(map(repr, head[:12]))}: name it by --column")
    at = head.index(wanted)
    most = head.index("Maximum Grade") if "Maximum Grade" in head else None
    comments = head.index("Feedback comments") if "Feedback comments" in head else None
    found = _Students(graded, head, form)
    for row in rows[1:]:
        row += [""] * (len(head) - len(row))
        if form == "canvas" and "Points Possible" in str(row[0]):
            most_of_all = str(row[at])
            most_of_all = most_of_all if re.fullmatch(r"[\d.,]+", most_of_all) else ""
            found.most = float(most_of_all.replace(",", ".")) if most_of_all else None
            continue
        one = found.of([str(cell) for cell in row])
        if one is None:
            continue
        limit = _number(row[most]) if most is not None else found.most
        row[at] = _scaled(one, limit)
        if comments is not None:
            row[comments] = _text(comment(one))
    if not found.met:
        raise DataError(f"none of the {len(graded)} students is in {path.name}")
    return rows


def _number(cell: object) -> float | None:
    text = str(cell).replace(",", ".")
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None


def _scaled(one: Graded, limit: float | None) -> str:
    """Points, on the platform's scale where that is another one."""
    if not limit or not one.of or limit == one.of:
        return str(one.points)
    return f"{one.points * limit / one.of:.2f}"


class _Students:
    """Finds who a row of a platform's table is."""

    def __init__(self, graded: list[Graded], head: list[str], form: str) -> None:
        self.numbers = {one.number: one for one in graded if one.platform == form}
        self.names = {one.student: one for one in graded if not one.number}
        self.matcher = Matcher(self.names)
        self.id = 0 if form == "moodle" else head.index("ID") if "ID" in head else 1
        self.name = head.index("Full name") if "Full name" in head else (
            0 if form == "canvas" else min(1, len(head) - 1))
        self.met = 0
        self.most: float | None = None

    def of(self, row: list[str]) -> Graded | None:
        """Who it is; None for one who handed nothing in."""
        digits = re.search(r"(\d+)\s*$", row[self.id])
        one = self.numbers.get(digits[1]) if digits else None
        one = one or self.names.get(self.matcher.find(row[self.name]))
        self.met += one is not None
        return one


def _text(text: str) -> str:
    """A text that a spreadsheet shows and does not compute."""
    return "'" + text if text.startswith(_FORMULA) else text


__all__ = ["FORMS", "comment", "write_marks"]

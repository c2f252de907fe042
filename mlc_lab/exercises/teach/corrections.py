"""What a teacher changes in marks: other points for a row, for a student; the price of hints.

Corrections are a table (CSV) with these columns; what is empty holds for all:

    exercise, student, row, points, why
    01.2,,2,5,row 2 was too cheap       row 2 of exercise 01.2 has 5 points instead
    01.2,bob,3,2,nearly                 bob has 2 points in row 3
    01.2,bob,,4,told it in person       bob has 4 points in the exercise

They change points and not what was found: the checks are not run again for them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...reading import DataError, shown
from ..book import HINTS, SOLUTION
from ..result import Result, Row

COLUMNS = ("exercise", "student", "row", "points", "why")
MOST_POINTS = 1_000_000


@dataclass(frozen=True)
class Correction:
    """Other points: of a row (from 1) or of an exercise (0), for a student or for all ("")."""

    exercise: str
    points: int
    row: int = 0
    student: str = ""
    why: str = ""


def read_corrections(path: str | Path) -> list[Correction]:
    """The corrections of a table. Raises DataError, which names the line, OSError for no file."""
    path = Path(path)
    try:
        lines = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig")),
                                    skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path.name} is no table of corrections: {error}") from None
    found = []
    for number, line in enumerate(lines, 2):
        unknown = [name for name in line if name not in COLUMNS]
        if unknown or "exercise" not in line or "points" not in line:
            raise DataError(f"{path.name}: the columns are {', '.join(COLUMNS)}"
                            + (f", not {shown(unknown[0])}" if unknown else ""))
        words = {name: (line.get(name) or "").strip() for name in COLUMNS}
        try:
            one = Correction(words["exercise"], int(words["points"]), int(words["row"] or 0),
                             words["student"], words["why"])
        except ValueError:
            raise DataError(f"{path.name}, line {number}: points and row are whole numbers"
                            ) from None
        if abs(one.points) > MOST_POINTS or one.row < 0 or not (one.row or one.student):
            raise DataError(f"{path.name}, line {number}: a correction is of a row, from 1, "
                            "or of a student")
        found.append(one)
    return found


def corrected(result: Result, student: str, corrections: Sequence[Correction]) -> Result:
    """A result with the corrections that hold for it, in the order in which they stand.

    Raises DataError for a row that the exercise has not.
    """
    for one in corrections:
        if one.exercise != result.id or one.student not in ("", student):
            continue
        if one.row > len(result.rows):
            raise DataError(f"a correction is of row {one.row} of exercise {result.id}, which has "
                            f"{len(result.rows)}")
        if one.row:
            result = _of_row(result, one)
        else:
            result = _added(result, one.points - result.points, "correction",
                            f"corrected: {one.why}" if one.why else "corrected")
    return result


def _of_row(result: Result, one: Correction) -> Result:
    row = result.rows[one.row - 1]
    if one.student:
        says = "\n".join(filter(None, (row.says, f"corrected: {one.why}" if one.why else
                                        "corrected")))
        new = replace(row, points=one.points, says=says)
    else:
        new = replace(row, of=one.points, points=one.points if row.passed else 0)
    rows = [*result.rows[:one.row - 1], new, *result.rows[one.row:]]
    return _readable(replace(result, rows=rows)) if one.student else replace(result, rows=rows)


def _added(result: Result, points: int, kind: str, title: str) -> Result:
    result = _readable(result)
    return replace(result, rows=[*result.rows, Row(kind, title, points, 0, points >= 0)])


def _readable(result: Result) -> Result:
    """A result whose rows are shown: what kept the answer from being read becomes one."""
    if not result.error:
        return result
    row = Row("reading", "the answer can be read", 0, 0, False, result.error["message"])
    return replace(result, rows=[row, *result.rows], error=None)


def charged(result: Result, hints: int, cost: int) -> Result:
    """A result after hints, each of which costs points; with the solution none are left."""
    if not cost or not hints or result.points <= 0:
        return result
    if hints >= SOLUTION:
        return _added(result, -result.points, "hints", "the solution was shown before")
    lost = min(result.points, cost * min(hints, HINTS))
    return _added(result, -lost, "hints", f"{hints} hint{'s' * (hints > 1)}, "
                                          f"{cost} point{'s' * (cost > 1)} each")


__all__ = ["Correction", "charged", "corrected", "read_corrections"]

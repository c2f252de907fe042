"""Marks: what each row of an exercise's checks has found, as plain data and in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from ..language import filled, text, told


@dataclass
class Found:
    """What one check has found.

    `passed`; `says`, in words; `place`, where an answer is wrong, as far as that is known:
    {"element", "expected", "found", "iteration", "text" (the program, the statement underlined),
    "line", "sizes" (the numbers of symbols), "write" (whether the element, or the buffer, is
    written there), "buffer" (whose accesses miss most), "level" (from 0), "caches"}, of a model
    the "binding" whose value differs first, and of marks in a picture the "field", and the first
    that is "wrong" and that is "missing"; `part` of the points that an answer has which is right
    in part.
    """

    passed: bool
    says: str = ""
    place: dict[str, Any] = field(default_factory=dict)
    part: Fraction = Fraction(0)


@dataclass
class Row:
    """A row of the marks."""

    kind: str
    title: str
    points: int
    of: int
    passed: bool
    says: str = ""
    place: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        title = filled(self.title, "exercises")
        out = [f"  {'+' if self.passed else '-'} {title}  ({_reached(self.points, self.of)})"]
        out += _indented(told(self.says, "checks"), "      ") if self.says else []
        if self.place.get("text"):
            out += _indented(self.place["text"], "      | ")
        return "\n".join(out)


@dataclass
class Result:
    """The marks of one answer to one variant of an exercise."""

    id: str
    seed: str
    rows: list[Row]
    #: what kept the answer from being read, {"message", "hint", "line"}; with "again" it was not
    #: judged, and has no marks until it is checked again
    error: dict[str, Any] | None = None

    @property
    def points(self) -> int:
        """What the answer has reached."""
        return sum(row.points for row in self.rows)

    @property
    def of(self) -> int:
        """What could be reached."""
        return sum(row.of for row in self.rows)

    @property
    def solved(self) -> bool:
        """Whether all points were reached."""
        return self.points == self.of

    @property
    def judged(self) -> bool:
        """Whether the points are marks: not where the judge was kept from judging."""
        return not (self.error or {}).get("again")

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"id": self.id, "seed": self.seed, "points": self.points, "of": self.of,
                "error": self.error, "rows": [asdict(row) for row in self.rows]}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Result:
        """What `to_dict` gave."""
        return Result(data["id"], data["seed"], [Row(**row) for row in data["rows"]], data["error"])

    def as_json(self) -> str:
        """The same bytes for the same answer, on every machine."""
        return json.dumps(self.to_dict(), sort_keys=True, indent=1, ensure_ascii=False)

    def __str__(self) -> str:
        out = [f"{self.id}: {_reached_points(self.points, self.of)}"]
        if self.error:
            error = told_error(self.error)
            line = (text("line {line}: ", "views").format(line=error["line"])
                    if error.get("line") else "")
            out += _indented(line + error["message"], "  ! ")
            if error["hint"]:
                out += _indented(error["hint"], f"    {text('try: ', 'command')}")
            return "\n".join(out)
        return "\n".join([*out, *map(str, self.rows)])

    def __repr__(self) -> str:
        # at a prompt the rows stand above it already: `check` prints them as they come
        return (str(self) if self.error else
                f"{self.id}: {_reached_points(self.points, self.of)}")


def told_error(error: Mapping[str, Any]) -> dict[str, Any]:
    """The `error` of a result in the reader's language."""
    return {**error, "message": told(str(error.get("message", "")), "checks"),
            "hint": told(str(error.get("hint") or ""), "checks")}


def _reached(points: int, of: int) -> str:
    return text("{points} of {all}", "command").format(points=points, all=of)


def _reached_points(points: int, of: int) -> str:
    return text("{points} of {all} points", "command").format(points=points, all=of)


def _indented(lines: str, by: str) -> list[str]:
    return [(by if n == 0 or "|" in by else " " * len(by)) + line
            for n, line in enumerate(lines.split("\n"))]


__all__ = ["Found", "Result", "Row"]

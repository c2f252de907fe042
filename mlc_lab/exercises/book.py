"""A student's answers: one JSON file, which is handed in, and from which marks are made again.

    {"format": "mlc-lab answers", "version": 1, "student": "ada",
     "answers": {"03.2": {"seed": "ada", "answer": ..., "points": 4, "of": 5,
                          "version": "1f0c9a3e"}, ...},
     "hints": {"03.2": 2},
     "rules": {"03.2": {"seed": "ada", "cost": 1, "solution": false}}}

`points` is what was reached when the answer was checked last, for the map of exercises; grading
makes it anew. The answer that is kept of an exercise is the one with the most points, of those the
last. `hints` says how many were shown before it was solved, 4 with the solution; a file without
them has none. `rules` are those of a teacher's card that was opened here: what a hint costs, and
whether a solution is shown; the terminal holds to them, and they are not handed in. `version` is
that of the exercise that was answered (`catalogue.version`): grading says where it is another one.
The file is written as a whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..reading import DataError, read_json, shown
from .catalogue import version

if TYPE_CHECKING:
    from .result import Result

FORMAT, VERSION = "mlc-lab answers", 1
#: bytes of a file of answers, and answers in it
MOST_BYTES, MOST_ANSWERS = 20 << 20, 1000
#: characters of a version
MOST_VERSION = 40
#: hints of an exercise, and what stands for its solution
HINTS, SOLUTION = 3, 4


class BookError(DataError):
    """A file of answers that cannot be read."""


@dataclass
class Entry:
    """An answer, and what it reached when it was checked."""

    seed: str
    answer: Any
    points: int = 0
    of: int = 0
    #: of the exercise in the catalogue; "" where it is not known
    version: str = ""

    def plain(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {name: value for name, value in vars(self).items() if name != "version" or value}

    def outdated(self, id: str) -> bool:
        """Whether it answers another version of the exercise than the catalogue has now."""
        return self.version not in ("", version(id))


@dataclass
class Book:
    """The answers of a student."""

    student: str = ""
    entries: dict[str, Entry] = field(default_factory=dict)
    #: by exercise how many hints were shown before it was solved
    hints: dict[str, int] = field(default_factory=dict)
    #: by exercise what a teacher's card of it said: "seed", "cost" of a hint, "solution"
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)

    def solved(self, id: str, seed: str) -> bool:
        """Whether an answer to this variant had all points."""
        entry = self.entries.get(id)
        return entry is not None and entry.seed == seed and entry.points == entry.of > 0

    def add(self, result: Result, answer: Any) -> None:
        """Keep an answer (plain data), unless a better one to the same variant is kept, of the same
        version of the exercise."""
        old, now = self.entries.get(result.id), version(result.id)
        if old is None or old.seed != result.seed or old.outdated(result.id) or (
                old.points <= result.points):
            self.entries[result.id] = Entry(result.seed, answer, result.points, result.of, now)

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        return iter(sorted(self.entries.items()))

    def as_json(self) -> str:
        """The text of the file."""
        return json.dumps({"format": FORMAT, "version": VERSION, "student": self.student,
                           "answers": {id: entry.plain() for id, entry in self},
                           **({"hints": self.hints} if self.hints else {}),
                           **({"rules": self.rules} if self.rules else {})},
                          ensure_ascii=False, indent=1, sort_keys=True)

    def save(self, path: str | Path) -> None:
        """Write the file."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_text(self.as_json(), encoding="utf-8")
        os.replace(part, path)


def read_book(text: str | bytes, name: str = "the file of answers") -> Book:
    """The answers in a text. Raises BookError, which says what is wrong."""
    if len(text) > MOST_BYTES:
        raise BookError(f"{name} has {len(text):,} bytes; answers have {MOST_BYTES:,} at most")
    data = read_json(text, name)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise BookError(f"{name} is no file of answers")
    if data.get("version") != VERSION:
        raise BookError(f"{name} is of version {shown(data.get('version'))}; "
                        f"this MLC Lab reads version {VERSION}")
    answers, student = data.get("answers"), data.get("student", "")
    if not isinstance(answers, dict) or not isinstance(student, str) or (
            len(answers) > MOST_ANSWERS):
        raise BookError(f"{name} is damaged: it has no answers")
    book = Book(student)
    for id, entry in answers.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("seed"), str) or (
                "answer" not in entry):
            raise BookError(f"{name} is damaged: the answer to {shown(id)} is none")
        points, of = entry.get("points"), entry.get("of")
        book.entries[id] = Entry(entry["seed"], entry["answer"],
                                 points if isinstance(points, int) else 0,
                                 of if isinstance(of, int) else 0,
                                 str(entry.get("version", ""))[:MOST_VERSION])
    hints = data.get("hints", {})
    if not isinstance(hints, dict) or len(hints) > MOST_ANSWERS or not all(
            isinstance(n, int) and 0 <= n <= SOLUTION for n in hints.values()):
        raise BookError(f"{name} is damaged: its hints are none")
    book.hints = hints
    rules = data.get("rules", {})
    if not isinstance(rules, dict) or len(rules) > MOST_ANSWERS or not all(
            isinstance(r, dict) and isinstance(r.get("seed"), str)
            and isinstance(r.get("cost"), int) and isinstance(r.get("solution"), bool)
            for r in rules.values()):
        raise BookError(f"{name} is damaged: its rules are none")
    book.rules = rules
    return book


def home() -> Path:
    """The user's own file of answers, of all notebooks; `MLC_LAB_HOME` names another folder."""
    return Path(os.environ.get("MLC_LAB_HOME") or Path.home() / ".mlc-lab") / "answers.json"


def load(path: str | Path | None = None) -> Book:
    """The answers in a file, by default the user's own; none where there is no file."""
    path = home() if path is None else Path(path)
    try:
        return read_book(path.read_bytes(), path.name)
    except FileNotFoundError:
        return Book()


def keep(result: Result, answer: Any, path: str | Path | None = None) -> str:
    """Add an answer to a file; why that could not be, or ""."""
    return _changed(lambda book: book.add(result, answer), path)


def hinted(id: str, count: int, path: str | Path | None = None) -> str:
    """Note that a student has seen hints of an exercise that is not solved; why not, or ""."""
    def note(book: Book) -> None:
        book.hints[id] = max(count, book.hints.get(id, 0))

    return _changed(note, path)


def ruled(id: str, seed: str, cost: int, solution: bool, path: str | Path | None = None) -> str:
    """Note the rules of a card: what a hint costs, and whether a solution is shown; why not, or "".
    A card without rules takes back only those of its own variant: the card of a lesson does not
    undo what a teacher has handed out."""
    rule = {"seed": seed, "cost": cost, "solution": solution}
    try:
        known = load(path).rules.get(id)
    except (OSError, DataError) as error:
        return str(error)
    free = not cost and solution
    if known == rule or free and (known is None or known["seed"] != seed):
        return ""

    def note(book: Book) -> None:
        if free:
            book.rules.pop(id, None)
        else:
            book.rules[id] = rule

    return _changed(note, path)


def _changed(change: Callable[[Book], None], path: str | Path | None) -> str:
    path = home() if path is None else Path(path)
    try:
        book = load(path)
        change(book)
        book.save(path)
    except (OSError, DataError) as error:
        return f"the answer could not be kept in {path}: {error}"
    return ""


def hand_in(path: str | Path = "answers.json", student: str = "",
            ids: Iterable[str] | None = None) -> str:
    """Write the file that is handed in: the best answers of the user's to some exercises, by
    default to all. Says what is in it."""
    kept = load()
    wanted = sorted(kept.entries) if ids is None else list(ids)
    book = Book(student, {id: kept.entries[id] for id in wanted if id in kept.entries},
                {id: kept.hints[id] for id in wanted if id in kept.hints})
    book.save(path)
    lines = [f"{path} has {len(book.entries)} of {len(wanted)} answers"]
    for id in wanted:
        entry = book.entries.get(id)
        lines.append(f"  {id}: " + (f"{entry.points} of {entry.of} points" if entry else
                                    "no answer yet"))
    return "\n".join(lines)


__all__ = ["HINTS", "SOLUTION", "Book", "BookError", "Entry", "hand_in", "hinted", "home",
           "keep", "load", "read_book", "ruled"]

"""The class: its students, the variant that each has, and who a file that was handed in is of.

A roster is a file that a teacher has or writes:

    class.txt    a name a line; the name is the seed of the student's variant
    class.csv    a column "student", "name", "full name" or "email address", and "seed" if there is
                 one; what Moodle and Canvas export of their participants is such a table
    class.json   ["student", ...] or {"student": "seed", ...}

Learning platforms say in the names of what they hand out who has handed it in:

    Moodle       Ada Lovelace_123_assignsubmission_file_/answers.json, and the same without a folder
    Canvas       lovelaceada_123_456_answers.json, lovelaceada_LATE_123_456_answers-1.json

In folders and archives of a teacher's own no part of a name says that it is the student's. It is
found from all names together (`students_of`), so that ada/loops.ipynb and bob/loops.ipynb are of
two students, and so are week1/ada/answers.json and week1/bob/answers.json.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ...reading import DataError, read_json

#: what the column of names may be called, the first that there is
NAMES = ("student", "name", "full name", "email address", "email", "login id", "username")
#: characters of a name, and students of a class
MOST_NAME, MOST_STUDENTS = 200, 20_000


def read_roster(path: str | Path) -> dict[str, str]:
    """The seed of each student. Raises DataError for what is no roster, OSError for no file."""
    path = Path(path)
    data = path.read_bytes()
    if path.suffix == ".json":
        found = read_json(data, path.name)
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise DataError(f"{path.name} is no roster: it is not text in UTF-8") from None
        found = (_of_table(text, path.name) if path.suffix == ".csv" else
                 [line.strip() for line in text.splitlines() if line.strip()])
    words = [*found, *found.values()] if isinstance(found, dict) else found
    if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
        raise DataError(f'{path.name} is no roster: ["student", ...] or {{"student": "seed", ...}}')
    if len(found) > MOST_STUDENTS or any(len(word) > MOST_NAME for word in words):
        raise DataError(f"{path.name} is no roster: it has more than {MOST_STUDENTS:,} students, "
                        f"or a name of more than {MOST_NAME} characters")
    return found if isinstance(found, dict) else {name: name for name in found}


def _of_table(text: str, name: str) -> dict[str, str]:
    rows = list(csv.reader(io.StringIO(text), delimiter=_delimiter(text)))
    head = [cell.strip().lower() for cell in rows[0]] if rows else []
    column = next((head.index(word) for word in NAMES if word in head), None)
    if column is None:
        raise DataError(f"{name} is no roster: no column is called {', '.join(NAMES)}")
    seed = head.index("seed") if "seed" in head else column
    return {row[column].strip(): row[seed].strip() for row in rows[1:]
            if len(row) > max(column, seed) and row[column].strip()
            and "Points Possible" not in row[column]}


def _delimiter(text: str) -> str:
    first = text.partition("\n")[0]
    return max(",;\t", key=first.count)


@dataclass(frozen=True)
class Place:
    """Who the name of a file says it is of: a name, the number that a platform knows them by."""

    name: str
    platform: str = ""  # "moodle", "canvas", or "" for a folder of a teacher's own
    number: str = ""
    late: bool = False


_MOODLE = re.compile(r"(.+)_(\d+)_assignsubmission_(?:file|onlinetext)", re.DOTALL)
_CANVAS = re.compile(r"([^_].*?)_(?:(LATE)_)?(\d+)_(\d+)_.", re.DOTALL)


def place_of(name: str) -> Place:
    """Who a platform says in a file's name, with its folders, that it is of; archives in it end in
    a colon. Of other files see `students_of`."""
    for part in reversed(re.split(r"[/:]", name)):
        found = _MOODLE.match(part)
        if found:
            return Place(found[1].strip(), "moodle", found[2])
        found = _CANVAS.match(part)
        if found:
            return Place(found[1].strip(), "canvas", found[3], found[2] is not None)
    return Place("")


def students_of(names: Iterable[str], matcher: Matcher | None = None) -> dict[str, str]:
    """Who the files of a teacher's own folder are of, by their names; the first that says it:

    1. a folder, an archive or the file is called as a student of the roster: the outermost of them;
    2. a file that is called `answers`, or as a file elsewhere, is of a folder: at the depth with
       the most different names, the outermost of several such depths;
    3. a file alone in STUDENT/ASSIGNMENT/FILE, as nbgrader has it, is of the first folder;
    4. a file is of its folder where that has a number as platforms write it (ada_17);
    5. a file is called as its student.
    """
    paths = {name: _parts(name) for name in names}
    same = Counter(path[-1] for path in paths.values())
    inside = Counter(path[:-1] for path in paths.values())
    known_by_folder = [path for path in paths.values() if same[path[-1]] > 1
                       or path[-1] == "answers"]
    deepest = max(map(len, known_by_folder), default=1) - 1
    kinds = [len({path[n] for path in known_by_folder if len(path) > n + 1})
             for n in range(deepest)]
    depth = kinds.index(max(kinds)) if kinds and max(kinds) > 1 else -1

    def raw(path: tuple[str, ...]) -> str:
        for part in path:
            for form in (part, _plain(part)):
                if matcher is not None and matcher.find(form):
                    return matcher.find(form)
        folders = path[:-1]
        if folders and (path[-1] == "answers" or same[path[-1]] > 1):
            return folders[min(depth, len(folders) - 1)]
        if len(folders) > 1 and inside[folders] == 1:
            return folders[-2]
        return folders[-1] if folders and "_" in folders[-1] else path[-1]

    found = {name: raw(path) for name, path in paths.items()}
    plain = Counter(_plain(student) for student in set(found.values()))
    return {name: _plain(student) if plain[_plain(student)] == 1 else student
            for name, student in found.items()}


def _parts(name: str) -> tuple[str, ...]:
    """Folders and archives of a name, and at the end the file, without what says their kinds."""
    *folders, file = [part for part in re.split(r"[/:]", name) if part not in ("", ".", "..")] or [
        name]
    return (*(part.removesuffix(".zip") or part for part in folders), PurePosixPath(file).stem)


def _plain(part: str) -> str:
    """A name without the number that a platform puts behind it."""
    return re.split(r"_\d", part)[0].strip("_ ") or part


def file_name(student: str) -> str:
    """The name of a student's file: letters, of whatever script, and what tells two apart."""
    plain = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", student)).strip("._")
    # a name has 255 bytes, and other programs add to it
    plain = plain.encode()[:120].decode(errors="ignore") or "student"
    return f"{plain}-{hashlib.sha256(student.encode()).hexdigest()[:8]}.json"


class Matcher:
    """Finds students of a roster by the names that platforms make of theirs."""

    def __init__(self, roster: Iterable[str] | Mapping[str, str]) -> None:
        self._known: dict[str, set[str]] = {}
        for student in roster:
            for form in _forms(student):
                self._known.setdefault(form, set()).add(student)

    def find(self, name: str) -> str:
        """The one student whom a name can mean; "" for none, or for several."""
        found = self._known.get(_letters(name), set())
        return next(iter(found)) if len(found) == 1 else ""


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def _forms(student: str) -> set[str]:
    """A name as it is, and with its last words first, as Canvas writes it: "lovelaceada"."""
    words = student.split()
    return {_letters(" ".join(words[n:] + words[:n])) for n in range(max(1, len(words)))}


__all__ = ["Matcher", "Place", "file_name", "place_of", "read_roster", "students_of"]

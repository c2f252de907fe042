"""Files of answers in a folder, and in the zip archives that learning platforms make of them.

What is looked at: files of answers (`.json`, see `book.py`), notebooks with answers in their cells
(`notebooks.py`), marks that were made before, and archives of these, also one that a student has
put into what a platform packs. Who has handed a file in is what the platform says by the file's
name (`roster.py`); in a folder of a teacher's own it is what the file says of itself.
What cannot be read is listed with its reason; nothing is unpacked to disk.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from ...reading import DataError, read_json, reason
from ..book import MOST_BYTES, Book, Entry, read_book
from .notebooks import read_notebook, told
from .roster import MOST_NAME, Matcher, Place, file_name, place_of, students_of

#: archives' members that are looked at, and bytes of all that are read of one archive
MOST_MEMBERS, MOST_OF_ARCHIVE = 20_000, 2 << 30
#: what is in the folder that `write_collected` writes
LIST, LIST_FORMAT = "collected.json", "mlc-lab collected"
_KINDS = (".json", ".ipynb")


@dataclass
class Handed:
    """What a student has handed in: the answers, or what is wrong with the file.

    `platform`, `number` and `late` are what the platform says; `note` is for the teacher to look
    at, and takes nothing away.
    """

    student: str
    source: str
    book: Book | None = None
    problem: str = ""
    platform: str = ""
    number: str = ""
    late: bool = False
    note: str = ""


def collect(path: str | Path, roster: Mapping[str, str] | Iterable[str] = ()) -> list[Handed]:
    """All that was handed in: in a folder and below it, in a zip archive, or in a folder that
    `write_collected` or `grade` has written. By student. Raises DataError where there is none.

    With a roster, the names that platforms make of its students are replaced by its own.
    Of a student's several files the last one, by its name, counts.
    """
    path = Path(path)
    if path.is_dir():
        if (path / LIST).is_file():
            return _collected(path)
        files = (p for p in path.rglob("*") if p.is_file() and not p.is_symlink())
        found = [handed for file in sorted(files)
                 for handed in _file(file, _text(file.relative_to(path).as_posix()))]
    elif path.suffix == ".zip" and path.is_file():
        found = list(_archive(path, path.name, MOST_OF_ARCHIVE))
    else:
        raise DataError(f"there is no folder {path}, and no zip archive")
    return _by_student(found, Matcher(roster))


def _text(name: str) -> str:
    """A name of the file system's, as text that can be written."""
    return name.encode("utf-8", "replace").decode()


def _file(path: Path, name: str) -> Iterator[Handed]:
    if path.suffix in _KINDS:
        yield _read(name, path.stat().st_size, path.read_bytes)
    elif path.suffix == ".zip":
        yield from _archive(path, name, MOST_OF_ARCHIVE)


# ------------------------------------------------------------------------------------ archives


def _archive(file: Any, name: str, most: int, inside: bool = False) -> Iterator[Handed]:
    """What is in an archive, read no further than a file of answers is long."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > MOST_MEMBERS:
                raise DataError(f"it has {len(members):,} files, {MOST_MEMBERS:,} are read at most")
            for member in members:
                where = f"{name}:{member.filename}"
                suffix = PurePosixPath(member.filename).suffix
                if member.is_dir() or suffix not in (*_KINDS, ".zip") or "__MACOSX" in where:
                    continue
                if member.file_size > min(most, MOST_BYTES):
                    yield _no_answers(where, _long(member.file_size))
                    continue
                most -= member.file_size
                with archive.open(member) as opened:
                    data = opened.read(MOST_BYTES + 1)  # whatever size the archive claims
                if suffix != ".zip":
                    yield _read(where, len(data), lambda data=data: data)
                elif inside:
                    yield _no_answers(where, "an archive in an archive in an archive is not read")
                else:
                    yield from _archive(io.BytesIO(data), where, min(most, 10 * MOST_BYTES), True)
    except (OSError, zipfile.BadZipFile, DataError, RuntimeError, NotImplementedError, EOFError,
            ValueError, zlib.error) as error:
        yield _no_answers(name, f"the archive cannot be read: {reason(error)}")


# ------------------------------------------------------------------------------------ files


def _read(name: str, size: int, content: Any) -> Handed:
    if size > MOST_BYTES:
        return _no_answers(name, _long(size))
    plain, note = PurePosixPath(name.rpartition(":")[2]).name, ""
    try:
        data = content()
        if plain.endswith(".ipynb"):
            book, problems = read_notebook(data, plain)
            note = told(problems)
        else:
            book = _book(data, plain)
        book.as_json().encode()
    except UnicodeEncodeError:
        return _no_answers(name, f"{plain} is damaged: it has half a letter (a lone surrogate)")
    except (OSError, DataError) as error:
        return _no_answers(name, reason(error))
    place = place_of(name)
    claimed = book.student[:MOST_NAME].strip()
    if not place.platform and claimed:
        place = replace(place, name=claimed)
    return _handed(place, name, book=book, note=note)


def _book(data: bytes, name: str) -> Book:
    """Answers of a file of answers, or of a file of marks, which keeps them."""
    if b'"mlc-lab marks"' not in data[:MOST_BYTES]:
        return read_book(data, name)
    marks = read_json(data, name)
    try:
        seeds = {id: result["seed"] for id, result in marks["results"].items()}
        versions = marks.get("versions", {})
        entries = {id: Entry(seeds[id], answer, version=str(versions.get(id, "")))
                   for id, answer in marks["answers"].items()}
        return Book(marks["student"], entries, dict(marks.get("hints", {})))
    except (KeyError, TypeError, AttributeError):
        return read_book(data, name)


def _handed(place: Place, source: str, **rest: Any) -> Handed:
    return Handed(place.name, source, platform=place.platform, number=place.number,
                  late=place.late, **rest)


def _no_answers(name: str, problem: str) -> Handed:
    return _handed(place_of(name), name, problem=problem)


def _long(size: int) -> str:
    return f"it has {size:,} bytes; answers have {MOST_BYTES:,} at most"


# ------------------------------------------------------------------------------------ students


def _by_student(all_handed: list[Handed], matcher: Matcher) -> list[Handed]:
    """One for each student: those whom a platform knows by different numbers are different, and
    get different names."""
    found: dict[tuple[str, str, str], Handed] = {}
    named = students_of([one.source for one in all_handed if not one.platform], matcher)
    for handed in all_handed:
        handed.student = handed.student or named[handed.source]
        handed.student = matcher.find(handed.student) or handed.student
        _note_claim(handed)
        key = (handed.platform, handed.number, handed.number and "" or handed.student)
        old = found.get(key)
        if old is None:
            found[key] = handed
        elif handed.book is not None or old.book is None:
            _note_others(handed, old)
            found[key] = handed
        else:
            _note_others(old, handed)
    names: dict[str, list[Handed]] = {}
    for handed in found.values():
        names.setdefault(handed.student, []).append(handed)
    for name, several in names.items():
        for handed in several if len(several) > 1 else ():
            handed.student = f"{name} ({handed.number or PurePosixPath(handed.source).name})"
    return sorted(found.values(), key=lambda handed: handed.student)


def _note_claim(handed: Handed) -> None:
    """Note where a file says that it is of another student than the platform says; the platform's
    form of the same name is none."""
    claimed = handed.book.student[:MOST_NAME].strip() if handed.book is not None else ""
    if claimed not in ("", handed.student) and not Matcher([claimed]).find(handed.student):
        told = f"the file says that it is of {claimed!r}"
        handed.note = "; ".join(filter(None, (told, handed.note)))


def _note_others(counts: Handed, other: Handed) -> None:
    """Note where two files, neither from a platform, say that they are of one student."""
    if not counts.platform and counts.book is not None and other.book is not None:
        told = f"{other.source} says that it is of the same student; {counts.source} counts"
        counts.note = "; ".join(filter(None, (other.note, counts.note, told)))


# ------------------------------------------------------------------------------------ kept


def write_collected(handed: Iterable[Handed], out: str | Path) -> Path:
    """Write a file of answers for each student, and the list of them, into a folder.

    Raises DataError for a folder that has other files.
    """
    out = Path(out)
    if out.is_dir() and any(out.iterdir()) and not (out / LIST).is_file():
        raise DataError(f"the folder {out} has files already: name an empty one")
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for one in handed:
        row = {key: value for key, value in vars(one).items() if key != "book"}
        row["file"] = ""
        if one.book is not None:
            row["file"] = file_name(one.student)
            replace(one.book, student=one.student).save(out / row["file"])
        rows.append(row)
    path = out / LIST
    path.write_text(json.dumps({"format": LIST_FORMAT, "students": rows}, indent=1,
                               ensure_ascii=True, sort_keys=True), encoding="utf-8")
    return path


def _collected(folder: Path) -> list[Handed]:
    """What `write_collected` has written."""
    data = read_json((folder / LIST).read_bytes(), LIST)
    try:
        if data["format"] != LIST_FORMAT:
            raise DataError(f"{folder / LIST} is no list of what was collected")
        found = []
        for row in data["students"]:
            file = row.pop("file")
            one = Handed(**row)
            if file:
                one.book = read_book((folder / PurePosixPath(file).name).read_bytes(), file)
            found.append(one)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder / LIST} is damaged: {reason(error)}") from None
    return found


__all__ = ["Handed", "collect", "write_collected"]

"""Files of answers in a folder, and in the zip archives that learning platforms make of them.

A student is who the file says, and where it does not, the beginning of its name: Moodle calls a
folder "Ada Lovelace_123_assignsubmission_file_", Canvas a file "lovelaceada_123_456_a.json".
What cannot be read is listed with its reason; nothing is unpacked to disk.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ...reading import DataError, reason
from ..book import MOST_BYTES, Book, read_book

#: archives' members that are looked at, and bytes of all that are read of one archive
MOST_MEMBERS, MOST_OF_ARCHIVE = 20_000, 2 << 30


@dataclass
class Handed:
    """A file that was handed in: whose it is, and its answers or what is wrong with it."""

    student: str
    source: str
    book: Book | None = None
    problem: str = ""


def collect(folder: str | Path) -> list[Handed]:
    """All files of answers below a folder, by student. Raises DataError for no folder.

    Of a student's several files the last one, by its name, counts.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}")
    found: dict[str, Handed] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".json":
            _add(found, _read(name, path.stat().st_size, lambda p=path: p.read_bytes()))
        elif path.suffix == ".zip":
            for handed in _archive(path, name):
                _add(found, handed)
    return [found[key] for key in sorted(found)]


def _add(found: dict[str, Handed], handed: Handed) -> None:
    old = found.get(handed.student)
    if old is None or handed.book is not None or old.book is None:
        found[handed.student] = handed


def _archive(path: Path, name: str) -> Iterator[Handed]:
    """The files of answers in an archive, read no further than a file of answers is long."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MOST_MEMBERS:
                raise DataError(f"it has {len(members):,} files, {MOST_MEMBERS:,} are read at most")
            left = MOST_OF_ARCHIVE
            for member in members:
                if member.is_dir() or not member.filename.endswith(".json"):
                    continue
                where = f"{name}:{member.filename}"
                if member.file_size > min(left, MOST_BYTES):
                    yield Handed(_student(where), where, problem=_long(member.file_size))
                    continue
                left -= member.file_size
                with archive.open(member) as file:
                    data = file.read(MOST_BYTES + 1)  # whatever size the archive claims
                yield _read(where, len(data), lambda data=data: data)
    except (OSError, zipfile.BadZipFile, DataError, RuntimeError, NotImplementedError) as error:
        yield Handed(_student(name), name, problem=f"the archive cannot be read: {reason(error)}")


def _read(name: str, size: int, content: object) -> Handed:
    if size > MOST_BYTES:
        return Handed(_student(name), name, problem=_long(size))
    try:
        book = read_book(content(), PurePosixPath(name).name)  # type: ignore[operator]
    except (OSError, DataError) as error:
        return Handed(_student(name), name, problem=reason(error))
    return Handed(book.student or _student(name), name, book)


def _long(size: int) -> str:
    return f"it has {size:,} bytes; answers have {MOST_BYTES:,} at most"


def _student(name: str) -> str:
    """Who a file's name says it is of."""
    path = PurePosixPath(name.rpartition(":")[2])
    first = path.parent.name if "_" in path.parent.name else path.stem
    return re.split(r"_\d", first)[0].strip("_ ") or first


__all__ = ["Handed", "collect"]

"""A database in two files of JSON lines, as TVM keeps one: programs, and records of trials.

`database_workload.json` has a line `[key, program]` for each program; `database_tuning_record.json`
a line `[key of the program, [trace, times, target, arguments], {...}]` for each trial, with what
else is known of it in the last part. Lines are added at the end, one at a time, so that several
processes may write, a file can be joined to another one, and one that a power cut has cut off loses
its last line only. Everything is read when the database is opened.

(TVM gives the number of a program's line where the key is here, which two processes that write
would get wrong.) A SQLite database, the default of a search, is quicker to ask, and follows a
search that another process runs.
"""

from __future__ import annotations

import json
import os
import warnings
from typing import TYPE_CHECKING, Any, Iterator

from ...reading import MISTAKES, DataError, read_json, reason
from ..workload import Workload, coarse_key
from .file import DatabaseError
from .kinds import MemoryDatabase
from .record import COLUMNS, TuningRecord, times_of

if TYPE_CHECKING:
    from pathlib import Path
    from ...ir.module import IRModule
    from ...tir.function import PrimFunc

#: what a record's own part says
_OWN = ("trace", "times", "target", "args_info", "workload", "trace_json", "id")


class JSONDatabase(MemoryDatabase, kind="json"):
    """A database in two JSON files, see the head of this file.

    Parameters
    ----------
    path_workload, path_tuning_record: the files.
    work_dir: where they are under the names above, if their paths are not given.
    allow_missing: whether to make them.

    Raises ValueError without a path, DatabaseError for what is no such file or cannot be written.
    Damaged lines are left out, with a warning.
    """

    def __init__(self, path_workload: str | Path | None = None,
                 path_tuning_record: str | Path | None = None, *,
                 work_dir: Any = None, allow_missing: bool = True,
                 module_equality: str = "structural") -> None:
        if work_dir is None and (path_workload is None or path_tuning_record is None):
            raise ValueError("JSONDatabase needs work_dir, or the paths of its two files")
        super().__init__(module_equality)
        #: as given, to open the database again
        folder = "" if work_dir is None else os.fspath(work_dir)
        self.path_workload = os.fspath(
            path_workload or os.path.join(folder, "database_workload.json"))
        self.path_tuning_record = os.fspath(
            path_tuning_record or os.path.join(folder, "database_tuning_record.json"))
        self._reading = True
        #: keys of the programs that are in the file
        self._written: set[str] = set()
        for path, take in ((self.path_workload, self._take_workload),
                           (self.path_tuning_record, self._take_record)):
            if not os.path.exists(path):
                if not allow_missing:
                    raise DatabaseError(f"there is no database {path}")
                _add(path, "")
            damaged = ""
            for number, line in enumerate(_lines(path), 1):
                try:
                    take(read_json(line, f"line {number} of {path}"))
                except MISTAKES as error:
                    damaged = f"line {number}: {reason(error)}"
            if damaged:
                warnings.warn(f"{path} has damaged lines, which are left out (the last: {damaged})",
                              stacklevel=2)
        self._reading = False

    def _take_workload(self, line: Any) -> None:
        workload = Workload.from_json(line)
        self._do("INSERT OR IGNORE INTO workloads VALUES (?, ?, ?, ?)",
                 (workload.shash, coarse_key(workload.mod), "main", line[1]))
        self._known[workload.shash] = workload
        self._written.add(workload.shash)

    def _take_record(self, line: Any) -> None:
        key, measured, more = line
        if not isinstance(more, dict):
            raise DataError("a record is [key of its program, what was measured, {...}]")
        if "revises" in more:
            record = self._records("WHERE created=? AND workload=?", (more["revises"], key))[0]
            record.times, record.status, record.reason = (
                times_of(measured[1] or []), str(more["status"]), str(more["reason"]))
            self.revise_tuning_record(record)
            return
        record = TuningRecord.from_json(measured, self._workload(key))
        for name in COLUMNS:
            if name in more and name not in _OWN:
                setattr(record, name, more[name])
        self.commit_tuning_record(record)

    def commit_workload(self, mod: IRModule | PrimFunc) -> Workload:
        """The program's entry, made if there is none."""
        found = super().commit_workload(mod)
        if found.shash not in self._written:
            self._written.add(found.shash)
            _add(self.path_workload, json.dumps(found.as_json()))
        return found

    def commit_tuning_record(self, record: TuningRecord) -> int:
        """Add a record; returns its id. It is on disk when this returns."""
        number = super().commit_tuning_record(record)
        if not self._reading:
            more = {n: getattr(record, n) for n in COLUMNS if n not in _OWN}
            self._write(record, more)
        return number

    def revise_tuning_record(self, record: TuningRecord) -> None:
        """Put what was measured anew in the place of what a record has."""
        super().revise_tuning_record(record)
        if not self._reading:
            self._write(record, {"revises": record.created, "status": record.status,
                                 "reason": record.reason})

    def _write(self, record: TuningRecord, more: dict[str, Any]) -> None:
        _add(self.path_tuning_record, json.dumps([record.workload.shash, record.as_json(), more]))

    def __getstate__(self) -> dict:
        return {"path_workload": self.path_workload, "path_tuning_record": self.path_tuning_record}

    def __setstate__(self, state: dict) -> None:
        self.__init__(**state)


def _lines(path: str) -> Iterator[str]:
    """The lines of a file; the last one only if it has been written whole."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            if file.read(16).startswith("SQLite format 3"):
                raise DatabaseError(f"{path} is a SQLite database: open it by "
                                    f'Database.create("sqlite", {path!r})')
            file.seek(0)
            for line in file:
                if line.endswith("\n") and line.strip():
                    yield line
    except OSError as error:
        raise DatabaseError(f"{path} cannot be read: {error.strerror}") from None


def _add(path: str, line: str) -> None:
    """Append a line in one write; a last line that was cut off is ended first."""
    try:
        with open(path, "ab+", buffering=0) as file:
            if line:
                file.seek(0, os.SEEK_END)
                cut = b""
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    cut = b"" if file.read(1) == b"\n" else b"\n"
                file.write(cut + line.encode() + b"\n")
    except OSError as error:
        raise DatabaseError(f"{path} cannot be written: {error.strerror}; choose a directory you "
                            "may write in") from None


__all__ = ["JSONDatabase"]

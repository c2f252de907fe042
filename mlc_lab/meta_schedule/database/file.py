"""The SQLite file of a database: its tables, access to it, and what can go wrong with it."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...ir.diagnostics import MLCError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: version of the tables; another version is refused
SCHEMA = 1

_TABLES = """
CREATE TABLE mlc_lab (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE workloads (key TEXT PRIMARY KEY, coarse TEXT, name TEXT, module TEXT);
CREATE INDEX workloads_coarse ON workloads (coarse);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, task TEXT, workload TEXT, target TEXT, space TEXT,
    started REAL, finished REAL, state TEXT, trials_wanted INTEGER, seed INTEGER, pid INTEGER,
    host TEXT, machine TEXT);
CREATE TABLE records (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER, task TEXT, workload TEXT, target TEXT,
    trial INTEGER, round INTEGER, generation INTEGER, parent INTEGER, mutation TEXT, strategy TEXT,
    trace_json TEXT, status TEXT, reason TEXT, times TEXT, time REAL, error REAL, predicted REAL,
    seed INTEGER, build_s REAL, run_s REAL, created REAL, flop REAL);
CREATE INDEX records_best ON records (workload, target, time);
"""


def _plain(sql: str) -> str:
    return " ".join(sql.split())


#: the statements, by the name of what they make
_STATEMENTS = {s.split()[2]: s for s in map(_plain, _TABLES.split(";")) if s}
#: table -> column -> the types that its values have; None besides
COLUMN_TYPES: dict[str, dict[str, tuple[type, ...]]] = {
    name: {words[0]: {"TEXT": (str,), "INTEGER": (int,), "REAL": (float, int)}[words[1]]
           for words in map(str.split, sql.partition("(")[2].rstrip(")").split(", "))}
    for name, sql in _STATEMENTS.items() if sql.startswith("CREATE TABLE")
}

#: the largest text that is taken from a file
_LARGEST = 1 << 28
#: what SQLite raises; the second where its message quotes damaged bytes
_ERRORS = (sqlite3.Error, UnicodeDecodeError)


def _text(data: bytes) -> str:
    """A text of the file; damaged bytes become U+FFFD, which what parses the text finds."""
    return data.decode("utf-8", "replace")


class DatabaseError(MLCError, RuntimeError):
    """A database that cannot be read or written: the message says why and what to do."""


class DatabaseFile:
    """An open file with the tables of a database; ":memory:" is a file that is on no disk.

    Threads and processes may share it. Raises DatabaseError for a file that cannot be opened, is
    of another version, damaged, or something else.
    """

    def __init__(self, path: str = ":memory:") -> None:
        self.path = str(path)
        self._lock = threading.RLock()
        self._link: Any = None
        try:
            self._open()
        except BaseException:
            self.close()  # else the error's traceback keeps the file, and its lock, open
            raise

    def _open(self) -> None:
        try:
            self._connect(self.path)
            self._link.execute("PRAGMA journal_mode=WAL")
            self._link.execute("PRAGMA synchronous=NORMAL")
            self._create_tables()
        except _ERRORS as error:
            if not (os.path.isfile(self.path) and any(
                    word in str(error) for word in ("readonly", "unable to open"))):
                raise self._explain(error) from None
            self._open_to_read()

    def _connect(self, name: str, **options: Any) -> None:
        self.close()
        self._link = sqlite3.connect(name, timeout=30, check_same_thread=False,
                                     isolation_level=None, **options)
        self._link.row_factory = sqlite3.Row
        self._link.text_factory = _text
        if sys.version_info >= (3, 11):  # which has setlimit
            self._link.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
        self._link.execute("PRAGMA trusted_schema=OFF")

    def _open_to_read(self) -> None:
        """Open a database that cannot be written: queries work, and writing is an error.

        `immutable` ignores a journal beside the file, so it is the last resort: SQLite needs it
        where it cannot make the file by which processes share a journal.
        """
        name = Path(self.path).absolute().as_uri() + "?mode=ro"
        for uri in (name, name + "&immutable=1"):
            try:
                self._connect(uri, uri=True)
                return self._check_version()
            except _ERRORS as error:
                last = error
        raise self._explain(last)

    def _create_tables(self) -> None:
        link = self._link
        link.execute("BEGIN IMMEDIATE")
        tables = {r[0] for r in link.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        if not tables - {"sqlite_sequence"}:
            for statement in _STATEMENTS.values():
                link.execute(statement)
            link.execute("INSERT INTO mlc_lab VALUES ('schema', ?)", (str(SCHEMA),))
        elif "mlc_lab" not in tables:
            link.execute("ROLLBACK")
            names = ", ".join(sorted(tables)[:5])
            raise DatabaseError(f"{self.path} is an SQLite file of something else (its tables: "
                                f"{names}); choose another work_dir")
        link.execute("COMMIT")
        self._check_version()

    def _check_version(self) -> None:
        """Raise DatabaseError for another version, and for tables that are not those of above.

        What is there besides, views and triggers above all, is code that SQLite would run.
        """
        made = {name: _plain(sql or "") for name, sql in self._link.execute(
            "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'")}
        if made.get("mlc_lab") != _STATEMENTS["mlc_lab"]:
            raise self._foreign("mlc_lab")
        version = self._link.execute("SELECT value FROM mlc_lab WHERE key='schema'").fetchone()
        if version is None or version[0] != str(SCHEMA):
            have = version[0] if version else "unknown"
            raise DatabaseError(
                f"{self.path} was written in version {have} of the database, and this MLC Lab "
                f"reads version {SCHEMA}: keep the file for the MLC Lab that wrote it, and "
                "choose another work_dir here")
        for name in {**_STATEMENTS, **made}:
            if made.get(name) != _STATEMENTS.get(name):
                raise self._foreign(name)

    def _foreign(self, name: str) -> DatabaseError:
        return DatabaseError(
            f"{self.path} is damaged or was changed by another program: its {name[:60]!r} is not "
            "as MLC Lab makes it; choose another work_dir")

    def _explain(self, error: sqlite3.Error | UnicodeDecodeError) -> DatabaseError:
        text = str(error)
        if "not a database" in text or "malformed" in text or isinstance(
                error, UnicodeDecodeError):
            return DatabaseError(
                f"{self.path} is damaged or no database ({text}): it may have been cut short while "
                "it was copied; move it away (sqlite3's .recover may save its records), or choose "
                "another work_dir")
        if "full" in text:
            return DatabaseError(
                f"the disk of {self.path} is full: what was measured so far is in the database; "
                "make room and call the search again, it goes on where it stopped")
        if "locked" in text or "busy" in text:
            return DatabaseError(
                f"{self.path} is held by another process for longer than 30 s: another search "
                "works there and is stuck, or a program has the file open; end it, or choose "
                "another work_dir")
        if "unable to open" in text:
            return DatabaseError(f"cannot open {self.path}: is the directory there, and may you "
                                 "write in it?")
        if "readonly" in text:
            return DatabaseError(f"{self.path} may only be read: copy it to a work_dir of yours")
        if "disk I/O error" in text:
            return DatabaseError(f"{self.path} cannot be read or written ({text}): is its disk "
                                 "full, or its file gone?")
        return DatabaseError(f"{self.path}: {text}")

    def _do(self, sql: str, values: Sequence[Any] = ()) -> Any:
        with self._lock:
            if self._link is None:
                raise DatabaseError(f"the database {self.path} is closed")
            try:
                return self._link.execute(sql, values)
            except _ERRORS as error:
                raise self._explain(error) from None

    def _one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first row, None where there is none."""
        return next(iter(self._all(sql, values)), None)

    def _all(self, sql: str, values: Sequence[Any] = ()) -> list:
        with self._lock:
            try:
                return self._do(sql, values).fetchall()
            except _ERRORS as error:
                raise self._explain(error) from None

    def close(self) -> None:
        """Close the file; a later use is an error."""
        with self._lock:
            if self._link is not None:
                self._link.close()
                self._link = None

    def __getstate__(self) -> dict:
        return {"path": self.path}

    def __setstate__(self, state: dict) -> None:
        self.__init__(state["path"])


__all__ = ["SCHEMA", "DatabaseError", "DatabaseFile"]

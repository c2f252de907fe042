"""The kinds of database: in a file, in memory, or several asked as one."""

from __future__ import annotations

import os
from typing import Any, Iterator

from ..workload import Workload
from .database import Database
from .file import DatabaseError
from .record import TuningRecord


class SQLiteDatabase(Database, kind="sqlite"):
    """A database in one file.

    Raises DatabaseError for a file that is of another version, damaged, or something else.
    """

    def __init__(self, path: Any = None, *, work_dir: Any = None, **_: Any) -> None:
        if path is None:
            path = os.path.join(os.fspath(work_dir or "."), "database.db")
        super().__init__(os.fspath(path))


class JSONDatabase(SQLiteDatabase, kind="json"):
    """TVM's name of the database on disk. The paths of its two files name one SQLite file.

    Raises ValueError without a path, DatabaseError where the file must be there and is not.
    """

    def __init__(self, path_workload: Any = None, path_tuning_record: Any = None, *,
                 work_dir: Any = None, allow_missing: bool = True,
                 module_equality: str = "structural") -> None:
        path = path_tuning_record or path_workload
        if path is not None and str(path).endswith(".json"):
            path = os.path.join(os.path.dirname(os.fspath(path)), "database.db")
        if path is None and work_dir is None:
            raise ValueError("JSONDatabase needs work_dir, or a path")
        if not allow_missing and path is not None and not os.path.exists(path):
            raise DatabaseError(f"there is no database {path}")
        super().__init__(path, work_dir=work_dir)


class MemoryDatabase(Database, kind="memory"):
    """A database that ends with the process."""

    def __init__(self, module_equality: str = "structural") -> None:
        super().__init__(":memory:")


class UnionDatabase(Database, kind="union"):
    """Several databases asked as one; records go to the first."""

    def __init__(self, *databases: Database) -> None:
        super().__init__(":memory:")
        self.databases = databases

    def commit_workload(self, mod: Any) -> Workload:
        """Into the first."""
        return self.databases[0].commit_workload(mod)

    def commit_tuning_record(self, record: TuningRecord) -> int:
        """Into the first."""
        return self.databases[0].commit_tuning_record(record)

    def revise_tuning_record(self, record: TuningRecord) -> None:
        """In the first, which `commit_tuning_record` put it in."""
        self.databases[0].revise_tuning_record(record)

    def has_workload(self, mod: Any) -> bool:
        """Whether one of them knows the program."""
        return any(d.has_workload(mod) for d in self.databases)

    def get_top_k(self, workload: Any, top_k: int, target: Any = None) -> list[TuningRecord]:
        """The best of all."""
        mod = workload.mod if isinstance(workload, Workload) else workload
        found = [r for d in self.databases for r in d.get_top_k(mod, top_k, target)]
        return sorted(found, key=lambda r: r.time)[:top_k]

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Those of all."""
        return [r for d in self.databases for r in d.get_all_tuning_records()]

    def __len__(self) -> int:
        return sum(map(len, self.databases))

    def __iter__(self) -> Iterator[Database]:
        return iter(self.databases)


def create(kind: Any = "sqlite", *args: Any, **options: Any) -> Database:
    """See Database.create."""
    return Database.create(kind, *args, **options)


__all__ = ["JSONDatabase", "MemoryDatabase", "SQLiteDatabase", "UnionDatabase", "create"]

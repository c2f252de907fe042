"""The kinds of database: in a file, in memory, or several asked as one."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Iterator

from ...above import above
from ...ir.module import IRModule
from ...schedule import Schedule
from ..workload import Workload, as_workload
from .database import Database
from .file import DatabaseError
from .record import TuningRecord

if TYPE_CHECKING:
    from pathlib import Path
    from ...target.target import Target
    from ...tir.function import PrimFunc


#: TVM's ways to compare programs
EQUALITIES = ("structural", "ignore-ndarray", "anchor-block")


def only_structural(module_equality: str) -> None:
    """Programs are compared as they stand; TVM's looser ways to compare them are refused."""
    if module_equality != "structural":
        raise ValueError(f"module_equality={module_equality!r}: programs are taken for equal where "
                         'they are so by structure; only "structural" is possible')


def known_equality(module_equality: str) -> None:
    """Of TVM's looser ways to compare programs a database takes the name, and compares by
    structure: fewer programs share a record, and none gets one that is not its own."""
    if module_equality not in EQUALITIES:
        raise ValueError(f"module_equality is one of {', '.join(map(repr, EQUALITIES))}, not "
                         f"{module_equality!r}")


class SQLiteDatabase(Database, kind="sqlite"):
    """A database in one file. `module_equality`: see `known_equality`.

    Raises DatabaseError for a file that is of another version, damaged, or something else.
    """

    def __init__(self, path: Any = None, *, work_dir: str | Path | None = None,
                 module_equality: str = "structural") -> None:
        known_equality(module_equality)
        if path is None:
            path = os.path.join(os.fspath(work_dir or "."), "database.db")
        if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path):
            raise DatabaseError(f"a database is at a path, not at {path!r}")
        super().__init__(os.fspath(path))


class MemoryDatabase(Database, kind="memory"):
    """A database that ends with the process. `module_equality`: see `known_equality`."""

    def __init__(self, module_equality: str = "structural") -> None:
        known_equality(module_equality)
        super().__init__(":memory:")

    def __setstate__(self, state: dict) -> None:
        MemoryDatabase.__init__(self)  # a copy has nothing of what was in memory


class ScheduleFnDatabase(MemoryDatabase, kind="schedule"):
    """Answers for every program with what `schedule_fn(sch)` makes of it; nothing is measured.

    The function schedules `sch` in place and answers whether it knows the program.
    """

    def __init__(self, schedule_fn: Callable[[Schedule], bool],
                 module_equality: str = "structural") -> None:
        super().__init__(module_equality)
        self.schedule_fn = schedule_fn

    def __getstate__(self) -> dict:
        return {"schedule_fn": self.schedule_fn}

    def __setstate__(self, state: dict) -> None:
        self.__init__(state["schedule_fn"])

    def query_tuning_record(self, mod: IRModule | PrimFunc, target: Target | str | None,
                            workload_name: str = "main") -> TuningRecord | None:
        """The trace of the function's schedule, without times; None if it does not know `mod`."""
        sch = Schedule(as_workload(mod))
        if not self.schedule_fn(sch):
            return None
        return TuningRecord(sch.trace, Workload(as_workload(mod)), str(target))


class UnionDatabase(Database, kind="union"):
    """Several databases asked as one; what is written goes to the first.

    Numbers of records and searches are those of the first as they are, and for the others numbers
    below 0, which are unique in the union.
    """

    def __init__(self, *databases: Database) -> None:
        wrong = [d for d in databases if not isinstance(d, Database)]
        if wrong or not databases:
            raise TypeError(f"{type(self).__name__}(first, second, ...) takes databases, not "
                            f"{type(wrong[0]).__name__ if wrong else 'nothing'}")
        super().__init__(":memory:")
        self.databases = tuple(part for d in databases for part in (
            d.databases if type(d) is UnionDatabase else (d,)))

    # -- numbers in the union and in its parts

    @staticmethod
    def _number(part: int, ident: int | None) -> int | None:
        return ident if ident is None or part == 0 else ident - part * _NUMBERS

    def _part(self, number: int) -> tuple[Database, int]:
        """The database a number belongs to, and what it is there."""
        part = max(0, -(number // _NUMBERS))
        if part >= len(self.databases):
            raise ValueError(f"none of the {len(self.databases)} databases has a number {number}")
        return self.databases[part], number + part * _NUMBERS

    def _records_of(self, ask: Callable[[Database], list[TuningRecord]]) -> list[TuningRecord]:
        out = []
        for part, database in enumerate(self.databases):
            for record in ask(database):
                out.append(record if part == 0 else replace(record, **{
                    name: self._number(part, getattr(record, name))
                    for name in ("id", "parent", "session")}))
        return out

    # -- written to the first

    def commit_workload(self, mod: IRModule | PrimFunc) -> Workload:
        """Into the first."""
        return self.databases[0].commit_workload(mod)

    def commit_tuning_record(self, record: TuningRecord) -> int:
        """Into the first."""
        return self.databases[0].commit_tuning_record(record)

    def revise_tuning_record(self, record: TuningRecord) -> None:
        """Where the record is."""
        database, ident = self._part(record.id or 0)
        if ident != (record.id or 0):
            record = replace(record, id=ident)
        database.revise_tuning_record(record)

    def begin_session(self, *args: Any, **options: Any) -> int:
        """In the first."""
        return self.databases[0].begin_session(*args, **options)

    def interrupted_session(self, *args: Any, **options: Any) -> dict | None:
        """In the first, where it would go on."""
        return self.databases[0].interrupted_session(*args, **options)

    def update_session(self, session: int, **changes: object) -> None:
        """Where the search is."""
        database, ident = self._part(session)
        database.update_session(ident, **changes)

    # -- asked of all

    def has_workload(self, mod: IRModule | PrimFunc) -> bool:
        """Whether one of them knows the program."""
        return any(d.has_workload(mod) for d in self.databases)

    def get_top_k(self, workload: object, top_k: int, target: Target | str | None = None
                  ) -> list[TuningRecord]:
        """The best of all."""
        mod = workload.mod if isinstance(workload, Workload) else workload
        found = self._records_of(lambda d: d.fastest(mod, top_k, target))
        return sorted(found, key=lambda r: r.time or 0.0)[:top_k]

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Those of all."""
        return self._records_of(lambda d: d.get_all_tuning_records())

    def query_all(self, workload: object = None, target: Target | str | None = None
                  ) -> list[TuningRecord]:
        """Those of all, of one program or for one target if given."""
        mod = workload.mod if isinstance(workload, Workload) else workload
        return self._records_of(lambda d: d.query_all(mod, target))

    def records(self, task: str | None = None, session: int | None = None,
                since: int = 0) -> list[dict[str, Any]]:
        """Those of all as plain data, the first's first.

        `since`, the number of one of the first's records, asks for what came after it there.
        """
        if session is not None:
            owner, ident = self._part(session)
        out = []
        for part, database in enumerate(self.databases):
            if (session is not None and database is not owner) or (since and part):
                continue
            for row in database.records(task, None if session is None else ident, since):
                out.append({**row, **{name: self._number(part, row[name])
                                      for name in ("id", "parent", "session")}})
        return out

    def sessions(self) -> list[dict[str, Any]]:
        """The searches of all."""
        return [{**item, "id": self._number(part, item["id"])}
                for part, database in enumerate(self.databases) for item in database.sessions()]

    def module(self, workload: str) -> IRModule:
        """The program of a key. Raises DatabaseError if none of them has it."""
        why = DatabaseError(f"the database has no program {workload!r}")
        for database in self.databases:
            try:
                return database.module(workload)
            except DatabaseError as error:
                why = error
        raise why

    def schedule(self, record_id: int) -> Schedule:
        """The schedule of a record. Raises ValueError if there is no such record."""
        database, ident = self._part(record_id)
        return database.schedule(ident)

    def board(self, task: str | None = None, **options: object) -> Any:
        """The tuning board of all, laid over each other."""
        return above("tuning board")(list(self.databases), task, **options)

    def __len__(self) -> int:
        return sum(map(len, self.databases))

    def __iter__(self) -> Iterator[Database]:
        return iter(self.databases)

    def __getstate__(self) -> dict:
        return {"databases": self.databases}

    def __setstate__(self, state: dict) -> None:
        self.__init__(*state["databases"])


class OrderedUnionDatabase(UnionDatabase, kind="ordered_union"):
    """Several databases, of which the first that has a record of a program answers for it."""

    def get_top_k(self, workload: object, top_k: int, target: Target | str | None = None
                  ) -> list[TuningRecord]:
        """The best of the first that has any."""
        mod = workload.mod if isinstance(workload, Workload) else workload
        return next((r for r in (self._records_of(
            lambda d, own=own: d.fastest(mod, top_k, target) if d is own else [])
            for own in self.databases) if r), [])

    def query_tuning_record(self, mod: IRModule | PrimFunc, target: Target | str | None,
                            workload_name: str = "main") -> TuningRecord | None:
        """The fastest record of the first that has one for the target."""
        found = (d.query_tuning_record(mod, target, workload_name) for d in self.databases)
        return next((r for r in found if r is not None), None)


class PyDatabase(MemoryDatabase):
    """To write a database of one's own: override `commit_tuning_record`, `get_all_tuning_records`
    and `get_top_k`, and where programs are kept elsewhere `has_workload` and `commit_workload`.

    What is not overridden is in memory. `get_top_k(workload, top_k)` is given a Workload.
    """

    def fastest(self, workload: object, top_k: int, target: Target | str | None = None
                ) -> list[TuningRecord]:
        """The best records; a `get_top_k` of one's own need not know of targets."""
        if not isinstance(workload, Workload):
            workload = Workload(as_workload(workload))
        if target is None:
            return list(self.get_top_k(workload, top_k))
        found = self.get_top_k(workload, _ALL)
        from ...target import Target

        wanted = str(Target(target))
        return [r for r in found if str(Target(r.target)) == wanted][:top_k]

    def query_all(self, workload: object = None, target: Target | str | None = None
                  ) -> list[TuningRecord]:
        """The records, of one program or for one target if given."""
        if workload is not None and not isinstance(workload, Workload):
            workload = Workload(as_workload(workload))
        mod = workload.mod if workload is not None else None
        return [r for r in self.get_all_tuning_records()
                if (mod is None or r.workload.same(mod))
                and (target is None or str(r.target) == str(target))]

    def records(self, task: str | None = None, session: int | None = None,
                since: int = 0) -> list[dict[str, Any]]:
        """The records as plain data."""
        rows = (r.as_dict() for r in self.get_all_tuning_records())
        return [r for r in rows if (task is None or r["task"] == task)
                and (session is None or r["session"] == session) and (r["id"] or 1) > since]

    def __len__(self) -> int:
        return len(self.get_all_tuning_records())


#: more records than any database has
_ALL = 1 << 20
#: numbers of records that each part of a union may use
_NUMBERS = 1 << 40


def create(kind: Any = "sqlite", *args: object, **options: object) -> Database:
    """See Database.create."""
    return Database.create(kind, *args, **options)


__all__ = ["MemoryDatabase", "OrderedUnionDatabase", "PyDatabase", "SQLiteDatabase",
           "UnionDatabase", "create", "only_structural"]

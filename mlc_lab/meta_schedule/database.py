"""The database of a search: every candidate that was tried, with its trace and what came of it.

A record (`TuningRecord`) is one trial. As plain data (`Database.records()`, a list of dicts) it has
the fields

    id             number of the record in its database
    session        number of the search that made it (see below)
    task           name of the task, e.g. "main"
    workload       key of the program (the same in every process)
    target         the target as text
    trial          number of the trial in its session and task, from 0
    round          number of the batch the trial was part of, from 0
    generation     how many mutations lie between the trace and a random one (0: a random one)
    parent         id of the record this trace was mutated from, or None
    mutation       what was changed in the parent, as text, or None
    strategy       who proposed it: "replay-trace", "evolutionary", "e-greedy", "default", "user"
    trace          the trace as Python text (with the decisions)
    trace_json     the trace as JSON text; `Schedule(mod).apply_trace(trace_json)` replays it
    decisions      {name of the result: decision} of the sampling instructions, e.g. {"v4": [8, 16]}
    status         "ok", or why it does not count: "wrong" (wrong numbers), "build_error",
                   "run_error", "crash", "timeout", "memory", "schedule_error"
    reason         a sentence on what went wrong, "" if ok
    times          list of seconds, each the mean of several calls; [] if it failed
    time           the one number for it, in seconds (median of the lower half), None if it failed
    spread         half the distance from the smallest to the largest of the lower half, relative
    error          largest absolute error of its results, None if not checked
    predicted      what the cost model said before it was measured (higher is faster; a score in
                   units of the best throughput known then), None where there was no model
    seed           seed of the search
    build_s        seconds building took
    run_s          seconds checking and timing took
    created        Unix time at which it was put into the database
    flop           floating point operations of one run, 0.0 if unknown

A session (`Database.sessions()`) is one search of one task:

    id, task, workload, target, started, finished (Unix times; finished None while it runs or if it
    was killed), state ("running", "done", "stopped"), trials_wanted, seed, pid, host,
    machine  {"cpu": name, "cores": threads used, "peak_gflops": FMA peak of those cores,
              "numpy_s": seconds numpy takes, where known}

`SQLiteDatabase` keeps them in one file (write-ahead log: several processes may share it, and a
killed one loses nothing), `MemoryDatabase` in memory.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator

from ..ir.diagnostics import MLCError
from ..ir.module import IRModule
from ..schedule import Schedule, Trace
from .measure.worker import robust
from .workload import TensorInfo, Workload, as_workload, coarse_key, text_key

#: version of the tables; another version is refused
SCHEMA = 1


class DatabaseError(MLCError, RuntimeError):
    """A database that cannot be read or written: the message says why and what to do."""


@dataclass
class TuningRecord:
    """One trial; the fields are described at the head of this file."""

    trace: Trace
    workload: Workload
    target: Any = "llvm"
    times: tuple[float, ...] = ()
    args_info: list[TensorInfo] = field(default_factory=list)
    status: str = "ok"
    reason: str = ""
    error: float | None = None
    predicted: float | None = None
    task: str = "main"
    session: int | None = None
    trial: int = 0
    round: int = 0
    generation: int = 0
    parent: int | None = None
    mutation: str | None = None
    strategy: str = "user"
    seed: int | None = None
    build_s: float = 0.0
    run_s: float = 0.0
    created: float = 0.0
    flop: float = 0.0
    id: int | None = None

    @property
    def run_secs(self) -> list[float] | None:
        """The times; None if it failed."""
        return list(self.times) if self.times else None

    @property
    def time(self) -> float | None:
        """The one number for it, in seconds; None if it failed."""
        return robust(list(self.times)) if self.times else None

    def as_schedule(self) -> Schedule:
        """The program with the trace replayed on it."""
        sch = Schedule(self.workload.mod, debug_mask="none")
        self.trace.apply_to_schedule(sch)
        return sch

    def as_measure_candidate(self) -> Any:
        """The program as a candidate to measure again."""
        from .search_strategy.candidate import MeasureCandidate

        return MeasureCandidate(self.as_schedule(), self.args_info)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, see the head of the file."""
        trace_json = json.dumps(self.trace.as_json())
        return _plain({**{name: getattr(self, name) for name in _COLUMNS if hasattr(self, name)},
                       "workload": self.workload.shash, "target": str(self.target),
                       "trace_json": trace_json, "times": list(self.times)})

    def as_json(self) -> list:
        """[trace, times, target, arguments], TVM's form of a record."""
        return [self.trace.as_json(), self.run_secs, str(self.target),
                [a.as_json() for a in self.args_info]]


_COLUMNS = ("id", "session", "task", "workload", "target", "trial", "round", "generation", "parent",
            "mutation", "strategy", "trace_json", "status", "reason", "times", "error", "predicted",
            "seed", "build_s", "run_s", "created", "flop")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row with what is derived from it."""
    trace = Trace.from_json(row["trace_json"])
    names = trace.names()
    row["trace"] = str(trace)
    row["decisions"] = {
        ", ".join(names[o] for o in trace.insts[i].output_list): d
        for i, d in trace.decisions.items()}
    times = sorted(row["times"])[: (len(row["times"]) + 1) // 2]
    row["time"] = robust(row["times"]) if times else None
    row["spread"] = (times[-1] - times[0]) / 2 / row["time"] if times else None
    return row


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


class Database:
    """A database of tuning records. `with database:` makes it the one that is asked by default.

    `Database.create("sqlite", path)` or `("memory")`, or the classes below. All methods may be
    called from several threads and processes.
    """

    _current: list["Database"] = []

    def __init__(self, path: str = ":memory:") -> None:
        self.path = str(path)
        self._lock = threading.RLock()
        self._known: dict[str, Workload] = {}
        self._link: Any = None
        self._open()

    # ------------------------------------------------------------------ the file

    def _open(self) -> None:
        try:
            self._link = sqlite3.connect(self.path, timeout=30, check_same_thread=False,
                                         isolation_level=None)
            self._link.row_factory = sqlite3.Row
            self._link.execute("PRAGMA journal_mode=WAL")
            self._link.execute("PRAGMA synchronous=NORMAL")
            self._create_tables()
        except sqlite3.Error as error:
            raise self._explain(error) from None

    def _create_tables(self) -> None:
        link = self._link
        link.execute("BEGIN IMMEDIATE")
        tables = {r[0] for r in link.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        if not tables - {"sqlite_sequence"}:
            for statement in _TABLES.split(";"):
                if statement.strip():
                    link.execute(statement)
            link.execute("INSERT INTO mlc_lab VALUES ('schema', ?)", (str(SCHEMA),))
        elif "mlc_lab" not in tables:
            link.execute("ROLLBACK")
            names = ", ".join(sorted(tables)[:5])
            raise DatabaseError(f"{self.path} is an SQLite file of something else (its tables: "
                                f"{names}); choose another work_dir")
        link.execute("COMMIT")
        version = link.execute("SELECT value FROM mlc_lab WHERE key='schema'").fetchone()
        if version is None or version[0] != str(SCHEMA):
            have = version[0] if version else "unknown"
            raise DatabaseError(
                f"{self.path} was written in version {have} of the database, and this MLC Lab "
                f"reads version {SCHEMA}: keep the file for the MLC Lab that wrote it, and "
                "choose another work_dir here")

    def _explain(self, error: sqlite3.Error) -> DatabaseError:
        text = str(error)
        if "not a database" in text or "malformed" in text:
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

    def _do(self, sql: str, values: Any = ()) -> Any:
        with self._lock:
            if self._link is None:
                raise DatabaseError(f"the database {self.path} is closed")
            try:
                return self._link.execute(sql, values)
            except sqlite3.Error as error:
                raise self._explain(error) from None

    def _all(self, sql: str, values: Any = ()) -> list:
        with self._lock:
            try:
                return self._do(sql, values).fetchall()
            except sqlite3.Error as error:
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

    # ------------------------------------------------------------------ workloads

    def _find(self, mod: IRModule) -> Workload | None:
        key = text_key(mod)
        if key in self._known:
            return self._known[key]
        row = self._do("SELECT key, module FROM workloads WHERE key=?", (key,)).fetchone()
        if row is not None:
            found = self._known[key] = Workload(mod, key)
            return found
        rows = self._all("SELECT key, module FROM workloads WHERE coarse=?", (coarse_key(mod),))
        for row in rows:
            other = self._workload(row["key"], row["module"])
            if other.same(mod):
                return other
        return None

    def _workload(self, key: str, text: str | None = None) -> Workload:
        if key not in self._known:
            if text is None:
                row = self._do("SELECT module FROM workloads WHERE key=?", (key,)).fetchone()
                if row is None:
                    raise DatabaseError(f"{self.path} has no program {key}: it is damaged")
                text = row["module"]
            from ..ir.serialize import load_json

            self._known[key] = Workload(load_json(text), key)
        return self._known[key]

    def has_workload(self, mod: Any) -> bool:
        """Whether the program is known."""
        return self._find(as_workload(mod)) is not None

    def commit_workload(self, mod: Any) -> Workload:
        """The program's entry, made if there is none."""
        from ..ir.serialize import save_json

        mod = as_workload(mod)
        found = self._find(mod)
        if found is None:
            found = Workload(mod)
            self._do("INSERT OR IGNORE INTO workloads VALUES (?, ?, ?, ?)",
                     (found.shash, coarse_key(mod), "main", save_json(mod)))
            self._known[found.shash] = found
        return found

    # ------------------------------------------------------------------ records

    def commit_tuning_record(self, record: TuningRecord) -> int:
        """Add a record; returns its id. It is on disk when this returns."""
        import time

        record.created = record.created or time.time()
        data = {name: getattr(record, name, None) for name in _COLUMNS if name != "id"}
        data.update(workload=record.workload.shash, target=str(record.target),
                    trace_json=json.dumps(record.trace.as_json()),
                    times=json.dumps(list(record.times)), time=record.time)
        names = ", ".join(data)
        marks = ", ".join("?" * len(data))
        cursor = self._do(f"INSERT INTO records ({names}) VALUES ({marks})", list(data.values()))
        record.id = cursor.lastrowid
        return record.id

    def _records(self, where: str, values: Any, limit: int | None = None) -> list[TuningRecord]:
        sql = f"SELECT * FROM records {where}" + (f" LIMIT {int(limit)}" if limit else "")
        return [self._record(r) for r in self._all(sql, values)]

    def _record(self, row: Any) -> TuningRecord:
        workload = self._workload(row["workload"])
        fields = {n: row[n] for n in _COLUMNS if n not in ("trace_json", "times", "workload")}
        return TuningRecord(
            Trace.from_json(row["trace_json"]), workload, times=tuple(json.loads(row["times"])),
            args_info=TensorInfo.from_prim_func(workload.mod["main"]), **fields)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Every record, in the order they were made."""
        return self._records("ORDER BY id", ())

    def get_top_k(self, workload: Any, top_k: int, target: Any = None) -> list[TuningRecord]:
        """The fastest `top_k` records of a program (a Workload or a module), best first."""
        workload = self._as_workload(workload)
        if workload is None:
            return []
        more, values = ("AND target=? ", [str(target)]) if target is not None else ("", [])
        return self._records(f"WHERE workload=? {more}AND time IS NOT NULL AND status='ok' "
                             "ORDER BY time, id", [workload.shash, *values], top_k)

    def _as_workload(self, workload: Any) -> Workload | None:
        return workload if isinstance(workload, Workload) else self._find(as_workload(workload))

    def query_all(self, workload: Any = None, target: Any = None) -> list[TuningRecord]:
        """Every record, of one program or for one target if given."""
        conditions, values = [], []
        if workload is not None:
            found = self._as_workload(workload)
            if found is None:
                return []
            conditions.append("workload=?")
            values.append(found.shash)
        if target is not None:
            conditions.append("target=?")
            values.append(str(target))
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        return self._records(where + "ORDER BY id", values)

    def query_best(self, workload: Any, target: Any = None) -> TuningRecord | None:
        """The fastest record of a program; None if there is none."""
        best = self.get_top_k(workload, 1, target)
        return best[0] if best else None

    def query_tuning_record(self, mod: Any, target: Any, workload_name: str = "main"
                            ) -> TuningRecord | None:
        """The fastest record for a target; where there is none, one for a target of that kind."""
        from ..target import Target

        target = Target(target)
        best = self.query_best(mod, str(target))
        if best is None:
            alike = (r for r in self.get_top_k(mod, 1 << 20)
                     if Target(r.target).kind.name == target.kind.name)
            best = next(alike, None)
        return best

    def query_schedule(self, mod: Any, target: Any, workload_name: str = "main"
                       ) -> Schedule | None:
        """The fastest schedule for a target."""
        record = self.query_tuning_record(mod, target, workload_name)
        if record is None:
            return None
        sch = Schedule(as_workload(mod))
        record.trace.apply_to_schedule(sch)
        return sch

    def query_ir_module(self, mod: Any, target: Any, workload_name: str = "main"
                        ) -> IRModule | None:
        """The fastest module for a target."""
        sch = self.query_schedule(mod, target, workload_name)
        return sch.mod if sch is not None else None

    def query(self, mod: Any, target: Any, *, workload_name: str = "main", kind: str = "schedule"
              ) -> Any:
        """The best "schedule", "record" or "ir_module"."""
        how = {"schedule": self.query_schedule, "record": self.query_tuning_record,
               "ir_module": self.query_ir_module}
        if kind not in how:
            raise ValueError(f"kind is one of {', '.join(how)}, not {kind!r}")
        return how[kind](mod, target, workload_name)

    def records(self, task: str | None = None, session: int | None = None,
                since: int = 0) -> list[dict[str, Any]]:
        """The records as plain data, see the head of this file; `since` is an id to go on from."""
        conditions, values = ["id>?"], [since]
        for name, value in (("task", task), ("session", session)):
            if value is not None:
                conditions.append(f"{name}=?")
                values.append(value)
        rows = self._all(f"SELECT * FROM records WHERE {' AND '.join(conditions)} ORDER BY id",
                         values)
        out = []
        for row in rows:
            data = {name: row[name] for name in _COLUMNS}
            data["times"] = json.loads(row["times"])
            out.append(_plain(data))
        return out

    def module(self, workload: str) -> IRModule:
        """The program of a key."""
        return self._workload(workload).mod

    def schedule(self, record_id: int) -> Schedule:
        """The schedule of a record, its trace replayed step by step (for the stepper)."""
        rows = self._records("WHERE id=?", (record_id,))
        if not rows:
            raise ValueError(f"there is no record {record_id} in {self.path}")
        return rows[0].as_schedule()

    def __len__(self) -> int:
        return self._do("SELECT COUNT(*) FROM records").fetchone()[0]

    def __bool__(self) -> bool:
        return True

    # ------------------------------------------------------------------ sessions

    def begin_session(self, task: str, workload: Workload, target: str, wanted: int, seed: int,
                      space: str, machine: dict) -> int:
        """Note that a search begins; returns its number."""
        import os
        import platform
        import time

        cursor = self._do(
            "INSERT INTO sessions (task, workload, target, space, started, state, trials_wanted, "
            "seed, pid, host, machine) VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?, ?, ?)",
            (task, workload.shash, target, space, time.time(), wanted, seed, os.getpid(),
             platform.node(), json.dumps(machine)))
        return cursor.lastrowid

    def interrupted_session(self, task: str, workload: Workload, target: str, space: str,
                            wanted: int) -> dict | None:
        """A search like this one that was stopped or killed before it was through."""
        rows = self._all(
            "SELECT * FROM sessions WHERE task=? AND workload=? AND target=? AND space=? AND "
            "trials_wanted=? ORDER BY id DESC LIMIT 1",
            (task, workload.shash, target, space, wanted))
        if not rows or rows[0]["state"] == "done" or (
                rows[0]["state"] == "running" and _alive(rows[0])):
            return None
        return dict(rows[0])

    def update_session(self, session: int, **changes: Any) -> None:
        """Change fields of a session."""
        if "machine" in changes:
            changes["machine"] = json.dumps(changes["machine"])
        names = ", ".join(f"{n}=?" for n in changes)
        self._do(f"UPDATE sessions SET {names} WHERE id=?", [*changes.values(), session])

    def sessions(self) -> list[dict[str, Any]]:
        """The searches, see the head of this file."""
        out = []
        for row in self._all("SELECT * FROM sessions ORDER BY id"):
            data = dict(row)
            data["machine"] = json.loads(data["machine"] or "{}")
            out.append(data)
        return out

    def board(self, task: str | None = None, **options: Any) -> Any:
        """The tuning board of what is in here: charts of the searches, each trial's trace, editing
        and measuring of decisions. See `mlc_lab.meta_schedule.board.Board` for the options."""
        from .board import Board

        return Board(self, task, **options)

    # ------------------------------------------------------------------ the current one

    def __enter__(self) -> "Database":
        Database._current.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        Database._current.remove(self)

    @staticmethod
    def current() -> "Database | None":
        """The database of the innermost `with database:`."""
        return Database._current[-1] if Database._current else None

    @staticmethod
    def create(kind: str | "Database" = "sqlite", *args: Any, **options: Any) -> "Database":
        """A database by kind: "sqlite" (or "json", its old name) with a path, or "memory"."""
        if isinstance(kind, Database):
            return kind
        makers: dict[str, Callable] = {"sqlite": SQLiteDatabase, "json": JSONDatabase,
                                       "memory": MemoryDatabase, "union": UnionDatabase}
        if kind not in makers:
            raise ValueError(f"there is no database {kind!r}; choose one of {', '.join(makers)}")
        return makers[kind](*args, **options)

    def dump_pruned(self, destination: "Database") -> None:
        """Copy the best record of each program and target to another database."""
        seen = set()
        for record in sorted((r for r in self.get_all_tuning_records() if r.time),
                             key=lambda r: r.time):
            key = (record.workload.shash, str(record.target))
            if key not in seen:
                seen.add(key)
                record.workload = destination.commit_workload(record.workload.mod)
                destination.commit_tuning_record(record)


def _alive(row: Any) -> bool:
    import os
    import platform

    if row["host"] != platform.node() or not row["pid"]:
        return row["host"] != platform.node()  # of another machine one cannot tell
    if row["pid"] == os.getpid():
        return False  # one process runs one search of a task at a time
    try:
        os.kill(row["pid"], 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


class MemoryDatabase(Database):
    """A database that ends with the process."""

    def __init__(self, module_equality: str = "structural") -> None:
        super().__init__(":memory:")


class SQLiteDatabase(Database):
    """A database in one file.

    Raises DatabaseError for a file that is of another version, damaged, or something else.
    """

    def __init__(self, path: Any = None, *, work_dir: Any = None, **_: Any) -> None:
        import os

        if path is None:
            path = os.path.join(os.fspath(work_dir or "."), "database.db")
        super().__init__(os.fspath(path))


class JSONDatabase(SQLiteDatabase):
    """TVM's name of the database on disk. The paths of its two files name one SQLite file."""

    def __init__(self, path_workload: Any = None, path_tuning_record: Any = None, *,
                 work_dir: Any = None, allow_missing: bool = True,
                 module_equality: str = "structural") -> None:
        import os

        path = path_tuning_record or path_workload
        if path is not None and str(path).endswith(".json"):
            path = os.path.join(os.path.dirname(os.fspath(path)), "database.db")
        if path is None and work_dir is None:
            raise ValueError("JSONDatabase needs work_dir, or a path")
        if not allow_missing and path is not None and not os.path.exists(path):
            raise DatabaseError(f"there is no database {path}")
        super().__init__(path, work_dir=work_dir)


class UnionDatabase(Database):
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


__all__ = ["Database", "DatabaseError", "JSONDatabase", "MemoryDatabase", "SQLiteDatabase",
           "SCHEMA", "TuningRecord", "UnionDatabase", "Workload", "create"]
